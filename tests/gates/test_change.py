"""The range resolver: which tree is judged, against which base, over which commits."""

import os
from collections.abc import Sequence

import pytest
from gates.repositories import POLICY, Git, Work

from gatewright.core.cache import Cache
from gatewright.core.change import Change, change_of_commit, change_of_work_tree, find_remote, is_zero
from gatewright.core.errors import CannotJudge, PolicyError
from gatewright.core.push import RefUpdate, changes_of_push, parse_pre_push, parse_pre_receive
from gatewright.core.runner import run

ZERO = "0" * 40
UNKNOWN = "7" * 40
DEFAULT = {"policy/policy.toml": 'default_branch = "trunk"\n'}


@pytest.fixture
def clone(git: Git, work: Work) -> Work:
    """A clone of a bare `server.git` that holds main."""
    server = git.clone(work, "server.git", "--bare")
    return git.clone(server, "clone")


def base_of(change: Change) -> str:
    return "" if change.base is None else change.base.label.split()[1]


def push(work: Work, *updates: tuple[str, str, str], remote: str = "origin", receiving: bool = False) -> list[Change]:
    """(ref, old, new) as the hook is told them."""
    return changes_of_push(work.open(), [RefUpdate(*update) for update in updates], remote, receiving=receiving)


def found(changes: Sequence[Change]) -> list[str]:
    return [f"{f.path}:{f.line}" for f in run(changes, Cache(None)).new]


def short(name: str) -> str:
    return name[:12]


# The work tree and commits.


def test_an_unborn_branch_is_judged_absolutely(git: Git) -> None:
    fresh = git.init("fresh")
    fresh.write({**POLICY, "src/a.txt": "BAD\n"})
    change = change_of_work_tree(fresh.open())
    assert (change.base, change.commits, change.notes) == (None, [], ["absolute: the branch has no commit yet"])
    assert found([change]) == ["src/a.txt:1"]


def test_r_19_without_a_remote_the_tree_is_judged_absolutely_and_it_is_said(work: Work) -> None:
    change = change_of_work_tree(work.open())
    assert change.base is None
    assert change.notes == ["absolute: no remote-tracking default branch to compare with"]
    assert change_of_commit(work.open(), "HEAD").notes == change.notes


def test_a_base_that_is_named_is_compared_with_even_where_nothing_differs(clone: Work) -> None:
    repository = clone.open()
    for change in (change_of_work_tree(repository, "origin/main"), change_of_commit(repository, "HEAD", "origin/main")):
        assert change.notes == []
        assert change.base is not None and change.base.entries == change.head.entries


def test_a_clean_tree_at_the_base_is_judged_absolutely_and_a_dirty_one_relative_to_it(clone: Work) -> None:
    head = clone.git("rev-parse", "HEAD")
    change = change_of_work_tree(clone.open())
    assert (change.base, change.notes) == (None, ["absolute: nothing differs from the base"])
    assert change_of_commit(clone.open(), "HEAD").notes == ["absolute: the commit is part of the base"]
    clone.write({"src/b.txt": "BAD\n"})
    change = change_of_work_tree(clone.open())
    assert (base_of(change), change.commits) == (short(head), [])
    assert found([change]) == ["src/b.txt:1"]


def test_r_01_the_base_is_the_merge_base_when_main_moved_on(clone: Work) -> None:
    fork = clone.git("rev-parse", "HEAD")
    clone.commit({"src/main.txt": "BAD on main\n"})
    clone.git("push", "-q", "--no-verify", "origin", "main")
    clone.git("checkout", "-q", "-b", "topic", fork)
    tip = clone.commit({"src/b.txt": "b\n"})
    for change in (change_of_work_tree(clone.open()), change_of_commit(clone.open(), "topic")):
        assert (base_of(change), change.commits) == (short(fork), [tip])
        assert found([change]) == []


def test_a_merge_of_main_brings_its_findings_as_inherited(clone: Work) -> None:
    fork = clone.git("rev-parse", "HEAD")
    clone.commit({"src/main.txt": "BAD on main\n"})
    clone.git("push", "-q", "origin", "main")
    clone.git("checkout", "-q", "-b", "topic", fork)
    own = clone.commit({"src/b.txt": "b\n"})
    clone.git("merge", "-q", "-m", "merge main", "origin/main")
    change = change_of_commit(clone.open(), "HEAD")
    assert base_of(change) == short(clone.git("rev-parse", "origin/main"))
    assert change.commits == [clone.git("rev-parse", "HEAD"), own]
    report = run([change], Cache(None))
    assert (len(report.new), len(report.inherited)) == (0, 1)


def test_hk_17_an_octopus_merge_is_judged_by_its_tree(clone: Work) -> None:
    main = clone.git("rev-parse", "HEAD")
    for branch in ("p", "q"):
        clone.git("checkout", "-q", "-b", branch, main)
        clone.commit({f"src/{branch}.txt": "BAD\n"})
    clone.git("checkout", "-q", "-b", "octopus", main)
    clone.git("merge", "-q", "-m", "octopus", "p", "q")
    assert found([change_of_commit(clone.open(), "octopus", "main")]) == ["src/p.txt:1", "src/q.txt:1"]


def test_hk_16_zeros_name_no_base(clone: Work) -> None:
    fork = clone.git("rev-parse", "HEAD")
    clone.git("checkout", "-q", "-b", "release/1")
    commits = [clone.commit({"src/b.txt": text}) for text in ("BAD\n", "BAD too\n")]
    change = change_of_commit(clone.open(), "HEAD", ZERO)
    assert (base_of(change), change.commits) == (short(fork), commits[::-1])


def test_a_base_that_was_named_and_is_not_here_ends_the_run(clone: Work) -> None:
    for name in ("nowhere", UNKNOWN, "v1"):
        with pytest.raises(CannotJudge, match="is not a commit here") as caught:
            change_of_work_tree(clone.open(), name)
        assert "git fetch" in caught.value.help
    with pytest.raises(CannotJudge, match="is not a commit here"):
        change_of_commit(clone.open(), "nowhere")


def test_r_02_a_base_of_another_history_ends_the_run(clone: Work) -> None:
    root = clone.git("commit-tree", "HEAD^{tree}", "-m", "root")
    with pytest.raises(CannotJudge, match="unrelated histories"):
        change_of_commit(clone.open(), "HEAD", root)


def test_a_root_commit_is_compared_with_nothing(work: Work) -> None:
    change = change_of_commit(work.open(), "HEAD")
    assert change.base is None
    assert change.commits == [work.git("rev-parse", "HEAD")]


def test_the_index_is_judged_relative_to_the_same_base(clone: Work) -> None:
    clone.write({"src/a.txt": "fine\nBAD\n"})
    clone.git("add", "-A")
    clone.write({"src/a.txt": "fine\n"})
    assert found([change_of_work_tree(clone.open(), staged=True)]) == ["src/a.txt:2"]
    assert found([change_of_work_tree(clone.open())]) == []


# The remote's default branch.


@pytest.mark.parametrize("branch", ["main", "trunk", "release/next"])
def test_the_default_branch_is_the_one_that_git_recorded(git: Git, branch: str) -> None:
    source = git.init("source", "-b", branch)
    tip = source.commit(POLICY)
    source.commit(DEFAULT)
    clone = git.clone(source, "copy")
    assert find_remote(clone.open()) == ("origin", branch, clone.git("rev-parse", "HEAD"))
    assert find_remote(clone.open(), "origin", "elsewhere").branch == branch
    assert tip


def test_a_change_cannot_name_its_own_base_where_git_knows_better(clone: Work) -> None:
    clone.git("checkout", "-q", "-b", "trunk")
    clone.commit({"src/b.txt": "BAD\n"})
    clone.git("push", "-q", "--no-verify", "origin", "trunk")
    clone.commit({**DEFAULT, "src/c.txt": "c\n"})
    assert found([change_of_commit(clone.open(), "HEAD")]) == ["src/b.txt:1"]


def test_the_policy_names_the_default_branch_where_git_does_not_know_it(clone: Work) -> None:
    clone.git("remote", "set-head", "origin", "--delete")
    clone.git("checkout", "-q", "-b", "trunk")
    tip = clone.commit(DEFAULT)
    clone.git("push", "-q", "origin", "trunk")
    clone.commit({"src/c.txt": "c\n"})
    assert base_of(change_of_commit(clone.open(), "HEAD")) == short(tip)


def test_a_recorded_default_branch_that_is_gone_falls_back(clone: Work) -> None:
    clone.git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/gone")
    assert find_remote(clone.open()).branch == "main"


@pytest.mark.parametrize(
    ("remotes", "chosen"),
    [(["up"], "up"), (["up", "origin"], "origin"), (["up", "fork"], ""), ([], "")],
)
def test_which_remote(git: Git, work: Work, remotes: list[str], chosen: str) -> None:
    local = git.init("local")
    for name in remotes:
        local.git("remote", "add", name, str(work.path))
        local.git("fetch", "-q", name)
    assert find_remote(local.open()).name == chosen


def test_a_remote_with_a_slash_in_its_name(git: Git, work: Work) -> None:
    local = git.init("local")
    local.git("remote", "add", "a/b", str(work.path))
    local.git("fetch", "-q", "a/b")
    assert find_remote(local.open(), "a/b") == ("a/b", "main", work.git("rev-parse", "HEAD"))


# Pushes.


def test_hk_01_r_06_a_new_branch_is_compared_with_the_merge_base_of_the_default_branch(clone: Work) -> None:
    fork = clone.git("rev-parse", "HEAD")
    clone.git("checkout", "-q", "-b", "f1")
    commits = [clone.commit({"src/b.txt": text}) for text in ("1\n", "2\n")]
    [change] = push(clone, ("refs/heads/f1", ZERO, commits[1]))
    assert (base_of(change), change.commits, change.notes) == (short(fork), commits[::-1], [])
    assert change.head.label == f"commit {short(commits[1])} of refs/heads/f1"


@pytest.mark.parametrize("zero", [ZERO, "0" * 64])
def test_hk_02_hk_04_r_05_a_deletion_is_nothing_to_judge(clone: Work, zero: str) -> None:
    clone.commit({"src/a.txt": "BAD\n"})
    assert push(clone, ("refs/heads/f1", clone.git("rev-parse", "HEAD"), zero)) == []
    assert is_zero(zero)
    assert not is_zero(zero[:-1] + "1")


def test_hk_05_r_12_tags_are_peeled(clone: Work) -> None:
    fork = clone.git("rev-parse", "HEAD")
    clone.git("tag", "-a", "-m", "on main", "v1")
    clone.git("checkout", "-q", "-b", "f1")
    tip = clone.commit({"src/b.txt": "BAD\n"})
    clone.git("tag", "-a", "-m", "ahead", "v2")
    clone.git("tag", "light")
    clone.git("tag", "-m", "a tree", "tree", "HEAD^{tree}")
    ids = {name: clone.git("rev-parse", name) for name in ("v1", "v2", "light", "tree")}
    [change] = push(clone, ("refs/tags/v1", ZERO, ids["v1"]))
    assert (change.commits, found([change])) == ([], [])
    assert base_of(change) == short(fork)
    [change] = push(clone, ("refs/tags/v2", ZERO, ids["v2"]), ("refs/tags/light", ZERO, ids["light"]))
    assert (change.commits, found([change])) == ([tip], ["src/b.txt:1"])
    assert push(clone, ("refs/tags/tree", ZERO, ids["tree"]), ("refs/tags/v1", ids["v1"], ZERO)) == []


def test_hk_07_the_local_name_may_be_any_expression(clone: Work) -> None:
    head = clone.git("rev-parse", "HEAD")
    lines = [
        f"HEAD {head} refs/heads/det {ZERO}",
        f"HEAD@{{1 day ago}} {head} refs/heads/other {ZERO}",
        f"(delete) {ZERO} x {head}",
    ]
    assert parse_pre_push("\n".join([*lines, ""]).encode()) == [
        RefUpdate("refs/heads/det", ZERO, head),
        RefUpdate("refs/heads/other", ZERO, head),
        RefUpdate("x", head, ZERO),
    ]


def test_lines_with_carriage_returns_are_read_and_what_is_no_id_is_refused() -> None:
    assert parse_pre_push(f"(delete) {ZERO} refs/heads/a {ZERO}\r\n".encode()) == [
        RefUpdate("refs/heads/a", ZERO, ZERO)
    ]
    for line in (b"a  refs/heads/a 0\n", b"   \n", b"a HEAD refs/heads/a 0\n", b"a 0 refs/heads/a abc\n"):
        with pytest.raises(PolicyError, match="for an object id"):
            parse_pre_push(line)
    with pytest.raises(PolicyError, match="for an object id"):
        parse_pre_receive(b"0 main refs/heads/a\n")


def test_refs_may_hold_any_byte_that_git_allows() -> None:
    line = f"refs/heads/a {ZERO} refs/heads/".encode() + b"\xff\xe2\x80\xa8b " + ZERO.encode() + b"\n"
    assert parse_pre_push(line)[0].ref == "refs/heads/\udcff\u2028b"
    assert parse_pre_receive(f"{ZERO} {ZERO} refs/heads/a\n".encode()) == [RefUpdate("refs/heads/a", ZERO, ZERO)]
    with pytest.raises(PolicyError, match="pre-receive line with 2 fields, wanted 3"):
        parse_pre_receive(b"a b\n")


def test_hk_08_r_11_an_unknown_remote_id_falls_back_to_the_default_branch_and_says_so(clone: Work) -> None:
    fork = clone.git("rev-parse", "HEAD")
    tip = clone.commit({"src/b.txt": "b\n"})
    [change] = push(clone, ("refs/heads/f1", UNKNOWN, tip))
    assert base_of(change) == short(fork)
    assert change.notes == ["refs/heads/f1: the remote's 777777777777 is not known here; git fetch would tell more"]


def test_r_10_a_force_push_is_reported_and_compared_with_the_default_branch(clone: Work) -> None:
    fork = clone.git("rev-parse", "HEAD")
    clone.git("checkout", "-q", "-b", "f1")
    old = clone.commit({"src/b.txt": "old\n"})
    clone.git("push", "-q", "origin", "f1")
    clone.git("reset", "-q", "--hard", fork)
    new = clone.commit({"src/b.txt": "new\n"})
    [change] = push(clone, ("refs/heads/f1", old, new))
    assert (base_of(change), change.commits) == (short(fork), [new])
    assert change.notes == [f"refs/heads/f1: history rewritten, {short(old)} is no ancestor of {short(new)}"]


def test_a_second_push_is_compared_with_the_default_branch_too(clone: Work) -> None:
    fork = clone.git("rev-parse", "HEAD")
    clone.git("checkout", "-q", "-b", "f1")
    first = clone.commit({"src/b.txt": "BAD\n"})
    clone.git("push", "-q", "--no-verify", "origin", "f1")
    second = clone.commit({"src/c.txt": "c\n"})
    [change] = push(clone, ("refs/heads/f1", first, second))
    assert (base_of(change), change.commits) == (short(fork), [second])
    assert found([change]) == ["src/b.txt:1"]


def test_the_default_branch_itself_is_compared_with_what_the_remote_had(clone: Work) -> None:
    old = clone.git("rev-parse", "HEAD")
    new = clone.commit({"src/b.txt": "BAD\n"})
    [change] = push(clone, ("refs/heads/main", old, new))
    assert (base_of(change), change.commits) == (short(old), [new])


def test_r_09_one_commit_on_two_refs_is_judged_once(clone: Work) -> None:
    tip = clone.commit({"src/b.txt": "BAD\n"})
    changes = push(clone, ("refs/heads/f1", ZERO, tip), ("refs/heads/f2", ZERO, tip))
    assert len(changes) == 1
    assert found(changes) == ["src/b.txt:1"]


def test_r_08_two_refs_are_both_judged_and_the_one_at_fault_is_named(clone: Work) -> None:
    clean = clone.commit({"src/b.txt": "b\n"})
    dirty = clone.commit({"src/c.txt": "BAD\n"})
    report = run(push(clone, ("refs/heads/f1", ZERO, clean), ("refs/heads/f2", ZERO, dirty)), Cache(None))
    assert report.judged == f"commit {short(clean)} of refs/heads/f1, commit {short(dirty)} of refs/heads/f2"
    assert report.notes == [f"commit {short(dirty)} of refs/heads/f2: 1 new findings"]
    assert report.exit_code == 1


def test_r_07_a_root_commit_without_a_default_branch_is_judged_absolutely(work: Work) -> None:
    head = work.git("rev-parse", "HEAD")
    [change] = push(work, ("refs/heads/main", ZERO, head))
    assert (change.base, change.commits) == (None, [head])
    assert change.notes[0].startswith("absolute: refs/heads/main is new and the remote's default branch is not known")


def test_without_a_default_branch_what_the_remote_had_is_the_base_and_it_is_said(work: Work) -> None:
    old = work.git("rev-parse", "HEAD")
    new = work.commit({"src/b.txt": "b\n"})
    [change] = push(work, ("refs/heads/main", old, new))
    assert (base_of(change), change.commits) == (short(old), [new])
    assert "compared with what the remote had" in change.notes[0]


def test_an_address_stands_for_the_remote_that_has_it(clone: Work) -> None:
    fork = clone.git("rev-parse", "HEAD")
    tip = clone.commit({"src/b.txt": "b\n"})
    address = clone.git("config", "remote.origin.url")
    [change] = push(clone, ("refs/heads/f1", ZERO, tip), remote=address)
    assert (base_of(change), change.commits) == (short(fork), [tip])


def test_hk_01_without_a_recorded_default_branch_the_remotes_branches_stand_in(clone: Work) -> None:
    clone.git("branch", "-q", "-m", "trunk")
    clone.git("push", "-q", "--no-verify", "origin", "trunk", "trunk:other")
    clone.git("remote", "set-head", "origin", "-d")
    clone.git("update-ref", "-d", "refs/remotes/origin/main")
    fork = clone.git("rev-parse", "HEAD")
    accepted = clone.commit({"src/old.txt": "BAD\n"})
    clone.git("push", "-q", "--no-verify", "origin", "trunk")
    clone.git("checkout", "-q", "-b", "topic")
    tip = clone.commit({"src/b.txt": "BAD\n"})
    for ref, old in (("refs/heads/topic", ZERO), ("refs/heads/trunk", accepted), ("refs/heads/other", fork)):
        [change] = push(clone, (ref, old, tip))
        assert (base_of(change), found([change])) == (short(accepted), ["src/b.txt:1"])
        assert "compared with all branches that are known of the remote" in change.notes[0]
    for _ in range(2):
        judged = change_of_work_tree(clone.open())
        assert (base_of(judged), found([judged])) == (short(accepted), ["src/b.txt:1"])
        clone.git("push", "-q", "--no-verify", "origin", "topic")


def test_hk_01_in_a_fork_what_upstream_accepted_is_not_new(git: Git, work: Work) -> None:
    git.clone(work, "fork.git", "--bare")
    clone = git.clone(os.fspath(git.root / "fork.git"), "clone")
    stale = clone.git("rev-parse", "HEAD")
    accepted = work.commit({"src/b.txt": "BAD\n"})
    clone.git("remote", "add", "upstream", os.fspath(work.path))
    clone.git("fetch", "-q", "upstream")
    clone.git("checkout", "-q", "-b", "topic", "upstream/main")
    tip = clone.commit({"src/c.txt": "BAD\n"})
    changes = [*push(clone, ("refs/heads/topic", ZERO, tip)), *push(clone, ("refs/heads/main", stale, tip))]
    for change in [*changes, change_of_commit(clone.open(), tip)]:
        assert (base_of(change), found([change])) == (short(accepted), ["src/c.txt:1"])
    clone.git("push", "-q", "--no-verify", "origin", "topic:main")
    [change] = push(clone, ("refs/heads/topic", ZERO, tip), remote="upstream")
    assert found([change]) == ["src/c.txt:1"]


def test_what_any_of_several_merge_bases_had_is_not_new(clone: Work) -> None:
    clone.git("checkout", "-q", "-b", "topic")
    ours = clone.commit({"src/ours.txt": "BAD\n"})
    clone.git("checkout", "-q", "main")
    theirs = clone.commit({"src/theirs.txt": "BAD\n"})
    clone.git("merge", "-q", "--no-edit", ours)
    clone.git("push", "-q", "--no-verify", "origin", "main")
    clone.git("checkout", "-q", "topic")
    clone.git("merge", "-q", "--no-edit", theirs)
    tip = clone.commit({"src/new.txt": "BAD\n"})
    [change] = push(clone, ("refs/heads/topic", ZERO, tip))
    assert len(change.other_bases) == 1
    report = run([change], Cache(None))
    assert [finding.path for finding in report.new] == ["src/new.txt"]
    assert sorted(finding.path for finding in report.inherited) == ["src/ours.txt", "src/theirs.txt"]
    assert report.base == ", ".join(base.label for base in (change.base, *change.other_bases) if base)


def test_a_push_to_an_address_of_no_remote_is_compared_with_the_default_branch_known_here(clone: Work) -> None:
    fork = clone.git("rev-parse", "HEAD")
    tip = clone.commit({"src/b.txt": "b\n"})
    [change] = push(clone, ("refs/heads/f1", ZERO, tip), remote="https://example.org/x?y[z]*.git")
    assert (base_of(change), change.commits) == (short(fork), [tip, fork])
    assert "compared with the default branch of origin" in change.notes[0]


def test_r_18_a_ref_that_moves_during_the_run_changes_nothing(clone: Work) -> None:
    fork = clone.git("rev-parse", "HEAD")
    tip = clone.commit({"src/b.txt": "BAD\n"})
    [pushed] = push(clone, ("refs/heads/f1", ZERO, tip))
    judged = change_of_commit(clone.open(), "HEAD")
    clone.git("update-ref", "refs/remotes/origin/main", tip)
    clone.git("branch", "-f", "other", fork)
    for change in (pushed, judged):
        assert (base_of(change), change.commits, found([change])) == (short(fork), [tip], ["src/b.txt:1"])


def test_a_missing_object_of_a_push_ends_the_run(clone: Work) -> None:
    with pytest.raises(CannotJudge, match=UNKNOWN):
        push(clone, ("refs/heads/f1", ZERO, UNKNOWN))
    body = f"object {UNKNOWN}\ntype commit\ntag t\ntagger A <a@b> 0 +0000\n\nx\n"
    tag = clone.git("hash-object", "-t", "tag", "-w", "--literally", "--stdin", input=body.encode())
    with pytest.raises(CannotJudge):
        push(clone, ("refs/tags/t", ZERO, tag))


def test_notes_are_no_tree_to_judge(clone: Work) -> None:
    clone.git("notes", "add", "-m", "reviewed")
    assert push(clone, ("refs/notes/commits", ZERO, clone.git("rev-parse", "refs/notes/commits"))) == []


# The receiving side.


def test_a_server_compares_with_its_own_branches(git: Git, work: Work) -> None:
    server = git.clone(work, "server.git", "--bare")
    old = server.git("rev-parse", "main")
    clone = git.clone(server, "clone")
    tip = clone.commit({"src/b.txt": "BAD\n"})
    clone.git("push", "-q", "--no-verify", "origin", "main:refs/heads/f1")
    server.git("update-ref", "-d", "refs/heads/f1")
    for ref, before in (("refs/heads/f1", ZERO), ("refs/heads/main", old)):
        [change] = push(server, (ref, before, tip), remote="", receiving=True)
        assert (base_of(change), change.commits, found([change])) == (short(old), [tip], ["src/b.txt:1"])


def test_a_servers_head_outranks_what_the_pushed_policy_says(git: Git, work: Work) -> None:
    server = git.clone(work, "server.git", "--bare")
    old = server.git("rev-parse", "main")
    clone = git.clone(server, "clone")
    clone.git("checkout", "-q", "-b", "trunk")
    clone.commit({"src/b.txt": "BAD\n"})
    clone.git("push", "-q", "origin", "trunk")
    tip = clone.commit(DEFAULT)
    clone.git("push", "-q", "origin", "trunk:hidden")
    [change] = push(server, ("refs/heads/trunk2", ZERO, tip), remote="", receiving=True)
    assert base_of(change) == short(old)


def test_the_first_push_to_an_empty_server_is_judged_absolutely(git: Git, work: Work) -> None:
    server = git.init("server.git", "--bare")
    tip = work.commit({"src/b.txt": "BAD\n"})
    work.git("push", "-q", str(server.path), "main:refs/heads/other")
    server.git("update-ref", "-d", "refs/heads/other")
    [change] = push(server, ("refs/heads/main", ZERO, tip), remote="", receiving=True)
    assert (change.base, len(change.commits), found([change])) == (None, 2, ["src/b.txt:1"])
