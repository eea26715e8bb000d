"""Markdown, as blocks with line numbers: the only place that decides what a table, fence or heading is.

Block structure comes from markdown-it-py; inline markup is left as source text, so lengths are what
an author typed. Lines are separated by CRLF, LF or lone CR only, and are 1-based everywhere.
"""

import re
from collections.abc import Iterator
from functools import cache
from typing import Literal

import msgspec
from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.rules_block.table import getLine, table
from markdown_it.token import Token

NEWLINE = re.compile(r"\r\n|\r|\n")
BACKTICKS = re.compile(r"`+")
COMMENT = re.compile(r"<!--(.*?)(?:-->|\Z)", re.DOTALL)


class Heading(msgspec.Struct, frozen=True):
    line: int
    level: int
    text: str


class Cell(msgspec.Struct, frozen=True):
    """`source` is what stands between the pipes, trimmed; `text` has `\\|` resolved to `|`."""

    text: str
    source: str
    line: int


class Row(msgspec.Struct, frozen=True):
    """All cells that the row writes, also those beyond the header that a renderer drops."""

    line: int
    cells: tuple[Cell, ...]


class Table(msgspec.Struct, frozen=True):
    """`headings` are the texts of the headings above it, outermost first."""

    line: int
    header: Row
    rows: tuple[Row, ...]
    headings: tuple[str, ...]

    def column(self, titles: tuple[str, ...]) -> int | None:
        """Index of the first column whose title is one of `titles` (case and markup ignored)."""
        wanted = {title.casefold() for title in titles}
        for index, cell in enumerate(self.header.cells):
            if plain(cell.text).casefold() in wanted:
                return index
        return None

    @property
    def ragged(self) -> list[Row]:
        """Rows whose number of cells is not the header's: a cell is lost or empty."""
        return [row for row in self.rows if len(row.cells) != len(self.header.cells)]


class Fence(msgspec.Struct, frozen=True):
    """A fenced block; `content_line` is the line of its first content line."""

    line: int
    info: str
    content: str
    closed: bool

    @property
    def content_line(self) -> int:
        return self.line + 1


class Block(msgspec.Struct, frozen=True):
    """A paragraph or a comment: its source text, lines joined by one newline each."""

    line: int
    text: str


class Document(msgspec.Struct, frozen=True):
    lines: tuple[str, ...]
    front_matter: str
    headings: tuple[Heading, ...]
    tables: tuple[Table, ...]
    fences: tuple[Fence, ...]
    paragraphs: tuple[Block, ...]
    comments: tuple[Block, ...]

    @property
    def unclosed_fences(self) -> list[Fence]:
        """Fences that swallow the rest of their page or container."""
        return [fence for fence in self.fences if not fence.closed]


def parse(data: bytes | str) -> Document:
    """The blocks of one page. Never raises; bytes that are not UTF-8 become U+FFFD."""
    text = data.decode("utf-8", "replace") if isinstance(data, bytes) else data
    lines = NEWLINE.split(text.removeprefix("\ufeff"))
    body = front_matter_end(lines)
    source = "\n".join([*[""] * body, *lines[body:]])
    source = source if source.endswith("\n") else source + "\n"
    rows: dict[int, str] = {}
    return _Builder(rows).document(_parser().parse(source, {"rows": rows}), lines, body)


def front_matter_end(lines: list[str]) -> int:
    """Number of lines of a leading `---` or `+++` block, its delimiters included; 0 without one."""
    opener = lines[0].rstrip() if lines else ""
    if opener not in ("---", "+++"):
        return 0
    closers = ("---", "...") if opener == "---" else ("+++",)
    for index, line in enumerate(lines[1:], start=1):
        if line.rstrip() in closers:
            return index + 1
    return 0


def split_row(line: str) -> list[str]:
    """The cells of a table row as written: GFM splits at each pipe that has no backslash before it,
    inside code spans too."""
    cells = re.split(r"(?<!\\)\|", line.strip(" \t"))
    if cells and not cells[0]:
        cells.pop(0)
    if cells and not cells[-1]:
        cells.pop()
    return [cell.strip(" \t") for cell in cells]


def inline_parts(text: str) -> Iterator[tuple[Literal["text", "code"], str, int]]:
    """Split inline source into code spans and the text between them, with their offsets."""
    runs = [(match.start(), match.end()) for match in BACKTICKS.finditer(text)]
    closer = _closers(runs)
    position = index = 0
    while index < len(runs):
        start, end = runs[index]
        close = closer[index]
        if close is None or _escaped(text, start):
            index += 1
            continue
        if start > position:
            yield "text", text[position:start], position
        yield "code", _code_content(text[end : runs[close][0]]), end
        position = runs[close][1]
        index = close + 1
    if position < len(text):
        yield "text", text[position:], position


def plain(text: str) -> str:
    """Inline source without asterisks and code marks, for comparing titles and short values."""
    return "".join(part if kind == "code" else part.replace("*", "") for kind, part, _ in inline_parts(text)).strip()


def _closers(runs: list[tuple[int, int]]) -> list[int | None]:
    """For each backtick run, the next run of the same length."""
    following: dict[int, int] = {}
    closers: list[int | None] = [None] * len(runs)
    for index in range(len(runs) - 1, -1, -1):
        length = runs[index][1] - runs[index][0]
        closers[index] = following.get(length)
        following[length] = index
    return closers


def _escaped(text: str, position: int) -> bool:
    count = 0
    while position > count and text[position - count - 1] == "\\":
        count += 1
    return count % 2 == 1


def _code_content(code: str) -> str:
    code = code.replace("\n", " ")
    padded = code.startswith(" ") and code.endswith(" ") and code.strip(" ")
    return code[1:-1] if padded else code


def _recording_table(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """The table rule, noting each row's text without the marks of quotes and lists around it."""
    found = table(state, start, end, silent)
    if found and not silent:
        state.env["rows"].update((line, getLine(state, line)) for line in range(start, state.line))
    return found


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark").enable("table")
    parser.core.ruler.enableOnly(["normalize", "block"])
    parser.block.ruler.at("table", _recording_table, {"alt": ["paragraph", "reference"]})
    return parser


class _Builder:
    """Turns the token stream into blocks, keeping the stack of headings."""

    def __init__(self, rows: dict[int, str]) -> None:
        self.row_source = rows
        self.path: list[Heading] = []
        self.headings: list[Heading] = []
        self.tables: list[Table] = []
        self.fences: list[Fence] = []
        self.paragraphs: list[Block] = []
        self.comments: list[Block] = []

    def document(self, tokens: list[Token], lines: list[str], body: int) -> Document:
        for index, token in enumerate(tokens):
            if token.map is None:
                continue
            line = token.map[0] + 1
            if token.type == "heading_open":
                self.heading(Heading(line, int(token.tag[1:]), tokens[index + 1].content))
            elif token.type == "table_open":
                self.table(token.map[0], token.map[1])
            elif token.type == "fence":
                self.fence(token, line)
            elif token.type == "html_block":
                self.comment(token.content, line)
            elif token.type == "paragraph_open":
                content = tokens[index + 1].content
                self.paragraphs.append(Block(line, content))
                if "<!--" in content:
                    self.inline_comments(content, line)
        return Document(
            lines=tuple(lines),
            front_matter="\n".join(lines[1 : body - 1]) if body else "",
            headings=tuple(self.headings),
            tables=tuple(self.tables),
            fences=tuple(self.fences),
            paragraphs=tuple(self.paragraphs),
            comments=tuple(self.comments),
        )

    def heading(self, heading: Heading) -> None:
        while self.path and self.path[-1].level >= heading.level:
            self.path.pop()
        self.path.append(heading)
        self.headings.append(heading)

    def table(self, start: int, end: int) -> None:
        rows = [self.row(line) for line in range(start, end) if line != start + 1]
        self.tables.append(Table(start + 1, rows[0], tuple(rows[1:]), tuple(h.text for h in self.path)))

    def row(self, line: int) -> Row:
        cells = split_row(self.row_source[line])
        return Row(line + 1, tuple(Cell(cell.replace("\\|", "|"), cell, line + 1) for cell in cells))

    def fence(self, token: Token, line: int) -> None:
        assert token.map is not None
        closed = token.content.count("\n") == token.map[1] - token.map[0] - 2
        self.fences.append(Fence(line, token.info.strip(), token.content, closed))

    def comment(self, text: str, line: int, *, inline: bool = False) -> None:
        seen = 0
        for match in COMMENT.finditer(text):
            line += text.count("\n", seen, match.start())
            seen = match.start()
            if not inline or match[0].endswith("-->"):
                self.comments.append(Block(line, match[1].strip()))

    def inline_comments(self, text: str, line: int) -> None:
        seen = 0
        for kind, part, offset in inline_parts(text):
            line += text.count("\n", seen, offset)
            seen = offset
            if kind == "text":
                self.comment(part, line, inline=True)
