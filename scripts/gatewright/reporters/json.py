"""`json`: the whole report as data, for programs of one's own."""

from typing import Any

import msgspec

from gatewright.core.finding import Finding
from gatewright.core.report import Exempted, Report, ordered
from gatewright.reporters.escape import path_uri, to_json
from gatewright.reporters.wording import ordered_exempted

# Raised when a key changes its meaning or goes away; new keys do not raise it.
FORMAT = 1


def render(report: Report) -> str:
    """One object. `path` is for reading; `uri` holds the path's bytes, percent-encoded."""

    data = {
        "format": FORMAT,
        "version": report.version,
        "digest": report.digest,
        "verdict": report.verdict,
        "exit_code": report.exit_code,
        "judged": report.judged,
        "base": report.base or None,
        "absolute": report.absolute,
        "seconds": round(report.seconds, 3),
        "notes": report.notes,
        "checks": msgspec.to_builtins(report.checks),
        "new": [_finding(f) for f in ordered(report.new)],
        "inherited": [_finding(f) for f in ordered(report.inherited)],
        "advisory": [_finding(f) for f in ordered(report.advisory)],
        "exempted": [_exempted(e) for e in ordered_exempted(report)],
    }
    return to_json(data)


def _finding(finding: Finding) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.to_builtins(finding)
    return {**fields, "uri": path_uri(finding.path)}


def _exempted(exempted: Exempted) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.to_builtins(exempted)
    return {**fields, "finding": _finding(exempted.finding), "uri": path_uri(exempted.path)}
