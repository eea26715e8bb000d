"""`rdjson`: Reviewdog Diagnostic Format, for review comments on any forge."""

from typing import Any

from gatewright.core.finding import Finding
from gatewright.core.report import Report, ordered
from gatewright.reporters.escape import printable, to_json


def render(report: Report) -> str:
    """One DiagnosticResult: what fails first, then advice, then what the base already had."""
    diagnostics = [
        *(_diagnostic(f, "ERROR") for f in report.failing),
        *(_diagnostic(f, "WARNING") for f in ordered(report.advisory)),
        *(_diagnostic(f, "INFO") for f in report.tolerated),
    ]
    return to_json({"source": {"name": "gatewright"}, "diagnostics": diagnostics})


def _diagnostic(finding: Finding, severity: str) -> dict[str, Any]:
    location: dict[str, Any] = {"path": printable(finding.path) or "."}
    if finding.line:
        # No column: the format counts UTF-8 bytes, findings count code points.
        location["range"] = {"start": {"line": finding.line}}
    return {
        "message": f"{printable(finding.message)}\nhelp: {printable(finding.help)}",
        "location": location,
        "severity": severity,
        "code": {"value": finding.rule},
    }
