"""MT-01: tests that are written but never run."""

import subprocess
import sys
from pathlib import Path

import pytest

from gatewright.mutation.baseline import Baseline, Measured
from gatewright.mutation.inert import inert_in_run, inert_in_source

GUARDED = """import unittest


class First(unittest.TestCase):
    def test_a(self):
        pass


if __name__ == "__main__":
    unittest.main()


class Second(unittest.TestCase):
    def test_b(self):
        self.fail("never seen by the script")
"""


def lint(source: str) -> list[tuple[int, str]]:
    return [(finding.line, finding.message.partition(": ")[0]) for finding in inert_in_source("t.py", source.encode())]


def baseline(*tests: Measured, slow: tuple[str, ...] = ()) -> Baseline:
    return Baseline("t.py", list(tests), {}, ["t.py"], [], list(slow), [], 0.1)


def test_mt_01_a_class_below_the_main_guard_is_found(tmp_path: Path) -> None:
    assert lint(GUARDED) == [(13, "Second stands below the main guard")]
    (tmp_path / "t.py").write_text(GUARDED)
    script, module = (
        subprocess.run([sys.executable, *arguments], cwd=tmp_path, capture_output=True, text=True).stderr
        for arguments in (["t.py"], ["-m", "unittest", "t"])
    )
    assert "Ran 1 test" in script and "Ran 2 tests" in module


def test_mt_01_tests_above_the_guard_and_helpers_below_it_are_fine() -> None:
    assert (
        lint("def test_a():\n    pass\n\n\nif __name__ == '__main__':\n    main()\n\n\ndef helper():\n    pass\n") == []
    )


def test_a_name_that_is_defined_again_hides_the_first() -> None:
    source = "def test_a():\n    pass\n\n\ndef test_a():\n    pass\n"
    assert lint(source) == [(1, "test_a is defined again in line 5, so this one never runs")]
    inner = "class TestX:\n    def test_a(self):\n        pass\n\n    def test_a(self):\n        pass\n"
    assert lint(inner) == [(2, "TestX::test_a is defined again in line 5, so this one never runs")]
    classes = (
        "class TestX:\n    def test_a(self):\n        pass\n\n\nclass TestX:\n    def test_b(self):\n        pass\n"
    )
    assert lint(classes) == [(1, "TestX is defined again in line 6, so this one never runs")]


def test_a_test_inside_a_function_is_found() -> None:
    source = "def test_outer():\n    def test_inner():\n        assert False\n"
    assert lint(source) == [(2, "test_inner is defined inside test_outer")]


def test_a_suite_that_does_not_parse_is_a_finding() -> None:
    assert lint("def test_a(:\n") == [(1, "the suite does not parse")]


def test_written_tests_are_compared_with_collected_ones() -> None:
    source = (
        b"def test_a():\n    pass\n\n\ndef test_b():\n    pass\n\n\nclass TestX:\n    def test_c(self):\n        pass\n"
    )
    found = inert_in_run(baseline(Measured("t.py::test_a[1]", 0.1), slow=("t.py::TestX::test_c",)), source)
    assert [(f.line, f.message) for f in found] == [(5, "test_b is written but not collected")]


@pytest.mark.parametrize(
    ("tests", "message"),
    [
        ([], "no test of this suite ran"),
        ([Measured("t.py::test_a", 0.0, True)], "no test of this suite ran, 1 are skipped"),
    ],
)
def test_v4_a_suite_that_runs_nothing_is_a_finding(tests: list[Measured], message: str) -> None:
    assert message in [f.message for f in inert_in_run(baseline(*tests), b"def test_a():\n    pass\n")]


def test_a_suite_of_slow_tests_is_run_elsewhere() -> None:
    assert inert_in_run(baseline(slow=("t.py::test_a",)), b"def test_a():\n    pass\n") == []
