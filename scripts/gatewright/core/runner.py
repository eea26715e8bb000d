"""Judges changes: facts of the whole tree and the policy give findings, minus what the base already had."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from gatewright.core.cache import Cache
from gatewright.core.change import Change
from gatewright.core.contract import Lane, Rule
from gatewright.core.finding import Finding, subtract
from gatewright.core.policy import load_base_policies, load_policies
from gatewright.core.relative import base_findings, moved_in, under_base_policy
from gatewright.core.report import CheckReport, Report, RuleReport
from gatewright.core.side import Side
from gatewright.core.snapshot import Snapshot, printable
from gatewright.core.tree import Known, Progress, Tree
from gatewright.core.version import gate_digest, gate_version


def run(
    changes: Sequence[Change],
    cache: Cache,
    *,
    lane: Lane = "hook",
    absolute: bool = False,
    only: Sequence[str] = (),
    progress: Progress | None = None,
) -> Report:
    """Judge every change and put the verdicts together. Raises GateError where a tree cannot be judged."""
    report = Report(version=gate_version(), digest=gate_digest(), judged="", absolute=absolute)
    rules: dict[str, tuple[Rule, str]] = {}
    examined: Counter[str] = Counter()
    trees: dict[str, Tree] = {}
    known: Known = {}
    for change in changes:
        bases = [] if absolute else [change.base, *change.other_bases]
        for snapshot in filter(None, (change.head, *bases)):
            trees.setdefault(snapshot.label, Tree(snapshot, cache, progress, known))
        outcome = _judge_change(change, trees, absolute=absolute, only=only)
        for base in [] if absolute else change.other_bases:
            outcome.keep_new(_judge_change(change, trees, absolute=absolute, only=only, base=base))
        for name in outcome.policies.reported:
            own = outcome.policies.files[name].check.rules
            rules.update({rule.id: (rule, name) for rule in own if lane in rule.lanes})
        if len(changes) > 1 and outcome.new:
            report.notes.append(f"{change.head.label}: {len(outcome.new)} new findings")
        examined.update(outcome.examined)
        report.notes = list(dict.fromkeys([*report.notes, *change.notes, *outcome.notes]))
        report.new = list(dict.fromkeys([*report.new, *outcome.new]))
        report.inherited = list(dict.fromkeys([*report.inherited, *outcome.inherited]))
        report.exempted = list(dict.fromkeys([*report.exempted, *outcome.exempted]))
    report.judged = ", ".join(dict.fromkeys(change.head.label for change in changes))
    labels = [base.label for change in changes for base in (change.base, *change.other_bases) if base is not None]
    report.base = "" if absolute else ", ".join(dict.fromkeys(labels))
    _sort_out(report, rules)
    relative = bool(report.base)
    failing = {finding.rule for finding in report.failing}
    for name in dict.fromkeys(name for _, name in rules.values()):
        of_check = [rule for rule, owner in rules.values() if owner == name]
        verdicts = [_verdict(rule, rule.id in failing, examined[rule.id], relative=relative) for rule in of_check]
        report.checks.append(CheckReport(name=name, rules=verdicts, examined=_in_words(of_check, examined)))
    cache.trim()
    report.notes += cache.notes
    return report


def _in_words(rules: Sequence[Rule], examined: Mapping[str, int]) -> list[str]:
    """What a check looked at: for each unit of its rules the greatest count."""
    counts: dict[str, int] = {}
    for rule in rules:
        if rule.unit:
            counts[rule.unit] = max(counts.get(rule.unit, 0), examined.get(rule.id, 0))
    return [f"{count} {unit}" for unit, count in counts.items()]


def _sort_out(report: Report, rules: Mapping[str, tuple[Rule, str]]) -> None:
    """Leave out rules of other lanes, and set the advisory findings apart."""
    advisory = {id for id, (rule, _) in rules.items() if rule.advisory}
    report.advisory = [f for f in [*report.new, *report.inherited] if f.rule in advisory]
    report.new = [f for f in report.new if f.rule in rules and f.rule not in advisory]
    report.inherited = [f for f in report.inherited if f.rule in rules and f.rule not in advisory]
    report.exempted = [e for e in report.exempted if e.finding.rule in rules]


def _verdict(rule: Rule, failing: bool, examined: int, *, relative: bool) -> RuleReport:
    verdict = RuleReport(id=rule.id, summary=rule.summary, verdict="PASS", examined=examined, advisory=rule.advisory)
    if failing:
        verdict.verdict = "FAIL"
    elif rule.scope != "tree" and not relative:
        verdict.verdict, verdict.reason = "N/A", "it judges a change, and there is no base"
    elif not examined and not rule.empty_ok and not rule.advisory:
        verdict.verdict, verdict.reason = "UNKNOWN", "it found nothing to examine"
    return verdict


class _Outcome:
    def __init__(self, head: Side, notes: Iterable[str] = ()) -> None:
        self.policies = head.policies
        self.examined: Counter[str] = Counter()
        for judgement in head.judgements.values():
            self.examined.update(judgement.examined)
        self.notes = [*(note for j in head.judgements.values() for note in j.notes), *notes]
        self.exempted = head.exempted
        self.new: list[Finding] = []
        self.inherited: list[Finding] = []

    def keep_new(self, other: "_Outcome") -> None:
        """Of what is new relative to one base, keep what is new relative to another as well."""
        new = {_place_and_site(finding) for finding in other.new}
        self.inherited += [finding for finding in self.new if _place_and_site(finding) not in new]
        self.new = [finding for finding in self.new if _place_and_site(finding) in new]
        self.notes = list(dict.fromkeys([*self.notes, *other.notes]))


def _place_and_site(finding: Finding) -> tuple[object, ...]:
    return (finding.path, finding.line, finding.column, finding.site)


def _judge_change(
    change: Change, trees: Mapping[str, Tree], *, absolute: bool, only: Sequence[str], base: Snapshot | None = None
) -> _Outcome:
    """`base`: one of the change's other bases, to be judged against instead of its first."""
    base = base or change.base
    head = Side(trees[change.head.label], load_policies(change.head, only))
    outcome = _Outcome(head)
    conflicts = [_conflict(path) for path in change.conflicts]
    if base is None or absolute:
        outcome.new = [*head.findings, *conflicts]
        return outcome
    base_tree = trees[base.label]
    policies = load_base_policies(base, only)
    outcome.notes += [f"the base's policy {n} is not readable today: {why}" for n, why in policies.unreadable.items()]
    new, outcome.inherited = subtract(head.findings, base_findings(base_tree, head, policies))
    extra = under_base_policy(head, base_tree, policies)
    outcome.new = [*moved_in(new, head, base_tree), *(f for f in extra if f not in new), *conflicts]
    for file in head.policies.judged.values():
        judged = file.check.judge_change(change, file.policy)
        outcome.new += judged.findings
        outcome.examined.update(judged.examined)
    return outcome


def _conflict(path: str) -> Finding:
    return Finding(
        rule="policy/merge-conflict",
        path=path,
        message=f"both sides change {printable(path)}, and git cannot merge them",
        help="merge or rebase, resolve the conflict, and judge the result",
        token=path,
    )
