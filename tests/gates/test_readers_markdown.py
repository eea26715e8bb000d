"""The Markdown reader: what counts as a table, a heading, a fence, and on which line."""

import pytest
from gates.timing import cpu_seconds
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from gatewright.readers.markdown import inline_parts, parse, plain, split_row

TABLE = "| A | B |\n|---|---|\n| x | y |\n"


def headings(text: str) -> list[tuple[int, str]]:
    return [(heading.line, heading.text) for heading in parse(text).headings]


def cells(text: str) -> list[list[str]]:
    return [[cell.text for cell in row.cells] for table in parse(text).tables for row in table.rows]


def test_dt_01_a_raw_pipe_splits_even_inside_a_code_span() -> None:
    (table,) = parse("| A | B | C |\n|---|---|---|\n| a | `x|y` | b |\n| a | b | c |\n| a |\n").tables
    assert [cell.source for cell in table.rows[0].cells] == ["a", "`x", "y`", "b"]
    assert [(row.line, len(row.cells)) for row in table.ragged] == [(3, 4), (5, 1)]


def test_dt_02_an_escaped_pipe_is_one_cell_with_text_and_source() -> None:
    (table,) = parse("| A | B | C |\n|---|---|---|\n| a | `x\\|y` | b |\n").tables
    assert [cell.text for cell in table.rows[0].cells] == ["a", "`x|y`", "b"]
    assert [cell.source for cell in table.rows[0].cells] == ["a", "`x\\|y`", "b"]
    assert not table.ragged


@pytest.mark.parametrize("text", ["| A | B |\n|---|\n| x | y |\n", "ON | OFF | SUSPEND\n", "| A | B |\n\n|---|---|\n"])
def test_dt_04_pipes_without_a_matching_delimiter_row_are_no_table(text: str) -> None:
    assert parse(text).tables == ()
    assert parse(text).paragraphs


@pytest.mark.parametrize(
    "text",
    [f"<!--\n{TABLE}-->\n", f"```\n{TABLE}```\n", "".join(f"    {line}\n" for line in TABLE.splitlines())],
    ids=["comment", "fence", "indented code"],
)
def test_dt_05_table_text_that_is_not_rendered_is_no_table(text: str) -> None:
    assert parse(text).tables == ()
    assert len(parse(TABLE + "\n" + text).tables) == 1


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_dt_07_every_newline_convention_reads_the_same(newline: str) -> None:
    page = parse(f"## H\n\n{TABLE}".replace("\n", newline).encode())
    assert [(h.line, h.text) for h in page.headings] == [(1, "H")]
    (table,) = page.tables
    assert (table.line, table.rows[0].line) == (3, 5)
    assert [cell.source for cell in table.rows[0].cells] == ["x", "y"]
    assert page.lines[2] == "| A | B |"


def test_dt_08_exactly_one_leading_bom_is_dropped() -> None:
    assert headings("\ufeff# Title\n") == [(1, "Title")]
    assert len(parse("\ufeff" + TABLE).tables) == 1
    assert headings("\ufeff\ufeff# Title\n") == []


@pytest.mark.parametrize(
    "fence",
    ["````\n```\n# no\n```\n````\n", "~~~\n```\n# no\n~~~\n", "```\n# no\n    ```\n# no\n```\n"],
    ids=["longer fence", "tilde fence", "indented closer"],
)
def test_dt_10_fences_hide_headings_and_the_next_real_one_counts(fence: str) -> None:
    page = parse(fence + "\n# yes\n")
    assert [heading.text for heading in page.headings] == ["yes"]
    assert page.unclosed_fences == []
    assert page.fences[0].content.count("# no") >= 1


def test_dt_11_an_unclosed_fence_is_seen_with_its_line() -> None:
    page = parse("# One\n\n```python\n" + "".join(f"## {i}\n" for i in range(12)))
    assert [fence.line for fence in page.unclosed_fences] == [3]
    assert [heading.text for heading in page.headings] == ["One"]
    assert parse("```\na\n```").unclosed_fences == []
    assert [fence.line for fence in parse("> ```\n> a\n\nafter\n").unclosed_fences] == [1]


def test_dt_13_heading_forms() -> None:
    forms = ["##NoSpace", "## Title ##", "##", "####### seven", "   ## three", "    ## four", "##\u00a0NBSP"]
    assert headings("\n\n".join(forms) + "\n") == [(3, "Title"), (5, ""), (9, "three")]
    assert headings("Set\n===\n\nExt\n---\n") == [(1, "Set"), (4, "Ext")]


@pytest.mark.parametrize(
    ("cell", "length"),
    [("測" * 100, 100), ("👨\u200d👩\u200d👧", 5), ("e\u0301", 2)],
    ids=["cjk", "emoji", "combining"],
)
def test_dt_14_lengths_are_code_points(cell: str, length: int) -> None:
    (table,) = parse(f"| A |\n|---|\n| {cell} |\n".encode()).tables
    assert len(table.rows[0].cells[0].source) == length


def test_dt_16_a_soft_wrapped_paragraph_is_one_block_with_a_separator_per_wrap() -> None:
    page = parse("\n".join(["x" * 100] * 8) + "\n")
    assert [len(paragraph.text) for paragraph in page.paragraphs] == [8 * 100 + 7]


def test_dt_17_unicode_separators_do_not_shift_lines() -> None:
    page = parse("## a\u2028b\n\n## c\x0bd\n\n## e\x85f\n")
    assert [heading.line for heading in page.headings] == [1, 3, 5]
    assert len(page.lines) == 6


def test_front_matter_is_not_content_and_keeps_line_numbers() -> None:
    page = parse("---\ntitle: x\n# not a heading\n---\n# Real\n")
    assert page.front_matter == "title: x\n# not a heading"
    assert [(h.line, h.text) for h in page.headings] == [(5, "Real")]
    assert parse("---\n# Never closed\n").headings[0].text == "Never closed"
    assert parse("+++\na = 1\n+++\n# T\n").front_matter == "a = 1"


def test_tables_know_the_headings_above_them() -> None:
    page = parse(f"# Top\n\n## One\n\n{TABLE}\n## Two\n\n### Deep\n\n{TABLE}\n## Three\n\n{TABLE}")
    assert [table.headings for table in page.tables] == [("Top", "One"), ("Top", "Two", "Deep"), ("Top", "Three")]


def test_tables_in_quotes_and_lists_are_read_without_their_marks() -> None:
    assert cells("> | A | B |\n> |---|---|\n> | x | y |\n") == [["x", "y"]]
    assert cells("- | A | B |\n  |---|---|\n  | x | y |\n") == [["x", "y"]]


def test_columns_are_found_by_title_whatever_the_case_and_markup() -> None:
    (table,) = parse("| **Variable** | `Default` |\n|---|---|\n").tables
    assert (table.column(("variable",)), table.column(("nothing", "DEFAULT")), table.column(("x",))) == (0, 1, None)


def test_comments_in_blocks_and_lines_but_not_in_code() -> None:
    page = parse(
        "<!-- one\ntwo -->\n\ntext `<!-- no -->` and\nmore <!-- three --> <!-- open\n\n```\n<!-- no -->\n```\n"
    )
    assert [(comment.line, comment.text) for comment in page.comments] == [(1, "one\ntwo"), (5, "three")]


def test_inline_parts_follow_the_backtick_rules() -> None:
    assert list(inline_parts("a `b|c` ``x`y`` \\`z`")) == [
        ("text", "a ", 0), ("code", "b|c", 3), ("text", " ", 7), ("code", "x`y", 10), ("text", " \\`z`", 15),
    ]  # fmt: skip
    assert plain("**`ENGINE_X`**") == "ENGINE_X"


@given(st.lists(st.text(alphabet="ab|\\` ", max_size=12), min_size=1, max_size=4))
def test_rows_split_as_the_parser_splits_them(written: list[str]) -> None:
    line = "|" + "|".join(written) + "|x|"
    count = len(split_row(line))
    text = "|" + "h|" * count + "\n|" + "-|" * count + "\n" + line + "\n"
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    inline = [t.content for t in tokens if t.type == "inline" and t.map and t.map[0] == 2]
    assert [cell.replace("\\|", "|") for cell in split_row(line)] == inline


@given(st.binary(max_size=200) | st.text(alphabet="|-:#>`~<!\n\r \ufeff*1.a", max_size=80).map(str.encode))
@settings(max_examples=150)
def test_any_bytes_give_a_document_with_lines_in_range(data: bytes) -> None:
    page = parse(data)
    for block in [*page.headings, *page.tables, *page.fences, *page.paragraphs, *page.comments]:
        assert 1 <= block.line <= len(page.lines)


def test_time_grows_with_size_only() -> None:
    @cpu_seconds
    def seconds(rows: int) -> None:
        text = "# T\n\n" + "| a | b |\n|---|---|\n" + "| `x` | y\\|z |\n" * rows + "\n" + "`<!--` <!-- c -->\n" * rows
        assert len(parse(text).comments) == rows

    seconds(200)
    assert seconds(4000) < 12 * max(seconds(800), 0.01)
