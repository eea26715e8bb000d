"""The rules of env-doc about documentation pages and example .env files."""

from collections import Counter
from collections.abc import Iterable, Iterator

from gatewright.checks._env_evidence import POLICY, Evidence, agreement, literal, near, normal
from gatewright.checks._env_policy import Policy
from gatewright.checks._env_resolution import Use
from gatewright.core.finding import Finding
from gatewright.extractors.env_documented import DocumentedName, PageFacts


def undocumented(evidence: Evidence) -> Iterator[Finding]:
    policy = evidence.policy
    known = evidence.documented | policy.internal.keys() | evidence.removed.keys()
    page, facts = next(iter(evidence.pages.items()), (f"a page, which `pages` of {POLICY} names", PageFacts()))
    for name, uses in evidence.uses.items():
        if name in known:
            continue
        row = _row(policy, facts.header, uses)
        yield _at(
            uses[0],
            "undocumented",
            f"the code reads {name}, which no page documents" + near(name, _dead(evidence)),
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
            message=f"{row.name} is documented and no code reads it: setting it does nothing" + near(row.name, known),
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
    for path, row, use, agrees in compared_defaults(evidence):
        if agrees is not False:
            continue
        said = literal(use.default) or "unset"
        yield Finding(
            rule="env-doc/default",
            path=path,
            line=row.line,
            column=1,
            message=f"the page gives {row.name} the default {row.default or 'unset'}, the code {said} "
            f"({use.path}:{use.line})",
            help=f"write `{said}` in the Default column, or change the code",
            token=row.name,
            statement=normal(said),
        )


def compared_defaults(evidence: Evidence) -> Iterator[tuple[str, DocumentedName, Use, bool | None]]:
    """Each documented default with each different default of the code, and whether they agree.

    None: it cannot be told. Reads that give no default say nothing where another read gives one.
    """
    for path, row in evidence.rows:
        uses = evidence.uses.get(row.name)
        if row.removed or row.default is None or not uses:
            continue
        tested = any(use.tested for use in uses)
        seen: set[str | None] = set()
        for use in [use for use in uses if use.default is not None] or uses[:1]:
            said = literal(use.default)
            if said not in seen:
                seen.add(said)
                yield path, row, use, agreement(row.default, said, tested=tested)


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
            seen[path, line.name] += not line.commented
            if line.name in evidence.removed and line.name not in evidence.uses:
                message = f"{line.name} was removed"
                help = f"use {evidence.removed[line.name].replacement or 'its replacement'}"
            elif not evidence.is_read(line.name):
                message = f"no code reads {line.name}" + near(line.name, evidence.uses)
                help = "correct the name or delete the line"
            elif seen[path, line.name] > 1 and not line.commented:
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
