"""The `gate` command as a process: exit codes, options, formats, and what is printed where."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner
from gates.repositories import CHECKS, Git, Work

from gatewright.cli import FORMATS, main

BAD = {"src/bad.txt": "BAD\n"}


def commands(group, prefix: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    found = [prefix]
    for name, command in getattr(group, "commands", {}).items():
        found += commands(command, (*prefix, name))
    return found


def test_exit_0_when_clean(work: Work) -> None:
    result = work.gate("run")
    assert (result.returncode, result.stderr) == (0, "")
    assert "PASS" in result.stdout


def test_exit_1_with_findings(work: Work) -> None:
    work.write(BAD)
    result = work.gate("run")
    assert (result.returncode, result.stderr) == (1, "")
    assert "src/bad.txt:1:1" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "--no-such-option"], "No such option"),
        (["nonsense"], "No such command"),
        (["run", "--check", "nowhere"], "there is no check named 'nowhere'"),
        (["run", "--staged", "--commit", "HEAD"], "--staged and --commit name two trees"),
        (["run", "--absolute", "--base", "HEAD"], "--base and --absolute do not go together"),
        (["run", "--merge-with", "HEAD", "--base", "HEAD"], "--base and --merge-with do not go together"),
        (["run", "--output-format", "html"], "Invalid value"),
        (["run", "--check", "env-doc"], "no policy/env-doc.toml in the work tree"),
        (["explain", "nowhere/rule"], "there is no check named 'nowhere'"),
        (["explain", "policy/nothing"], "the check policy has no rule 'policy/nothing'"),
    ],
)
def test_exit_2_on_wrong_usage(work: Work, arguments: list[str], words: str) -> None:
    result = work.gate(*arguments)
    assert result.returncode == 2
    assert words in result.stderr
    assert "Traceback" not in result.stderr


def test_exit_2_without_a_policy_and_the_help_names_a_command_that_exists(git: Git) -> None:
    fresh = git.init("fresh")
    fresh.commit(BAD)
    result = fresh.gate("run")
    assert result.returncode == 2
    assert "no policy/*.toml in the work tree: nothing is enforced" in result.stderr
    assert "gate init" in result.stderr
    assert ("init",) in commands(main)


def test_exit_2_where_the_policy_switches_no_check_on(git: Git) -> None:
    empty = git.init("empty")
    empty.commit({"policy/policy.toml": "", "a.txt": "a\n"})
    result = empty.gate("run")
    assert result.returncode == 2
    assert "policy/policy.toml alone switches no check on" in result.stderr
    assert "there are: " in result.stderr


def test_exit_2_on_an_invalid_policy(work: Work) -> None:
    work.write({"policy/words.toml": "where = []\nwher = []\n"})
    result = work.gate("run")
    assert result.returncode == 2
    assert result.stderr.startswith("gate: policy/words.toml:2: Object contains unknown field `wher`\n  help: ")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "--base", "nowhere"], "the base 'nowhere' is not a commit here"),
        (["run", "--commit", "nowhere"], "'nowhere' is not a commit here"),
        (["run", "--merge-with", "nowhere"], "'nowhere' is not a commit here"),
        (["run", "--commit", "--output=x"], "is not a revision"),
        (["run", "--output-file", "/nowhere/report"], "cannot write /nowhere/report"),
    ],
)
def test_exit_3_when_nothing_could_be_judged(work: Work, arguments: list[str], words: str) -> None:
    result = work.gate(*arguments)
    assert result.returncode == 3
    assert words in result.stderr
    assert "\n  help: " in result.stderr
    assert "Traceback" not in result.stderr


def test_exit_3_outside_a_repository(git: Git) -> None:
    result = Work(git, git.root).gate("run")
    assert result.returncode == 3
    assert "not a git repository" in result.stderr
    assert Work(git, git.root).gate("-C", "nowhere", "run").returncode == 3


def test_exit_3_when_a_rule_examined_nothing(work: Work) -> None:
    base = work.commit({"src/a.txt": None, "other": "x"})
    work.commit({"other": "y"})
    result = work.gate("run", "--base", base)
    assert result.returncode == 3
    assert "UNKNOWN" in result.stdout


def test_exit_3_on_an_error_of_our_own_and_never_1(work: Work, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.mkdir()
    source = (CHECKS / "words.py").read_text()
    (broken / "words.py").write_text(source.replace("extractor = self.extractors(policy)[0]", "1 / 0", 1))
    gate = work.place.root / "bin" / "gate"
    gate.write_text(gate.read_text().replace(os.fspath(CHECKS), os.fspath(broken)))
    result = work.gate("run")
    assert result.returncode == 3
    assert "gate: internal error, nothing was judged: ZeroDivisionError" in result.stderr
    assert "Traceback" in result.stderr


def test_an_interrupt_is_no_finding(work: Work, tmp_path: Path) -> None:
    slow = tmp_path / "slow"
    slow.mkdir()
    source = (CHECKS / "words.py").read_text()
    wait = f"open({os.fspath(tmp_path / 'ready')!r}, 'w').close(); import time; time.sleep(300)"
    (slow / "words.py").write_text(source.replace("extractor = self.extractors(policy)[0]", wait, 1))
    gate = work.place.root / "bin" / "gate"
    gate.write_text(gate.read_text().replace(os.fspath(CHECKS), os.fspath(slow)))
    # A shell's background job, such as a CI step, hands on an ignored interrupt.
    interruptible = (
        f"import os, signal; signal.signal(2, signal.SIG_DFL); os.execv({os.fspath(gate)!r}, ['gate', 'run'])"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", interruptible], cwd=work.path, env=work.place.environ, stderr=subprocess.PIPE
    )
    while not (tmp_path / "ready").exists():
        assert child.poll() is None
        time.sleep(0.01)
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=90)
    assert child.returncode == 130
    assert b"Traceback" not in err


def test_a_reader_that_goes_away_is_no_finding(work: Work) -> None:
    work.write({f"src/{n}.txt": "BAD\n" * 500 for n in range(20)})
    gate = subprocess.Popen(
        ["gate", "run"], cwd=work.path, env=work.place.environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert gate.stdout is not None
    gate.stdout.close()
    assert gate.stderr is not None
    err = gate.stderr.read()
    gate.stderr.close()
    assert gate.wait(timeout=20) == 3
    assert err == b""


@pytest.mark.parametrize(
    ("redirection", "words"),
    [(">&-", "standard output is closed"), ("> /dev/full", "cannot write standard output: No space left on device")],
)
def test_a_report_that_cannot_be_written_is_no_verdict(work: Work, redirection: str, words: str) -> None:
    if redirection.endswith("full") and not Path("/dev/full").exists():
        pytest.skip("no full device here")
    result = work.run("sh", "-c", f"gate run {redirection}")
    assert result.returncode == 3
    assert words in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no full device here")
@pytest.mark.parametrize("command", ["list", "explain policy", "audit", "--help", "--version", "run --help"])
def test_no_command_ends_with_a_traceback_where_its_output_has_no_room(work: Work, command: str) -> None:
    result = work.run("sh", "-c", f"gate {command} > /dev/full")
    assert (result.returncode, result.stderr) == (
        3,
        "gate: cannot write standard output: No space left on device\n",
    )


def test_without_standard_error_the_verdict_stands(work: Work) -> None:
    assert work.run("sh", "-c", "gate run 2>&-").returncode == 0
    work.commit(BAD)
    assert work.run("sh", "-c", "gate run 2>&-").returncode == 1


def test_a_folder_that_is_none_is_named(work: Work) -> None:
    result = work.gate("-C", "src/a.txt", "run")
    assert (result.returncode, "Traceback" in result.stderr) == (3, False)
    assert "Not a directory" in result.stderr
    result = work.run("sh", "-c", 'mkdir gone && cd gone && rmdir "$PWD" && gate run')
    assert (result.returncode, "Traceback" in result.stderr) == (3, False)
    assert "name an existing folder with -C" in result.stderr


def test_what_a_tree_brings_into_a_message_stays_on_its_line(work: Work) -> None:
    work.write({"policy/words.toml": 'where = ["src/**"]\n"a\\n::error::x\\u001b[31m" = 1\n'})
    result = work.gate("run")
    assert result.returncode == 2
    assert "::error::x" in result.stderr
    assert not any(line.lstrip().startswith("::") for line in result.stderr.splitlines())
    assert "\x1b" not in result.stderr


def test_a_path_is_no_command_to_a_log(work: Work) -> None:
    work.write({"policy/words.toml": 'where = ["**/*.txt"]\n', "::error::x.txt": "BAD\n"})
    assert "./::error::x.txt:1:1: words/forbidden" in work.gate("run").stdout


def test_without_standard_input_a_hook_judges_head(work: Work) -> None:
    work.commit(BAD)
    result = work.run("sh", "-c", "gate hook pre-push origin url <&-")
    assert result.returncode == 1
    assert "HEAD is judged" in result.stdout


def test_a_terminal_on_standard_input_is_not_waited_for(work: Work) -> None:
    """HK-19: a person who calls the hook by hand has nothing to type."""
    ours, theirs = os.openpty()
    try:
        result = subprocess.run(
            ["gate", "hook", "pre-push", "origin", "url"],
            cwd=work.path,
            env=work.place.environ,
            stdin=theirs,
            capture_output=True,
            timeout=30,
            check=False,
        )
    finally:
        os.close(ours)
        os.close(theirs)
    assert result.returncode == 0
    assert b"HEAD is judged" in result.stdout


@pytest.mark.parametrize("name", FORMATS)
def test_each_format_prints_the_finding_and_keeps_the_exit_code(work: Work, name: str) -> None:
    work.write({**BAD, "src/bad\udcff \n%,:.txt": "BAD\n"})
    result = work.gate("run", "--output-format", name)
    assert (result.returncode, result.stderr) == (1, "")
    assert "words/forbidden" in result.stdout
    assert "bad.txt" in result.stdout
    if name in ("json", "sarif", "gitlab", "rdjson"):
        json.loads(result.stdout)
    assert work.gate("run", "--output-format", name, "--output-file", "report").returncode == 1
    assert "words/forbidden" in (work.path / "report").read_text(encoding="utf-8")


def test_a_report_goes_to_a_file(work: Work) -> None:
    work.write(BAD)
    result = work.gate("run", "--output-format", "json", "--output-file", "report.json")
    assert (result.returncode, result.stdout) == (1, "")
    assert json.loads((work.path / "report.json").read_text())["verdict"] == "FAIL"


@pytest.mark.parametrize("command", commands(main), ids=" ".join)
def test_each_command_has_help(command: tuple[str, ...]) -> None:
    result = CliRunner().invoke(main, [*command, "--help"], prog_name="gate")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.startswith("Usage: " + " ".join(("gate", *command)))
    assert result.stdout.split("\n")[2].strip()


def test_help_as_a_process(git: Git) -> None:
    result = Work(git, git.root).gate("-h")
    assert (result.returncode, result.stderr) == (0, "")
    assert "Exit code 0: clean" in result.stdout


def test_the_version(git: Git) -> None:
    assert Work(git, git.root).gate("--version").stdout.startswith("gate, version ")


def test_from_a_sub_folder_and_with_c_the_whole_repository_is_judged(work: Work) -> None:
    work.write({"src/deep/x.txt": "BAD\n", **BAD})
    at_top, below = work.gate("run"), work.gate("run", folder="src/deep")
    assert at_top.returncode == below.returncode == 1
    assert "src/bad.txt:1:1" in below.stdout
    named = Work(work.place, work.place.root).gate("-C", os.fspath(work.path / "src"), "run")
    assert "src/deep/x.txt:1:1" in named.stdout


def test_which_tree_is_judged(work: Work) -> None:
    work.write(BAD)
    assert work.gate("run", "--commit", "HEAD").returncode == 0
    assert work.gate("run", "--staged").returncode == 0
    work.git("add", "-A")
    staged = work.gate("run", "--staged")
    assert staged.returncode == 1
    assert "index" in staged.stdout
    work.write({"src/bad.txt": "mended\n"})
    assert work.gate("run").returncode == 0
    assert work.gate("run", "--staged").returncode == 1


def test_r_02_an_absolute_run_needs_no_base(git: Git, work: Work) -> None:
    clone = git.clone(work, "clone")
    clone.git("checkout", "-q", "--orphan", "own")
    clone.commit({})
    for arguments in ([], ["--staged"], ["--commit", "HEAD"]):
        result = clone.gate("run", *arguments)
        assert (result.returncode, "unrelated histories" in result.stderr) == (3, True)
        assert clone.gate("run", "--absolute", *arguments).returncode == 0


def test_relative_and_absolute(work: Work) -> None:
    base = work.commit(BAD)
    work.commit({"src/b.txt": "b\n"})
    relative = work.gate("run", "--base", base, "--show-inherited")
    assert relative.returncode == 0
    assert "src/bad.txt:1:1" in relative.stdout
    assert work.gate("run", "--absolute").returncode == 1


def test_a_tree_that_lost_its_whole_policy_is_judged_by_its_bases(work: Work) -> None:
    base = work.git("rev-parse", "HEAD")
    work.write({"policy": None})
    result = work.gate("run", "--base", base)
    assert result.returncode == 1
    assert "policy/loosened" in result.stdout


def test_the_cache_is_one_file_in_the_common_directory_and_can_be_left_out(work: Work) -> None:
    cache = work.path / ".git" / "gatewright-facts.sqlite3"
    assert work.gate("run", "--no-cache").returncode == 0
    assert not cache.exists()
    assert work.gate("run").returncode == 0
    assert cache.exists()
    cache.write_bytes(b"no database" * 1000)
    result = work.gate("run")
    assert result.returncode == 0
    assert result.stdout.count("facts cache") == 1
    assert "facts cache" not in work.gate("run").stdout


def test_list_names_every_rule(work: Work) -> None:
    result = work.gate("list")
    assert result.returncode == 0
    assert "words/forbidden" in result.stdout
    rows = json.loads(work.gate("list", "--output-format", "json").stdout)
    assert {row["id"] for row in rows} >= {"words/forbidden", "words/subject", "policy/loosened"}
    assert next(row for row in rows if row["id"] == "words/subject")["scope"] == "message"


def test_explain_prints_the_manual_of_a_rule_and_of_a_check(git: Git) -> None:
    place = Work(git, git.root)
    rule = place.gate("explain", "policy/loosened").stdout
    assert rule.startswith("## policy/loosened")
    assert "## policy/empty-glob" not in rule
    assert "## policy/empty-glob" in place.gate("explain", "policy").stdout


def test_audit_of_a_foreign_repository(work: Work) -> None:
    result = work.gate("audit")
    assert (result.returncode, result.stdout) == (
        0,
        "audit: policy alone: 2 valid policy files, 10 rules; 0 findings\n",
    )
    work.write({"policy/nowhere.toml": ""})
    assert work.gate("audit").returncode == 2


def test_a_warm_run_imports_nothing_that_only_a_cold_one_needs(work: Work) -> None:
    work.gate("run")
    program = (
        (work.place.root / "bin" / "gate")
        .read_text()
        .replace(
            'main(prog_name="gate")',
            'try: main(["run"], prog_name="gate")\nexcept SystemExit: print("\\nMODULES", *sys.modules)',
        )
    )
    modules = set(work.run(sys.executable, "-c", program).stdout.rpartition("MODULES ")[2].split())
    assert "gatewright.core.runner" in modules
    assert modules & {"git", "markdown_it", "multiprocessing", "dataclasses", "asyncio"} == set()


# What both checks look at: a site in a shared layer and in a room, a variable that is read, and its row.
TWO_CHECKS = {
    "policy/device-leakage.toml": 'shared = ["src/core/**"]\n[rooms]\ncuda = ["src/cuda/**"]\n[bucket.torch_cuda]\n'
    'kind = "attribute"\nwords = ["torch.cuda"]\ninstead = "the platform object"\n',
    "policy/env-doc.toml": 'prefixes = ["ENG_"]\n[code]\npython = ["src/**/*.py"]\n',
    "docs/ENVIRONMENT.md": "| Variable | Default | Meaning |\n|---|---|---|\n| `ENG_A` | unset | x |\n",
    "src/core/run.py": 'import os\n\n\ndef f():\n    return os.getenv("ENG_A"), torch.cuda.x()\n',
    "src/cuda/run.py": "def f():\n    torch.cuda.x()\n",
}


@pytest.mark.parametrize(
    "arguments",
    [["run"], ["run", "--staged"], ["run", "--commit", "HEAD"], ["hook", "pre-push", "origin", "url"]],
    ids=" ".join,
)
def test_a_warm_run_of_both_checks_imports_no_git_and_no_markdown(
    git: Git, work: Work, tmp_path: Path, arguments: list[str]
) -> None:
    work.commit(TWO_CHECKS)
    clone = git.clone(work, "clone")
    old = clone.git("rev-parse", "HEAD")
    tip = clone.commit({"src/core/new.py": "x = 1\n"})
    program = (
        git.root / "bin" / "gate"
    ).read_text() + f"\nopen({os.fspath(tmp_path / 'modules')!r}, 'w').write(' '.join(sys.modules))"
    program = program.replace(
        'main(prog_name="gate")', f"try: main({arguments!r}, prog_name='gate')\nexcept SystemExit: pass"
    )
    lines = f"refs/heads/main {tip} refs/heads/main {old}\n".encode()

    def run() -> set[str]:
        result = clone.run(sys.executable, "-c", program, input=lines)
        assert "1 inherited" in result.stdout and "env-doc: 1 variables read" in result.stdout, result.stderr
        return set((tmp_path / "modules").read_text().split())

    assert "markdown_it" in run()
    modules = run()
    assert modules & {"git", "gitdb", "markdown_it", "multiprocessing", "dataclasses", "asyncio"} == set()
