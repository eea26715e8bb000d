"""Facts of a tree: each content is read once, kept under its name, and nothing else decides them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from gates.repositories import Work

from gatewright.core.cache import Cache
from gatewright.core.facts import Extractor
from gatewright.core.globs import PathSet
from gatewright.core.snapshot import commit_snapshot, index_snapshot, work_tree_snapshot
from gatewright.core.tree import Tree

calls: list[bytes] = []


class Text(msgspec.Struct, frozen=True, array_like=True):
    text: bytes
    option: Any = None


def text(data: bytes, options: Any) -> list[Text]:
    calls.append(data)
    return [Text(data, options)] if data else []


def extractor(*globs: str, option: Any = None, name: str = "text") -> Extractor:
    return Extractor(name=name, paths=PathSet(globs or ("**",)), function=f"{__name__}:text", fact=Text, options=option)


@pytest.fixture(autouse=True)
def counted() -> None:
    calls.clear()


def texts(tree: Tree, wanted: Extractor | None = None) -> dict[str, Sequence[bytes]]:
    return {path: [fact.text for fact in facts] for path, facts in tree.facts(wanted or extractor()).items()}


def test_facts_come_in_path_order_and_only_where_there_are_some() -> None:
    tree = Tree.of({"b": "two", "a": "one", "c": ""})
    assert list(texts(tree).items()) == [("a", [b"one"]), ("b", [b"two"])]
    assert tree.examined(extractor()) == 3


def test_only_selected_files_are_read() -> None:
    tree = Tree.of({"src/a": "a", "src/deep/b": "b", "other": "o"})
    assert texts(tree, extractor("src/**")) == {"src/a": [b"a"], "src/deep/b": [b"b"]}
    assert sorted(calls) == [b"a", b"b"]


def test_equal_contents_are_read_once_and_reported_at_each_path() -> None:
    tree = Tree.of({"a": "same", "b": "same", "c": "other"})
    assert texts(tree) == {"a": [b"same"], "b": [b"same"], "c": [b"other"]}
    assert sorted(calls) == [b"other", b"same"]


def test_two_extractors_do_not_take_each_others_facts() -> None:
    tree = Tree.of({"a": "x"})
    tree.prefetch([extractor(option="one"), extractor(option="two")])
    assert tree.facts(extractor(option="one"))["a"] == [Text(b"x", "one")]
    assert tree.facts(extractor(option="two"))["a"] == [Text(b"x", "two")]
    assert len(calls) == 2


def test_a_key_names_the_extractor_and_its_options() -> None:
    keys = {extractor(option=o, name=n).key() for o in (("a", 1), ("a", 2), None) for n in ("x", "y")}
    assert len(keys) == 6
    assert extractor("src/**", option=("a", 1)).key() == extractor("lib/**", option=("a", 1)).key()


def test_an_extractor_over_other_paths_gives_the_facts_of_those() -> None:
    tree = Tree.of({"src/a": "a", "lib/b": "b"})
    assert list(texts(tree, extractor("src/**"))) == ["src/a"]
    assert list(texts(tree, extractor("lib/**"))) == ["lib/b"]
    assert list(texts(tree, extractor("**"))) == ["lib/b", "src/a"]


def test_a_second_run_reads_only_what_changed(work: Work, tmp_path: Path) -> None:
    work.commit({"src/b.txt": "b\n", "src/c.txt": "c\n"})
    path = tmp_path / "facts"

    def run() -> dict[str, Sequence[bytes]]:
        calls.clear()
        cache = Cache(path)
        try:
            return texts(Tree(work_tree_snapshot(work.open()), cache), extractor("src/**"))
        finally:
            cache.close()

    first = run()
    assert len(calls) == 3
    assert run() == first
    assert calls == []
    work.write({"src/b.txt": "changed\n"})
    assert run()["src/b.txt"] == [b"changed\n"]
    assert calls == [b"changed\n"]
    run()
    assert calls == []
    commit = work.commit()
    for snapshot in (commit_snapshot(work.open(), commit), index_snapshot(work.open())):
        cache = Cache(path)
        assert texts(Tree(snapshot, cache), extractor("src/**"))["src/a.txt"] == [b"fine\n"]
        cache.close()
    assert set(calls) <= {b"changed\n"}


def test_a_file_that_is_written_during_the_run_leaves_no_wrong_fact_behind(work: Work, tmp_path: Path) -> None:
    work.write({"src/a.txt": "first\n"})
    snapshot = work_tree_snapshot(work.open())
    opened: list[Any] = []
    open_reader = snapshot.open

    def open_and_write() -> Any:
        opened.append(open_reader())
        if len(opened) > 1:
            work.write({"src/a.txt": "second\n"})
        return opened[-1]

    snapshot.open = open_and_write  # type: ignore[method-assign]
    cache = Cache(tmp_path / "facts")
    assert texts(Tree(snapshot, cache), extractor("src/**")) == {"src/a.txt": [b"first\n"]}
    assert len(opened) > 1
    work.write({"src/a.txt": "first\n"})
    again = Tree(work_tree_snapshot(work.open()), cache)
    assert texts(again, extractor("src/**")) == {"src/a.txt": [b"first\n"]}
    cache.close()


def test_facts_of_a_clean_file_are_those_of_its_blob_whatever_its_bytes_on_disk(work: Work, tmp_path: Path) -> None:
    work.git("config", "core.autocrlf", "true")
    work.commit({"src/a.txt": b"one\r\ntwo\r\n"})
    cache = Cache(tmp_path / "facts")
    on_disk = texts(Tree(work_tree_snapshot(work.open()), cache), extractor("src/**"))
    cache.close()
    assert on_disk == texts(Tree(commit_snapshot(work.open(), "HEAD")), extractor("src/**"))
    assert on_disk == {"src/a.txt": [b"one\ntwo\n"]}


def test_a_name_that_is_not_utf8_is_read_like_any_other(work: Work) -> None:
    work.commit({"src/bad\udcff.txt": "BAD\n"})
    assert texts(Tree(commit_snapshot(work.open(), "HEAD")), extractor("src/**"))["src/bad\udcff.txt"] == [b"BAD\n"]


def test_links_and_submodules_are_no_files(work: Work) -> None:
    (work.path / "src" / "link.txt").symlink_to("a.txt")
    work.commit()
    assert list(texts(Tree(work_tree_snapshot(work.open())), extractor("src/**"))) == ["src/a.txt"]
