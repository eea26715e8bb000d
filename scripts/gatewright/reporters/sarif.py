"""`sarif`: SARIF 2.1.0 (errata 01), made for code scanning. Exempted findings are left out."""

import re
from typing import Any

from gatewright.core.report import Report, RuleReport
from gatewright.reporters.escape import path_uri, to_json
from gatewright.reporters.fingerprint import Named, named

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
# GitHub refuses a run with more results than this.
MAX_RESULTS = 25_000
_PLACEHOLDER = re.compile(r"\{(\d+)\}")
_LEVELS = {"new": "error", "advisory": "warning", "inherited": "note"}


def render(report: Report) -> str:
    """One log with one run; results by level, then in order, so that a cut-off keeps what fails."""
    levels = _LEVELS | ({"inherited": "error"} if report.absolute else {})
    urgency = ["error", "warning", "note"]
    items = sorted(named(report), key=lambda item: urgency.index(levels[item.status]))
    index = {rule.id: number for number, rule in enumerate(report.rules)}
    results = [_result(item, levels[item.status], index, bool(report.base)) for item in items[:MAX_RESULTS]]
    run = {
        "tool": {"driver": _driver(report)},
        "invocations": [_invocation(report, left_out=len(items) - len(results))],
        "originalUriBaseIds": {"%SRCROOT%": {"description": {"text": "The root of the judged tree."}}},
        "columnKind": "unicodeCodePoints",
        "results": results,
        "properties": {"judged": report.judged, "base": report.base, "verdict": report.verdict},
    }
    return to_json({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]})


def _driver(report: Report) -> dict[str, Any]:
    return {
        "name": "gatewright",
        "version": report.version,
        "properties": {"digest": report.digest},
        "rules": [_rule(check.name, rule) for check in report.checks for rule in check.rules],
    }


def _rule(check: str, rule: RuleReport) -> dict[str, Any]:
    more = f"Run `gate explain {rule.id}` for examples and remedies."
    return {
        "id": rule.id,
        "shortDescription": {"text": rule.summary},
        "fullDescription": {"text": rule.summary},
        "help": {"text": f"{rule.summary}\n{more.replace('`', '')}", "markdown": f"{rule.summary}\n\n{more}"},
        "defaultConfiguration": {"level": "warning" if rule.advisory else "error"},
        "properties": {"tags": [check]},
    }


def _result(item: Named, level: str, index: dict[str, int], has_base: bool) -> dict[str, Any]:
    finding = item.finding
    place: dict[str, Any] = {"artifactLocation": {"uri": path_uri(finding.path), "uriBaseId": "%SRCROOT%"}}
    if finding.line:
        column = {"startColumn": finding.column} if finding.column else {}
        place["region"] = {"startLine": finding.line, **column}
    result: dict[str, Any] = {
        "ruleId": finding.rule,
        "level": level,
        "message": {"text": _plain(f"{finding.message}\nHelp: {finding.help}" if finding.help else finding.message)},
        "locations": [{"physicalLocation": place}],
        # Not `primaryLocationLineHash`: GitHub's upload action warns of each value there that it did not compute.
        "partialFingerprints": {"gateSite/v1": item.fingerprint},
    }
    if finding.rule in index:
        result["ruleIndex"] = index[finding.rule]
    if has_base and item.status != "advisory":
        result["baselineState"] = "new" if item.status == "new" else "unchanged"
    return result


def _plain(text: str) -> str:
    """Plain text of a SARIF message, in which `{0}` would be a placeholder and `[a](b)` a link."""
    return _PLACEHOLDER.sub(r"{{\1}}", text).replace("](", "\\](")


def _invocation(report: Report, left_out: int) -> dict[str, Any]:
    notifications: list[dict[str, Any]] = [
        {
            "level": "error",
            "message": {"text": _plain(f"{rule.id} could not be judged: {rule.reason}")},
            "associatedRule": {"id": rule.id},
        }
        for rule in report.unknown
    ]
    notes = list(report.notes)
    if left_out:
        notes.append(f"{left_out} results left out: a run may hold {MAX_RESULTS}.")
    notifications += [{"level": "note", "message": {"text": _plain(note)}} for note in notes]
    return {
        "executionSuccessful": not report.unknown,
        "exitCode": report.exit_code,
        "toolExecutionNotifications": notifications,
    }
