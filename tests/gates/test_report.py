"""The verdict and exit code of a report, and what output asks of its surroundings."""

import io

import pytest

from gatewright.core.finding import Finding
from gatewright.core.report import CheckReport, Report, RuleReport, ordered
from gatewright.reporters.terminal import Progress, use_colour

FINDING = Finding(rule="check/rule", message="m", help="h")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("verdicts", "new", "inherited", "advisory", "absolute", "code"),
    [
        (["PASS"], 0, 0, 0, False, 0),
        (["PASS", "N/A"], 0, 0, 0, False, 0),
        (["N/A"], 0, 0, 0, True, 0),
        (["PASS"], 0, 1, 1, False, 0),
        (["PASS"], 0, 1, 0, True, 1),
        (["PASS"], 0, 0, 1, True, 0),
        (["PASS"], 1, 0, 0, False, 1),
        (["FAIL"], 0, 0, 0, False, 1),
        (["UNKNOWN", "PASS"], 1, 0, 0, False, 1),
        (["UNKNOWN", "PASS"], 0, 1, 0, True, 1),
        (["UNKNOWN", "PASS"], 0, 1, 0, False, 3),
        (["UNKNOWN", "FAIL"], 0, 0, 0, False, 1),
        ([], 0, 0, 0, False, 3),
    ],
)
def test_exit_code(verdicts, new: int, inherited: int, advisory: int, absolute: bool, code: int) -> None:
    rules = [RuleReport(id=f"check/{n}", summary="", verdict=verdict) for n, verdict in enumerate(verdicts)]
    report = Report(
        version="1",
        digest="d",
        judged="work tree",
        absolute=absolute,
        checks=[CheckReport(name="check", rules=rules)],
        new=[FINDING] * new,
        inherited=[FINDING] * inherited,
        advisory=[FINDING] * advisory,
    )
    assert report.exit_code == code
    assert report.verdict == {0: "PASS", 1: "FAIL", 3: "UNKNOWN"}[code]


def test_order_is_total_over_what_is_printed() -> None:
    def at(**fields) -> Finding:
        return Finding(**{"rule": "r", "message": "m", "help": "h", **fields})

    by_rank = [
        at(path="a", line=2),
        at(path="a", line=10, column=1),
        at(path="a", line=10, column=2, rule="a"),
        at(path="a", line=10, column=2, token="t"),
        at(path="a", line=10, column=2, token="t", statement="s", message="l"),
        at(path="a", line=10, column=2, token="t", statement="s", message="m", help="g"),
        at(path="a", line=10, column=2, token="t", statement="s", message="m"),
        at(path="a", line=10, column=2, token="t", statement="s", bucket="b"),
        at(path="a", line=10, column=2, token="t", statement="s", bucket="b", measure=0),
        at(path="b"),
    ]
    assert ordered(reversed(by_rank)) == by_rank


@pytest.mark.parametrize(
    ("stream", "env", "expected"),
    [
        (Terminal(), {}, True),
        (io.StringIO(), {}, False),
        (Terminal(), {"TERM": "dumb"}, False),
        (Terminal(), {"TERM": "xterm"}, True),
        (Terminal(), {"NO_COLOR": "1"}, False),
        (Terminal(), {"NO_COLOR": "0"}, False),
        (Terminal(), {"NO_COLOR": ""}, True),
        (io.StringIO(), {"FORCE_COLOR": "1"}, True),
        (io.StringIO(), {"FORCE_COLOR": ""}, False),
        (Terminal(), {"FORCE_COLOR": "1", "TERM": "dumb"}, True),
        (Terminal(), {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
    ],
)
def test_use_colour(stream: io.StringIO, env: dict[str, str], expected: bool) -> None:
    assert use_colour(stream, env) is expected


def test_progress_appears_late_and_leaves_nothing_behind() -> None:
    stream = Terminal()
    progress = Progress(stream, after=3600)
    progress.update("reading", 1, 9)
    progress.close()
    assert stream.getvalue() == ""
    progress = Progress(stream, after=0, every=3600)
    progress.update("reading", 1, 9)
    progress.update("reading", 2, 9)
    progress.close()
    assert stream.getvalue() == "\r\x1b[Kreading: 1/9\r\x1b[K"


def test_no_progress_off_a_terminal() -> None:
    stream = io.StringIO()
    progress = Progress(stream, after=0)
    progress.update("reading", 1, 9)
    progress.close()
    assert stream.getvalue() == ""
