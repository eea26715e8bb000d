"""Commits with their messages: GitPython behind a wrapper that closes it and knows its traps."""

import os
from pathlib import Path

import git as gitpython
import pytest
from gates.repositories import Git, Work

from gatewright.core.change import change_of_commit
from gatewright.core.errors import CannotJudge
from gatewright.core.git import Repository
from gatewright.core.history import Commit, open_history
from gatewright.core.snapshot import commit_snapshot


def children() -> set[str]:
    """Processes that this one has started and not yet waited for."""
    task = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children")
    if not task.exists():
        pytest.skip("no /proc to look for child processes in")
    return set(task.read_text().split())


def messages(repository: Repository, *revisions: str) -> list[str]:
    with open_history(repository) as history:
        return [commit.message for commit in history.commits(*revisions)]


def test_gp_01_no_child_process_stays(work: Work) -> None:
    for number in range(2):
        work.commit({"src/a.txt": f"{number}\n"})
    before = children()
    seen = 0
    for _ in range(5):
        with open_history(work.open()) as history:
            assert [commit.message for commit in history.repo.iter_commits("HEAD")][-1] == "begin\n"
            seen = max(seen, len(children() - before))
    assert seen > 0
    assert children() == before


def test_gp_01_not_even_after_an_error(work: Work) -> None:
    before = children()
    with pytest.raises(ZeroDivisionError), open_history(work.open()) as history:
        assert history.repo.head.commit.message == "begin\n"
        assert children() != before
        raise ZeroDivisionError
    with pytest.raises(CannotJudge, match="nowhere"):
        messages(work.open(), "nowhere")
    assert children() == before


def test_gp_02_a_path_that_is_not_utf8_is_never_lost(work: Work) -> None:
    work.commit({"src/ok.txt": "1\n", "src/bad\udcff.txt": "1\n"})
    work.commit({"src/ok.txt": "2\n", "src/bad\udcff.txt": "2\n"})
    change = change_of_commit(work.open(), "HEAD", "HEAD~1")
    assert change.base is not None
    before, after = change.base.entries, change.head.entries
    assert [path for path in after if before.get(path) != after[path]] == ["src/bad\udcff.txt", "src/ok.txt"]
    assert commit_snapshot(work.open(), "HEAD").read("src/bad\udcff.txt") == b"2\n"


def test_gp_04_the_branch_of_a_head_that_is_attached_detached_or_unborn(git: Git, work: Work) -> None:
    with open_history(work.open()) as history:
        assert history.branch == "main"
    work.git("checkout", "-q", "-b", "feature/ünï")
    with open_history(work.open()) as history:
        assert history.branch == "feature/ünï"
    work.git("checkout", "-q", "--detach")
    with open_history(work.open()) as history:
        assert history.branch is None
    with open_history(git.init("unborn", "-b", "trunk").open()) as history:
        assert history.branch == "trunk"
        with pytest.raises(CannotJudge, match="HEAD"):
            list(history.commits("HEAD"))


def test_gp_05_an_option_is_refused(work: Work) -> None:
    target = work.path / "written"
    for option in (f"--output={target}", "--all", "-n1"):
        with pytest.raises(CannotJudge, match="is not a revision"):
            messages(work.open(), option)
    with open_history(work.open()) as history:
        with pytest.raises(gitpython.UnsafeOptionError):
            list(history.repo.iter_commits(f"--output={target}"))
        with pytest.raises(gitpython.UnsafeProtocolError):
            history.repo.clone_from("ext::sh -c true", work.path / "clone")
    assert not target.exists()


@pytest.mark.parametrize("format", ["sha1", "sha256"])
def test_commits_with_parents_author_and_message(git: Git, format: str) -> None:
    work = git.init(format, f"--object-format={format}")
    root = work.commit({"a": "1"}, "root")
    work.git("checkout", "-q", "-b", "topic")
    topic = work.commit({"b": "1"}, "Subject line\n\nBody  with ünï.\n\nSigned-off-by: Ada <ada@example.org>\n")
    work.git("checkout", "-q", "main")
    main = work.commit({"c": "1"}, "on main")
    work.git("merge", "-q", "--no-edit", "topic")
    with open_history(work.open()) as history:
        found = list(history.commits("main", f"^{root}"))
        assert list(history.commits()) == []
    assert found[0].parents == (main, topic)
    assert {commit.id for commit in found[1:]} == {main, topic}
    assert next(commit for commit in found if commit.id == topic) == Commit(
        topic,
        (root,),
        "Ada",
        "ada@example.org",
        "Subject line\n\nBody  with ünï.\n\nSigned-off-by: Ada <ada@example.org>",
    )
    assert found[1].subject in ("Subject line", "on main")


def test_a_message_in_another_encoding(work: Work) -> None:
    work.git("-c", "i18n.commitEncoding=latin-1", "commit", "--allow-empty", "-q", "-F", "-", input=b"caf\xe9\n")
    assert messages(work.open(), "HEAD", "^HEAD~1") == ["café"]


def test_why_messages_are_asked_of_git_itself(work: Work) -> None:
    """GitPython takes every message for UTF-8. Where this fails, `commits` may use its objects."""
    work.git("-c", "i18n.commitEncoding=latin-1", "commit", "--allow-empty", "-q", "-F", "-", input=b"caf\xe9\n")
    with open_history(work.open()) as history:
        assert history.repo.head.commit.message == "caf\ufffd\n"


def test_a_message_in_an_encoding_that_nobody_knows_is_still_a_message(work: Work) -> None:
    work.git("-c", "i18n.commitEncoding=klingon-1", "commit", "--allow-empty", "-q", "-F", "-", input=b"caf\xe9\n")
    assert messages(work.open(), "HEAD", "^HEAD~1") == ["caf\ufffd"]


def test_a_linked_work_tree_a_bare_repository_and_a_sub_folder(git: Git, work: Work) -> None:
    work.git("worktree", "add", "-q", "-b", "f1", "../linked")
    linked = Work(git, work.path.parent / "linked")
    linked.commit({"src/b.txt": "b"}, "linked")
    assert messages(linked.open("src"), "HEAD") == ["linked", "begin"]
    with open_history(linked.open()) as history:
        assert history.branch == "f1"
    assert messages(git.clone(work, "bare", "--bare").open(), "HEAD") == ["begin"]


def test_hk_10_a_decoy_in_the_environment_is_not_read(git: Git, work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    decoy = git.init("decoy")
    decoy.commit({"x": "x"}, "decoy")
    monkeypatch.setenv("GIT_DIR", os.fspath(decoy.path / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", os.fspath(decoy.path))
    monkeypatch.setenv("GIT_OBJECT_DIRECTORY", os.fspath(decoy.path / ".git" / "objects"))
    assert messages(Repository(work.path), "HEAD") == ["begin"]


def test_quarantined_commits_are_read(git: Git, work: Work) -> None:
    quarantine = git.root / "quarantine"
    quarantine.mkdir()
    environ = {
        "GIT_OBJECT_DIRECTORY": os.fspath(quarantine),
        "GIT_ALTERNATE_OBJECT_DIRECTORIES": os.fspath(work.path / ".git" / "objects"),
    }
    incoming = work.git("commit-tree", "HEAD^{tree}", "-p", "HEAD", "-m", "incoming", **environ)
    assert messages(work.open(**environ), incoming, "^HEAD") == ["incoming"]
