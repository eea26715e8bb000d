"""MT-04: what counts as a kill."""

from typing import Any

import pytest

from gatewright.mutation.verdict import Outcome, combine, judge

IMPORTED = {"kind": "imported"}
COLLECTED = {"kind": "collected", "tests": 1, "missing": []}
START = {"kind": "start", "test": "t.py::a"}
PASS = {"kind": "pass", "test": "t.py::a"}
FAIL = {"kind": "fail", "test": "t.py::a", "phase": "call", "text": "AssertionError: "}


def answer(*events: dict[str, Any], ended: str = "normally", at: str = "") -> dict[str, Any]:
    return {"ended": ended, "at": at, "events": list(events), "seconds": 0.5}


def test_a_failing_test_kills() -> None:
    assert judge(answer(IMPORTED, COLLECTED, START, FAIL)) == Outcome(
        verdict="KILLED", killer="t.py::a", detail="AssertionError: ", seconds=0.5
    )


def test_tests_that_pass_let_it_survive() -> None:
    assert judge(answer(IMPORTED, COLLECTED, START, PASS)).verdict == "SURVIVED"


def test_a_test_that_does_not_end_is_a_timeout() -> None:
    outcome = judge(answer(IMPORTED, COLLECTED, START, ended="timeout", at="t.py::a"))
    assert (outcome.verdict, outcome.killer) == ("TIMEOUT", "t.py::a")


@pytest.mark.parametrize(
    ("events", "ended", "words"),
    [
        ([IMPORTED, {**COLLECTED, "tests": 0}], "normally", "no test ran"),
        ([IMPORTED, {"kind": "collect-error", "test": "t.py", "text": "NameError"}], "normally", "cannot be collected"),
        ([IMPORTED, COLLECTED, START], "died", "without a report, in t.py::a"),
        ([], "died", "without a report, in collection"),
        ([IMPORTED, COLLECTED, START, {**FAIL, "phase": "setup"}], "normally", "a fixture failed"),
        ([IMPORTED, COLLECTED, START, PASS, {**FAIL, "phase": "teardown"}], "normally", "a fixture failed"),
        ([IMPORTED, {**COLLECTED, "missing": ["t.py::b"]}, START, PASS], "normally", "1 tests are gone, first t.py::b"),
        ([COLLECTED, START, PASS], "normally", "never imported"),
        ([COLLECTED, START, FAIL], "normally", "a fixture failed"),
        ([], "timeout", "importing or collecting did not end"),
        ([IMPORTED, COLLECTED, START, {"kind": "skip", "test": "t.py::a"}], "normally", "no test ran"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_mt_04_an_end_without_a_failed_test_is_an_error(events: list[dict[str, Any]], ended: str, words: str) -> None:
    at = "t.py::a" if START in events else ""
    outcome = judge(answer(*events, ended=ended, at=at))
    assert outcome.verdict == "ERROR"
    assert words in outcome.detail
    assert not outcome.stillborn


def test_a_module_that_cannot_be_imported_is_told_from_other_errors() -> None:
    outcome = judge(answer({"kind": "import-error", "text": "error: missing )"}, COLLECTED))
    assert (outcome.verdict, outcome.stillborn) == ("ERROR", True)
    assert "missing )" in outcome.detail


def test_an_error_outweighs_tests_that_pass_and_a_kill_outweighs_both() -> None:
    survived, error = Outcome(verdict="SURVIVED", seconds=1.0), Outcome(verdict="ERROR", seconds=2.0)
    killed = Outcome(verdict="KILLED", killer="t", seconds=4.0)
    assert combine([survived, survived]).verdict == "SURVIVED"
    assert combine([survived, error]) == Outcome(verdict="ERROR", seconds=3.0)
    assert combine([error, killed]).verdict == "KILLED"
