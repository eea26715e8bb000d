"""From what a child did to a verdict. A run that only ended badly proves nothing."""

from collections.abc import Sequence
from typing import Any, Literal

import msgspec

Verdict = Literal["KILLED", "SURVIVED", "TIMEOUT", "ERROR"]


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """`killer` is the test that failed or did not end; `detail` says why, for people.

    `stillborn`: the mutated module itself cannot be imported, so no test can say anything of it.
    """

    verdict: Verdict
    killer: str = ""
    detail: str = ""
    seconds: float = 0.0
    stillborn: bool = False


def judge(answer: dict[str, Any], *, expects_import: bool = True) -> Outcome:
    """The verdict on one child: KILLED only where a test ran and failed in its own body.

    `expects_import`: a mutant of a module, which must have been imported to be judged at all.
    """
    events: Sequence[dict[str, Any]] = answer["events"]
    seconds = answer.get("seconds", 0.0)
    kinds = {event["kind"] for event in events}
    failed = next((e for e in events if e["kind"] == "fail" and e["phase"] == "call"), None)
    imported = "imported" in kinds or not expects_import
    if failed is not None and imported:
        return Outcome(verdict="KILLED", killer=failed["test"], detail=failed["text"], seconds=seconds)
    broken = next((e for e in events if e["kind"] == "import-error"), None)
    if broken is not None:
        return _error(f"the module cannot be imported: {broken['text']}", seconds, stillborn=True)
    if answer["ended"] == "timeout":
        if answer["at"]:
            return Outcome(verdict="TIMEOUT", killer=answer["at"], detail="the test did not end", seconds=seconds)
        return _error("importing or collecting did not end", seconds)
    if answer["ended"] != "normally":
        return _error(f"the process ended without a report, in {answer['at'] or 'collection'}", seconds)
    for kind, words in (("collect-error", "a suite cannot be collected"), ("fail", "a fixture failed")):
        event = next((e for e in events if e["kind"] == kind), None)
        if event is not None:
            return _error(f"{words}: {event.get('test', '')} {event['text']}", seconds)
    collected = next((e for e in events if e["kind"] == "collected"), None)
    if collected is None or not kinds & {"pass"}:
        return _error("no test ran", seconds)
    if collected["missing"]:
        return _error(f"{len(collected['missing'])} tests are gone, first {collected['missing'][0]}", seconds)
    if not imported:
        return _error("the mutant was never imported", seconds)
    return Outcome(verdict="SURVIVED", seconds=seconds)


def _error(detail: str, seconds: float, *, stillborn: bool = False) -> Outcome:
    return Outcome(verdict="ERROR", detail=detail, seconds=seconds, stillborn=stillborn)


def combine(outcomes: Sequence[Outcome]) -> Outcome:
    """One verdict for a mutant that was run against its suites one after the other.

    The last run decides where it is a detection; else an error outweighs tests that passed.
    """
    seconds = sum(outcome.seconds for outcome in outcomes)
    order = ("KILLED", "TIMEOUT", "ERROR", "SURVIVED")
    chosen = min(outcomes, key=lambda outcome: order.index(outcome.verdict))
    return msgspec.structs.replace(chosen, seconds=seconds)
