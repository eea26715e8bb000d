"""The tree that a merge would give: judged before it exists, without a trace in the repository."""

from pathlib import Path

import pytest
from gates.repositories import POLICY, Git, Work

from gatewright.core.cache import Cache
from gatewright.core.change import Change
from gatewright.core.errors import CannotJudge
from gatewright.core.merge import change_of_merge
from gatewright.core.report import Report
from gatewright.core.runner import run

NARROW = {"policy/words.toml": 'where = ["src/**"]\nforbidden = ["BAD", "odd"]\n'}


def branches(work: Work, ours: dict[str, str | None], theirs: dict[str, str | None]) -> None:
    """Two branches from main; `ours` is checked out."""
    work.git("checkout", "-q", "-b", "theirs")
    work.commit(theirs)
    work.git("checkout", "-q", "-b", "ours", "main")
    work.commit(ours)


def judge(change: Change) -> Report:
    return run([change], Cache(None))


def new(change: Change) -> list[str]:
    return [f"{f.rule} {f.path}:{f.line}" for f in judge(change).new]


def scratch(change: Change) -> Path:
    assert change.repository is not None
    return Path(change.repository.environ["GIT_OBJECT_DIRECTORY"])


def everything(work: Work) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in work.path.rglob("*") if path.is_file()}


def test_two_changes_that_are_green_alone_and_red_together(work: Work) -> None:
    branches(work, {"src/b.txt": "an odd word\n"}, NARROW)
    assert work.gate("run", "--commit", "ours").returncode == 0
    assert work.gate("run", "--commit", "theirs").returncode == 0
    change = change_of_merge(work.open(), "theirs")
    assert new(change) == ["words/forbidden src/b.txt:1"]
    result = work.gate("run", "--merge-with", "theirs")
    assert result.returncode == 1
    assert "src/b.txt:1:4" in result.stdout


def test_two_changes_that_fit_together_are_clean(work: Work) -> None:
    branches(work, {"src/b.txt": "b\n"}, {"src/c.txt": "c\n"})
    change = change_of_merge(work.open(), "theirs")
    assert set(change.head.files) == {*POLICY, "src/a.txt", "src/b.txt", "src/c.txt"}
    assert change.conflicts == []
    assert judge(change).exit_code == 0


def test_it_leaves_no_trace(work: Work) -> None:
    branches(work, {"src/b.txt": "an odd word\n"}, NARROW)
    work.write({"src/dirty.txt": "dirty\n"})
    work.git("status")
    before = everything(work)
    change = change_of_merge(work.open(), "theirs")
    assert new(change)
    folder = scratch(change)
    assert folder.is_dir()
    assert everything(work) == before
    del change
    assert not folder.exists()


def test_a_textual_conflict_is_a_finding(work: Work) -> None:
    branches(work, {"src/a.txt": "ours\n", "src/b.txt": "BAD\n"}, {"src/a.txt": "theirs\n"})
    change = change_of_merge(work.open(), "theirs")
    assert change.conflicts == ["src/a.txt"]
    assert change.head.read("src/a.txt") == b"ours\n"
    assert sorted(new(change)) == ["policy/merge-conflict src/a.txt:0", "words/forbidden src/b.txt:1"]
    assert judge(change).exit_code == 1


@pytest.mark.parametrize(("ours", "theirs"), [("edit\n", None), (None, "edit\n")])
def test_a_file_that_one_side_deletes_and_the_other_changes_is_a_conflict(
    work: Work, ours: str | None, theirs: str | None
) -> None:
    branches(work, {"src/a.txt": ours, "src/b.txt": "b"}, {"src/a.txt": theirs})
    change = change_of_merge(work.open(), "theirs")
    assert change.conflicts == ["src/a.txt"]
    assert ("src/a.txt" in change.head.entries) is (ours is not None)
    assert judge(change).exit_code == 1


def test_a_merge_driver_is_not_run_and_gits_own_stands_in(git: Git, work: Work) -> None:
    ran = git.root / "ran"
    work.git("config", "merge.own.driver", f"touch {ran}; exit 1")
    lines = [f"{number}\n" for number in range(12)]
    work.commit({".gitattributes": "*.txt merge=own\n", "src/t.txt": "".join(lines)})
    branches(
        work,
        {"src/t.txt": "".join(["first\n", *lines]), "src/a.txt": "ours\n"},
        {"src/t.txt": "".join([*lines, "last\n"]), "src/a.txt": "theirs\n"},
    )
    change = change_of_merge(work.open(), "theirs")
    assert not ran.exists()
    assert change.head.read("src/t.txt") == "".join(["first\n", *lines, "last\n"]).encode()
    assert change.conflicts == ["src/a.txt"]


def test_names_that_are_not_utf8_and_a_sub_folder(work: Work) -> None:
    name = "src/bad\udcff.txt"
    branches(work, {name: "BAD\n", "src/tab\t.txt": "ours"}, {"src/tab\t.txt": "theirs"})
    change = change_of_merge(work.open("src"), "theirs")
    assert change.conflicts == ["src/tab\t.txt"]
    assert f"words/forbidden {name}:1" in new(change)


def test_a_bare_repository_has_merges_too(git: Git, work: Work) -> None:
    branches(work, {"src/b.txt": "an odd word\n"}, NARROW)
    bare = git.clone(work, "bare.git", "--bare")
    assert new(change_of_merge(bare.open(), "theirs")) == ["words/forbidden src/b.txt:1"]


def test_an_object_store_that_borrows_from_another(git: Git, work: Work) -> None:
    branches(work, {"src/b.txt": "an odd word\n"}, NARROW)
    borrower = git.clone(work, "borrower", "--shared")
    assert new(change_of_merge(borrower.open(), "origin/theirs")) == ["words/forbidden src/b.txt:1"]


def test_a_merge_that_cannot_be_made_ends_without_a_verdict(git: Git, work: Work) -> None:
    with pytest.raises(CannotJudge, match="'nowhere' is not a commit here"):
        change_of_merge(work.open(), "nowhere")
    with pytest.raises(CannotJudge, match="'HEAD' is not a commit here"):
        change_of_merge(git.init("unborn").open(), "main")
    other = work.git("commit-tree", "HEAD^{tree}", "-m", "root")
    with pytest.raises(CannotJudge, match="unrelated histories"):
        change_of_merge(work.open(), other)


def test_the_scratch_objects_of_a_killed_run_lie_outside_the_repository(work: Work) -> None:
    branches(work, {"src/b.txt": "b"}, {"src/c.txt": "c"})
    change = change_of_merge(work.open(), "theirs")
    assert work.path not in scratch(change).parents
