"""Which tests a mutant meets, and in which order."""

from typing import Any

import msgspec

from gatewright.mutation.pool import WorkerDied
from gatewright.mutation.trial import Candidate, affordable, try_mutant

A, B, C = (
    Candidate("t_a.py", f"t_a.py::{name}", seconds, 9.0) for name, seconds in (("a", 0.3), ("b", 0.1), ("c", 4.0))
)
OTHER = Candidate("t_b.py", "t_b.py::d", 0.2, 9.0)
EDIT = {"module": "m", "path": "m.py", "source": ""}
LIMITS = {"t_a.py": 2.0, "t_b.py": 3.0}


class Server:
    """Stands for a fork server: the tests named in `kills` fail, the others pass."""

    def __init__(self, *kills: str) -> None:
        self.kills = kills
        self.requests: list[dict[str, Any]] = []

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        self.requests.append(request)
        events = [{"kind": "imported"}, {"kind": "collected", "tests": 1, "missing": []}]
        for name, _ in request["tests"]:
            events.append({"kind": "pass", "test": name})
            if name in self.kills:
                events[-1] = {"kind": "fail", "phase": "call", "test": name, "text": "AssertionError"}
                break
        return {"ended": "normally", "at": "", "events": events, "seconds": 1.0}

    @property
    def runs(self) -> list[list[str]]:
        return [[name for name, _ in request["tests"]] for request in self.requests]


def test_quick_tests_come_first_and_killers_before_them() -> None:
    assert affordable([A, B, C], {}, 10) == [B, A, C]
    assert affordable([A, B, C], {A.name: 1}, 10) == [A, B, C]


def test_a_test_that_uses_the_table_comes_before_one_that_only_imports_it() -> None:
    far = [msgspec.structs.replace(test, near=False) for test in (A, B)]
    assert affordable([*far, C], {}, 10) == [C, far[1], far[0]]
    server = Server()
    try_mutant(EDIT, [*far, OTHER], LIMITS, {}, 10, server.ask)
    assert server.runs == [[OTHER.name], [B.name, A.name]]


def test_the_budget_cuts_the_expensive_ones_and_never_all() -> None:
    assert affordable([A, B, C], {}, 1) == [B, A]
    assert affordable([C], {}, 1) == [C]
    survived = try_mutant(EDIT, [A, B, C], LIMITS, {}, 1, Server().ask)
    assert (survived.verdict, survived.detail) == ("SURVIVED", "1 tests beyond the budget of 1 s were not run")
    assert try_mutant(EDIT, [A, B], LIMITS, {}, 1, Server().ask).detail == ""


def test_other_suites_are_loaded_only_where_the_first_does_not_notice() -> None:
    server = Server(OTHER.name)
    assert try_mutant(EDIT, [A, B, OTHER], LIMITS, {}, 10, server.ask).killer == OTHER.name
    assert server.runs == [[OTHER.name]]
    server = Server(B.name)
    outcome = try_mutant(EDIT, [A, B, OTHER], LIMITS, {}, 10, server.ask)
    assert server.runs == [[OTHER.name], [B.name, A.name]]
    assert (outcome.killer, outcome.seconds) == (B.name, 2.0)
    server = Server(B.name)
    try_mutant(EDIT, [A, B, OTHER], LIMITS, {B.name: 3}, 10, server.ask)
    assert server.runs == [[B.name, A.name]], "the suite that killed here before"


def test_a_request_names_suites_limits_and_the_edit() -> None:
    server = Server()
    try_mutant(EDIT, [A, OTHER], LIMITS, {A.name: 1}, 10, server.ask)
    first, second = server.requests
    assert first == {**EDIT, "suites": ["t_a.py"], "tests": [(A.name, 9.0)], "load_seconds": 2.0}
    assert (second["suites"], second["load_seconds"]) == (["t_b.py"], 3.0)


def test_a_fork_server_that_ends_gives_no_verdict() -> None:
    def ask(request: dict[str, Any]) -> dict[str, Any]:
        raise WorkerDied("the fork server ended with -9: no words")

    outcome = try_mutant(EDIT, [A], LIMITS, {}, 10, ask)
    assert (outcome.verdict, outcome.detail) == ("ERROR", "the fork server ended with -9: no words")
