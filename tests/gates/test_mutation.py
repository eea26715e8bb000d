"""`gate mutate` on packages small enough to be mutated whole: verdicts, memory, the copy, the command."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner
from gates.small_package import MODULE, SUITE, Small, named, outcome

from gatewright.cli import main
from gatewright.mutation import campaign
from gatewright.mutation.campaign import Result
from gatewright.mutation.store import Store

ROOT = Path(__file__).resolve().parents[2]

LIMITS = """LIMIT = 80
NAMES = ("cuda", "hip")


def is_long(text):
    return len(text) > LIMIT


def names_device(text):
    return any(name in text for name in NAMES)


def register(function):
    function.registered = True
    return function


@register
def judge(text):
    return is_long(text) or names_device(text)
"""
LONG = """

def test_long():
    assert is_long("x" * 81)


def test_limit():
    assert not is_long("x" * 80)
"""
SUITE_TEXT = (
    "from gatewright.core.limits import is_long, judge, names_device\n"
    + LONG
    + """

def test_device():
    assert names_device("cuda")
    assert not names_device("cpu")


def test_hip():
    assert names_device("hip")


def test_judge():
    assert judge.registered
    assert judge("cuda") is True
    assert judge("x" * 81) is True
    assert judge("x") is False
"""
)


@pytest.fixture
def small(tmp_path: Path) -> Small:
    return Small(tmp_path / "small", {MODULE: LIMITS, SUITE: SUITE_TEXT})


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> "tuple[Small, Result]":
    """The package, and what one job finds in it."""
    small = Small(tmp_path_factory.mktemp("whole") / "small", {MODULE: LIMITS, SUITE: SUITE_TEXT})
    return small, small.run()


def gate(small: Small, *arguments: str) -> "tuple[int, str]":
    result = CliRunner().invoke(main, ["-C", os.fspath(small.root), "mutate", "--jobs", "1", *arguments])
    return result.exit_code, result.output


def test_code_tables_decorators_and_constants_are_killed(whole: tuple[Small, Result]) -> None:
    _, result = whole
    assert {o.verdict for o in result.outcomes.values()} == {"KILLED"}, result.outcomes
    assert {m.operator for m in result.plan.mutants} >= {"comparison", "constant", "entry", "decorator", "boolean"}
    assert outcome(result, "entry", "('cuda', 'hip')", "('cuda',)").killer == f"{SUITE}::test_hip"
    assert outcome(result, "decorator", "@register").detail.startswith("AttributeError")
    assert outcome(result, "comparison", "len(text) > LIMIT", "len(text) >= LIMIT").killer == f"{SUITE}::test_limit"


def test_mt_02_a_mutant_of_the_same_size_in_the_same_second_is_what_runs(whole: tuple[Small, Result]) -> None:
    """V6: `80` becomes `81`, no byte more; stale bytecode would let it survive."""
    small, result = whole
    assert outcome(result, "constant", "80", "81").verdict == "KILLED"
    assert outcome(result, "constant", "80", "79").verdict == "KILLED"
    assert not list(small.root.rglob("__pycache__"))


def test_only_tests_that_reach_the_line_are_run(small: Small) -> None:
    suite = SUITE_TEXT + "\n\ndef test_elsewhere(tmp_path):\n    (tmp_path / 'x').write_text('')\n"
    small.write({SUITE: suite, MODULE: LIMITS + "\n\ndef unused(a):\n    return a + 1\n"})
    result = small.run()
    (baseline,) = result.baselines
    (mutant,) = named(result, "comparison", "len(text) > LIMIT", "len(text) >= LIMIT")
    numbers = baseline.reaching(MODULE, mutant.first, mutant.last, at_import=False)
    assert [baseline.tests[n].name.rpartition("::")[2] for n in numbers] == ["test_long", "test_limit", "test_judge"]
    unreached = outcome(result, "arithmetic", "a + 1")
    assert (unreached.verdict, unreached.detail) == ("SURVIVED", "no test executes it")


@pytest.mark.parametrize(
    "weakened",
    [pytest.param("", marks=pytest.mark.slow), LONG.replace("80", "8").replace("not is_long", "not not not is_long")],
)
def test_without_its_only_killer_a_mutant_survives_the_next_incremental_run(small: Small, weakened: str) -> None:
    """The failure of tools that remember `killed` after the killing test is gone or weaker."""
    store = Store(None)
    before = small.run(store)
    mutant = ("comparison", "len(text) > LIMIT", "len(text) >= LIMIT")
    assert outcome(before, *mutant).killer == f"{SUITE}::test_limit"
    again = small.run(store)
    assert again.known == len(again.outcomes) and not again.run
    small.write({SUITE: SUITE_TEXT.replace(LONG, weakened)})
    after = small.run(store)
    assert outcome(after, *mutant).verdict == "SURVIVED"
    assert 0 < after.known < len(after.outcomes), "other verdicts are remembered"
    small.write({SUITE: SUITE_TEXT})
    assert outcome(small.run(store), *mutant).verdict == "KILLED"


def test_what_a_cache_keeps_is_judged_by_every_test_that_may_see_it(tmp_path: Path) -> None:
    module = "from functools import cache\n\n\n@cache\ndef words():\n    return ['cuda', 'hip']\n"
    suite = (
        "from gatewright.core.limits import words\n\n\n"
        "def test_cuda():\n    assert 'cuda' in words()\n\n\ndef test_hip():\n    assert 'hip' in words()\n"
    )
    result = Small(tmp_path / "small", {MODULE: module, SUITE: suite}).run()
    assert outcome(result, "string", "'cuda'").killer == f"{SUITE}::test_cuda"
    assert outcome(result, "string", "'hip'").killer == f"{SUITE}::test_hip"


@pytest.mark.slow
def test_a_weaker_fixture_or_data_file_opens_its_mutants_again(tmp_path: Path) -> None:
    suite = (
        "from pathlib import Path\n\nimport pytest\n\nfrom gatewright.core.limits import LIMIT\n\n\n"
        "@pytest.fixture(scope='module')\ndef expected():\n"
        "    return int((Path(__file__).parent / 'limit.txt').read_text())\n\n\n"
        "def test_limit(expected):\n    assert LIMIT >= expected\n"
    )
    small = Small(tmp_path / "small", {MODULE: "LIMIT = 80\n", SUITE: suite, "tests/gates/limit.txt": "80"})
    store = Store(None)
    assert outcome(small.run(store), "constant", "80", "79").verdict == "KILLED"
    small.write({"tests/gates/limit.txt": "79"})
    assert outcome(small.run(store), "constant", "80", "79").verdict == "SURVIVED"
    small.write({"tests/gates/limit.txt": "80", SUITE: suite.replace("read_text())", "read_text()) - 1")})
    assert outcome(small.run(store), "constant", "80", "79").verdict == "SURVIVED"


def test_changed_code_that_the_killer_runs_opens_the_mutant_again(small: Small) -> None:
    """The caller changes so that the mutated function no longer matters."""
    store = Store(None)
    mutant = ("call", "any((name in text for name in NAMES))")
    suite = """from gatewright.core.limits import judge


def test_judge():
    assert judge("cuda and hip")
    assert judge("cuda")
"""
    small.write({SUITE: suite})
    assert outcome(small.run(store), *mutant).verdict == "KILLED"
    small.write({MODULE: LIMITS.replace("is_long(text) or names_device(text)", "bool(names_device(text) or True)")})
    assert outcome(small.run(store), *mutant).verdict == "SURVIVED"


def test_a_mutant_that_loops_is_a_timeout_and_its_children_are_gone(tmp_path: Path) -> None:
    module = "def count(n):\n    total = 0\n    while n > 0:\n        n -= 1\n        total += 1\n    return total\n"
    pids = tmp_path / "pids"
    suite = (
        "import subprocess\nimport sys\n\nfrom gatewright.core.limits import count\n\n\n"
        "def test_count():\n"
        "    child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        f"    with open({os.fspath(pids)!r}, 'a') as file:\n        print(child.pid, file=file)\n"
        "    try:\n        assert count(3) == 3\n    finally:\n        child.kill()\n        child.wait()\n"
    )
    small = Small(tmp_path / "small", {MODULE: module, SUITE: suite})
    timeout = outcome(small.run(), "statement", "n -= 1")
    assert (timeout.verdict, timeout.killer) == ("TIMEOUT", f"{SUITE}::test_count")
    left = [pid for pid in map(int, pids.read_text().split()) if _runs(pid)]
    assert left == []


@pytest.mark.slow
def test_a_mutant_that_waits_is_a_timeout_too(tmp_path: Path) -> None:
    module = "def pause():\n    return 0\n"
    suite = (
        "import time\n\nfrom gatewright.core.limits import pause\n\n\n"
        "def test_pause():\n    time.sleep(1000 * pause())\n    assert pause() is not None\n"
    )
    small = Small(tmp_path / "small", {MODULE: module, SUITE: suite})
    result = small.run()
    assert outcome(result, "constant", "0", "1").verdict == "TIMEOUT"
    assert outcome(result, "constant", "0", "1").processor_seconds < 1
    assert outcome(result, "return", "return 0").detail.startswith("TypeError")


def _runs(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


@pytest.mark.slow
def test_a_module_that_cannot_be_imported_gives_no_verdict(small: Small) -> None:
    module = "import re\n\nSIZES = {'a': 1}\nSMALL = SIZES['a']\n\n\ndef small():\n    return SMALL\n"
    suite = "from gatewright.core.limits import small\n\n\ndef test_small():\n    assert small() == 1\n"
    small.write({MODULE: module, SUITE: suite})
    result = small.run()
    broken = outcome(result, "entry", "{'a': 1}")
    assert (broken.verdict, broken.stillborn) == ("ERROR", True)
    assert "KeyError" in broken.detail
    assert outcome(result, "constant", "1", "2").verdict == "KILLED"


def test_a_red_test_judges_nothing_and_is_a_finding(small: Small) -> None:
    suite = SUITE_TEXT.replace("not is_long", "is_long") + "\n\ndef test_red():\n    assert is_long('') is None\n"
    small.write({SUITE: suite, "tests/gates/test_broken.py": "from gatewright.core.limits import LIMIT, NONE\n"})
    code, text = gate(small, MODULE)
    assert code == 1
    for name, reason in {
        f"{SUITE}: mutation/red-test {SUITE}::test_limit": "AssertionError",
        f"{SUITE}: mutation/red-test {SUITE}::test_red": "AssertionError",
        "tests/gates/test_broken.py: mutation/red-test tests/gates/test_broken.py": "cannot import name 'NONE'",
    }.items():
        (line,) = [line for line in text.splitlines() if line.startswith(name + " fails on the unmutated tree")]
        assert reason in line
    assert "mutation/survived comparison: len(text) > LIMIT -> len(text) >= LIMIT" in text


def test_policy_files_are_mutated_for_the_suites_that_read_them(small: Small) -> None:
    suite = (
        "import tomllib\nfrom pathlib import Path\n\nROOT = Path(__file__).parents[2]\n\n\n"
        "def test_policy():\n    policy = tomllib.loads((ROOT / 'policy/words.toml').read_text())\n"
        "    assert policy['limit'] <= 80\n    assert 'cuda' in policy['words']\n"
    )
    policy = 'limit = 80\nwords = ["cuda", "hip"]\n'
    small.write({"policy/words.toml": policy, "tests/gates/test_words.py": suite})
    result = small.run(target="policy/words.toml")
    assert outcome(result, "limit", "80", "81").verdict == "KILLED"
    assert outcome(result, "limit", "80", "79").verdict == "SURVIVED"
    assert outcome(result, "entry", "cuda").killer == "tests/gates/test_words.py::test_policy"
    assert outcome(result, "entry", "hip").verdict == "SURVIVED"
    assert (small.root / "policy/words.toml").read_text() == policy


@pytest.mark.slow
def test_two_jobs_give_the_verdicts_of_one(whole: tuple[Small, Result]) -> None:
    small, one = whole
    two = small.run(jobs=2)
    assert {k: o.verdict for k, o in one.outcomes.items()} == {k: o.verdict for k, o in two.outcomes.items()}


@pytest.mark.slow
def test_survivors_are_findings_in_every_format(small: Small) -> None:
    small.write({SUITE: SUITE_TEXT.replace(LONG, "")})
    code, text = gate(small, MODULE)
    assert code == 1
    line = LIMITS.splitlines().index("    return len(text) > LIMIT") + 1
    assert f"{MODULE}:{line}: mutation/survived comparison: len(text) > LIMIT -> len(text) >= LIMIT" in text
    assert "-    return len(text) > LIMIT" in text and "+    return len(text) >= LIMIT" in text
    for form in ("json", "sarif", "github", "gitlab", "rdjson", "junit"):
        code, output = gate(small, MODULE, "--output-format", form)
        assert code == 1, output
        assert "len(text)" in output and MODULE in output, form
    data = json.loads(gate(small, MODULE, "--output-format", "sarif")[1])
    rules = {result["ruleId"] for result in data["runs"][0]["results"]}
    assert rules == {"mutation/survived"}


@pytest.mark.slow
def test_an_equivalent_is_exempted_and_a_stale_entry_fails(small: Small) -> None:
    entry = (
        f'[[equivalent]]\npath = "{MODULE}"\nfunction = "is_long"\noperator = "comparison"\n'
        'source = "len(text) > LIMIT"\nbecomes = "len(text) >= LIMIT"\nkind = "unobservable"\n'
        'why = "No caller asks for a text of exactly the limit."\n'
    )
    path = small.project.equivalents
    without = SUITE_TEXT.replace('    assert not is_long("x" * 80)\n', '    assert not is_long("x" * 79)\n')
    small.write({SUITE: without, path: entry, MODULE: LIMITS.replace("LIMIT = 80", "LIMIT = int('80')")})
    code, text = gate(small, MODULE)
    assert "exempted (1)" in text and "No caller asks for a text of exactly the limit." in text
    assert "mutation/stale-equivalent" not in text
    small.write({SUITE: SUITE_TEXT})
    code, text = gate(small, MODULE)
    assert code == 1
    assert f"{path}: mutation/stale-equivalent the entry for is_long, comparison" in text


def test_changed_mutates_only_what_differs_from_the_base(small: Small) -> None:
    small.commit()
    small.write({MODULE: LIMITS.replace("len(text) > LIMIT", "len(text) > LIMIT + 1 - 1")})
    code, text = gate(small, "--changed", "--base", "HEAD", "--list")
    assert code == 0
    functions = {line.split()[1] for line in text.splitlines() if line.startswith(MODULE)}
    assert functions == {"is_long"}
    small.write({MODULE: LIMITS})
    assert "core: 0 mutants" in gate(small, "--changed", "--base", "HEAD", "--list")[1]
    code, text = gate(small, "--changed")
    assert code == 3 and "--base" in text


def test_a_sample_is_bounded_and_fixed_by_its_seed(small: Small) -> None:
    def listing(*arguments: str) -> list[str]:
        return [line for line in gate(small, "--list", *arguments)[1].splitlines() if line.startswith(MODULE)]

    sample = listing("core", "--sample", "5", "--seed", "1")
    assert len(sample) == 5 and sample == listing("core", "--sample", "5", "--seed", "1")
    assert set(sample) < set(listing("core"))
    assert sample != listing("core", "--sample", "5", "--seed", "2")
    small.write({MODULE: "# moved\n" + LIMITS})
    assert [line.split(": ", 1)[1] for line in listing("core", "--sample", "5", "--seed", "1")] == [
        line.split(": ", 1)[1] for line in sample
    ]


def test_a_target_that_does_not_exist_is_a_usage_error(small: Small) -> None:
    code, text = gate(small, "sparks")
    assert code == 2 and "there are: commands, core" in text


@pytest.mark.slow
def test_mt_08_killed_in_the_middle_the_tree_is_clean_and_the_next_run_goes_on(small: Small, tmp_path: Path) -> None:
    slow = SUITE_TEXT.replace("def test_judge():\n", "def test_judge():\n    import time\n\n    time.sleep(0.2)\n")
    small.write({SUITE: slow})
    small.commit()
    before = (small.root / MODULE).read_bytes()
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    command = [sys.executable, "-m", "gatewright.cli", "-C", os.fspath(small.root), "mutate", "--jobs", "1", MODULE]
    environment = {**os.environ, "PYTHONPATH": os.fspath(ROOT / "scripts"), "TMPDIR": os.fspath(temporary)}
    database = small.root / ".git/gatewright-mutation.sqlite3"
    for number, ending in enumerate((signal.SIGTERM, signal.SIGKILL)):
        process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        _wait_for_verdicts(database, 3 * (number + 1))
        process.send_signal(ending)
        process.communicate(timeout=20)
        assert process.returncode != 0
        assert small.status() == "" and (small.root / MODULE).read_bytes() == before
        left = list(temporary.iterdir())
        assert (left == []) is (ending == signal.SIGTERM), "only a run that cannot clean up leaves its copy behind"
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    assert list(temporary.iterdir()) == [], "the copy of the run that was killed is removed by the next"
    known = next(line for line in done.stdout.splitlines() if "were known" in line)
    assert "0 were known" not in known


def _wait_for_verdicts(database: Path, count: int) -> None:
    import sqlite3

    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as connection:
                ((found,),) = connection.execute("SELECT count(*) FROM verdicts")
            connection.close()
            if found >= count:
                return
        except sqlite3.Error:
            pass
        time.sleep(0.05)
    raise AssertionError("no verdicts")


def test_v9_a_missing_library_is_named(small: Small, monkeypatch: pytest.MonkeyPatch) -> None:
    def version(name: str) -> str:
        if name == "coverage":
            raise campaign.PackageNotFoundError(name)
        return "1.0"

    monkeypatch.setattr(campaign, "version", version)
    code, text = gate(small, MODULE)
    assert code == 3
    assert "gate mutate needs coverage" in text and "pip install 'gatewright[test]'" in text
