"""env-doc: every environment variable that the code reads is documented, and nothing else is."""

from collections.abc import Sequence

import msgspec

from gatewright.checks._env_evidence import POLICY, Evidence
from gatewright.checks._env_judge import findings, notes
from gatewright.checks._env_policy import Code, Include, Policy
from gatewright.checks._env_resolution import Resolution, resolve
from gatewright.core.contract import Check, Judgement, Rule
from gatewright.core.facts import Extractor
from gatewright.core.finding import Finding
from gatewright.core.globs import PathSet
from gatewright.core.tree import Tree
from gatewright.extractors.env_documented import (
    DocumentedName,
    EnvLine,
    Mentions,
    PageFacts,
    PageOptions,
    Region,
    RegionOptions,
)
from gatewright.extractors.env_read import EnvFacts, Options

C_SUFFIXES = (
    ".c",
    ".cc",
    ".cpp",
    ".cxx",
    ".cu",
    ".cuh",
    ".h",
    ".hh",
    ".hpp",
    ".hxx",
    ".hip",
    ".inl",
    ".ipp",
    ".m",
    ".mm",
)


class EnvDoc(Check[Policy]):
    name = "env-doc"
    summary = "every environment variable that the code reads is documented, and every documented one is read"
    policy = Policy
    # A page or an inclusion that is added documents more; one that is taken away only leaves more undocumented.
    ordinary = ("internal", "dynamic", "pages", "include")
    globs = ("code.python", "code.cfamily", "code.rust", "env_files")
    rules = (
        Rule(
            "env-doc/undocumented",
            "each variable that the code reads is documented or internal",
            empty_ok=True,
            unit="variables read",
        ),
        Rule("env-doc/unread", "each documented variable is read by some code", empty_ok=True, unit="documented"),
        Rule("env-doc/duplicate", "no variable is documented twice", empty_ok=True),
        Rule("env-doc/default", "the documented default is the code's", empty_ok=True),
        Rule("env-doc/dynamic", "the name of each variable can be told, or its pattern is declared", empty_ok=True),
        Rule("env-doc/registry-key", "a registry entry reads the variable it is named after", empty_ok=True),
        Rule("env-doc/dead-entry", "a registry entry is used", empty_ok=True, advisory=True),
        Rule("env-doc/internal", "each internal variable is read, undocumented and has a reason", empty_ok=True),
        Rule("env-doc/removed", "a removed variable is not read and has a replacement", empty_ok=True),
        Rule("env-doc/env-file", "an example .env file parses and sets variables that are read", empty_ok=True),
        Rule("env-doc/unparsable", "each source file can be parsed", unit="source files"),
        Rule("env-doc/page", "each declared page exists, is closed and has a table of variables", empty_ok=True),
        Rule("env-doc/blind", "the code is seen to read at least as many variables as the policy expects"),
    )

    def extractors(self, policy: Policy) -> Sequence[Extractor]:
        return [*reading(policy, Options()), _pages(policy), _env_files(policy), *map(_region, policy.include)]

    def judge(self, tree: Tree, policy: Policy) -> Judgement:
        tree.prefetch(self.extractors(policy))
        resolution = resolve(tree, lambda options: reading(policy, options))
        pages = {path: facts[0] for path, facts in tree.facts(_pages(policy)).items()}
        problems = [*_missing(tree, policy), *_page_problems(policy, pages)]
        included: dict[str, DocumentedName] = {}
        for include in policy.include:
            names, fault = _included(tree, include, resolution, pages)
            included |= names
            problems += [_page(include.page if include.page in pages else POLICY, 0, *fault)] if fault else []
        evidence = Evidence(
            policy=policy,
            resolution=resolution,
            pages=pages,
            included=included,
            env_lines=[(path, line) for path, lines in tree.facts(_env_files(policy)).items() for line in lines],
            mentioned=_mentioned(tree, policy) if resolution.entries else {},
            files=sum(tree.examined(extractor) for extractor in reading(policy, Options())),
            page_problems=problems,
        )
        return Judgement(list(findings(evidence)), _examined(evidence), notes(evidence))

    def outside(self, tree: Tree, policy: Policy, paths: Sequence[str]) -> list[Finding]:
        scanned = {path for extractor in reading(policy, Options()) for path in tree.select(extractor.paths)}
        elsewhere = [path for path in paths if path not in scanned]
        code = Code(
            python=tuple(path for path in elsewhere if path.endswith(".py")),
            cfamily=tuple(path for path in elsewhere if policy.code.cfamily and path.endswith(C_SUFFIXES)),
            rust=tuple(path for path in elsewhere if path.endswith(".rs")),
            exclude=(),
        )
        judged = self.judge(tree, msgspec.structs.replace(policy, code=code))
        return [finding for finding in judged.findings if finding.rule == "env-doc/undocumented"]


def reading(policy: Policy, options: Options) -> list[Extractor]:
    """The extractors of environment reads, one for each language the policy has globs for."""
    languages = {"python": policy.code.python, "cfamily": policy.code.cfamily, "rust": policy.code.rust}
    return [
        Extractor(
            name=f"env-{language}",
            paths=PathSet(globs, policy.code.exclude),
            function=f"gatewright.extractors.env_{language}:extract",
            fact=EnvFacts,
            options=options,
        )
        for language, globs in languages.items()
        if globs
    ]


def _pages(policy: Policy) -> Extractor:
    options = PageOptions(
        name_columns=policy.columns.name,
        default_columns=policy.columns.default,
        replacement_columns=policy.columns.replacement,
        removed_heading=policy.removed_heading,
        mentions=policy.documented_by == "mention",
        texts=tuple(_shown_as(include) for include in policy.include),
    )
    return Extractor(
        name="env-page",
        paths=PathSet(policy.pages),
        function="gatewright.extractors.env_page:extract",
        fact=PageFacts,
        options=options,
    )


def _env_files(policy: Policy) -> Extractor:
    function = "gatewright.extractors.env_file:extract"
    return Extractor(name="env-file", paths=PathSet(policy.env_files), function=function, fact=EnvLine)


def _region(include: Include) -> Extractor:
    return Extractor(
        name="env-region",
        paths=PathSet((include.registry,)),
        function="gatewright.extractors.env_text:region",
        fact=Region,
        options=RegionOptions(include.begin, include.end),
    )


def _mentioned(tree: Tree, policy: Policy) -> dict[str, set[str]]:
    code = policy.code
    extractor = Extractor(
        name="env-mention",
        paths=PathSet((*code.python, *code.cfamily, *code.rust), code.exclude),
        function="gatewright.extractors.env_text:mentions",
        fact=Mentions,
    )
    found: dict[str, set[str]] = {}
    for path, facts in tree.facts(extractor).items():
        for name in facts[0].names:
            found.setdefault(name, set()).add(path)
    return found


def _included(
    tree: Tree, include: Include, resolution: Resolution, pages: dict[str, PageFacts]
) -> tuple[dict[str, DocumentedName], tuple[str, str] | None]:
    """The names that a page documents by showing a source file, or why it shows none."""
    regions = tree.facts(_region(include)).get(include.registry)
    if regions is None:
        return {}, (f"the included file {include.registry} does not exist", f"mend [[include]] of {POLICY}")
    first, last = regions[0].first, regions[0].last
    if not first:
        markers = f"{include.begin!r} and {include.end!r}"
        return {}, (f"{include.registry} lacks the markers {markers}", "put them around the definitions, in this order")
    if include.page in pages and _shown_as(include) not in pages[include.page].texts:
        return {}, (f"{include.page} no longer includes {include.registry}", "restore the directive that includes it")
    names = {
        use.name: use.line for use in resolution.uses if use.path == include.registry and first <= use.line <= last
    }
    names |= {e.key: e.line for path, e in resolution.entries if path == include.registry and first <= e.line <= last}
    return {name: DocumentedName(name, line) for name, line in names.items()}, None


def _shown_as(include: Include) -> str:
    """What a directive that includes the file must say, however it spells the folders."""
    return include.registry.rpartition("/")[2]


def _missing(tree: Tree, policy: Policy) -> list[Finding]:
    return [
        _page(POLICY, 0, f"the page {page} does not exist", "write it, or correct `pages`")
        for page in (*policy.pages, *(include.page for include in policy.include if include.page not in policy.pages))
        if not tree.select(PathSet((page,)))
    ]


def _page_problems(policy: Policy, pages: dict[str, PageFacts]) -> list[Finding]:
    problems = []
    showing = {include.page for include in policy.include}
    for path, page in pages.items():
        for line in page.unclosed:
            message = f"the fence of line {line} is never closed and hides what follows"
            problems.append(_page(path, line, message, "close it with the same number of marks, not indented"))
        if policy.documented_by == "table" and not page.header and path not in showing:
            titles = " or ".join(policy.columns.name)
            problems.append(_page(path, 0, f"no table has a column titled {titles}", "add one, or set [columns] name"))
    return problems


def _page(path: str, line: int, message: str, help: str) -> Finding:
    return Finding(
        rule="env-doc/page",
        path=path,
        line=line,
        column=1 if line else 0,
        message=message,
        help=help,
        token=message if not line else "unclosed fence",
    )


def _examined(evidence: Evidence) -> dict[str, int]:
    resolution, rows = evidence.resolution, list(evidence.rows)
    counts = {
        "undocumented": len(evidence.uses),
        "unread": sum(not row.removed for _, row in rows),
        "duplicate": len(rows),
        "default": sum(row.default is not None for _, row in rows),
        "dynamic": len(resolution.uses) + len(resolution.unresolved),
        "registry-key": len(resolution.entries),
        "dead-entry": len(resolution.entries),
        "internal": len(evidence.policy.internal),
        "removed": sum(row.removed for _, row in rows),
        "env-file": len(evidence.env_lines),
        "unparsable": evidence.files,
        "page": len(evidence.pages),
        "blind": evidence.files,
    }
    return {f"env-doc/{rule}": count for rule, count in counts.items()}


CHECK = EnvDoc()
