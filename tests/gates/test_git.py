"""The module that starts git: which repository it reads, in whose environment, and how errors end."""

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from gates.repositories import Git, Work

from gatewright.core.errors import CannotJudge
from gatewright.core.git import LOCAL_VARIABLES, Repository, foreign_environment, records
from gatewright.core.snapshot import work_tree_snapshot


def remedy(error: CannotJudge) -> list[str]:
    """The arguments of the git command that the help names."""
    return error.help.partition("git ")[2].split()


def test_local_variables_are_those_that_git_lists(work: Work) -> None:
    listed = set(work.git("rev-parse", "--local-env-vars").split())
    assert listed <= set(LOCAL_VARIABLES)


def test_hk_10_children_for_other_repositories_lose_every_variable(git: Git) -> None:
    decoy = git.init("decoy")
    environ = {**git.environ, **dict.fromkeys(LOCAL_VARIABLES, "0"), "GIT_DIR": os.fspath(decoy.path / ".git")}
    before = sorted(decoy.path.rglob("*"))
    fresh = git.root / "fresh"
    fresh.mkdir()
    subprocess.run(["git", "init", "-q"], cwd=fresh, env=foreign_environment(environ), check=True)
    assert (fresh / ".git").is_dir()
    assert sorted(decoy.path.rglob("*")) == before


def test_a_folder_of_a_repository_finds_its_top(work: Work) -> None:
    repository = work.open("src")
    assert repository.root == work.path
    assert repository.git_dir == repository.common_dir == work.path / ".git"
    assert (repository.bare, repository.object_format) == (False, "sha1")


def test_a_linked_work_tree_shares_the_common_directory(work: Work) -> None:
    work.git("worktree", "add", "-q", "../linked")
    linked = Work(work.place, work.path.parent / "linked").open()
    assert linked.common_dir == work.path / ".git"
    assert linked.git_dir == work.path / ".git" / "worktrees" / "linked"
    assert linked.root == work.path.parent / "linked"


def test_a_bare_repository_has_no_work_tree(git: Git) -> None:
    bare = git.init("bare.git", "--bare").open()
    assert bare.bare
    assert bare.root is None
    assert bare.common_dir == git.root / "bare.git"


def test_hk_10_a_decoy_git_dir_does_not_bind_a_command(git: Git, work: Work) -> None:
    decoy = git.init("decoy")
    decoy.commit({"decoy.txt": "x"})
    environ = {"GIT_DIR": os.fspath(decoy.path / ".git"), "GIT_WORK_TREE": os.fspath(decoy.path)}
    assert work.open(**environ).root == work.path
    assert work.open("src", **environ, GIT_INDEX_FILE="elsewhere").git("ls-files").decode().split() == ["a.txt"]


def test_in_a_hook_git_names_the_repository(git: Git, work: Work) -> None:
    elsewhere = git.root / "elsewhere"
    elsewhere.mkdir()
    environ = {**git.environ, "GIT_DIR": os.fspath(work.path / ".git")}
    assert Repository(elsewhere, environ, in_hook=True).git_dir == work.path / ".git"


def test_its_own_git_dir_keeps_the_index_that_a_hook_was_given(work: Work) -> None:
    shutil.copy(work.path / ".git" / "index", work.path / ".git" / "other-index")
    work.git("rm", "-q", "--cached", "src/a.txt", GIT_INDEX_FILE=".git/other-index")
    environ = {"GIT_DIR": ".git", "GIT_INDEX_FILE": ".git/other-index"}
    assert work.open(**environ).git("ls-files", "-z") == b"policy/words.toml\0"


def test_hk_11_an_index_that_a_hook_of_another_repository_left_behind_is_not_read(git: Git, work: Work) -> None:
    other = git.init("other")
    other.commit({"other.txt": "x"})
    assert (
        work.open(GIT_INDEX_FILE=os.fspath(other.path / ".git" / "index")).git("ls-files", "-z").startswith(b"policy/")
    )
    scratch = git.root / "scratch-index"
    shutil.copy(other.path / ".git" / "index", scratch)
    assert work.open(GIT_INDEX_FILE=os.fspath(scratch)).git("ls-files", "-z") == b"other.txt\0"


@pytest.mark.parametrize("kind", ["LITERAL", "GLOB", "NOGLOB", "ICASE"])
def test_hk_20_pathspecs_mean_what_they_say_whatever_the_environment(work: Work, kind: str) -> None:
    repository = work.open("src", **{f"GIT_{kind}_PATHSPECS": "1"})
    assert list(work_tree_snapshot(repository).entries) == ["policy/words.toml", "src/a.txt"]


def test_a_submodule_is_a_repository_of_its_own(git: Git, work: Work) -> None:
    inner = git.init("inner")
    inner.commit({"x": "x"})
    work.git("submodule", "add", "-q", os.fspath(inner.path), "module")
    repository = work.open("module")
    assert repository.root == work.path / "module"
    assert list(work_tree_snapshot(repository).entries) == ["x"]


@pytest.mark.parametrize("name", ["origin", "with space", "ünï", "new\nline", "\udcff"])
def test_paths_of_repositories_may_be_anything(git: Git, name: str) -> None:
    assert git.init(name).open().root == git.root / name


def test_outside_a_repository(git: Git) -> None:
    with pytest.raises(CannotJudge, match="not a git repository") as caught:
        Repository(git.root, git.environ)
    assert "-C" in caught.value.help


def test_a_folder_that_is_not_there(git: Git) -> None:
    with pytest.raises(CannotJudge, match="nowhere not found"):
        Repository(git.root / "nowhere", git.environ)


def test_a_file_is_no_folder(work: Work) -> None:
    with pytest.raises(CannotJudge, match="cannot be used: Not a directory"):
        work.open("src/a.txt")


def test_a_git_that_cannot_run(work: Work, tmp_path: Path) -> None:
    (tmp_path / "git").write_text("no program")
    (tmp_path / "git").chmod(0o755)
    with pytest.raises(CannotJudge, match="git cannot be used: Exec format error"):
        work.open(PATH=os.fspath(tmp_path))


def test_without_git(git: Git, work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", os.fspath(git.root))
    with pytest.raises(CannotJudge, match="git not found"):
        Repository(work.path, {**git.environ, "PATH": os.fspath(git.root)})


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give a folder away")
def test_dubious_ownership_ends_with_gits_words_and_the_remedy(work: Work) -> None:
    for path in (work.path, work.path / ".git"):
        os.chown(path, 4242, 4242)
    with pytest.raises(CannotJudge, match="dubious ownership") as caught:
        work.open()
    assert "safe.directory" in caught.value.help


@pytest.mark.parametrize("arguments", [["--no-such"], ["cat-file", "-p", "0" * 40], ["rev-list", "nowhere"]])
def test_a_failing_command_is_never_an_empty_answer(work: Work, arguments: list[str]) -> None:
    with pytest.raises(CannotJudge, match=r"failed: \S") as caught:
        work.open().git(*arguments)
    assert caught.value.help


def test_gp_05_an_option_is_no_revision(work: Work) -> None:
    target = work.path / "written"
    with pytest.raises(CannotJudge, match="not a revision"):
        work.open().commit_id(f"--output={target}")
    assert not target.exists()


def test_commit_ids(work: Work) -> None:
    head = work.git("rev-parse", "HEAD")
    work.git("tag", "-a", "-m", "tag", "v1")
    work.git("tag", "-a", "-m", "tag of a tag", "v2", "v1")
    work.git("tag", "tree", "HEAD^{tree}")
    repository = work.open()
    assert {repository.commit_id(name) for name in ("main", "v1", "v2", head, head[:10], "@{0}")} == {head}
    assert [repository.commit_id(name) for name in ("tree", "nowhere", "1" * 40, "")] == [None] * 4


def test_r_04_a_name_of_a_branch_and_a_tag_fails_closed(work: Work) -> None:
    work.git("tag", "both")
    work.commit({"src/b.txt": "b"})
    work.git("branch", "both")
    work.git("config", "core.warnAmbiguousRefs", "false")
    with pytest.raises(CannotJudge, match=r"'both' is ambiguous.*refname") as caught:
        work.open().commit_id("both")
    assert "refs/heads/" in caught.value.help
    assert work.open().commit_id("refs/heads/both") == work.git("rev-parse", "main")


def test_a_full_id_is_never_ambiguous(work: Work) -> None:
    head = work.git("rev-parse", "HEAD")
    work.git("branch", head)
    work.commit({"src/b.txt": "b"})
    work.git("update-ref", f"refs/heads/{head}", "HEAD")
    assert work.open().commit_id(head) == head


def test_r_04_an_ambiguous_short_id_fails_closed(work: Work) -> None:
    tree = work.git("rev-parse", "HEAD^{tree}")
    who = "A <a@b> 0 +0000"
    seen: dict[str, bytes] = {}
    for number in range(100_000):
        body = f"tree {tree}\nauthor {who}\ncommitter {who}\n\n{number}\n".encode()
        short = hashlib.sha1(b"commit %d\0" % len(body) + body).hexdigest()[:4]
        if short in seen:
            break
        seen[short] = body
    for content in (body, seen[short]):
        work.git("hash-object", "-t", "commit", "-w", "--stdin", input=content)
    with pytest.raises(CannotJudge, match=f"'{short}' is ambiguous"):
        work.open().commit_id(short)


def test_head_of_an_unborn_branch_and_of_a_detached_one(git: Git, work: Work) -> None:
    assert git.init("unborn").open().head_id() is None
    work.git("checkout", "-q", "--detach")
    assert work.open().head_id() == work.git("rev-parse", "main")


@pytest.mark.parametrize("content", ["garbage\n", "", "1" * 40 + "\n"])
def test_a_head_that_cannot_be_read_is_no_unborn_branch(work: Work, content: str) -> None:
    (work.path / ".git" / "refs" / "heads" / "main").write_text(content)
    with pytest.raises(CannotJudge, match="git log -1 HEAD failed: fatal"):
        work.open().head_id()


def test_r_02_merge_base_of_unrelated_histories(work: Work) -> None:
    other = work.git("commit-tree", "HEAD^{tree}", "-m", "root")
    with pytest.raises(CannotJudge, match="unrelated histories"):
        work.open().merge_base("main", other)


def test_hk_14_r_03_merge_base_in_a_shallow_clone(git: Git, work: Work) -> None:
    work.git("checkout", "-q", "-b", "topic")
    work.commit({"src/b.txt": "b"})
    work.git("checkout", "-q", "main")
    work.commit({"src/c.txt": "c"})
    shallow = git.clone(work.path.as_uri(), "shallow", "--depth=1", "--no-single-branch")
    with pytest.raises(CannotJudge, match="shallow clone") as caught:
        shallow.open().merge_base("origin/main", "origin/topic")
    shallow.git(*remedy(caught.value))
    assert shallow.open().merge_base("origin/main", "origin/topic") == work.git("rev-parse", "main~1")


def test_configuration_names_its_origin(git: Git, work: Work) -> None:
    git.configure({"core.hooksPath": "/hooks"})
    value, origin = work.open().configuration("core.hooksPath") or ("", "")
    assert value == "/hooks"
    assert origin.endswith(".gitconfig")
    assert work.open().configuration("no.such") is None


def test_objects_of_any_size_one_after_the_other(work: Work) -> None:
    contents = [b"", b"x", b"line\n" * 100_000, bytes(range(256)) * 3000]
    ids = [work.git("hash-object", "-w", "--stdin", input=c) for c in contents[:3]]
    work.write({"binary": contents[3]})
    ids.append(work.git("hash-object", "-w", "binary"))
    objects = work.open().objects()
    assert [objects.read(name) for name in ids] == contents
    objects.close()
    objects.close()


def test_a_missing_object_is_named_with_the_remedy(work: Work) -> None:
    objects = work.open().objects()
    with pytest.raises(CannotJudge, match="1111 missing") as caught:
        objects.read("1" * 40)
    assert "git fetch" in caught.value.help
    objects.close()


def test_a_damaged_object_ends_with_gits_words(work: Work) -> None:
    name = work.git("rev-parse", "HEAD:src/a.txt")
    path = work.path / ".git" / "objects" / name[:2] / name[2:]
    path.chmod(0o644)
    path.write_bytes(b"no zlib stream")
    objects = work.open().objects()
    with pytest.raises(CannotJudge, match=r"(?s)inflate: .* missing"):
        objects.read(name)
    objects.close()


def test_a_replacement_object_is_not_followed(work: Work) -> None:
    name = work.git("rev-parse", "HEAD:src/a.txt")
    other = work.git("hash-object", "-w", "--stdin", input=b"other\n")
    work.git("replace", name, other)
    objects = work.open().objects()
    assert objects.read(name) == b"fine\n"
    objects.close()


def test_a_graft_is_not_followed(work: Work) -> None:
    root = work.git("rev-parse", "HEAD")
    tip = work.commit({"src/b.txt": "b"})
    (work.path / ".git/info").mkdir(exist_ok=True)
    (work.path / ".git/info/grafts").write_text(f"{tip}\n")
    assert work.open().merge_base(tip, root) == root


def test_a_partial_clone_is_not_completed_by_reading(git: Git, work: Work) -> None:
    work.git("config", "uploadpack.allowFilter", "true")
    blob = work.git("rev-parse", "HEAD:src/a.txt")
    partial = git.clone(work.path.as_uri(), "partial", "--filter=blob:none", "--no-checkout")
    objects = partial.open().objects()
    with pytest.raises(CannotJudge) as caught:
        objects.read(blob)
    objects.close()
    assert f"?{blob}" in partial.git("rev-list", "--objects", "--all", "--missing=print")
    assert partial.git(*remedy(caught.value)) == ""
    objects = partial.open().objects()
    assert objects.read(blob) == b"fine\n"
    objects.close()


@pytest.mark.parametrize("alone", ["GIT_NO_LAZY_FETCH", "GIT_ALLOW_PROTOCOL"])
def test_each_guard_alone_keeps_git_from_fetching(git: Git, work: Work, alone: str) -> None:
    """Git before 2.44 may not know the first of the two."""
    work.git("config", "uploadpack.allowFilter", "true")
    partial = git.clone(work.path.as_uri(), "partial", "--filter=blob:none", "--no-checkout")
    repository = partial.open()
    for name in {"GIT_NO_LAZY_FETCH", "GIT_ALLOW_PROTOCOL"} - {alone}:
        del repository.environ[name]
    objects = repository.objects()
    with pytest.raises(CannotJudge):
        objects.read(work.git("rev-parse", "HEAD:src/a.txt"))
    objects.close()


def test_several_commands_run_side_by_side(work: Work) -> None:
    one, two = work.open().git_all([["rev-parse", "HEAD"], ["ls-files", "-z"]])
    assert len(one) == 41
    assert list(records(two)) == [b"policy/words.toml", b"src/a.txt"]
