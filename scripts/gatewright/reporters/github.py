"""`github`: workflow commands that annotate a change, and the job summary. Needs no token."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from gatewright.core.finding import Finding
from gatewright.core.report import Report, ordered
from gatewright.reporters.escape import code_span, markdown, one_line, printable, printable_lines
from gatewright.reporters.terminal import read_environment
from gatewright.reporters.wording import by_bucket, examined, judged, ordered_exempted, place, tally

# What GitHub accepts from one step; more is refused as a whole.
SUMMARY_BYTES = 1 << 20


def render(report: Report) -> str:
    """One command per line. GitHub shows ten of each level per step, so what fails comes first."""
    return "".join(line + "\n" for line in _commands(report))


def _commands(report: Report) -> Iterator[str]:
    for finding in report.failing:
        yield _annotation("error", finding)
    for rule in report.unknown:
        yield _command("error", f"could not be judged: {printable(rule.reason)}", title=rule.id)
    for finding in ordered(report.advisory):
        yield _annotation("warning", finding)
    yield _command("notice", f"{report.verdict}: {tally(report)}. Judged: {judged(report)}.", title="gate")
    for item in ordered_exempted(report):
        text = f"allowed ({printable(item.owner)}): {printable(item.reason)}"
        yield _command("notice", text, title=item.finding.rule, file=item.path, line=item.line)
    for note in report.notes:
        yield _command("notice", printable(note), title="gate")


def _annotation(level: str, finding: Finding) -> str:
    text = printable(finding.message)
    if finding.help:
        text += "\nhelp: " + "\n".join(printable_lines(finding.help))
    return _command(level, text, title=finding.rule, file=finding.path, line=finding.line, col=finding.column)


def _command(level: str, text: str, **properties: str | int) -> str:
    """`::level name=value,...::text`; properties that are empty or 0 are left out."""
    given = ",".join(f"{name}={_property(str(value))}" for name, value in properties.items() if value)
    return f"::{level} {given}::{_data(text)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(printable(text)).replace(":", "%3A").replace(",", "%2C")


def append_job_summary(report: Report, env: Mapping[str, str]) -> str:
    """Append `summary` to the file that GITHUB_STEP_SUMMARY names, within what it may still hold.

    Returns a sentence about why it could not be written, else "": the verdict does not hang on it.
    """
    name = read_environment(env).step_summary
    if not name:
        return ""
    try:
        with Path(name).open("ab") as file:
            file.write(summary(report, SUMMARY_BYTES - file.tell()).encode())
    except OSError as error:
        return f"no job summary: cannot append to GITHUB_STEP_SUMMARY ({printable(name)}): {error.strerror}"
    return ""


def summary(report: Report, limit: int = SUMMARY_BYTES) -> str:
    """The report in Markdown, at most `limit` bytes of UTF-8, cut between lines with a remark."""
    lines = list(_summary_lines(report))
    remark = "\n{} more lines do not fit here; the job log has all findings.\n"
    room = limit - len(remark.format(len(lines)))
    kept: list[str] = []
    for number, line in enumerate(lines):
        room -= len(line.encode()) + 1
        if room < 0:
            kept.append(remark.format(len(lines) - number))
            break
        kept.append(line + "\n")
    text = "".join(kept)
    return text if len(text.encode()) <= limit else ""


def _summary_lines(report: Report) -> Iterator[str]:
    yield f"## Gatewright: {report.verdict}"
    yield ""
    yield markdown(f"{tally(report)}. Judged: {judged(report)}.")
    yield from _list("Could not be judged", [f"{code_span(r.id)} {markdown(r.reason)}" for r in report.unknown])
    yield from _list("Findings" if report.absolute else "New findings", _items(report.failing))
    yield from _list("Advisory", _items(ordered(report.advisory)))
    allowed = [
        f"{code_span(place(e.finding.path, e.finding.line))} {code_span(e.finding.rule)} "
        f"allowed at {code_span(place(e.path, e.line))} {markdown(f'({e.owner}): {e.reason}')}"
        for e in ordered_exempted(report)
    ]
    yield from _list("Exempted", allowed)
    yield from _list("Inherited", [f"{count} {markdown(name)}" for name, count in by_bucket(report.tolerated)])
    yield from _list("Notes", [markdown(note) for note in report.notes])
    yield from _list("Examined", [markdown(examined(check)) for check in report.checks if check.applies])
    yield ""
    yield markdown(f"gate {report.version}, digest {report.digest}, {report.seconds:.2f} s")
    yield ""


def _items(findings: list[Finding]) -> list[str]:
    return [
        f"{code_span(place(f.path, f.line, f.column))} {code_span(f.rule)} {markdown(f.message)}  \n"
        f"  help: {markdown(one_line(f.help))}"
        for f in findings
    ]


def _list(title: str, items: list[str]) -> Iterator[str]:
    if items:
        yield from ("", f"### {title} ({len(items)})", "")
        yield from (f"- {item}" for item in items)
