"""One mutant against the tests that can see it: which run, in which order, in how many children."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from gatewright.mutation.pool import Ask, WorkerDied
from gatewright.mutation.verdict import Outcome, combine, judge


class Candidate(msgspec.Struct, frozen=True):
    """A test that reaches the mutant: the processor time in seconds that it takes unmutated, and what it may take.

    `near`: it executes the statement, or a function that names the table, and not only their import.
    """

    suite: str
    name: str
    seconds: float
    limit: float
    near: bool = True

    def order(self, kills: Mapping[str, int]) -> tuple[int, bool, float]:
        """Killers first, then what is near, then what is quick."""
        return (-kills.get(self.name, 0), not self.near, self.seconds)


def try_mutant(
    edit: Mapping[str, Any],
    candidates: Sequence[Candidate],
    load_limits: Mapping[str, float],
    kills: Mapping[str, int],
    budget: float,
    ask: Ask,
) -> Outcome:
    """The verdict on the mutant that `edit` describes to a fork server.

    `kills` counts what tests killed in the same function. Tests that would take the sum of these times
    over `budget` seconds are left out, and the outcome says so.
    The suite that is most likely to notice runs in a child of its own; the others follow together.
    """
    chosen = affordable(candidates, kills, budget)
    left_out = len(candidates) - len(chosen)
    by_suite: dict[str, list[Candidate]] = {}
    for candidate in chosen:
        by_suite.setdefault(candidate.suite, []).append(candidate)
    first, *others = sorted(
        by_suite.values(),
        key=lambda tests: (-sum(kills.get(t.name, 0) for t in tests), not any(t.near for t in tests), _cost(tests)),
    )
    outcomes = []
    for suites in [[first], others]:
        if suites:
            tests = sorted((t for suite in suites for t in suite), key=lambda t: t.order(kills))
            outcomes.append(_run(edit, tests, load_limits, ask))
            if outcomes[-1].verdict in ("KILLED", "TIMEOUT") or outcomes[-1].stillborn:
                break
    outcome = combine(outcomes)
    if outcome.verdict == "SURVIVED" and left_out:
        detail = f"{left_out} tests beyond the budget of {budget:g} s were not run"
        return msgspec.structs.replace(outcome, detail=detail)
    return outcome


def affordable(candidates: Sequence[Candidate], kills: Mapping[str, int], budget: float) -> list[Candidate]:
    """Those that fit into the budget, in the order in which they are most likely to notice; never none."""
    ordered = sorted(candidates, key=lambda test: test.order(kills))
    spent = 0.0
    for number, test in enumerate(ordered):
        spent += test.seconds
        if number and spent > budget:
            return ordered[:number]
    return ordered


def _cost(tests: Sequence[Candidate]) -> float:
    return sum(test.seconds for test in tests)


def _run(edit: Mapping[str, Any], tests: Sequence[Candidate], load_limits: Mapping[str, float], ask: Ask) -> Outcome:
    suites = list(dict.fromkeys(test.suite for test in tests))
    request = {
        **edit,
        "suites": suites,
        "tests": [(test.name, test.limit) for test in tests],
        "load_seconds": sum(load_limits[suite] for suite in suites),
    }
    try:
        return judge(ask(request), expects_import="module" in edit)
    except WorkerDied as error:
        return Outcome(verdict="ERROR", detail=error.message)
