"""The four rooms of every check: module, policy, manual and suite, each with its partners.

What is on disk is the registry. A tree that is not this project's own has a policy alone.
"""

import re
from pathlib import PurePosixPath

from gatewright.core.contract import check_names, load_check
from gatewright.core.errors import PolicyError
from gatewright.core.finding import Finding
from gatewright.core.manual import cases, sections
from gatewright.core.policy import CORE, load_policies, policy_names
from gatewright.core.snapshot import Snapshot

MODULES = "scripts/gatewright/checks/"
MANUALS = "docs/checks/"
SUITES = "tests/gates/"


def audit(snapshot: Snapshot) -> tuple[list[Finding], str]:
    """Findings about missing partners, and one line that says what was looked at."""
    names = policy_names(snapshot)
    on_disk = _names(snapshot, MODULES, ".py", _check_name)
    if not on_disk:
        policies = load_policies(snapshot)
        rules = sum(len(file.check.rules) for file in policies.files.values())
        return [], f"policy alone: {len(names)} valid policy files, {rules} rules"
    findings = [
        *_partners(snapshot, on_disk, names),
        *(finding for name in on_disk & set(check_names()) for finding in _manual(snapshot, name)),
        *_suites(snapshot),
    ]
    load_policies(snapshot)
    rules = sum(len(load_check(name).rules) for name in check_names())
    return sorted(findings, key=lambda f: f.order), f"{len(on_disk)} checks with {rules} rules, four rooms each"


def _names(snapshot: Snapshot, folder: str, suffix: str, name_of: "re.Pattern[str]") -> set[str]:
    files = [PurePosixPath(p) for p in snapshot.files if p.startswith(folder) and p.endswith(suffix)]
    direct = [p.name.removesuffix(suffix) for p in files if f"{p.parent}/" == folder]
    return {name.replace("_", "-") for name in direct if name_of.fullmatch(name)}


_check_name = re.compile(r"[a-z][a-z0-9_-]*")


def _partners(snapshot: Snapshot, modules: set[str], policies: list[str]) -> list[Finding]:
    manuals = _names(snapshot, MANUALS, ".md", _check_name)
    findings = []
    for name in sorted(modules | set(policies) | manuals):
        rooms = {
            f"{MODULES}{name.replace('-', '_')}.py": name in modules,
            f"policy/{name}.toml": name in policies or name == CORE,
            f"{MANUALS}{name}.md": name in manuals,
            f"{SUITES}test_{name.replace('-', '_')}.py": f"{SUITES}test_{name.replace('-', '_')}.py"
            in snapshot.entries,
        }
        there = [room for room, exists in rooms.items() if exists]
        findings += [
            _finding(
                "audit/missing-room",
                room,
                f"the check {name} has no {room}; it has {', '.join(there)}",
                "add it, or remove the others",
            )
            for room, exists in rooms.items()
            if not exists
        ]
    return findings


def _manual(snapshot: Snapshot, name: str) -> list[Finding]:
    path = f"{MANUALS}{name}.md"
    if path not in snapshot.entries:
        return []
    text = snapshot.read(path).decode("utf-8", "replace")
    try:
        examples = cases(text, path)
    except PolicyError as error:
        return [_finding("audit/manual", path, error.message, error.help)]
    rules = {rule.id: rule for rule in load_check(name).rules}
    described = {section.rule for section in sections(text)} - {""}
    findings = [
        *(
            _finding("audit/manual", path, f"no section explains the rule {r}", f"add a heading `## {r}`")
            for r in sorted(rules.keys() - described)
        ),
        *(
            _finding("audit/manual", path, f"a section explains {r}, which is no rule", "remove it")
            for r in sorted(described - rules.keys())
        ),
    ]
    for rule in sorted(rules.keys() & described):
        suite = rules[rule].shown_by
        if suite in snapshot.entries:
            continue
        own = [case for case in examples if case.rule == rule]
        shown = {
            "bad": any(f.startswith(rule + " ") or f == rule for c in own for f in c.finds),
            "good": any(not c.finds for c in own),
        }
        findings += [
            _finding("audit/manual", path, f"the section of {rule} has no {kind} example", f"add a tree that is {kind}")
            for kind, exists in shown.items()
            if not exists
        ]
    return findings


def _suites(snapshot: Snapshot) -> list[Finding]:
    """A suite is named after a module or package that exists; free scenarios lie in a folder of their own."""
    parts = [PurePosixPath(p).with_suffix("").parts[2:] for p in snapshot.files if p.startswith("scripts/gatewright/")]
    subjects = {"_".join(part[start:]) for part in parts for start in range(len(part))}
    subjects |= {"_".join(part[:-1]) for part in parts}
    suites = [p for p in snapshot.files if re.fullmatch(SUITES + r"test_\w+\.py", p)]
    return [
        _finding(
            "audit/orphan-suite",
            p,
            "no module has the name of this suite",
            f"rename or remove it, or move it to {SUITES}scenarios/",
        )
        for p in suites
        if PurePosixPath(p).stem.removeprefix("test_") not in subjects
    ]


def _finding(rule: str, path: str, message: str, help: str) -> Finding:
    return Finding(rule=rule, path=path, message=message, help=help, token=message)
