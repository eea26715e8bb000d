"""A small check for tests of the core: forbidden words, long lines (measured), and subjects of commits."""

from collections.abc import Sequence
from typing import Any

import msgspec

from gatewright.core.contract import Check, Judgement, Rule
from gatewright.core.facts import Extractor
from gatewright.core.finding import Finding
from gatewright.core.globs import PathSet


class Policy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    where: tuple[str, ...]
    forbidden: tuple[str, ...] = ("BAD",)
    longest: int = 0
    spared: dict[str, str] = {}
    why: str = ""


class Line(msgspec.Struct, frozen=True, array_like=True):
    number: int
    column: int
    word: str
    text: str


def lines(data: bytes, options: Any) -> list[Line]:
    words, longest = options
    found = []
    for number, text in enumerate(data.decode("utf-8", "surrogateescape").split("\n"), 1):
        found += [Line(number, text.index(word) + 1, word, text.strip()) for word in words if word in text]
        if longest and len(text) > longest:
            found.append(Line(number, len(text), "", text))
    return found


def _extractor(policy: Policy, paths: PathSet) -> Extractor:
    options = (policy.forbidden, policy.longest)
    return Extractor(name="words", paths=paths, function="gatewright.checks.words:lines", fact=Line, options=options)


class Words(Check[Policy]):
    name = "words"
    summary = "forbidden words stay out"
    policy = Policy
    ordinary = ("spared",)
    globs = ("where",)
    rules = (
        Rule("words/forbidden", "no forbidden word is written"),
        Rule("words/long", "no line grows over the cap", empty_ok=True),
        Rule("words/subject", "no commit's subject holds a forbidden word", scope="message", empty_ok=True),
        Rule("words/nightly", "no file is empty", lanes=("schedule",), empty_ok=True),
    )

    def extractors(self, policy: Policy) -> Sequence[Extractor]:
        return [_extractor(policy, PathSet(policy.where))]

    def judge(self, tree: Any, policy: Policy) -> Judgement:
        extractor = self.extractors(policy)[0]
        facts = tree.facts(extractor)
        findings = [_finding(path, line) for path, found in facts.items() for line in found]
        findings = [finding for finding in findings if finding.token not in policy.spared]
        return Judgement(findings, {"words/forbidden": tree.examined(extractor)})

    def judge_change(self, change: Any, policy: Policy) -> Judgement:
        judgement = Judgement(examined={"words/subject": len(change.commits)})
        for commit in change.commits:
            subject = change.repository.git("log", "-1", "--format=%s", commit).decode()
            if any(word in subject for word in policy.forbidden):
                judgement.findings.append(
                    Finding(rule="words/subject", message=f"commit {commit[:12]}", help="reword it", token=commit)
                )
        return judgement

    def outside(self, tree: Any, policy: Policy, paths: Sequence[str]) -> list[Finding]:
        facts = tree.facts(_extractor(policy, PathSet(tuple(paths), policy.where)))
        return [_finding(path, line) for path, found in facts.items() for line in found]


def _finding(path: str, line: Line) -> Finding:
    if not line.word:
        return Finding(
            rule="words/long",
            path=path,
            line=line.number,
            message=f"{len(line.text)} characters",
            help="shorten it",
            token=line.text.split(" ")[0],
            measure=len(line.text),
        )
    return Finding(
        rule="words/forbidden",
        path=path,
        line=line.number,
        column=line.column,
        message=f"the word {line.word} is forbidden",
        help=f"write another word than {line.word}",
        token=line.word,
        statement=line.text,
    )


CHECK = Words()
