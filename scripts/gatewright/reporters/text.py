"""`text`: for people at a terminal. Findings first, the verdict in the last line."""

import textwrap
from collections.abc import Iterator

from gatewright.core.finding import Finding
from gatewright.core.report import Exempted, Report, ordered
from gatewright.reporters.escape import printable, printable_lines
from gatewright.reporters.wording import by_bucket, examined, judged, ordered_exempted, place, plural, tally

WIDTH = 110
_LABEL = 10
_FEW = 5
_CODES = {"bold": "1", "dim": "2", "red": "1;31", "green": "1;32", "yellow": "33", "cyan": "36"}
_VERDICT_COLOURS = {"PASS": "green", "FAIL": "red", "UNKNOWN": "yellow"}


def render(report: Report, *, colour: bool = False, show_inherited: bool = False) -> str:
    """The report as lines; `show_inherited` lists inherited findings instead of counting them."""
    paint = _Paint(colour)
    lines: list[str] = []
    for section in (
        _findings(report.failing, "red", paint),
        _exemptions(ordered_exempted(report), paint),
        _inherited(report, show_inherited, paint),
        _advisory(report, show_inherited, paint),
    ):
        block = list(section)
        lines += [*block, ""] if block else []
    return "\n".join([*lines, *_summary(report, paint)]) + "\n"


class _Paint:
    def __init__(self, colour: bool) -> None:
        self.colour = colour

    def __call__(self, style: str, text: str) -> str:
        return f"\x1b[{_CODES[style]}m{text}\x1b[0m" if self.colour else text


def _findings(findings: list[Finding], style: str, paint: _Paint) -> Iterator[str]:
    """One line per finding, and its remedy where it is not the one just given."""
    given = ("", "")
    for finding in findings:
        where = paint("bold", place(finding.path, finding.line, finding.column))
        yield f"{where}: {paint(style, printable(finding.rule))} {printable(finding.message)}"
        if finding.help and given != (finding.rule, finding.help):
            first, *more = printable_lines(finding.help)
            yield f"  {paint('cyan', 'help')}: {first}"
            yield from (f"        {line}" for line in more)
        given = (finding.rule, finding.help)


def _exemptions(exempted: list[Exempted], paint: _Paint) -> Iterator[str]:
    if exempted:
        yield paint("bold", f"exempted ({len(exempted)})")
    for item in exempted:
        finding = item.finding
        where = place(finding.path, finding.line, finding.column)
        by = f"allowed at {place(item.path, item.line)} ({printable(item.owner)}): {printable(item.reason)}"
        yield f"  {where}: {printable(finding.rule)} {by}"


def _inherited(report: Report, show: bool, paint: _Paint) -> Iterator[str]:
    findings = report.tolerated
    if findings:
        hint = "" if show else "; list them with --show-inherited"
        yield paint("bold", f"inherited ({len(findings)}): the base has them too{hint}")
        yield from _listed(findings, "dim", paint) if show else _counted(findings)


def _advisory(report: Report, show: bool, paint: _Paint) -> Iterator[str]:
    """A few are listed on every run, more of them only when asked for."""
    findings = ordered(report.advisory)
    if findings:
        show = show or len(findings) <= _FEW
        hint = "" if show else "; list them with --show-inherited"
        yield paint("bold", f"advisory ({len(findings)}): never fails a run{hint}")
        yield from _listed(findings, "yellow", paint) if show else _counted(findings)


def _listed(findings: list[Finding], style: str, paint: _Paint) -> Iterator[str]:
    return ("  " + line for line in _findings(findings, style, paint))


def _counted(findings: list[Finding]) -> Iterator[str]:
    counts = by_bucket(findings)
    width = max(len(str(count)) for _, count in counts)
    return (f"  {count:>{width}}  {name}" for name, count in counts)


def _summary(report: Report, paint: _Paint) -> Iterator[str]:
    checks = [check for check in report.checks if check.applies]
    rows = [("judged", judged(report))]
    rows.append(("examined", "; ".join(map(examined, checks)) or "nothing"))
    rows += [("n/a", f"{', '.join(rules)}: {reason}") for reason, rules in _not_applicable(report).items()]
    rows += [("note", printable(note)) for note in report.notes]
    rows.append(("gate", f"{printable(report.version)}, digest {printable(report.digest)}"))
    for label, text in rows:
        yield _row(label, text)
    for rule in report.unknown:
        yield paint("yellow", "unknown".ljust(_LABEL)) + f"{printable(rule.id)}: {printable(rule.reason)}"
    verdict = paint(_VERDICT_COLOURS[report.verdict], report.verdict.ljust(_LABEL))
    yield f"{verdict}{tally(report)} in {plural(len(checks), 'check')}, {report.seconds:.2f} s"


def _not_applicable(report: Report) -> dict[str, list[str]]:
    """Rules by the reason that they share."""
    reasons: dict[str, list[str]] = {}
    for rule in report.rules:
        if rule.verdict == "N/A":
            reasons.setdefault(printable(rule.reason), []).append(printable(rule.id))
    return reasons


def _row(label: str, text: str) -> str:
    return textwrap.fill(
        text,
        WIDTH,
        initial_indent=label.ljust(_LABEL),
        subsequent_indent=" " * _LABEL,
        break_long_words=False,
        break_on_hyphens=False,
    )
