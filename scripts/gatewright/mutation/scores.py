"""A campaign's result as a report: survivors are findings, and each module has its score."""

from collections import Counter
from collections.abc import Sequence
from statistics import median

from gatewright.core.finding import Finding
from gatewright.core.report import CheckReport, Exempted, Report, RuleReport, Verdict
from gatewright.core.version import gate_digest, gate_version
from gatewright.mutation.baseline import Baseline
from gatewright.mutation.campaign import Result
from gatewright.mutation.equivalents import Equivalent, stale
from gatewright.mutation.inert import RULE as INERT
from gatewright.mutation.inert import inert_in_run, inert_in_source
from gatewright.mutation.mutant import Mutant
from gatewright.mutation.project import Project
from gatewright.reporters.wording import plural

RED = "mutation/red-test"
RULES = {
    "mutation/survived": "every change of a check's code or tables is noticed by a test",
    "mutation/error": "every mutant can be judged",
    "mutation/stale-equivalent": "a listed equivalent describes a mutant that survives",
    RED: "every test passes on the unmutated tree",
    INERT: "every test that is written runs",
}


class Score:
    """Counts of one module. Mutants that cannot be imported say nothing of the tests and are left out."""

    def __init__(self, verdicts: Counter[str], equivalent: int, stillborn: int) -> None:
        self.killed, self.timeout = verdicts["KILLED"], verdicts["TIMEOUT"]
        self.survived, self.equivalent = verdicts["SURVIVED"] - equivalent, equivalent
        self.error, self.stillborn = verdicts["ERROR"] - stillborn, stillborn
        self.judged = self.killed + self.timeout + self.survived + self.equivalent + self.error

    @property
    def percent(self) -> float:
        return 100 * (self.killed + self.timeout) / self.judged if self.judged else 100.0

    def __str__(self) -> str:
        parts = {"killed": self.killed, "timed out": self.timeout, "survived": self.survived}
        parts |= {"equivalent": self.equivalent, "error": self.error, "not importable": self.stillborn}
        counts = ", ".join(f"{count} {name}" for name, count in parts.items() if count)
        return f"{self.percent:.1f}% of {self.judged} mutants ({counts or 'none'})"


def report(project: Project, result: Result, entries: Sequence[Equivalent], judged: str, seconds: float) -> Report:
    """The report of a run. `entries` is the list of equivalents."""
    mutants = result.plan.mutants
    by_verdict = {m.identity: result.outcomes[m.identity] for m in mutants}
    survivors = [m for m in mutants if by_verdict[m.identity].verdict == "SURVIVED"]
    listed = {m.identity: entry for m in survivors for entry in entries if entry.matches(m)}
    errors = [m for m in mutants if by_verdict[m.identity].verdict == "ERROR" and not by_verdict[m.identity].stillborn]
    findings = {
        "mutation/survived": [_survived(project, result, m) for m in survivors if m.identity not in listed],
        "mutation/error": [_error(result, m) for m in errors],
        "mutation/stale-equivalent": stale(list(entries), result.plan.all, survivors, mutants, project.equivalents),
        RED: [finding for baseline in result.baselines for finding in _red(baseline)],
        INERT: _inert(result),
    }
    examined = dict.fromkeys(RULES, len(mutants)) | dict.fromkeys((RED, INERT), len(result.baselines))
    rules = [
        RuleReport(id=rule, summary=summary, verdict=_verdict(findings[rule]), examined=examined[rule])
        for rule, summary in RULES.items()
    ]
    tests = sum(len(baseline.tests) for baseline in result.baselines)
    score = _score(result, mutants, listed)
    suites = f"{plural(tests, 'test')} in {plural(len(result.baselines), 'suite')}"
    return Report(
        version=gate_version(),
        digest=gate_digest(),
        judged=judged,
        absolute=True,
        notes=_notes(result, listed),
        checks=[CheckReport(name="mutation", rules=rules, examined=[str(score), suites])],
        new=[finding for found in findings.values() for finding in found],
        exempted=[_exempted(project, result, m, listed[m.identity]) for m in survivors if m.identity in listed],
        seconds=seconds,
    )


def _verdict(findings: Sequence[Finding]) -> Verdict:
    return "FAIL" if findings else "PASS"


def _score(result: Result, mutants: Sequence[Mutant], listed: dict[bytes, Equivalent]) -> Score:
    outcomes = [result.outcomes[mutant.identity] for mutant in mutants]
    equivalent = sum(mutant.identity in listed for mutant in mutants)
    return Score(Counter(o.verdict for o in outcomes), equivalent, sum(o.stillborn for o in outcomes))


def _notes(result: Result, listed: dict[bytes, Equivalent]) -> list[str]:
    notes = []
    for target, mutants in result.plan.chosen.items():
        for path in dict.fromkeys(mutant.path for mutant in mutants):
            where = path if path == target else f"{target}: {path}"
            own = [mutant for mutant in mutants if mutant.path == path]
            notes.append(f"{where}: {_score(result, own, listed)}")
    if result.run:
        wall = median(outcome.seconds for outcome in result.run)
        processor = median(outcome.processor_seconds for outcome in result.run)
        took = f"median {wall:.3f} s, of the processor {processor:.3f} s"
        notes.append(f"{len(result.run)} mutants were run, {result.known} were known; {took}")
    elif result.known:
        notes.append(f"nothing had to be run: all {result.known} verdicts were known")
    return notes


def _survived(project: Project, result: Result, mutant: Mutant) -> Finding:
    reason = result.outcomes[mutant.identity].detail or "every test that executes it passes"
    help = f"add a test that fails for this change, or list it in {project.equivalents} where none can"
    return _finding("mutation/survived", result, mutant, f"{mutant.label}: {reason}", help)


def _error(result: Result, mutant: Mutant) -> Finding:
    detail = " ".join(result.outcomes[mutant.identity].detail.split())
    message = f"{mutant.label}: no verdict: {detail}"
    return _finding("mutation/error", result, mutant, message, "make the suites judge this change with an assertion")


def _finding(rule: str, result: Result, mutant: Mutant, message: str, help: str) -> Finding:
    return Finding(
        rule=rule,
        path=mutant.path,
        line=mutant.line,
        message=message,
        help=f"{help}\n{mutant.diff(result.plan.sources[mutant.path])}",
        token=f"{mutant.operator}:{mutant.source}:{mutant.becomes}:{mutant.ordinal}",
        statement=mutant.function,
        bucket=mutant.path,
    )


def _exempted(project: Project, result: Result, mutant: Mutant, entry: Equivalent) -> Exempted:
    finding = _survived(project, result, mutant)
    return Exempted(finding=finding, owner=entry.kind, reason=entry.why, path=project.equivalents)


def _red(baseline: Baseline) -> list[Finding]:
    """Tests that fail unmutated: against them every mutant would look killed, so they judge none."""
    reasons = {test.name: test.red for test in baseline.tests if test.red}
    if baseline.broken:
        reasons[baseline.suite] = f"it cannot be collected: {baseline.broken.splitlines()[-1]}"
    return [
        Finding(
            rule=RED,
            path=baseline.suite,
            message=f"{name} fails on the unmutated tree: {' '.join(reason.split())[:300]}",
            help="mend it first; until then it judges no mutant",
            token=name,
        )
        for name, reason in reasons.items()
    ]


def _inert(result: Result) -> list[Finding]:
    findings = []
    for baseline in result.baselines:
        if baseline.broken:
            continue
        source = result.suites[baseline.suite]
        in_source = inert_in_source(baseline.suite, source)
        lines = {finding.line for finding in in_source}
        findings += in_source
        findings += [finding for finding in inert_in_run(baseline, source) if finding.line not in lines]
    return findings
