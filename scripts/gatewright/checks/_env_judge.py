"""The rules of env-doc, each a function from the evidence of one tree to findings."""

from collections import Counter
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase

import msgspec

from gatewright.checks._env_policy import Dynamic, Policy
from gatewright.checks._env_resolution import Resolution, Unresolved, Use
from gatewright.core.finding import Finding
from gatewright.core.globs import compile_globs
from gatewright.extractors.env_documented import DocumentedName, PageFacts
from gatewright.extractors.env_file import EnvLine
from gatewright.extractors.env_read import Entry, Value

POLICY = "policy/env-doc.toml"
NO_DEFAULT = frozenset({"", "-", "–", "—", "unset", "not set", "none", "null", "n/a", "empty", "required"})
BOOLEANS = {"true": "1", "on": "1", "yes": "1", "false": "0", "off": "0", "no": "0"}


class Evidence(msgspec.Struct):
    """What one tree says. `included` are names documented by inclusion, `mentioned` the files whose
    text holds a name, `files` the number of source files read."""

    policy: Policy
    resolution: Resolution
    pages: dict[str, PageFacts]
    included: dict[str, DocumentedName]
    env_lines: list[tuple[str, EnvLine]]
    mentioned: dict[str, set[str]]
    files: int
    page_problems: list[Finding]
    uses: dict[str, list[Use]] = {}
    foreign: set[str] = set()

    def __post_init__(self) -> None:
        self.uses, self.foreign = {}, set()
        for use in self.resolution.uses:
            if self.policy.owns(use.name):
                self.uses.setdefault(use.name, []).append(use)
            else:
                self.foreign.add(use.name)

    @property
    def rows(self) -> Iterator[tuple[str, DocumentedName]]:
        """The rows and, where they count, mentions of all pages, for this project's names."""
        for path, page in self.pages.items():
            own = page.rows if self.policy.documented_by == "table" else (*page.rows, *page.mentions)
            yield from ((path, row) for row in own if self.policy.owns(row.name))

    @property
    def documented(self) -> set[str]:
        return {row.name for _, row in self.rows if not row.removed} | self.included.keys()

    @property
    def removed(self) -> dict[str, DocumentedName]:
        return {row.name: row for _, row in self.rows if row.removed}

    def is_read(self, name: str) -> bool:
        return name in self.uses or any(fnmatchcase(name, entry.pattern) for entry in self.policy.dynamic)

    def near(self, name: str, candidates: Iterable[str]) -> str:
        """A hint naming the candidate that looks most like `name`, or nothing."""
        from difflib import get_close_matches

        close = get_close_matches(name, sorted(candidates), n=1, cutoff=0.75)
        return f"; did you mean {close[0]}?" if close else ""


def findings(evidence: Evidence) -> Iterator[Finding]:
    """All findings of one tree."""
    yield from evidence.page_problems
    for rule in (
        undocumented, unread, duplicate, default, dynamic, stale_patterns,
        registry_key, dead_entry, internal, removed, env_file, unparsable, blind,
    ):  # fmt: skip
        yield from rule(evidence)


def undocumented(evidence: Evidence) -> Iterator[Finding]:
    policy = evidence.policy
    if policy.pages and not evidence.pages and not evidence.included:
        return
    known = evidence.documented | policy.internal.keys() | evidence.removed.keys()
    page, facts = next(iter(evidence.pages.items()), ("the page", PageFacts()))
    for name, uses in evidence.uses.items():
        if name in known:
            continue
        row = _row(policy, facts.header, uses)
        yield _at(
            uses[0],
            "undocumented",
            f"the code reads {name}, which no page documents" + evidence.near(name, _dead(evidence)),
            f'add the row {row} to {page}, or `{name} = "reason"` under [internal] of {POLICY}',
        )


def unread(evidence: Evidence) -> Iterator[Finding]:
    known = evidence.uses.keys() - evidence.documented - evidence.policy.internal.keys()
    for path, row in evidence.rows:
        if row.removed or evidence.is_read(row.name):
            continue
        yield Finding(
            rule="env-doc/unread",
            path=path,
            line=row.line,
            column=1,
            message=f"{row.name} is documented and no code reads it: setting it does nothing"
            + evidence.near(row.name, known),
            help="correct the name, delete the row, or move it to the table of removed names with its replacement",
            token=row.name,
        )


def duplicate(evidence: Evidence) -> Iterator[Finding]:
    first: dict[str, tuple[str, int]] = {}
    rows = ((path, row) for path, page in evidence.pages.items() for row in page.rows)
    for path, row in rows:
        if not evidence.policy.owns(row.name):
            continue
        if row.name in first:
            where, line = first[row.name]
            yield Finding(
                rule="env-doc/duplicate",
                path=path,
                line=row.line,
                column=1,
                message=f"{row.name} is documented twice, first at {where}:{line}",
                help="keep one row and delete the other",
                token=row.name,
            )
        first.setdefault(row.name, (path, row.line))


def default(evidence: Evidence) -> Iterator[Finding]:
    for path, row, use, said in _defaults(evidence):
        if said is None or normal(said) == normal(row.default or ""):
            continue
        yield Finding(
            rule="env-doc/default",
            path=path,
            line=row.line,
            column=1,
            message=f"the page gives {row.name} the default {row.default or 'unset'}, the code {said or 'unset'} "
            f"({use.path}:{use.line})",
            help=f"write `{said or 'unset'}` in the Default column, or change the code",
            token=row.name,
            statement=normal(said),
        )


def _defaults(evidence: Evidence) -> Iterator[tuple[str, DocumentedName, Use, str | None]]:
    """Each documented default with each different default of the code; None: it is computed.

    Reads that give no default ("in", a subscript) say nothing where another read gives one.
    """
    for path, row in evidence.rows:
        uses = evidence.uses.get(row.name)
        if row.removed or row.default is None or not uses:
            continue
        given = [use for use in uses if use.default is not None] or uses[:1]
        seen: set[str | None] = set()
        for use in given:
            said = literal(use.default)
            if said not in seen:
                seen.add(said)
                yield path, row, use, said


def literal(value: Value | None) -> str | None:
    """A default as text; None when it is computed."""
    return "" if value is None else value.literal


def normal(text: str) -> str:
    """Equal for equal values: `"1"`, 1, 1.0, true and on are one value; unset and none another."""
    text = text.strip()
    if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'":
        text = text[1:-1]
    folded = text.casefold()
    if folded in NO_DEFAULT:
        return ""
    folded = BOOLEANS.get(folded, folded)
    try:
        return repr(float(folded))
    except ValueError:
        return text if folded == text.casefold() else folded


def dynamic(evidence: Evidence) -> Iterator[Finding]:
    for site in evidence.resolution.unresolved:
        if not evidence.policy.may_own(site.pattern) or any(covers(d, site) for d in evidence.policy.dynamic):
            continue
        shape = "" if site.pattern == "*" else f" of the form {site.pattern}"
        pattern = site.pattern if not site.pattern.startswith("*") else "PREFIX_*"
        yield Finding(
            rule="env-doc/dynamic",
            path=site.path,
            line=site.line,
            column=site.column,
            message=f"a variable{shape} is read here whose name cannot be told: {site.reason} ({site.text})",
            help=f'read it by a literal or a constant, or declare in {POLICY}: [[dynamic]] pattern = "{pattern}", '
            f'path = "{site.path}", why = "..."',
            token=site.text,
            statement=site.statement,
        )


def covers(entry: Dynamic, site: Unresolved) -> bool:
    """A pattern declared for a file covers what is read there; else it must cover the site's shape."""
    if entry.path:
        return bool(compile_globs((entry.path,)).fullmatch(site.path))
    return fnmatchcase(site.pattern, entry.pattern)


def stale_patterns(evidence: Evidence) -> Iterator[Finding]:
    for entry in evidence.policy.dynamic:
        if len(entry.why.strip()) < evidence.policy.minimum_reason:
            fault = f"gives the reason {entry.why!r}, which is too short"
            help = "say which names exist and where they are documented"
        elif not any(covers(entry, site) for site in evidence.resolution.unresolved):
            fault, help = "covers no read", "delete it"
        else:
            continue
        message = f"the dynamic entry {entry.pattern} {fault}"
        yield Finding(rule="env-doc/dynamic", path=POLICY, message=message, help=help, token=entry.pattern)


def registry_key(evidence: Evidence) -> Iterator[Finding]:
    read_by: dict[tuple[str, str], list[str]] = {}
    for use in evidence.resolution.uses:
        if use.entry:
            read_by.setdefault((use.path, use.entry), []).append(use.name)
    for path, entry in evidence.resolution.entries:
        names = read_by.get((path, entry.key), [])
        if names and entry.key not in names and evidence.policy.owns(entry.key):
            message = f"the entry {entry.key} reads {', '.join(dict.fromkeys(names))}"
            yield _entry("registry-key", path, entry, message, "make the key and the name it reads the same")


def dead_entry(evidence: Evidence) -> Iterator[Finding]:
    for path, entry in evidence.resolution.entries:
        elsewhere = evidence.mentioned.get(entry.key, set()) - {path}
        if not entry.used and not elsewhere and evidence.policy.owns(entry.key):
            message = f"nothing uses the entry {entry.key}: setting the variable changes nothing"
            yield _entry("dead-entry", path, entry, message, "delete the entry and its documentation, or use it")


def internal(evidence: Evidence) -> Iterator[Finding]:
    for name, reason in evidence.policy.internal.items():
        if len(reason.strip()) < evidence.policy.minimum_reason:
            yield _internal(name, f"gives the reason {reason!r}, which is too short", "say why users must not set it")
        if name in evidence.documented:
            yield _internal(name, "is also documented", "keep the row or the entry, not both")
        if not evidence.is_read(name):
            yield _internal(name, "is read by no code", "delete the entry")


def removed(evidence: Evidence) -> Iterator[Finding]:
    for path, row in evidence.rows:
        if not row.removed:
            continue
        for use in evidence.uses.get(row.name, [])[:1]:
            help = f"read {row.replacement or 'its replacement'} instead, or move the row back to the variables"
            yield _at(use, "removed", f"{row.name} is listed as removed ({path}:{row.line}) and still read", help)
        wanted = row.replacement.replace("`", " ").replace(",", " ").split()
        lost = [word for word in wanted if evidence.policy.owns(word) and word.isupper() and not evidence.is_read(word)]
        if not row.replacement.strip("-–— "):
            fault, help = "has no replacement", "name what to use instead, or write `none` and why"
        elif lost and (evidence.policy.prefixes or evidence.policy.names):
            fault, help = f"is replaced by {lost[0]}, which no code reads", "name a variable that is read"
        else:
            continue
        yield Finding(
            rule="env-doc/removed",
            path=path,
            line=row.line,
            column=1,
            message=f"the removed name {row.name} {fault}",
            help=help,
            token=row.name,
        )


def env_file(evidence: Evidence) -> Iterator[Finding]:
    seen: Counter[tuple[str, str]] = Counter()
    for path, line in evidence.env_lines:
        message = ""
        if line.problem:
            message = f"the line {line.problem}"
            help = "write one NAME=value or # NAME=value per line"
        elif evidence.policy.owns(line.name):
            seen[path, line.name] += 1
            if line.name in evidence.removed and line.name not in evidence.uses:
                message = f"{line.name} was removed"
                help = f"use {evidence.removed[line.name].replacement or 'its replacement'}"
            elif not evidence.is_read(line.name):
                message = f"no code reads {line.name}" + evidence.near(line.name, evidence.uses)
                help = "correct the name or delete the line"
            elif seen[path, line.name] > 1:
                message, help = f"{line.name} is given twice", "keep one of the lines"
        if message:
            yield Finding(
                rule="env-doc/env-file",
                path=path,
                line=line.line,
                column=1,
                message=message,
                help=help,
                token=line.name or line.statement,
                statement=line.statement,
            )


def unparsable(evidence: Evidence) -> Iterator[Finding]:
    for path, reason in evidence.resolution.unparsed.items():
        yield Finding(
            rule="env-doc/unparsable",
            path=path,
            message=f"the file cannot be parsed ({reason}); only names that its text shows were seen",
            help="mend the syntax, or exclude the file under [code] of " + POLICY,
            token=path,
        )


def blind(evidence: Evidence) -> Iterator[Finding]:
    count, minimum = len(evidence.uses), evidence.policy.minimum
    if evidence.files and count < minimum:
        yield Finding(
            rule="env-doc/blind",
            path=POLICY,
            message=f"{evidence.files} source files were read and {count} variables found, fewer than the {minimum} "
            "that the policy expects",
            help=f"mend the prefixes or the [code] globs; lower `minimum` of {POLICY} only if variables are gone",
            token="minimum",
        )


def notes(evidence: Evidence) -> list[str]:
    """What was seen and is no finding, one sentence each."""
    computed = {row.name for _, row, _, said in _defaults(evidence) if said is None}
    uncalled = sorted({wrapper.function for wrapper in evidence.resolution.uncalled})
    said = []
    if evidence.foreign:
        said.append(f"env-doc: {len(evidence.foreign)} names outside the project's prefixes are read")
    if computed:
        said.append(f"env-doc: cannot compare the computed defaults of {', '.join(sorted(computed))}")
    if uncalled:
        said.append(f"env-doc: no call is in sight of the functions that read a name: {', '.join(uncalled)}")
    return said


def _dead(evidence: Evidence) -> set[str]:
    return {row.name for _, row in evidence.rows if not row.removed and not evidence.is_read(row.name)}


def _row(policy: Policy, header: tuple[str, ...], uses: list[Use]) -> str:
    """A table row for a name, in the columns of the page's first table."""
    titles = header or (policy.columns.name[0], policy.columns.default[0], "Meaning")
    given = next((use.default for use in uses if use.default is not None), None)
    shown = "computed" if literal(given) is None else f"`{literal(given)}`" if literal(given) else "unset"
    names, defaults = _folded(policy.columns.name), _folded(policy.columns.default)
    cells = [
        f"`{uses[0].name}`" if title.casefold() in names else shown if title.casefold() in defaults else "..."
        for title in titles
    ]
    return f"| {' | '.join(cells)} |"


def _folded(titles: Iterable[str]) -> set[str]:
    return {title.casefold() for title in titles}


def _at(use: Use, rule: str, message: str, help: str) -> Finding:
    return Finding(
        rule=f"env-doc/{rule}",
        path=use.path,
        line=use.line,
        column=use.column,
        message=message,
        help=help,
        token=use.name,
    )


def _entry(rule: str, path: str, entry: Entry, message: str, help: str) -> Finding:
    return Finding(
        rule=f"env-doc/{rule}",
        path=path,
        line=entry.line,
        column=entry.column,
        message=message,
        help=help,
        token=entry.key,
    )


def _internal(name: str, fault: str, help: str) -> Finding:
    message = f"the internal variable {name} {fault}"
    return Finding(rule="env-doc/internal", path=POLICY, message=message, help=help, token=name, statement=fault)
