"""The check of the policy itself: its patterns, its exemptions, and what a change of it lets through."""

import re
from collections.abc import Mapping, Sequence

import msgspec

from gatewright.core.contract import Check, Judgement, Rule
from gatewright.core.finding import Finding
from gatewright.core.globs import compile_globs
from gatewright.core.policy import Allow, Policies, policy_globs
from gatewright.core.report import Exempted
from gatewright.core.tree import Tree
from gatewright.extractors.exemption import Exemption

FORM = "gate: allow RULE (OWNER): reason"


class Policy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`policy/policy.toml`: what holds for all checks.

    `owner_pattern` is a regular expression that an exemption's owner must match as a whole,
    `minimum_reason` counts characters, `default_branch` names the remote's where git does not
    know it, and `removed` excuses a policy file that is gone: check name -> why.
    """

    owner_pattern: str = r"[A-Za-z][\w.@/-]*"
    minimum_reason: int = 8
    default_branch: str = ""
    removed: dict[str, str] = {}
    why: str = ""

    def __post_init__(self) -> None:
        try:
            re.compile(self.owner_pattern)
        except (re.error, OverflowError, RecursionError) as error:
            raise ValueError(f"`owner_pattern` is no regular expression: {error}") from None


class PolicyCheck(Check[Policy]):
    name = "policy"
    summary = "the policy is effective, its exemptions are alive, and it is not loosened in silence"
    policy = Policy
    ordinary = ("removed", "default_branch")
    rules = (
        Rule(
            "policy/loosened",
            "a policy finds what the base's policy finds, or says why not",
            empty_ok=True,
            unit="policies",
        ),
        Rule("policy/empty-glob", "every path pattern of a policy matches a file", empty_ok=True, unit="patterns"),
        Rule(
            "policy/unread",
            "every source file that a check selects can be read",
            empty_ok=True,
            shown_by="tests/gates/test_policy.py",
        ),
        Rule("policy/exemption-malformed", "an exemption has a rule, an owner and a reason", empty_ok=True),
        Rule("policy/exemption-unused", "an exemption matches a finding", empty_ok=True, unit="exemptions"),
        Rule(
            "policy/merge-conflict",
            "the two sides of a judged merge agree on every path",
            empty_ok=True,
            shown_by="tests/gates/test_merge.py",
        ),
    )

    def judge(self, tree: Tree, policy: Policy) -> Judgement:
        raise NotImplementedError("the runner judges this check with judge_policies, over all policies")


CHECK = PolicyCheck()


def judge_policies(tree: Tree, policies: Policies, exemptions: Mapping[str, Sequence[Exemption]]) -> Judgement:
    """The findings about patterns, unread files and the form of exemptions."""
    judgement = Judgement()
    globs = [(file.path, key, glob) for file in policies.judged.values() for key, glob in policy_globs(file)]
    for path, key, glob in globs:
        matches = compile_globs((glob,)).fullmatch
        entries = tree.snapshot.entries
        # Most patterns of many are plain paths.
        if not (glob in entries and matches(glob)) and not any(map(matches, entries)):
            judgement.findings.append(
                Finding(
                    rule="policy/empty-glob",
                    path=path,
                    message=f"{glob!r} in {key} matches no file of the tree",
                    help="correct the pattern, or remove it with the files that are gone",
                    token=f"{key}:{glob}",
                )
            )
    for path, reason in tree.unread.items():
        judgement.findings.append(
            Finding(
                rule="policy/unread",
                path=path,
                message=f"the file is {reason} and was not looked at",
                help="split it, or exclude it in the policy of the check that selects it",
                token=path,
            )
        )
    malformed = [
        (path, e, fault) for path, found in exemptions.items() for e in found if (fault := fault_of(e, policies))
    ]
    for path, exemption, fault in malformed:
        judgement.findings.append(
            Finding(
                rule="policy/exemption-malformed",
                path=path,
                line=exemption.line,
                column=1,
                message=f"this exemption counts for nothing: {fault}",
                help=f"write `{FORM}`, or remove the comment",
                token=exemption.rule or exemption.reason,
                statement=exemption.reason,
            )
        )
    for file in policies.judged.values():
        for allow in file.allow:
            fault = fault_of(Exemption(0, 0, allow.rule, allow.owner, allow.reason), policies)
            if fault:
                message = f"an [[allow]] entry counts for nothing: {fault}"
                help = "give it the rule, an owner and a reason, or remove it"
                judgement.findings.append(
                    Finding(
                        rule="policy/exemption-malformed", path=file.path, message=message, help=help, token=allow.rule
                    )
                )
    count = sum(map(len, exemptions.values())) + sum(len(file.allow) for file in policies.judged.values())
    judgement.examined = {
        "policy/loosened": len(policies.judged),
        "policy/empty-glob": len(globs),
        "policy/unread": len(tree.unread),
        "policy/exemption-malformed": count,
        "policy/exemption-unused": count,
    }
    return judgement


def fault_of(exemption: Exemption, policies: Policies) -> str:
    """Why an exemption cannot count, or nothing."""
    core: Policy = policies.core
    if not exemption.rule:
        return "it is not of the form"
    name = exemption.rule.partition("/")[0]
    if name not in policies.files or all(rule.id != exemption.rule for rule in policies.files[name].check.rules):
        return f"no rule {exemption.rule} is in force"
    if not re.fullmatch(core.owner_pattern, exemption.owner):
        return f"the owner {exemption.owner!r} does not match {core.owner_pattern}"
    if len(exemption.reason.strip()) < core.minimum_reason:
        return f"the reason {exemption.reason!r} is shorter than {core.minimum_reason} characters"
    return ""


def apply_exemptions(
    findings: Sequence[Finding], policies: Policies, exemptions: Mapping[str, Sequence[Exemption]]
) -> tuple[list[Finding], list[Exempted]]:
    """Split findings into those that stand and those that are exempted; an exemption of nothing is a finding."""
    comments = [
        (path, e)
        for path, found in exemptions.items()
        for e in found
        if not fault_of(e, policies) and e.rule.partition("/")[0] in policies.judged
    ]
    by_line = {(path, e.covers, e.rule): e for path, e in comments}
    entries = [(file.path, allow) for file in policies.judged.values() for allow in file.allow]
    entries = [(path, a) for path, a in entries if not fault_of(Exemption(0, 0, a.rule, a.owner, a.reason), policies)]
    standing: list[Finding] = []
    exempted: list[Exempted] = []
    used: set[int] = set()
    for finding in findings:
        comment = by_line.get((finding.path, finding.line, finding.rule)) if finding.line else None
        entry = next(((p, a) for p, a in entries if _allows(a, finding)), None) if not finding.line else None
        if comment is not None:
            used.add(id(comment))
            exempted.append(
                Exempted(
                    finding=finding,
                    owner=comment.owner,
                    reason=comment.reason,
                    path=finding.path,
                    line=comment.line,
                )
            )
        elif entry is not None:
            used.add(id(entry[1]))
            exempted.append(Exempted(finding=finding, owner=entry[1].owner, reason=entry[1].reason, path=entry[0]))
        else:
            standing.append(finding)
    standing += [_unused(path, e.rule, e.reason, e.line) for path, e in comments if id(e) not in used]
    standing += [_unused(path, allow.rule, allow.reason, 0) for path, allow in entries if id(allow) not in used]
    return standing, exempted


def _allows(allow: Allow, finding: Finding) -> bool:
    return allow.rule == finding.rule and allow.path in ("", finding.path) and allow.token in ("", finding.token)


def _unused(path: str, rule: str, reason: str, line: int) -> Finding:
    return Finding(
        rule="policy/exemption-unused",
        path=path,
        line=line,
        column=1 if line else 0,
        message=f"this exemption of {rule} matches no finding",
        help="remove it; the code it excused is gone or in order",
        token=rule,
        statement=reason,
    )
