"""What a check reports, and how the findings of two trees are matched."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

import msgspec


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One defect at one place.

    `line` and `column` are 1-based (columns count code points); 0 means the whole file, and an
    empty `path` the whole tree. `token` and `statement` identify the site and hold no numbers of
    lines: a site keeps its identity when code above it moves.
    """

    rule: str
    path: str = ""
    line: int = 0
    column: int = 0
    message: str
    help: str
    token: str = ""
    statement: str = ""
    # A measuring finding (a cell, a row, a paragraph) is identified by `token` alone and is new
    # only where its token is new on that page or `measure` grew.
    measure: int | None = None
    # Sub-division of a rule that summaries count by, for example a vocabulary bucket.
    bucket: str = ""

    @property
    def site(self) -> tuple[str, str, str]:
        """Identity without the path, so that a move matches."""
        return (self.rule, self.token, self.statement)

    @property
    def order(self) -> tuple[str, int, int, str, str]:
        return (self.path, self.line, self.column, self.rule, self.token)


def subtract(
    head: Iterable[Finding], base: Iterable[Finding], *, moves: bool = True
) -> tuple[list[Finding], list[Finding]]:
    """Split the head's findings into (new, inherited).

    First match on (rule, path, token, statement), then (`moves`) what is left on the same without
    the path, so a moved site is not new. Multiplicity counts: a second equal site on a page is new.
    """
    head, base = sorted(head, key=_total_order), list(base)
    sizes = {(f.rule, f.path, f.token): f.measure for f in base if f.measure is not None}
    exact = Counter((f.path, f.site) for f in base if f.measure is None)
    new: list[Finding] = []
    inherited: list[Finding] = []
    left: list[Finding] = []
    for finding in head:
        if finding.measure is not None:
            before = sizes.get((finding.rule, finding.path, finding.token))
            grew = before is None or finding.measure > before
            (new if grew else inherited).append(finding)
        elif exact[finding.path, finding.site]:
            exact[finding.path, finding.site] -= 1
            inherited.append(finding)
        else:
            left.append(finding)
    moved: Counter[tuple[str, str, str]] = Counter()
    if moves:
        for (_, site), count in exact.items():
            moved[site] += count
    for finding in left:
        if moved[finding.site]:
            moved[finding.site] -= 1
            inherited.append(finding)
        else:
            new.append(finding)
    return sorted(new, key=_total_order), sorted(inherited, key=_total_order)


def _total_order(finding: Finding) -> tuple[Any, ...]:
    return (*finding.order, finding.statement, finding.message)
