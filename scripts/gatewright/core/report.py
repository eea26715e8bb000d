"""What one run found, ready to be rendered: the only thing that reporters see."""

from collections.abc import Iterable
from typing import Literal

import msgspec

from gatewright.core.finding import Finding

Verdict = Literal["PASS", "FAIL", "UNKNOWN", "N/A"]


class RuleReport(msgspec.Struct, kw_only=True):
    """The verdict on one rule; `reason` says why it is UNKNOWN or N/A."""

    id: str
    summary: str
    verdict: Verdict
    # Things looked at, in the unit of the check (files, rows, commits).
    examined: int = 0
    reason: str = ""
    advisory: bool = False


class CheckReport(msgspec.Struct, kw_only=True):
    """The rules of one check that the lane selected, and what was looked at in words.

    `examined` is a list of phrases ("412 files", "3 rooms"); empty, the counts of the rules are shown.
    """

    name: str
    rules: list[RuleReport]
    examined: list[str] = msgspec.field(default_factory=list)

    @property
    def applies(self) -> bool:
        return any(rule.verdict != "N/A" for rule in self.rules)


class Exempted(msgspec.Struct, frozen=True, kw_only=True):
    """A finding that an exemption at `path`:`line` (0: a policy file) allows."""

    finding: Finding
    owner: str
    reason: str
    path: str
    line: int = 0


class Report(msgspec.Struct, kw_only=True):
    """One run. `judged` and `base` are labels for people; an empty `base` means that there is none.

    `absolute`: inherited findings fail as well. `notes` hold one line each. `seconds` is wall time.
    """

    version: str
    digest: str
    judged: str
    base: str = ""
    absolute: bool = False
    notes: list[str] = msgspec.field(default_factory=list)
    checks: list[CheckReport] = msgspec.field(default_factory=list)
    new: list[Finding] = msgspec.field(default_factory=list)
    inherited: list[Finding] = msgspec.field(default_factory=list)
    advisory: list[Finding] = msgspec.field(default_factory=list)
    exempted: list[Exempted] = msgspec.field(default_factory=list)
    seconds: float = 0.0

    @property
    def rules(self) -> list[RuleReport]:
        return [rule for check in self.checks for rule in check.rules]

    @property
    def failing(self) -> list[Finding]:
        """The findings that fail the run, in order."""
        return ordered(self.new + self.inherited if self.absolute else self.new)

    @property
    def tolerated(self) -> list[Finding]:
        """The findings that the base already had and that do not fail the run, in order."""
        return [] if self.absolute else ordered(self.inherited)

    @property
    def unknown(self) -> list[RuleReport]:
        return [rule for rule in self.rules if rule.verdict == "UNKNOWN"]

    @property
    def verdict(self) -> Literal["PASS", "FAIL", "UNKNOWN"]:
        """Findings outweigh what could not be judged; a run that judged no rule is UNKNOWN."""
        if self.failing or any(rule.verdict == "FAIL" for rule in self.rules):
            return "FAIL"
        return "UNKNOWN" if self.unknown or not self.rules else "PASS"

    @property
    def exit_code(self) -> int:
        return {"PASS": 0, "FAIL": 1, "UNKNOWN": 3}[self.verdict]


def rank(finding: Finding) -> tuple[str | int, ...]:
    """Place, then rule, then everything else that can differ, so that no order depends on the input's."""
    measure = -1 if finding.measure is None else finding.measure
    return (*finding.order, finding.statement, finding.message, finding.help, finding.bucket, measure)


def ordered(findings: Iterable[Finding]) -> list[Finding]:
    return sorted(findings, key=rank)
