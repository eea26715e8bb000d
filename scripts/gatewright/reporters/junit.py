"""`junit`: one test case per rule, so that a rule which ran and passed is visible."""

from collections import defaultdict
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from gatewright.core.finding import Finding
from gatewright.core.report import CheckReport, Report, RuleReport, ordered
from gatewright.reporters.escape import one_line, printable, xml_text
from gatewright.reporters.wording import place


def render(report: Report) -> str:
    """One suite per check, in the report's order. FAIL is a failure, UNKNOWN an error, N/A skipped."""
    failing = _by_rule(report.failing)
    noted = _by_rule(ordered(report.tolerated + report.advisory))
    checks = [*report.checks, *_unlisted(report, failing)]
    root = Element("testsuites", name="gatewright", time=f"{report.seconds:.3f}")
    for check in checks:
        suite = SubElement(root, "testsuite", name=xml_text(check.name), tests=str(len(check.rules)))
        for rule in check.rules:
            _case(suite, check.name, rule, failing[rule.id], noted[rule.id])
        for tag, attribute in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
            suite.set(attribute, str(len(suite.findall(f"testcase/{tag}"))))
    indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(root, encoding="unicode") + "\n"


def _by_rule(findings: list[Finding]) -> defaultdict[str, list[Finding]]:
    groups: defaultdict[str, list[Finding]] = defaultdict(list)
    for finding in findings:
        groups[finding.rule].append(finding)
    return groups


def _unlisted(report: Report, failing: dict[str, list[Finding]]) -> list[CheckReport]:
    """Suites for failing rules that belong to no check of the report, so that none goes missing."""
    known = {rule.id for rule in report.rules}
    return [
        CheckReport(name=rule.partition("/")[0], rules=[RuleReport(id=rule, summary="", verdict="FAIL")])
        for rule in sorted(failing.keys() - known)
    ]


def _case(suite: Element, check: str, rule: RuleReport, failing: list[Finding], noted: list[Finding]) -> None:
    case = SubElement(suite, "testcase", classname=xml_text(check), name=xml_text(rule.id))
    if failing or rule.verdict == "FAIL":
        count = f"{len(failing)} finding" + "s" * (len(failing) != 1)
        failure = SubElement(case, "failure", type=xml_text(rule.id), message=count)
        failure.text = xml_text(_listing(failing) + _remedies(failing))
    elif rule.verdict == "UNKNOWN":
        SubElement(case, "error", type="UNKNOWN", message=xml_text(printable(rule.reason)))
    elif rule.verdict == "N/A":
        SubElement(case, "skipped", message=xml_text(printable(rule.reason)))
    lines = f"{rule.examined} examined\n" + _listing(noted)
    SubElement(case, "system-out").text = xml_text(lines)


def _listing(findings: list[Finding]) -> str:
    return "".join(f"{place(f.path, f.line, f.column)}: {printable(f.message)}\n" for f in findings)


def _remedies(findings: list[Finding]) -> str:
    return "".join(f"help: {help}\n" for help in dict.fromkeys(one_line(f.help) for f in findings))
