"""The entry points of git's hooks, and where `gate install` puts them."""

import os
import stat
from pathlib import Path

import pytest
from gates.repositories import Git, Work

from gatewright import hooks
from gatewright.core.errors import CannotJudge, PolicyError
from gatewright.hooks import install_hook, run_pre_push, run_pre_receive

ZERO = "0" * 40


def pre_push(work: Work, lines: str, then: str = "") -> int:
    return run_pre_push(work.path, "origin", "url", lines.encode(), then)


def line(work: Work, ref: str = "refs/heads/f1", local: str = "HEAD") -> str:
    return f"{local} {work.git('rev-parse', local)} {ref} {ZERO}\n"


# Judging.


def test_hk_01_a_new_branch_is_judged(work: Work, capfd: pytest.CaptureFixture[str]) -> None:
    assert pre_push(work, line(work)) == 0
    work.commit({"src/a.txt": "BAD\n"})
    assert pre_push(work, line(work)) == 1
    assert "src/a.txt:1:1" in capfd.readouterr().out


def test_hk_02_r_05_a_deletion_is_silent(work: Work, capfd: pytest.CaptureFixture[str]) -> None:
    work.commit({"src/a.txt": "BAD\n"})
    assert pre_push(work, f"(delete) {ZERO} refs/heads/f1 {work.git('rev-parse', 'HEAD')}\n") == 0
    assert capfd.readouterr().out == ""


def test_hk_19_without_lines_head_stands_in_and_it_is_said(work: Work, capfd: pytest.CaptureFixture[str]) -> None:
    assert pre_push(work, "") == 0
    assert "HEAD is judged" in capfd.readouterr().out
    work.commit({"src/a.txt": "BAD\n"})
    assert pre_push(work, "") == 1


def test_hk_19_a_push_of_nothing_is_not_held_against_what_the_remote_has(git: Git, work: Work) -> None:
    work.commit({"src/old.txt": "BAD\n"})
    clone = git.clone(work, "clone")
    assert clone.gate("install").returncode == 0
    result = clone.run("git", "push", "origin", "main")
    assert result.returncode == 0, result.stdout + result.stderr
    assert "1 inherited" in result.stdout + result.stderr
    clone.commit({"src/new.txt": "BAD\n"})
    assert clone.gate("hook", "pre-push", "origin").returncode == 1


def test_without_lines_and_without_a_commit_there_is_nothing_to_judge(git: Git) -> None:
    assert pre_push(git.init("unborn"), "") == 0


def test_without_lines_and_with_a_head_that_cannot_be_read_nothing_passes(work: Work) -> None:
    (work.path / ".git" / "refs" / "heads" / "main").write_text("garbage\n")
    with pytest.raises(CannotJudge):
        pre_push(work, "")


@pytest.mark.parametrize("lines", ["one two three\n", "x\n"])
def test_lines_of_another_form_are_refused(work: Work, lines: str) -> None:
    with pytest.raises(PolicyError, match="wanted 4"):
        pre_push(work, lines)


def test_pre_receive_without_lines_is_no_pass(work: Work) -> None:
    with pytest.raises(CannotJudge, match="no refs on standard input"):
        run_pre_receive(work.path, b"", "")


def test_r_17_only_a_verdict_of_this_run_counts_as_one(work: Work, capfd: pytest.CaptureFixture[str]) -> None:
    """The report names what was judged and by which rules: a mention of a check in a script is no run of it."""
    pre_push(work, line(work))
    output = capfd.readouterr().out
    assert f"commit {work.git('rev-parse', 'HEAD')[:12]} of refs/heads/f1" in output
    assert "words" in output


def test_a_tree_without_a_policy_is_let_through_and_it_is_said(git: Git, capfd: pytest.CaptureFixture[str]) -> None:
    bare = git.init("bare")
    bare.commit({"src/a.txt": "BAD\n"})
    assert pre_push(bare, line(bare)) == 0
    assert "nothing to judge" in capfd.readouterr().out


def test_pc_05_a_policy_folder_that_is_a_link_does_not_let_a_push_through(git: Git) -> None:
    linked = git.init("linked")
    linked.write({"real/words.toml": 'where = ["src/**"]\n', "src/a.txt": "BAD\n"})
    (linked.path / "policy").symlink_to("real")
    linked.commit()
    with pytest.raises(PolicyError, match="not a folder"):
        pre_push(linked, line(linked))


# The chain.


def script(path: Path, body: str) -> str:
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return os.fspath(path)


def test_hk_19_the_next_hook_gets_arguments_and_input(work: Work, tmp_path: Path) -> None:
    then = script(tmp_path / "then", f'echo "$1" "$2" > {tmp_path}/seen; cat >> {tmp_path}/seen; exit 7')
    lines = line(work)
    assert pre_push(work, lines, then) == 7
    assert (tmp_path / "seen").read_text() == "origin url\n" + lines


def test_the_next_hook_does_not_run_after_a_refusal(work: Work, tmp_path: Path) -> None:
    work.commit({"src/a.txt": "BAD\n"})
    assert pre_push(work, line(work), script(tmp_path / "then", f"touch {tmp_path}/ran")) == 1
    assert not (tmp_path / "ran").exists()


def test_a_deletion_reaches_the_next_hook(work: Work, tmp_path: Path) -> None:
    then = script(tmp_path / "then", f"cat > {tmp_path}/seen")
    deletion = f"(delete) {ZERO} refs/heads/f1 {'1' * 40}\n"
    assert pre_push(work, deletion, then) == 0
    assert (tmp_path / "seen").read_text() == deletion


def test_a_next_hook_that_does_not_read_its_input_is_no_error(work: Work, tmp_path: Path) -> None:
    lines = "".join(f"(delete) {ZERO} refs/heads/{n:0100} {'1' * 40}\n" for n in range(3000))
    assert pre_push(work, lines, script(tmp_path / "then", "exit 0")) == 0


def test_a_next_hook_that_is_missing_is_no_pass(work: Work) -> None:
    with pytest.raises(CannotJudge, match="cannot run: No such file"):
        pre_push(work, line(work), "/nowhere/hook")


# Installing.


def test_hk_23_the_hook_lies_where_git_reads_it_and_runs(work: Work) -> None:
    said = install_hook(work.path / "src", "pre-push")
    path = work.path / ".git" / "hooks" / "pre-push"
    assert said == f"installed: {path}"
    assert path.stat().st_mode & stat.S_IXUSR
    assert path.read_text().startswith("#!/bin/sh\n")
    assert install_hook(work.path, "pre-push") == f"already installed: {path}"


def test_hk_23_from_a_linked_work_tree_it_is_the_common_folder(work: Work) -> None:
    work.git("worktree", "add", "-q", "../linked")
    said = install_hook(work.path.parent / "linked", "pre-push")
    assert said == f"installed: {work.path}/.git/hooks/pre-push"


def test_hk_23_r_17_another_hook_is_never_overwritten_and_a_comment_that_names_gate_is_no_call(work: Work) -> None:
    path = work.path / ".git" / "hooks" / "pre-push"
    path.parent.mkdir(exist_ok=True)
    for body in ("#!/bin/sh\nexit 0\n", "#!/bin/sh\n# An example of a hook pre-push, not gate hook pre-push\n"):
        path.write_text(body)
        with pytest.raises(PolicyError, match="exists and does not call gate") as caught:
            install_hook(work.path, "pre-push")
        assert 'gate hook pre-push "$@" || exit 1' in caught.value.help
        assert path.read_text() == body


@pytest.mark.parametrize(
    ("line", "calls"),
    [
        ("echo 'see gate hook pre-push'", False),
        ("printf 'gate hook pre-push'", False),
        (": gate hook pre-push", False),
        ("true # gate hook pre-push", False),
        ("gate hook pre-push-old", False),
        ("gate hook pre-receive", False),
        ('gate hook pre-push "$@" || true', False),
        ('gate hook pre-push "$@" &', False),
        ('exec /opt/bin/gate hook pre-push "$@"', True),
        ('uv run gate hook pre-push "$@"', True),
        ('if ! gate hook pre-push "$@"; then exit 1; fi', True),
        ('gate hook pre-push "$@" && make test', True),
    ],
)
def test_hk_23_r_17_only_a_call_whose_verdict_counts_is_one(work: Work, line: str, calls: bool) -> None:
    path = work.path / ".git" / "hooks" / "pre-push"
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{line}\n")
    if calls:
        assert install_hook(work.path, "pre-push") == f"already installed: {path}"
    else:
        with pytest.raises(PolicyError, match="exists and does not call gate"):
            install_hook(work.path, "pre-push")


def test_hk_23_a_folder_in_the_hooks_place_is_refused(work: Work) -> None:
    (work.path / ".git/hooks/pre-push").mkdir(parents=True)
    with pytest.raises(PolicyError, match="exists and does not call gate"):
        install_hook(work.path, "pre-push")


def test_hk_23_a_hooks_path_that_is_the_repositorys_own_folder_is_no_other_place(work: Work) -> None:
    work.git("config", "core.hooksPath", ".git/hooks")
    assert install_hook(work.path, "pre-push") == f"installed: {work.path / '.git/hooks/pre-push'}"


def test_hk_23_the_line_that_the_help_gives_counts_as_installed(work: Work) -> None:
    path = work.path / ".git" / "hooks" / "pre-push"
    path.parent.mkdir(exist_ok=True)
    path.write_text('#!/bin/sh\nmake lint\ngate hook pre-push "$@" || exit 1\n')
    assert install_hook(work.path, "pre-push") == f"already installed: {path}"
    assert path.stat().st_mode & stat.S_IXUSR


def test_hk_23_a_dangling_link_in_the_hooks_place_is_not_written_through(work: Work, tmp_path: Path) -> None:
    path = work.path / ".git" / "hooks" / "pre-push"
    path.parent.mkdir(exist_ok=True)
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(CannotJudge, match="File exists"):
        install_hook(work.path, "pre-push")
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("scope", ["--global", "--local"])
def test_hk_23_a_foreign_hooks_path_is_refused_with_its_origin(work: Work, tmp_path: Path, scope: str) -> None:
    work.git("config", scope, "core.hooksPath", os.fspath(tmp_path / "hooks"))
    with pytest.raises(PolicyError, match=r"core\.hooksPath = ") as caught:
        install_hook(work.path, "pre-push")
    assert ("home/.gitconfig" if scope == "--global" else ".git/config") in caught.value.message
    assert not (tmp_path / "hooks").exists()
    assert not (work.path / ".git" / "hooks" / "pre-push").exists()


@pytest.mark.parametrize("folder", [".", "src"])
def test_hk_23_tracked_hooks_that_call_gate_are_installed_and_untouched(work: Work, folder: str) -> None:
    body = '#!/bin/sh\nexec gate hook pre-push "$@"\n'
    work.commit({".githooks/pre-push": body})
    work.git("config", "core.hooksPath", ".githooks")
    assert install_hook(work.path / folder, "pre-push") == f"already installed: {work.path}/.githooks/pre-push"
    assert (work.path / ".githooks" / "pre-push").read_text() == body


def test_hk_23_tracked_hooks_that_do_not_call_gate_are_not_overwritten(work: Work) -> None:
    work.commit({".githooks/pre-push": "#!/bin/sh\n"})
    work.git("config", "core.hooksPath", ".githooks")
    with pytest.raises(PolicyError, match="does not call gate"):
        install_hook(work.path, "pre-push")
    assert (work.path / ".githooks" / "pre-push").read_text() == "#!/bin/sh\n"


def test_hk_23_a_folder_that_cannot_be_written(work: Work) -> None:
    (work.path / ".git" / "hooks").write_text("a file in the folder's place")
    with pytest.raises(CannotJudge, match="cannot write"):
        install_hook(work.path, "pre-push")


def test_a_server_gets_its_hook(git: Git) -> None:
    bare = git.init("bare.git", "--bare")
    assert install_hook(bare.path, "pre-receive") == f"installed: {bare.path}/hooks/pre-receive"


def test_the_script_names_the_program_whatever_its_path(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    place = work.path.parent / 'it\'s $HOME "here"'
    place.mkdir()
    script(place / "gate", f"echo \"$@\" > '{work.path}/called'")
    monkeypatch.setattr(hooks.sys, "argv", [os.fspath(place / "gate")])
    install_hook(work.path, "pre-push")
    result = work.run(".git/hooks/pre-push", "origin", "url")
    assert result.returncode == 0, result.stderr
    assert (work.path / "called").read_text() == "hook pre-push origin url\n"
