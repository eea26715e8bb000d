"""Four rooms for every check, and a finding for each that lacks a partner, in both directions."""

import pytest

from gatewright.core.audit import audit
from gatewright.core.errors import PolicyError
from gatewright.core.snapshot import DictSnapshot

MODULE = "scripts/gatewright/checks/"
PAGE = """# policy
## policy/loosened
```tree
```
```finds
policy/loosened policy/x.toml
```
```tree
```
```finds
```
"""
OWN = {
    f"{MODULE}__init__.py": "",
    f"{MODULE}_shared.py": "",
    f"{MODULE}policy.py": "",
    "docs/checks/policy.md": PAGE,
    "tests/gates/test_policy.py": "",
}
WORDS = {
    f"{MODULE}words.py": "",
    "policy/words.toml": 'where = ["src/**"]\n',
    "docs/checks/words.md": "",
    "tests/gates/test_words.py": "",
}

pytestmark = pytest.mark.usefixtures("words")


def found(files: dict[str, str], rule: str = "") -> list[tuple[str, str]]:
    findings, _ = audit(DictSnapshot(files))
    return [(f.rule, f.path) for f in findings if f.rule.startswith(rule)]


def test_a_foreign_repository_has_a_policy_alone() -> None:
    findings, summary = audit(DictSnapshot({"policy/words.toml": 'where = ["src/**"]\n', "src/a.py": ""}))
    assert findings == []
    assert summary == "policy alone: 2 valid policy files, 10 rules"


def test_a_foreign_policy_that_is_not_valid_is_refused() -> None:
    with pytest.raises(PolicyError, match="unknown field"):
        audit(DictSnapshot({"policy/words.toml": "where = []\nwherever = []\n"}))


def test_four_rooms_are_complete() -> None:
    assert found({**OWN, **WORDS}, "audit/missing-room") == []


@pytest.mark.parametrize("room", list(WORDS))
def test_pc_01_each_missing_room_is_named_whichever_it_is(room: str) -> None:
    files = {**OWN, **WORDS}
    del files[room]
    assert found(files, "audit/missing-room") == [("audit/missing-room", room)]


@pytest.mark.parametrize("room", [f"{MODULE}words.py", "policy/words.toml", "docs/checks/words.md"])
def test_pc_01_each_room_alone_misses_the_three_others(room: str) -> None:
    missing = {path for _, path in found({**OWN, room: WORDS[room]}, "audit/missing-room")}
    assert missing == set(WORDS) - {room}


def test_pc_01_the_finding_says_which_rooms_there_are() -> None:
    findings, _ = audit(DictSnapshot({**OWN, "docs/checks/words.md": ""}))
    finding = next(f for f in findings if f.path == "policy/words.toml")
    assert finding.message == "the check words has no policy/words.toml; it has docs/checks/words.md"
    assert finding.help == "add it, or remove the others"


def test_pc_04_each_rule_needs_a_section_with_a_bad_and_a_good_example() -> None:
    findings, _ = audit(DictSnapshot(OWN))
    messages = {f.message for f in findings if f.rule == "audit/manual"}
    assert "no section explains the rule policy/empty-glob" in messages
    assert not any("policy/loosened" in message for message in messages)
    for gone, kind in ((PAGE.split("```tree")[2], "good"), (PAGE.split("```tree")[1], "bad")):
        page = PAGE.replace("```tree" + gone, "")
        findings, _ = audit(DictSnapshot({**OWN, "docs/checks/policy.md": page}))
        assert f"the section of policy/loosened has no {kind} example" in {f.message for f in findings}


def test_pc_01_a_section_that_explains_no_rule_is_a_finding() -> None:
    findings, _ = audit(DictSnapshot({**OWN, "docs/checks/policy.md": PAGE + "\n## policy/nothing\n"}))
    assert "a section explains policy/nothing, which is no rule" in {f.message for f in findings}


def test_a_page_whose_blocks_have_no_partner_is_a_finding() -> None:
    findings, _ = audit(DictSnapshot({**OWN, "docs/checks/policy.md": "## policy/loosened\n\n```tree\n```\n"}))
    assert any("without `finds`" in f.message for f in findings)


def test_a_suite_without_a_subject_is_a_finding() -> None:
    suites = {f"tests/gates/test_{name}.py": "" for name in ("nothing", "core_git", "git", "readers", "readers_c")}
    modules = {"scripts/gatewright/core/git.py": "", "scripts/gatewright/readers/c.py": ""}
    files = {**OWN, **suites, **modules, "tests/gates/scenarios/test_anything.py": ""}
    assert found(files, "audit/orphan-suite") == [("audit/orphan-suite", "tests/gates/test_nothing.py")]
