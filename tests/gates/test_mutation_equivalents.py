"""MT-07: the list of equivalent mutants, and what makes it wrong."""

import pytest

from gatewright.core.errors import PolicyError
from gatewright.mutation.equivalents import read_equivalents, stale
from gatewright.mutation.plan import plan_module

SOURCE = "def f(x):\n    return x >= 0\n"
ENTRY = """
[[equivalent]]
path = "m.py"
function = "f"
operator = "comparison"
source = "x >= 0"
becomes = "x > 0"
kind = "same-value"
why = "Zero is not a number that callers pass."
"""
MUTANTS = plan_module("m.py", SOURCE.encode())
(EXCUSED,) = [m for m in MUTANTS if m.becomes == "x > 0"]


def test_mt_07_an_entry_names_function_operator_and_source_and_no_line() -> None:
    (entry,) = read_equivalents(ENTRY.encode(), "list.toml")
    assert [m.label for m in MUTANTS if entry.matches(m)] == [EXCUSED.label]
    moved = plan_module("m.py", ("# moved\n\n" + SOURCE).encode())
    assert [m.label for m in moved if entry.matches(m)] == [EXCUSED.label]
    (wider,) = read_equivalents(ENTRY.replace('becomes = "x > 0"\n', "").encode(), "list.toml")
    assert {m.becomes for m in MUTANTS if wider.matches(m)} == {"x > 0", "x < 0"}


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (ENTRY.replace("same-value", "hard-to-test"), "Invalid enum value"),
        (ENTRY.replace("Zero is not a number that callers pass.", "equivalent"), "must be a sentence"),
        (ENTRY + "line = 2\n", "unknown field `line`"),
        (ENTRY.replace('function = "f"\n', ""), "missing required field `function`"),
        ("[[equivalent]\n", "list.toml"),
    ],
)
def test_an_entry_that_is_not_whole_is_refused(wrong: str, words: str) -> None:
    with pytest.raises(PolicyError, match=r"list\.toml") as error:
        read_equivalents(wrong.encode(), "list.toml")
    assert words in error.value.message


def test_mt_07_an_entry_that_no_longer_survives_is_a_finding() -> None:
    entries = read_equivalents(ENTRY.encode(), "list.toml")
    assert stale(entries, MUTANTS, [EXCUSED], MUTANTS, "list.toml") == []
    (finding,) = stale(entries, MUTANTS, [], MUTANTS, "list.toml")
    assert finding.rule == "mutation/stale-equivalent"
    assert finding.message == "the entry for f, comparison of 'x >= 0' is killed by the suites now"


def test_an_entry_whose_source_is_gone_is_a_finding() -> None:
    entries = read_equivalents(ENTRY.replace("x >= 0", "x >= 1").encode(), "list.toml")
    (finding,) = stale(entries, MUTANTS, [EXCUSED], MUTANTS, "list.toml")
    assert finding.message.endswith("describes no mutant")


def test_entries_of_other_files_and_mutants_outside_the_sample_are_not_judged() -> None:
    entries = read_equivalents(ENTRY.encode(), "list.toml")
    other = plan_module("other.py", SOURCE.encode())
    assert stale(entries, other, [], other, "list.toml") == []
    assert stale(entries, MUTANTS, [], [], "list.toml") == []
