"""What a documentation page says about environment variables."""

import re

import msgspec

from gatewright.readers.markdown import Cell, Table, inline_parts, parse, plain

NAME = re.compile(r"(?<![A-Za-z0-9_])[A-Z][A-Z0-9_]*(?![A-Za-z0-9_*<{])")
MENTION = re.compile(r"(?<![A-Za-z0-9_])[A-Z][A-Z0-9]*_[A-Z0-9_]*(?![A-Za-z0-9_*<{])")
IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class PageOptions(msgspec.Struct, frozen=True):
    """Column titles of each kind, the word that marks tables of removed names, texts to look for."""

    name_columns: tuple[str, ...]
    default_columns: tuple[str, ...]
    replacement_columns: tuple[str, ...]
    removed_heading: str
    mentions: bool = False
    texts: tuple[str, ...] = ()


class DocumentedName(msgspec.Struct, frozen=True, array_like=True):
    """One name in one table row. `default` is None in a table without such a column."""

    name: str
    line: int
    default: str | None = None
    removed: bool = False
    replacement: str = ""


class PageFacts(msgspec.Struct, frozen=True, array_like=True):
    """`tables` counts the tables that have a column of names; `texts` are those options found."""

    rows: tuple[DocumentedName, ...] = ()
    mentions: tuple[DocumentedName, ...] = ()
    tables: int = 0
    unclosed: tuple[int, ...] = ()
    texts: tuple[str, ...] = ()


def extract(data: bytes, options: PageOptions) -> list[PageFacts]:
    """The facts of one page; always one item, so that an empty page is seen to be empty."""
    page = parse(data)
    rows: list[DocumentedName] = []
    tables = 0
    for table in page.tables:
        column = table.column(options.name_columns)
        if column is not None:
            tables += 1
            rows += _rows(table, column, options)
    removed = {row.line for row in rows if row.removed}
    return [
        PageFacts(
            rows=tuple(rows),
            mentions=_mentions(page.lines, removed) if options.mentions else (),
            tables=tables,
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
    return plain(cells[index].text) if index < len(cells) else ""


def cell_names(text: str) -> list[str]:
    """The variables that a cell names: from its code spans, or from its words when it has none.

    `ENG_` and `ENG_*` are prefixes, not names.
    """
    parts = list(inline_parts(text))
    code = [part for kind, part, _ in parts if kind == "code"]
    names: list[str] = []
    for part in code or [part for _, part, _ in parts]:
        if code and IDENTIFIER.fullmatch(part):
            names.append(part)
        else:
            names += NAME.findall(part)
    return [name for name in dict.fromkeys(names) if not name.endswith("_")]


def _mentions(lines: tuple[str, ...], skipped: set[int]) -> tuple[DocumentedName, ...]:
    first: dict[str, int] = {}
    for number, line in enumerate(lines, start=1):
        if number not in skipped:
            for name in MENTION.findall(line):
                if not name.endswith("_"):
                    first.setdefault(name, number)
    return tuple(DocumentedName(name, line) for name, line in first.items())


class RegionOptions(msgspec.Struct, frozen=True):
    """The two lines between which a page includes a source file; both empty: all of it."""

    begin: str = ""
    end: str = ""


class Region(msgspec.Struct, frozen=True, array_like=True):
    """Lines of a source file, exclusive of the markers; both 0 when a marker is missing."""

    first: int = 0
    last: int = 0


def region(data: bytes, options: RegionOptions) -> list[Region]:
    """Where the included part of a file lies."""
    lines = re.split(r"\r\n|\r|\n", data.decode("utf-8", "replace"))
    if not options.begin and not options.end:
        return [Region(1, len(lines))]
    begin = next((i for i, line in enumerate(lines, start=1) if options.begin in line), 0)
    end = next((i for i, line in enumerate(lines, start=1) if i > begin and options.end in line), 0)
    return [Region(begin + 1, end - 1) if begin and end else Region()]
