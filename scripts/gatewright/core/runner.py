"""Judges changes: facts of the whole tree and the policy give findings, minus what the base already had."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

from gatewright.checks.policy import apply_exemptions, judge_policies
from gatewright.core.cache import Cache
from gatewright.core.change import Change
from gatewright.core.contract import Judgement, Lane, Rule
from gatewright.core.facts import Extractor
from gatewright.core.finding import Finding, subtract
from gatewright.core.globs import PathSet
from gatewright.core.policy import (
    CORE,
    FOLDER,
    Policies,
    PolicyFile,
    load_base_policies,
    load_policies,
    loosened,
    with_explained,
)
from gatewright.core.report import CheckReport, Exempted, Report, RuleReport
from gatewright.core.snapshot import Snapshot, printable
from gatewright.core.tree import Known, Progress, Tree
from gatewright.core.version import gate_digest, gate_version
from gatewright.extractors.exemption import Exemption

_LANGUAGES = {
    "python": ("**/*.py", "**/*.pyi"),
    "cfamily": ("**/*.{c,cc,cpp,cxx,cu,cuh,h,hh,hpp,hxx,hip,inl,ipp,m,mm,metal}",),
    "hash": ("**/*.toml", "**/*.yaml", "**/*.yml", "**/*.sh", "**/*.cmake", "**/CMakeLists.txt", "**/Dockerfile*"),
    "markdown": ("**/*.md",),
}


def exemption_extractors(within: Sequence[PathSet]) -> list[Extractor]:
    """Exemptions count in the files that some check looks at, and no other file is read for them."""
    return [
        Extractor(
            name=f"exemption-{language}",
            paths=PathSet(globs, within=tuple(within)),
            function=f"gatewright.extractors.exemption:of_{language}",
            fact=Exemption,
        )
        for language, globs in _LANGUAGES.items()
        if within
    ]


class Side:
    """One tree under one set of policies."""

    def __init__(self, tree: Tree, policies: Policies) -> None:
        self.tree = tree
        self.policies = policies

    @cached_property
    def exemptions(self) -> dict[str, list[Exemption]]:
        extractors = [e for file in self.policies.judged.values() for e in _extractors(file)]
        exemptions = exemption_extractors(list(dict.fromkeys(e.paths for e in extractors)))
        self.tree.prefetch([*extractors, *exemptions])
        return {path: found for e in exemptions for path, found in self.tree.facts(e).items()}

    @cached_property
    def judgements(self) -> dict[str, Judgement]:
        exemptions = self.exemptions
        judged = {n: f.check.judge(self.tree, f.policy) for n, f in self.policies.judged.items() if n != CORE}
        judged[CORE] = judge_policies(self.tree, self.policies, exemptions)
        return judged

    @cached_property
    def _exempted(self) -> tuple[list[Finding], list[Exempted]]:
        findings = [finding for judgement in self.judgements.values() for finding in judgement.findings]
        return apply_exemptions(findings, self.policies, self.exemptions)

    @property
    def findings(self) -> list[Finding]:
        return self._exempted[0]

    @property
    def exempted(self) -> list[Exempted]:
        return self._exempted[1]


def _extractors(file: PolicyFile) -> Sequence[Extractor]:
    return [] if file.check.name == CORE else file.check.extractors(file.policy)


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
    for name in dict.fromkeys(name for _, name in rules.values()):
        of_check = [rule for rule, owner in rules.values() if owner == name]
        verdicts = [_verdict(rule, report, examined[rule.id], relative=relative) for rule in of_check]
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


def _verdict(rule: Rule, report: Report, examined: int, *, relative: bool) -> RuleReport:
    verdict = RuleReport(id=rule.id, summary=rule.summary, verdict="PASS", examined=examined, advisory=rule.advisory)
    if any(finding.rule == rule.id for finding in report.failing):
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
    new, outcome.inherited = subtract(head.findings, _base_findings(base_tree, head, policies))
    extra = _under_base_policy(head, base_tree, policies)
    outcome.new = [*_moved_in(new, head, base_tree), *(f for f in extra if f not in new), *conflicts]
    for file in head.policies.judged.values():
        judged = file.check.judge_change(change, file.policy)
        outcome.new += judged.findings
        outcome.examined.update(judged.examined)
    return outcome


def _base_findings(tree: Tree, head: Side, base: Policies) -> list[Finding]:
    """What the base already had: its tree under the head's policies, its policy files as they were.

    A defect of a policy file that the change edits would otherwise be found in the base's tree too.
    What the base's policies find in files that are gone from the head may have moved together with
    the patterns that select it.
    """
    findings = Side(tree, head.policies).findings
    now = head.policies.files
    if all(name in base.files and base.files[name].raw == file.raw for name, file in now.items()):
        return findings
    kept = [finding for finding in findings if not finding.path.startswith(FOLDER)]
    before = Side(tree, base).findings
    own = [finding for finding in before if finding.path.startswith(FOLDER)]
    there = head.tree.snapshot.entries
    moved, _ = subtract([f for f in before if f.path not in there and not f.path.startswith(FOLDER)], kept)
    return [*kept, *own, *moved]


def _under_base_policy(head: Side, base_tree: Tree, policies: Policies) -> list[Finding]:
    """New findings under the base's policy, and a finding for each policy that lets go of some."""
    now, core = head.policies.files, head.policies.core
    # As a `why`, an excuse belongs to the change that makes it.
    said = policies.core.removed
    minimum = max(core.minimum_reason, policies.core.minimum_reason)
    excused = {n for n, why in core.removed.items() if len(why.strip()) >= max(minimum, 1) and why != said.get(n)}
    removed = {name: file for name, file in policies.judged.items() if name not in now and name not in excused}
    changed = {name: file for name, file in policies.judged.items() if name in now and file.raw != now[name].raw}
    unread = [name for name in policies.unreadable if name not in now and name not in excused]
    if not changed and not removed:
        return [_removed(name, []) for name in unread]
    files = dict(head.policies.files)
    files |= removed
    missing: dict[str, list[str]] = {}
    for name, file in changed.items():
        files[name], missing[name] = with_explained(file, files[name], minimum)
    under = Policies(files, only=head.policies.only)
    strict = Side(head.tree, under)
    new, _ = subtract(strict.findings, Side(base_tree, under).findings)
    # Both are of one tree, where nothing moves: an equal site elsewhere makes up for none.
    lost, _ = subtract(strict.findings, head.findings, moves=False)
    extra = [_removed(name, []) for name in unread]
    for name, file in (changed | removed).items():
        gone = [f for f in lost if f.rule.partition("/")[0] == name and f.rule != "policy/exemption-unused"]
        if name in removed:
            extra.append(_removed(name, gone))
        elif gone and missing[name]:
            extra.append(loosened(name, gone, missing[name], file.path))
        else:
            continue
        extra += [finding for finding in new if finding in gone]
    return extra


def _removed(name: str, gone: Sequence[Finding]) -> Finding:
    return Finding(
        rule="policy/loosened",
        path=f"{FOLDER}{name}.toml",
        message=f"the policy of {name} is deleted, and with it {len(gone)} findings that the base's policy has here",
        help=f'restore it, or say why in policy/policy.toml: [removed] {name} = "..."',
        token=name,
    )


def _conflict(path: str) -> Finding:
    return Finding(
        rule="policy/merge-conflict",
        path=path,
        message=f"both sides change {printable(path)}, and git cannot merge them",
        help="merge or rebase, resolve the conflict, and judge the result",
        token=path,
    )


def _moved_in(new: list[Finding], head: Side, base_tree: Tree) -> list[Finding]:
    """Say of new sites that they were moved here from a place that the check does not judge."""
    if not new:
        return new
    after, before = head.tree.snapshot.entries, base_tree.snapshot.entries
    touched = [path for path, entry in before.items() if after.get(path) != entry]
    origins: dict[Any, list[Finding]] = {}
    for name in {finding.rule.partition("/")[0] for finding in new} - {CORE}:
        file = head.policies.files.get(name)
        if file is None:
            continue
        gone, _ = subtract(
            file.check.outside(base_tree, file.policy, touched), file.check.outside(head.tree, file.policy, touched)
        )
        for finding in gone:
            origins.setdefault(finding.site, []).append(finding)
    return [_with_origin(finding, origins) for finding in new]


def _with_origin(finding: Finding, origins: Mapping[Any, list[Finding]]) -> Finding:
    import msgspec

    places = origins.get(finding.site)
    if not places:
        return finding
    origin = places.pop(0)
    place = f"{printable(origin.path)}:{origin.line}"
    return msgspec.structs.replace(finding, message=f"{finding.message}; moved in from an unscanned place, {place}")
