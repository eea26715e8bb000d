"""Every example of every page of docs/checks/ is executed; the grammar of the pages is held to its word."""

from pathlib import Path

import pytest

from gatewright.core.contract import load_check
from gatewright.core.errors import PolicyError
from gatewright.core.manual import Case, cases, found, judge_case, page_path, sections, split_files

PAGES = sorted((Path(__file__).resolve().parents[2] / "docs" / "checks").glob("*.md"))


def examples() -> list[tuple[str, Case]]:
    return [(page.stem, case) for page in PAGES for case in cases(page.read_text("utf-8"), page.name)]


@pytest.mark.parametrize(("check", "case"), examples(), ids=lambda value: getattr(value, "rule", value))
def test_the_example_finds_what_its_page_says(check: str, case: Case) -> None:
    assert found(judge_case(case, check), check) == case.finds, f"{case.page}:{case.line}"


def test_there_are_pages_and_each_has_examples() -> None:
    assert PAGES
    assert {page.stem for page in PAGES} == {check for check, _ in examples()}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_each_rule_has_an_example_of_its_own_that_is_bad(page: Path) -> None:
    """An example that finds nothing proves nothing alone. Where no tree can show a rule, a suite does."""
    text = page.read_text("utf-8")
    elsewhere = {rule.id for rule in load_check(page.stem).rules if rule.shown_by}
    for rule in {section.rule for section in sections(text)} - {""} - elsewhere:
        own = [case for case in cases(text) if case.rule == rule]
        assert any(line.split()[0] == rule for case in own for line in case.finds), rule


PAGE = """# words

```policy
where = ["src/**"]
```

## `words/forbidden`

Why.

```tree
-- src/a.txt --
BAD
-- src/b.txt --
two
BAD
```

```finds
words/forbidden src/b.txt:2
words/forbidden src/a.txt:1
```

```policy
where = ["src/a.txt"]
forbidden = ["two"]
```

```base
-- src/a.txt --
two
```

```head
-- src/a.txt --
two
two more
```

```finds
words/forbidden src/a.txt:2
```

### A heading that names no rule

```tree
-- src/a.txt --
fine
```

```finds
```

## words/long

```text
-- not a tree --
```
"""


@pytest.mark.usefixtures("words")
def test_the_grammar() -> None:
    first, second, third = cases(PAGE, "words.md")
    assert [case.rule for case in (first, second, third)] == ["words/forbidden"] * 3
    assert first.head == {"src/a.txt": "BAD\n", "src/b.txt": "two\nBAD\n"}
    assert first.finds == ["words/forbidden src/a.txt:1", "words/forbidden src/b.txt:2"]
    assert second.base == {"src/a.txt": "two\n"}
    assert third.policy == first.policy == 'where = ["src/**"]\n'
    assert third.finds == []
    for case in (first, second, third):
        assert found(judge_case(case, "words"), "words") == case.finds


@pytest.mark.usefixtures("words")
def test_a_page_that_is_wrong_does_not_pass() -> None:
    first, second, third = cases(PAGE.replace("a.txt:1", "a.txt:3"), "words.md")
    assert found(judge_case(first, "words"), "words") != first.finds
    bad = Case("", 1, "words/forbidden", third.policy, {"src/a.txt": "BAD\n"}, None, third.finds)
    assert found(judge_case(bad, "words"), "words") != bad.finds
    assert second


@pytest.mark.parametrize(
    ("page", "message"),
    [
        ("## words/long\n\n```finds\n```\n", "page.md:3: a `finds` block without a tree before it"),
        ("## words/long\n\n```tree\n-- a --\n```\n", "page.md:6: a `tree` block without `finds`"),
        ("## words/a\n\n```tree\n```\n\n## words/b\n\n```finds\n```\n", "page.md:8: a `tree` block without `finds`"),
        ("## words/a\n\n```base\n```\n\n```finds\n```\n", "page.md:6: a `finds` block without a tree before it"),
    ],
)
def test_blocks_without_a_partner_are_refused(page: str, message: str) -> None:
    with pytest.raises(PolicyError) as caught:
        cases(page, "page.md")
    assert caught.value.message == message


def test_files_of_a_block() -> None:
    assert split_files("-- a b --\none\n\n-- c --\n") == {"a b": "one\n\n", "c": ""}
    assert split_files("text before\n") == {}


def test_sections_are_what_explain_prints() -> None:
    whole = sections(PAGE)
    assert [section.rule for section in whole] == ["", "words/forbidden", "words/long"]
    assert whole[1].text.startswith("## `words/forbidden`\n\nWhy.")
    assert "A heading that names no rule" in whole[1].text
    assert "\n".join(section.text for section in whole) == PAGE


def test_a_page_lies_beside_the_sources_or_in_the_package() -> None:
    assert page_path("policy") in PAGES
