"""Real pushes to real repositories, with the hooks that `gate install` writes."""

import os
import shutil
from pathlib import Path

import pytest
from gates.repositories import POLICY, Git, Work

BAD = {"src/bad.txt": "one\nBAD\n"}


@pytest.fixture
def server(git: Git, work: Work) -> Work:
    return git.clone(work, "server.git", "--bare")


@pytest.fixture
def clone(git: Git, server: Work) -> Work:
    """A clone of the server in which the pre-push hook is installed."""
    repository = git.clone(server, "clone")
    assert repository.gate("install").returncode == 0
    return repository


def refs(work: Work) -> set[str]:
    return set(work.git("for-each-ref", "--format=%(refname)").split("\n"))


def test_a_clean_push_passes(clone: Work, server: Work) -> None:
    tip = clone.commit({"src/b.txt": "b\n"})
    result = clone.run("git", "push", "origin", "main")
    assert result.returncode == 0, result.stderr
    assert server.git("rev-parse", "main") == tip
    assert f"commit {tip[:12]} of refs/heads/main" in result.stdout + result.stderr


def test_a_dirty_push_is_refused_with_the_finding(clone: Work, server: Work) -> None:
    before = server.git("rev-parse", "main")
    clone.commit(BAD)
    result = clone.run("git", "push", "origin", "main")
    assert result.returncode == 1
    output = result.stdout + result.stderr
    assert "src/bad.txt:2:1" in output
    assert "words/forbidden" in output
    assert server.git("rev-parse", "main") == before


def test_r_13_r_14_the_pushed_commit_counts_and_not_the_work_tree(clone: Work) -> None:
    clone.commit({"src/b.txt": "b\n"})
    clone.write({**BAD, "src/b.txt": "BAD\n"})
    assert clone.run("git", "push", "origin", "main").returncode == 0
    clone.commit()
    clone.write({"src/bad.txt": "mended\n", "src/b.txt": "mended\n"})
    assert clone.run("git", "push", "origin", "main").returncode == 1


def test_hk_02_r_05_a_delete_only_push_passes_and_head_is_not_judged(clone: Work, server: Work) -> None:
    clone.git("push", "-q", "origin", "main:refs/heads/f1", "main:refs/tags/t1")
    clone.commit(BAD)
    result = clone.run("git", "push", "origin", "--delete", "f1", "t1")
    assert result.returncode == 0, result.stderr
    assert refs(server) == {"refs/heads/main"}


def test_hk_02_a_deletion_passes_with_a_head_that_is_broken(clone: Work, server: Work) -> None:
    clone.git("push", "-q", "origin", "main:refs/heads/f1")
    (clone.path / ".git" / "refs" / "heads" / "main").write_text("1" * 40 + "\n")
    assert clone.run("git", "push", "origin", "--delete", "f1").returncode == 0
    assert refs(server) == {"refs/heads/main"}


def test_r_08_two_refs_in_one_push_are_both_judged(clone: Work, server: Work) -> None:
    clone.git("checkout", "-q", "-b", "f1")
    clone.commit({"src/b.txt": "b\n"})
    clone.git("checkout", "-q", "-b", "f2")
    tip = clone.commit(BAD)
    result = clone.run("git", "push", "origin", "f1", "f2")
    assert result.returncode == 1
    assert f"commit {tip[:12]} of refs/heads/f2: 1 new findings" in result.stdout + result.stderr
    assert refs(server) == {"refs/heads/main"}
    assert clone.run("git", "push", "origin", "f1").returncode == 0


def test_a_second_push_does_not_launder_a_first_one_without_the_hook(clone: Work) -> None:
    clone.git("checkout", "-q", "-b", "f1")
    clone.commit(BAD)
    clone.git("push", "-q", "--no-verify", "origin", "f1")
    clone.commit({"src/b.txt": "b\n"})
    result = clone.run("git", "push", "origin", "f1")
    assert result.returncode == 1
    assert "src/bad.txt:2:1" in result.stdout + result.stderr


def test_a_push_from_a_linked_work_tree_judges_its_tree(clone: Work, server: Work) -> None:
    clone.git("worktree", "add", "-q", "-b", "f1", "../linked")
    linked = Work(clone.place, clone.path.parent / "linked")
    clone.write(BAD)
    linked.commit({"src/b.txt": "b\n"})
    assert linked.run("git", "push", "origin", "f1").returncode == 0
    linked.commit(BAD)
    assert linked.run("git", "push", "origin", "f1", folder="src").returncode == 1
    clone.git("checkout", "-q", "-b", "clean")
    assert clone.run("git", "push", "origin", "clean", folder="src").returncode == 0


def test_a_push_through_git_dir_and_work_tree_variables(clone: Work, git: Git) -> None:
    clone.commit(BAD)
    environ = {"GIT_DIR": os.fspath(clone.path / ".git"), "GIT_WORK_TREE": os.fspath(clone.path)}
    elsewhere = Work(git, git.root)
    assert elsewhere.run("git", "push", "origin", "main", **environ).returncode == 1


def test_hk_10_a_decoy_git_dir_stays_untouched(git: Git, clone: Work) -> None:
    decoy = git.init("decoy")
    decoy.commit({"x": "x"})
    before = {path: path.stat().st_mtime_ns for path in decoy.path.rglob("*")}
    environ = {"GIT_DIR": os.fspath(decoy.path / ".git"), "GIT_WORK_TREE": os.fspath(decoy.path)}
    clone.write(BAD)
    result = clone.gate("run", **environ)
    assert result.returncode == 1, result.stderr
    assert "src/bad.txt:2:1" in result.stdout
    assert clone.gate("install", **environ).stdout.startswith("already installed: ")
    assert {path: path.stat().st_mtime_ns for path in decoy.path.rglob("*")} == before


def test_hk_05_r_12_tags(clone: Work, server: Work) -> None:
    clone.git("tag", "-a", "-m", "release", "v1")
    assert clone.run("git", "push", "origin", "v1").returncode == 0
    clone.git("checkout", "-q", "-b", "f1")
    clone.commit(BAD)
    clone.git("tag", "-a", "-m", "release", "v2")
    clone.git("tag", "light")
    for tag in ("v2", "light"):
        assert clone.run("git", "push", "origin", tag).returncode == 1
    assert refs(server) == {"refs/heads/main", "refs/tags/v1"}


def test_hk_07_pushes_of_expressions(clone: Work) -> None:
    clone.commit({"src/b.txt": "b\n"})
    clone.commit(BAD)
    assert clone.run("git", "push", "origin", "main~1:refs/heads/other").returncode == 0
    clone.git("checkout", "-q", "--detach")
    assert clone.run("git", "push", "origin", "HEAD:refs/heads/det").returncode == 1


def test_r_10_a_force_push_is_judged_and_reported(clone: Work) -> None:
    clone.git("checkout", "-q", "-b", "f1")
    clone.commit({"src/b.txt": "b\n"})
    clone.git("push", "-q", "origin", "f1")
    clone.git("reset", "-q", "--hard", "main")
    clone.commit({"src/c.txt": "c\n"})
    result = clone.run("git", "push", "--force", "origin", "f1")
    assert result.returncode == 0, result.stderr
    assert "refs/heads/f1: history rewritten" in result.stdout + result.stderr
    clone.git("reset", "-q", "--hard", "main")
    clone.commit(BAD)
    assert clone.run("git", "push", "--force", "origin", "f1").returncode == 1


def test_hk_08_r_11_an_id_of_the_remote_that_is_not_known_here(git: Git, clone: Work, server: Work) -> None:
    other = git.clone(server, "other")
    other.commit({"src/other.txt": "other\n"})
    other.git("push", "-q", "origin", "main:f1")
    clone.commit({"src/b.txt": "b\n"})
    result = clone.run("git", "push", "--force", "origin", "main:f1")
    assert result.returncode == 0, result.stderr
    assert "is not known here" in result.stdout + result.stderr


def test_hk_01_an_address_in_place_of_a_remotes_name(clone: Work, server: Work) -> None:
    clone.git("checkout", "-q", "-b", "f1")
    clone.commit({"src/b.txt": "b\n"})
    result = clone.run("git", "push", os.fspath(server.path), "f1")
    assert result.returncode == 0
    assert "absolute" not in result.stdout + result.stderr


def test_hk_19_a_chained_hook_gets_the_same_input_and_its_verdict_counts(clone: Work, server: Work) -> None:
    hook = clone.path / ".git" / "hooks" / "pre-push"
    chained = clone.path / ".git" / "hooks" / "then"
    chained.write_text(f'#!/bin/sh\necho "$@" > seen\ncat >> seen\ngrep -q {"0" * 40} seen\n')
    chained.chmod(0o755)
    hook.write_text(f'#!/bin/sh\nexec gate hook pre-push --then {chained} "$@"\n')
    tip = clone.commit({"src/b.txt": "b\n"})
    old = server.git("rev-parse", "main")
    assert clone.run("git", "push", "origin", "main").returncode == 1
    lines = (clone.path / "seen").read_text().split("\n")
    assert lines == [f"origin {server.path}", f"refs/heads/main {tip} refs/heads/main {old}", ""]
    assert clone.run("git", "push", "origin", "main:f1").returncode == 0
    (clone.path / "seen").unlink()
    clone.commit(BAD)
    assert clone.run("git", "push", "origin", "main:f2").returncode == 1
    assert not (clone.path / "seen").exists()


def test_hk_19_input_that_an_earlier_hook_has_read(clone: Work) -> None:
    hook = clone.path / ".git" / "hooks" / "pre-push"
    hook.write_text('#!/bin/sh\ncat > /dev/null\nexec gate hook pre-push "$@"\n')
    clone.commit({"src/b.txt": "b\n"})
    result = clone.run("git", "push", "origin", "main")
    assert result.returncode == 0
    assert "HEAD is judged" in result.stdout + result.stderr
    clone.commit(BAD)
    assert clone.run("git", "push", "origin", "main").returncode == 1


def test_hk_04_a_sha_256_repository(git: Git) -> None:
    server = git.init("server256.git", "--bare", "--object-format=sha256")
    clone = git.init("clone256", "--object-format=sha256")
    clone.git("remote", "add", "origin", os.fspath(server.path))
    assert clone.gate("install").returncode == 0
    clone.commit({**POLICY, "src/a.txt": "fine\n"})
    assert len(clone.git("rev-parse", "HEAD")) == 64
    assert clone.run("git", "push", "origin", "main", "main:f1").returncode == 0
    clone.commit(BAD)
    assert clone.run("git", "push", "origin", "main").returncode == 1
    assert clone.run("git", "push", "origin", "--delete", "f1").returncode == 0
    assert clone.gate("run", "--staged").returncode == 1


def test_hk_14_a_shallow_clone_without_a_merge_base_is_refused_and_the_remedy_works(
    git: Git, server: Work, clone: Work
) -> None:
    clone.git("checkout", "-q", "-b", "old")
    clone.commit({"src/old.txt": "old\n"})
    clone.git("push", "-q", "origin", "old")
    clone.git("checkout", "-q", "main")
    clone.commit({"src/b.txt": "b\n"})
    clone.git("push", "-q", "origin", "main")
    shallow = git.clone(server.path.as_uri(), "shallow", "--depth=1", "--no-single-branch")
    shallow.gate("install")
    shallow.git("checkout", "-q", "old")
    shallow.commit({"src/c.txt": "c\n"})
    result = shallow.run("git", "push", "origin", "old")
    assert result.returncode == 1
    assert "shallow clone" in result.stderr
    assert "help: git fetch --unshallow" in result.stderr
    assert shallow.gate("run").returncode == 3
    shallow.git("fetch", "-q", "--unshallow")
    assert shallow.run("git", "push", "origin", "old").returncode == 0


def test_r_02_an_unrelated_history_is_refused_with_its_cause(clone: Work) -> None:
    clone.git("checkout", "-q", "--orphan", "pages")
    clone.commit({"src/b.txt": "b\n"})
    result = clone.run("git", "push", "origin", "pages")
    assert result.returncode == 1
    assert "unrelated histories" in result.stderr


def test_an_unrelated_branch_without_a_policy_is_let_through(clone: Work) -> None:
    """Published pages have a root of their own, and nothing to enforce."""
    clone.git("checkout", "-q", "--orphan", "pages")
    clone.git("rm", "-rqf", ".")
    clone.commit({"index.html": "<p>BAD</p>\n"})
    result = clone.run("git", "push", "origin", "pages")
    assert result.returncode == 0, result.stderr
    assert "nothing to judge" in result.stdout + result.stderr


def test_a_missing_object_is_refused_with_gits_words(clone: Work) -> None:
    clone.commit(BAD)
    blob = clone.git("rev-parse", "HEAD:src/bad.txt")
    (clone.path / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    result = clone.run("git", "push", "origin", "main")
    assert result.returncode != 0
    assert f"{blob} missing" in result.stderr
    assert "help: fetch the missing objects" in result.stderr
    assert clone.gate("run", "--commit", "HEAD").returncode == 3


def test_a_partial_clone_does_not_fetch_to_be_judged(git: Git, server: Work) -> None:
    server.git("config", "uploadpack.allowFilter", "true")
    partial = git.clone(server.path.as_uri(), "partial", "--filter=blob:none", "--no-checkout")
    result = partial.gate("run", "--commit", "HEAD")
    assert result.returncode == 3
    assert "partial clone" in result.stderr
    assert partial.git("rev-list", "--objects", "--all", "--missing=print").count("?") == 2


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give a folder away")
def test_dubious_ownership_is_refused(clone: Work) -> None:
    shutil.chown(clone.path, 4242, 4242)
    shutil.chown(clone.path / ".git", 4242, 4242)
    result = clone.gate("run")
    assert result.returncode == 3
    assert "dubious ownership" in result.stderr
    assert "safe.directory" in result.stderr
    clone.place.configure({"safe.directory": os.fspath(clone.path)})
    assert clone.gate("run").returncode == 0


def test_hk_22_a_path_that_is_not_utf8_is_found_and_printed(clone: Work) -> None:
    clone.commit({"src/bad\udcff.txt": "BAD\n"})
    result = clone.run("git", "push", "origin", "main")
    assert result.returncode == 1
    assert "src/bad\\xff.txt:1:1" in result.stdout + result.stderr


def test_hk_20_user_configuration_changes_no_verdict(git: Git, clone: Work) -> None:
    ran = git.root / "ran"
    hostile = git.root / "hostile"
    hostile.write_text(f"#!/bin/sh\ntouch {ran}\n")
    hostile.chmod(0o755)
    git.configure(
        {
            "diff.noprefix": "true",
            "diff.mnemonicPrefix": "true",
            "diff.external": os.fspath(hostile),
            "color.ui": "always",
            "core.quotePath": "true",
            "core.fsmonitor": os.fspath(hostile),
            "core.autocrlf": "true",
            "core.pager": os.fspath(hostile),
            "merge.conflictStyle": "diff3",
        }
    )
    clone.commit({"src/é b.txt": b"fine\r\n"})
    assert clone.run("git", "push", "origin", "main").returncode == 0
    ran.unlink(missing_ok=True)
    clone.write({"src/é b.txt": b"BAD\r\n"})
    result = clone.gate("run", "--output-format", "json")
    assert result.returncode == 1
    assert '"src/é b.txt"' in result.stdout or "src/\\u00e9 b.txt" in result.stdout
    assert not ran.exists()
    clone.commit()
    assert clone.run("git", "push", "origin", "main").returncode == 1


def test_a_repository_without_a_policy_is_let_through_and_told_so(git: Git) -> None:
    server = git.init("bare.git", "--bare")
    clone = git.clone(server, "without")
    clone.gate("install")
    clone.commit(BAD)
    result = clone.run("git", "push", "origin", "main")
    assert result.returncode == 0
    assert "no policy/" in result.stdout + result.stderr


def test_r_15_a_push_that_deletes_the_policy_is_refused(clone: Work) -> None:
    clone.commit({"policy/words.toml": None})
    result = clone.run("git", "push", "origin", "main")
    assert result.returncode == 1
    assert "policy/loosened" in result.stdout + result.stderr


def test_an_invalid_policy_in_the_pushed_tree_is_refused(clone: Work) -> None:
    clone.commit({"policy/words.toml": "where = 3\n"})
    result = clone.run("git", "push", "origin", "main")
    assert result.returncode == 1
    assert "policy/words.toml:1: Expected `array`" in result.stderr


# The receiving side.


@pytest.fixture
def guarded(server: Work) -> Work:
    assert server.gate("install", "--hook", "pre-receive").returncode == 0
    return server


def objects(work: Work) -> set[Path]:
    return {path for path in (work.path / "objects").rglob("*") if path.is_file()}


def test_pre_receive_refuses_on_the_server_and_leaves_no_object(guarded: Work, clone: Work) -> None:
    clone.commit(BAD)
    before = objects(guarded)
    result = clone.run("git", "push", "--no-verify", "origin", "main")
    assert result.returncode == 1
    assert "remote: " in result.stderr
    assert "src/bad.txt:2:1" in result.stderr
    assert "pre-receive hook declined" in result.stderr
    assert objects(guarded) == before


def test_pre_receive_lets_clean_work_and_deletions_through(guarded: Work, clone: Work) -> None:
    tip = clone.commit({"src/b.txt": "b\n"})
    result = clone.run("git", "push", "--no-verify", "origin", "main", "main:f1", "main:refs/tags/t1")
    assert result.returncode == 0, result.stderr
    assert guarded.git("rev-parse", "main", "f1", "t1").split() == [tip] * 3
    assert clone.run("git", "push", "--no-verify", "origin", "--delete", "f1").returncode == 0


def test_pre_receive_judges_a_new_branch_relative_to_the_default_branch(guarded: Work, clone: Work) -> None:
    inherited = {"src/old.txt": "BAD\n"}
    guarded.git("config", "core.hooksPath", "/nowhere")
    clone.commit(inherited)
    clone.git("push", "-q", "--no-verify", "origin", "main")
    guarded.git("config", "--unset", "core.hooksPath")
    clone.git("checkout", "-q", "-b", "f1")
    clone.commit({"src/b.txt": "b\n"})
    assert clone.run("git", "push", "--no-verify", "origin", "f1").returncode == 0
    clone.commit(BAD)
    result = clone.run("git", "push", "--no-verify", "origin", "f1")
    assert "src/bad.txt:2:1" in result.stderr
    assert "src/old.txt:1:1" not in result.stderr


def test_pre_receive_in_a_repository_with_a_work_tree_judges_what_is_pushed(git: Git, work: Work) -> None:
    work.git("config", "receive.denyCurrentBranch", "ignore")
    assert work.gate("install", "--hook", "pre-receive").returncode == 0
    work.write(BAD)
    clone = git.clone(work, "clone")
    clone.commit({"src/b.txt": "b\n"})
    assert clone.run("git", "push", "origin", "main").returncode == 0
    clone.commit(BAD)
    result = clone.run("git", "push", "origin", "main")
    assert result.returncode == 1
    assert "src/bad.txt:2:1" in result.stderr


def test_every_ref_at_once(guarded: Work, clone: Work) -> None:
    clone.commit({"src/b.txt": "b\n"})
    clone.git("branch", "f1")
    clone.git("tag", "-a", "-m", "t", "t1")
    clone.git("notes", "add", "-m", "reviewed")
    result = clone.run("git", "push", "--mirror", "origin")
    assert result.returncode == 0, result.stderr
    assert {"refs/heads/f1", "refs/tags/t1", "refs/notes/commits"} <= refs(guarded)


def test_pre_receive_without_input_cannot_judge(guarded: Work) -> None:
    result = guarded.gate("hook", "pre-receive", input=b"")
    assert result.returncode == 3
    assert "--then" in result.stderr
