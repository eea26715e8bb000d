"""One tree under one set of policies: what its checks find, and what exemptions take from that."""

from collections.abc import Sequence
from functools import cached_property

from gatewright.checks.policy import apply_exemptions, judge_policies
from gatewright.core.contract import Judgement
from gatewright.core.facts import Extractor
from gatewright.core.finding import Finding
from gatewright.core.globs import PathSet
from gatewright.core.policy import CORE, Policies, PolicyFile
from gatewright.core.report import Exempted
from gatewright.core.tree import Tree
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
