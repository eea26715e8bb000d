"""From what a child did to a verdict. A run that only ended badly proves nothing."""

from collections.abc import Sequence
from typing import Any, Literal

import msgspec

Verdict = Literal["KILLED", "SURVIVED", "TIMEOUT", "ERROR"]


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """`killer` is the test that failed or did not end; `detail` says why, for people.

    `processor_seconds` is the time that the child itself computed, whatever else the machine did.
    `stillborn`: the mutated module itself cannot be imported, so no test can say anything of it.
    """

    verdict: Verdict
    killer: str = ""
    detail: str = ""
    seconds: float = 0.0
    processor_seconds: float = 0.0
    stillborn: bool = False


def judge(answer: dict[str, Any], *, expects_import: bool = True) -> Outcome:
    """The verdict on one child: KILLED only where a test ran and failed in its own body.

    `expects_import`: a mutant of a module, which must have been imported to be judged at all.
    """
    outcome = _judge(answer["events"], answer["ended"], answer["at"], expects_import)
    return msgspec.structs.replace(
        outcome, seconds=answer.get("seconds", 0.0), processor_seconds=answer.get("processor_seconds", 0.0)
    )


def _judge(events: Sequence[dict[str, Any]], ended: str, at: str, expects_import: bool) -> Outcome:
    first = {event["kind"]: event for event in reversed(events)}
    failed = next((e for e in events if e["kind"] == "fail" and e["phase"] == "call"), None)
    imported = "imported" in first or not expects_import
    if failed is not None and imported:
        return Outcome(verdict="KILLED", killer=failed["test"], detail=failed["text"])
    if "import-error" in first:
        return _error(f"the module cannot be imported: {first['import-error']['text']}", stillborn=True)
    if ended == "timeout":
        if at:
            return Outcome(verdict="TIMEOUT", killer=at, detail="the test did not end")
        return _error("importing or collecting did not end")
    if ended != "normally":
        return _error(f"the process ended without a report, in {at or 'collection'}")
    if "collect-error" in first:
        return _error(f"a suite cannot be collected: {first['collect-error']['test']} {first['collect-error']['text']}")
    if "fail" in first:
        return _error(f"a fixture failed: {first['fail']['test']} {first['fail']['text']}")
    if "pass" not in first:
        return _error("no test ran")
    missing = first["collected"]["missing"]
    if missing:
        return _error(f"{len(missing)} tests are gone, first {missing[0]}")
    if not imported:
        return _error("the mutant was never imported")
    return Outcome(verdict="SURVIVED")


def _error(detail: str, *, stillborn: bool = False) -> Outcome:
    return Outcome(verdict="ERROR", detail=detail, stillborn=stillborn)


def combine(outcomes: Sequence[Outcome]) -> Outcome:
    """One verdict for a mutant that was run against its suites one after the other.

    A detection decides; else an error outweighs tests that passed.
    """
    seconds = sum(outcome.seconds for outcome in outcomes)
    processor_seconds = sum(outcome.processor_seconds for outcome in outcomes)
    order = ("KILLED", "TIMEOUT", "ERROR", "SURVIVED")
    chosen = min(outcomes, key=lambda outcome: order.index(outcome.verdict))
    return msgspec.structs.replace(chosen, seconds=seconds, processor_seconds=processor_seconds)
