"""Facts of many files, taken by workers: the same as by one process, and an end whatever happens to a worker."""

import contextlib
import os
import signal
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from gatewright.core import extraction
from gatewright.core.errors import CannotJudge
from gatewright.core.facts import Extractor
from gatewright.core.globs import PathSet
from gatewright.core.tree import MAX_BYTES, Tree


class Size(msgspec.Struct, frozen=True, array_like=True):
    bytes: int
    process: int


def size(data: bytes, options: Any) -> list[Size]:
    return [Size(len(data), os.getpid())]


def die(data: bytes, options: Any) -> list[Size]:
    if data == b"7":
        os.kill(os.getpid(), signal.SIGKILL)
    return size(data, options)


def fail(data: bytes, options: Any) -> list[Size]:
    if data == b"7":
        raise ZeroDivisionError("planted")
    return size(data, options)


def extractor(function: str) -> Extractor:
    return Extractor(name="size", paths=PathSet(("**",)), function=f"{__name__}:{function}", fact=Size)


@pytest.fixture
def many(monkeypatch: pytest.MonkeyPatch) -> Iterator[Tree]:
    """A tree that two workers share, however many cores there are."""
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    monkeypatch.setattr(extraction, "_WORKER_FROM", 10)
    yield Tree.of({f"f{number}": str(number) for number in range(100)})


def test_workers_give_what_one_process_gives(many: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    shared = many.facts(extractor("size"))
    processes = {fact.process for facts in shared.values() for fact in facts}
    assert len(processes) == 2
    assert os.getpid() not in processes
    monkeypatch.setattr(extraction, "_WORKER_FROM", 1000)
    alone = Tree(many.snapshot).facts(extractor("size"))
    assert {p: [f.bytes for f in facts] for p, facts in alone.items()} == {
        p: [f.bytes for f in facts] for p, facts in shared.items()
    }
    assert {fact.process for facts in alone.values() for fact in facts} == {os.getpid()}


def test_a_killed_worker_ends_the_run_without_a_verdict(many: Tree) -> None:
    with pytest.raises(CannotJudge, match="was killed"):
        many.facts(extractor("die"))


def test_an_error_in_a_worker_is_raised_with_its_traceback(many: Tree) -> None:
    with pytest.raises(RuntimeError, match=r"(?s)in fail.*ZeroDivisionError: planted"):
        many.facts(extractor("fail"))


def test_no_worker_stays(many: Tree) -> None:
    for function in ("size", "die", "fail"):
        with contextlib.suppress(CannotJudge, RuntimeError):
            Tree(many.snapshot).facts(extractor(function))
        with pytest.raises(ChildProcessError):
            os.waitpid(-1, os.WNOHANG)


def test_beside_another_thread_nothing_is_forked(many: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extraction.threading, "active_count", lambda: 2)
    facts = many.facts(extractor("size"))
    assert {fact.process for found in facts.values() for fact in found} == {os.getpid()}


def test_a_file_too_large_to_parse_is_named_and_not_parsed() -> None:
    tree = Tree.of({"large": b"x" * (MAX_BYTES + 1), "fits": b"x" * MAX_BYTES})
    assert list(tree.facts(extractor("size"))) == ["fits"]
    assert tree.unread == {"large": f"larger than {MAX_BYTES} bytes"}
    assert tree.examined(extractor("size")) == 1


def test_an_extractor_outside_the_package_is_keyed_by_its_own_source(tmp_path: Any, monkeypatch: Any) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    keys = set()
    for number in range(2):
        (tmp_path / f"plugin{number}.py").write_text(f"VALUE = {number}")
        keys.add(Extractor(name="x", paths=PathSet(()), function=f"plugin{number}:f", fact=Size).key())
    assert len(keys) == 2
