"""Which files each kind of tree holds, and which bytes."""

import json
import os
import socket
from pathlib import Path

import pytest
from gates.repositories import Git, Work

from gatewright.core.errors import CannotJudge
from gatewright.core.snapshot import (
    DictSnapshot,
    Snapshot,
    commit_snapshot,
    index_snapshot,
    printable,
    work_tree_snapshot,
)

BAD_NAME = "src/bad\udcff.txt"


def contents(snapshot: Snapshot) -> dict[str, bytes]:
    return {path: snapshot.read(path) for path in snapshot.files if not path.startswith("policy/")}


def kinds(snapshot: Snapshot) -> dict[str, str]:
    return {path: entry.kind for path, entry in snapshot.entries.items() if not path.startswith("policy/")}


def test_hk_13_r_16_every_tree_is_whole_in_every_kind_of_snapshot(work: Work) -> None:
    """No part of a tree is exported: what a check may ask for is all that git has, at the root too."""
    work.write({name: name for name in ("AGENTS.md", ".env.example", ".hidden/x", "deep/er/y", BAD_NAME)})
    commit = work.commit()
    repository = work.open()
    trees = [commit_snapshot(repository, commit), index_snapshot(repository), work_tree_snapshot(repository)]
    listed = work.git("ls-files", "-z").split("\0")[:-1]
    assert all(list(tree.entries) == sorted(listed) for tree in trees)
    assert len({tuple(contents(tree).items()) for tree in trees}) == 1


def test_export_attributes_change_nothing(work: Work) -> None:
    commit = work.commit({".gitattributes": "* export-ignore\n*.txt export-subst\n", "src/a.txt": "$Format:%H$\n"})
    assert contents(commit_snapshot(work.open(), commit))["src/a.txt"] == b"$Format:%H$\n"


def test_r_13_r_14_a_commit_is_read_whatever_lies_in_the_work_tree(work: Work) -> None:
    work.write({"src/a.txt": "dirty\n", "src/new.txt": "new\n"})
    assert contents(commit_snapshot(work.open(), "HEAD")) == {"src/a.txt": b"fine\n"}


def test_the_work_tree_holds_tracked_files_and_untracked_ones_that_are_not_ignored(work: Work) -> None:
    work.commit({"src/gone.txt": "x", "src/b.txt": "b", ".gitignore": "*.log\n"})
    work.write({"src/gone.txt": None, "src/b.txt": "changed\n", "new/n.txt": "new\n", "x.log": "ignored"})
    assert contents(work_tree_snapshot(work.open("src"))) == {
        ".gitignore": b"*.log\n",
        "new/n.txt": b"new\n",
        "src/a.txt": b"fine\n",
        "src/b.txt": b"changed\n",
    }


def test_a_clean_file_carries_the_index_id_and_a_dirty_one_none(work: Work) -> None:
    work.write({"src/new.txt": "new\n"})
    entries = work_tree_snapshot(work.open()).entries
    assert entries["src/a.txt"].id == work.git("rev-parse", "HEAD:src/a.txt")
    assert entries["src/new.txt"].id == ""
    work.write({"src/a.txt": "other\n"})
    assert work_tree_snapshot(work.open()).entries["src/a.txt"].id == ""


def test_hk_11_the_index_of_a_partial_commit_is_the_one_that_git_names(work: Work) -> None:
    work.write({"src/a.txt": "one\n", "src/b.txt": "BAD\n"})
    work.git("add", "-A")
    hook = work.path / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(
        '#!/bin/sh\nprintf %s "$GIT_INDEX_FILE" >seen\n'
        "gate run --staged --output-format json --output-file report.json; exit 0\n"
    )
    hook.chmod(0o755)
    work.git("commit", "-q", "-m", "only a", "src/a.txt")
    assert "next-index" in (work.path / "seen").read_text()
    assert json.loads((work.path / "report.json").read_text())["verdict"] == "PASS"
    assert work.gate("run", "--staged").returncode == 1


def test_hk_11_an_index_file_in_the_environment_is_read(work: Work) -> None:
    work.write({"src/b.txt": "two\n"})
    work.git("add", "-A", GIT_INDEX_FILE=".git/other")
    assert set(contents(index_snapshot(work.open()))) == {"src/a.txt"}
    assert set(contents(index_snapshot(work.open(GIT_INDEX_FILE=".git/other")))) == {"src/a.txt", "src/b.txt"}


def test_what_is_only_intended_to_be_added_is_not_in_the_index(work: Work) -> None:
    work.write({"src/new.txt": "new\n", "src/empty.txt": ""})
    work.git("add", "src/empty.txt")
    work.git("add", "-N", "src/new.txt")
    assert contents(index_snapshot(work.open())) == {"src/a.txt": b"fine\n", "src/empty.txt": b""}
    assert contents(work_tree_snapshot(work.open()))["src/new.txt"] == b"new\n"


def test_an_index_in_the_middle_of_a_merge_cannot_be_judged_but_the_work_tree_can(work: Work) -> None:
    for branch, text in (("one", "1\n"), ("two", "2\n")):
        work.git("checkout", "-q", "-b", branch, "main")
        work.commit({"src/a.txt": text, f"src/{branch}.txt": text})
    work.git("merge", "one", ok=False)
    with pytest.raises(CannotJudge, match=r"1 unmerged paths, first src/a\.txt"):
        index_snapshot(work.open())
    tree = contents(work_tree_snapshot(work.open()))
    assert b"<<<<<<<" in tree["src/a.txt"]
    assert set(tree) == {"src/a.txt", "src/one.txt", "src/two.txt"}
    work.write({"src/a.txt": None})
    assert set(contents(work_tree_snapshot(work.open()))) == {"src/one.txt", "src/two.txt"}


def test_kinds(git: Git, work: Work) -> None:
    inner = git.init("inner")
    inner.commit({"x": "x"})
    work.git("submodule", "add", "-q", os.fspath(inner.path), "module")
    (work.path / "link").symlink_to("src/a.txt")
    (work.path / "folder-link").symlink_to("src")
    commit = work.commit()
    expected = {
        ".gitmodules": "file",
        "folder-link": "symlink",
        "link": "symlink",
        "module": "submodule",
        "src/a.txt": "file",
    }
    repository = work.open()
    for tree in (commit_snapshot(repository, commit), index_snapshot(repository), work_tree_snapshot(repository)):
        assert kinds(tree) == expected
    Work(git, work.path / "module").commit({"x": "changed"})
    assert kinds(work_tree_snapshot(work.open())) == expected


def test_untracked_things_that_are_no_files(git: Git, work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    Work(git, work.path).write({"own/README": "x"})
    work.run("git", "init", "-q", "own")
    (work.path / "link").symlink_to("src/a.txt")
    os.mkfifo(work.path / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        monkeypatch.chdir(work.path)
        listener.bind("socket")
        assert kinds(work_tree_snapshot(work.open())) == {"link": "symlink", "src/a.txt": "file"}


def test_a_file_replaced_by_a_folder_a_link_or_a_pipe(work: Work) -> None:
    work.commit({"src/b.txt": "b\n", "src/c.txt": "c\n"})
    work.write({"src/a.txt": None, "src/a.txt/inner.txt": "inner\n", "src/b.txt": None, "src/c.txt": None})
    (work.path / "src" / "b.txt").symlink_to("/etc/passwd")
    os.mkfifo(work.path / "src" / "c.txt")
    tree = work_tree_snapshot(work.open())
    assert kinds(tree) == {"src/a.txt/inner.txt": "file", "src/b.txt": "symlink", "src/c.txt": "file"}
    with pytest.raises(CannotJudge, match="neither file nor link"):
        tree.read("src/c.txt")


def test_a_folder_replaced_by_a_link_is_not_followed(work: Work) -> None:
    work.git("mv", "src", "real")
    work.commit()
    (work.path / "src").symlink_to("real")
    work.write({"real/a.txt": "dirty\n"})
    assert kinds(work_tree_snapshot(work.open())) == {"real/a.txt": "file", "src": "symlink"}


@pytest.mark.parametrize("index", ["--no-sparse-index", "--sparse-index"])
def test_sparse_and_skipped_files_are_judged_from_the_index(work: Work, index: str) -> None:
    work.commit({"other/o.txt": "other\n", "src/b.txt": "b\n"})
    work.git("sparse-checkout", "set", "--cone", index, "src")
    assert not (work.path / "other").exists()
    assert contents(work_tree_snapshot(work.open()))["other/o.txt"] == b"other\n"
    work.git("update-index", "--skip-worktree", "src/b.txt")
    work.write({"src/b.txt": None})
    assert contents(work_tree_snapshot(work.open()))["src/b.txt"] == b"b\n"
    assert contents(index_snapshot(work.open())) == contents(commit_snapshot(work.open(), "HEAD"))


def test_line_endings_and_filters_leave_a_clean_file_its_blob(git: Git, work: Work) -> None:
    git.configure({"filter.up.clean": "tr a-z A-Z", "filter.up.smudge": "tr A-Z a-z"})
    work.write({".gitattributes": "*.crlf text eol=crlf\n*.up filter=up\n", "x.crlf": "a\r\nb\r\n", "x.up": "word\n"})
    work.git("config", "core.autocrlf", "true")
    work.commit()
    work.git("checkout", "-q", "--", ".")
    assert (work.path / "x.crlf").read_bytes() == b"a\r\nb\r\n"
    assert (work.path / "x.up").read_bytes() == b"word\n"
    tree = contents(work_tree_snapshot(work.open()))
    assert (tree["x.crlf"], tree["x.up"]) == (b"a\nb\n", b"WORD\n")
    assert tree == contents(commit_snapshot(work.open(), "HEAD"))


def test_hk_20_user_configuration_changes_no_tree(git: Git, work: Work) -> None:
    work.commit({BAD_NAME: "bad\n", "src/tab\tname.txt": "tab\n", "src/café.txt": "é\n"})
    work.write({"src/café.txt": "changed\n", "src/new.txt": "new\n"})
    before = [contents(tree) for tree in (commit_snapshot(work.open(), "HEAD"), work_tree_snapshot(work.open("src")))]
    ran = git.root / "ran"
    hostile = git.root / "hostile"
    hostile.write_text(f"#!/bin/sh\ntouch {ran}\n")
    hostile.chmod(0o755)
    git.configure(
        {
            "diff.noprefix": "true",
            "diff.mnemonicPrefix": "true",
            "diff.external": os.fspath(hostile),
            "diff.relative": "true",
            "diff.renames": "copies",
            "diff.ignoreSubmodules": "all",
            "core.quotePath": "true",
            "core.fsmonitor": os.fspath(hostile),
            "core.untrackedCache": "true",
            "core.pager": os.fspath(hostile),
            "color.ui": "always",
            "log.showSignature": "true",
            "status.showUntrackedFiles": "no",
        }
    )
    after = [contents(tree) for tree in (commit_snapshot(work.open(), "HEAD"), work_tree_snapshot(work.open("src")))]
    assert after == before
    assert not ran.exists()


def test_hk_22_bytes_in_names(work: Work) -> None:
    commit = work.commit({BAD_NAME: "bad\n"})
    tree = commit_snapshot(work.open(), commit)
    assert contents(tree)[BAD_NAME] == b"bad\n"
    assert printable(BAD_NAME) == "src/bad\\xff.txt"
    assert work_tree_snapshot(work.open()).entries[BAD_NAME].id
    assert printable("a\tb\nc\x1b[31m") == "a\\tb\\nc\\x1b[31m"


def test_a_file_that_cannot_be_read_is_named(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    work.write({"src/new.txt": "x"})
    tree = work_tree_snapshot(work.open())
    work.write({"src/new.txt": None})
    with pytest.raises(CannotJudge, match=r"src/new\.txt: No such file"):
        tree.read("src/new.txt")


def test_a_bare_repository_has_no_work_tree_to_judge(git: Git) -> None:
    with pytest.raises(CannotJudge, match="no work tree") as caught:
        work_tree_snapshot(git.init("bare", "--bare").open())
    assert "--commit" in caught.value.help


def test_pc_05_a_link_is_no_file_and_is_not_read_through(work: Work) -> None:
    work.write({"AGENTS.md": "contract\n"})
    (work.path / "CLAUDE.md").symlink_to("AGENTS.md")
    work.commit()
    for tree in (commit_snapshot(work.open(), "HEAD"), work_tree_snapshot(work.open())):
        assert "AGENTS.md" in tree.files
        assert "CLAUDE.md" not in tree.files


def test_given_files(tmp_path: Path) -> None:
    tree = DictSnapshot({"b": b"\xff", "a": "text \udcff"})
    assert list(tree.entries) == ["a", "b"]
    assert contents(tree) == {"a": b"text \xff", "b": b"\xff"}
    with pytest.raises(KeyError):
        tree.read("c")
