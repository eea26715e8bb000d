"""What a change brings in: findings relative to its base, under the base's policies and the head's."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from gatewright.core.finding import Finding, subtract
from gatewright.core.policy import CORE, FOLDER, Policies, loosened, with_explained
from gatewright.core.side import Side
from gatewright.core.snapshot import printable
from gatewright.core.tree import Tree


def base_findings(tree: Tree, head: Side, base: Policies) -> list[Finding]:
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


def under_base_policy(head: Side, base_tree: Tree, policies: Policies) -> list[Finding]:
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


def moved_in(new: list[Finding], head: Side, base_tree: Tree) -> list[Finding]:
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
    places = origins.get(finding.site)
    if not places:
        return finding
    origin = places.pop(0)
    place = f"{printable(origin.path)}:{origin.line}"
    return msgspec.structs.replace(finding, message=f"{finding.message}; moved in from an unscanned place, {place}")
