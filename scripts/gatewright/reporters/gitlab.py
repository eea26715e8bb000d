"""`gitlab`: a Code Quality report, which GitLab compares with the target branch's own."""

from typing import Any

from gatewright.core.report import Report
from gatewright.reporters.escape import encodable, one_line, printable, to_json
from gatewright.reporters.fingerprint import Named, named


def render(report: Report) -> str:
    """An array of issues in order. Inherited findings are listed: GitLab does its own subtraction."""
    severity = {"new": "major", "inherited": "major" if report.absolute else "minor", "advisory": "info"}
    return to_json([_issue(item, severity[item.status]) for item in named(report)])


def _issue(item: Named, severity: str) -> dict[str, Any]:
    finding = item.finding
    return {
        "description": f"{printable(finding.message)} (help: {one_line(finding.help)})",
        "check_name": finding.rule,
        "fingerprint": item.fingerprint,
        "severity": severity,
        # Both members are mandatory: the whole file is its first line, the whole tree is ".".
        "location": {"path": encodable(finding.path) or ".", "lines": {"begin": max(finding.line, 1)}},
    }
