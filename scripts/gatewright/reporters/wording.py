"""Sentences that the formats for people share."""

from collections import Counter
from collections.abc import Iterable

from gatewright.core.finding import Finding
from gatewright.core.report import CheckReport, Exempted, Report, rank
from gatewright.reporters.escape import printable


def plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def place(path: str, line: int, column: int = 0) -> str:
    """`path:line:column` as far as known; the whole tree is `(tree)`."""
    # A line that begins with `::` is a command to the log of a continuous integration system.
    parts = ["./" * path.startswith("::") + printable(path) or "(tree)"]
    if line:
        parts.append(str(line))
        if column:
            parts.append(str(column))
    return ":".join(parts)


def tally(report: Report) -> str:
    """The counts behind the verdict; zeros are left out, except of what fails."""
    parts = [plural(len(report.failing), "new finding" if report.base and not report.absolute else "finding")]
    others = {
        "inherited": len(report.tolerated),
        "advisory": len(report.advisory),
        "exempted": len(report.exempted),
    }
    parts += [f"{count} {name}" for name, count in others.items() if count]
    if report.unknown:
        parts.append(plural(len(report.unknown), "rule") + " not judged")
    if not report.rules:
        parts.append("no rule was run")
    return ", ".join(parts)


def judged(report: Report) -> str:
    """Which tree was judged, and what was subtracted."""
    tree = printable(report.judged)
    if report.absolute:
        return f"{tree}, absolute: nothing is subtracted"
    return f"{tree} against {printable(report.base)}" if report.base else f"{tree}, without a base"


def examined(check: CheckReport) -> str:
    count = max((rule.examined for rule in check.rules), default=0)
    return printable(f"{check.name}: {', '.join(check.examined) or count}")


def by_bucket(findings: Iterable[Finding]) -> list[tuple[str, int]]:
    """(rule and bucket, count), sorted by name."""
    counts = Counter(f"{f.rule} ({f.bucket})" if f.bucket else f.rule for f in findings)
    return sorted((printable(name), count) for name, count in counts.items())


def ordered_exempted(report: Report) -> list[Exempted]:
    return sorted(report.exempted, key=lambda e: (rank(e.finding), e.path, e.line, e.owner, e.reason))
