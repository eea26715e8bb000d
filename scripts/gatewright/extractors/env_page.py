"""What a documentation page says about environment variables."""

import re

from gatewright.extractors.env_documented import DocumentedName, PageFacts, PageOptions
from gatewright.readers.markdown import Cell, Table, inline_parts, parse, plain

NAME = re.compile(r"(?<![A-Za-z0-9_])[A-Z][A-Z0-9_]*(?![A-Za-z0-9_*<{])")
MENTION = re.compile(r"(?<![A-Za-z0-9_])[A-Z][A-Z0-9]*_[A-Z0-9_]*(?![A-Za-z0-9_*<{])")
# The spelling of a code span, and of an underscore, that HTML and escapes allow.
CODE_TAG = re.compile(r"<(?:code|tt|kbd)>([^<]*)</")
UNDERSCORE = re.compile(r"\\_|&#95;|&lowbar;")
IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def extract(data: bytes, options: PageOptions) -> list[PageFacts]:
    """The facts of one page; always one item, so that an empty page is seen to be empty."""
    page = parse(data)
    rows: list[DocumentedName] = []
    header: tuple[str, ...] = ()
    for table in page.tables:
        column = table.column(options.name_columns)
        if column is not None:
            header = header or tuple(plain(cell.text) for cell in table.header.cells)
            rows += _rows(table, column, options)
    return [
        PageFacts(
            rows=tuple(rows),
            mentions=_mentions(page.lines, {row.line for row in rows}) if options.mentions else (),
            header=header,
            unclosed=tuple(fence.line for fence in page.unclosed_fences),
            texts=tuple(text for text in options.texts if any(text in line for line in page.lines)),
        )
    ]


def _rows(table: Table, column: int, options: PageOptions) -> list[DocumentedName]:
    default_column = table.column(options.default_columns)
    replacement_column = table.column(options.replacement_columns)
    under = any(options.removed_heading.casefold() in heading.casefold() for heading in table.headings)
    removed = replacement_column is not None or (bool(options.removed_heading) and under)
    rows = []
    for row in table.rows:
        default = None if default_column is None else _text(row.cells, default_column)
        replacement = "" if replacement_column is None else _text(row.cells, replacement_column)
        if column < len(row.cells):
            names = cell_names(row.cells[column].text)
            rows += [DocumentedName(name, row.line, default, removed, replacement) for name in names]
    return rows


def _text(cells: tuple[Cell, ...], index: int) -> str:
    """A value cell: its code span where it leads the cell and is the only one, else all of it."""
    text = cells[index].text if index < len(cells) else ""
    code = [(part, offset) for kind, part, offset in inline_parts(text) if kind == "code"]
    return code[0][0].strip() if len(code) == 1 and text.startswith("`") else plain(text)


def cell_names(text: str) -> list[str]:
    """The variables that a cell names: from its code spans, or from its words when it has none.

    `ENG_` and `ENG_*` are prefixes, not names.
    """
    parts = list(inline_parts(text))
    code = [part for kind, part, _ in parts if kind == "code"]
    names: list[str] = []
    text = "".join(part for kind, part, _ in parts if kind == "text")
    code += [marked[1] for marked in CODE_TAG.finditer(text)]
    for part in code or [UNDERSCORE.sub("_", text)]:
        if code and IDENTIFIER.fullmatch(part):
            names.append(part)
        else:
            names += NAME.findall(part)
    return [name for name in dict.fromkeys(names) if not name.endswith("_")]


def _mentions(lines: tuple[str, ...], skipped: set[int]) -> tuple[DocumentedName, ...]:
    """The first mention of each name outside the rows that are read as such."""
    first: dict[str, int] = {}
    for number, line in enumerate(lines, start=1):
        if number not in skipped:
            for name in MENTION.findall(line):
                if not name.endswith("_"):
                    first.setdefault(name, number)
    return tuple(DocumentedName(name, line) for name, line in first.items())
