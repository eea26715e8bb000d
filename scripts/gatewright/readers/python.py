"""Python source: decoding, lines and columns as the parser counts them, and a lexer that keeps positions.

The lexer is the cheap stage before `ast`: it tells which places cannot be code. It may take text for
code, never code for text.
"""

import ast
import re
import sys
import warnings
from bisect import bisect_left, bisect_right
from codecs import BOM_UTF8, lookup
from collections.abc import Sequence
from functools import lru_cache

import msgspec

# The only line ends that Python's tokenizer knows; str.splitlines has more.
LINE_BREAK = re.compile(r"\r\n|\r|\n")
_LINE_BREAK_BYTES = re.compile(rb"\r\n|\r|\n")

# PEP 263: in a comment on line 1, or on line 2 when line 1 is blank or a comment.
_COOKIE = re.compile(
    rb"(?:[ \t\f]*(?:#[^\r\n]*)?(?:\r\n|\r|\n))?[ \t\f]*#[^\r\n]*?coding[:=][ \t]*([-\w.]+)",
)
_ASCII_BASED = frozenset({"utf-8", "ascii"})

# A comment, or a string without its prefix; one that is not closed ends with its line or with the file.
_TOKEN = (
    r"#[^\r\n]*"
    r"|'''[^'\\]*(?:(?:\\.|'(?!''))[^'\\]*)*(?:'''|\\?\Z)"
    r'|"""[^"\\]*(?:(?:\\.|"(?!""))[^"\\]*)*(?:"""|\\?\Z)'
    r"|'[^'\\\r\n]*(?:\\(?:\r\n|.)[^'\\\r\n]*)*'?"
    r'|"[^"\\\r\n]*(?:\\(?:\r\n|.)[^"\\\r\n]*)*"?'
)
TOKEN = re.compile(_TOKEN, re.DOTALL)
_TOKEN_BYTES = re.compile(_TOKEN.encode(), re.DOTALL)
_PREFIX = re.compile(r"[rRbBuUfF]{0,2}\Z")
_PREFIX_BYTES = re.compile(rb"[rRbBuUfF]{0,2}\Z")
# White space in a string, a joined line apart.
_BLANK = re.compile(rb"[ \t]|(?<!\\)(?:\r|(?<!\r)\n)")
_DEFINITION = re.compile(rb"\n( *)(?:(?:async +)?def|(class)) +[^\s(:\[]+")
_AFTER_STATEMENT = re.compile(rb"[ \t\f]*(?:#|\r|\n|\Z)")
# A docstring further to the right is taken for code, which keeps the look back short.
_MAX_INDENT = 200
_NESTED_QUOTES = sys.version_info >= (3, 12)


class Source(msgspec.Struct, frozen=True):
    """One decoded file. `tree` is None when it does not parse; `error` then says why."""

    text: str
    lines: list[str]
    tree: ast.Module | None
    error: str = ""
    _continuations: dict[int, list[int]] = msgspec.field(default_factory=dict)

    def column(self, line: int, offset: int) -> int:
        """The 1-based column in code points of a 0-based offset in UTF-8 bytes (as `ast` gives it)."""
        text = self.lines[line - 1]
        if text.isascii():
            return offset + 1
        inner = self._continuations.get(line)
        if inner is None:
            inner = [i for i, byte in enumerate(text.encode("utf-8", "surrogatepass")) if byte & 0xC0 == 0x80]
            self._continuations[line] = inner
        return offset + 1 - bisect_left(inner, offset)

    def segment(self, first: ast.AST, last: ast.AST, limit: int) -> str:
        """The source from the start of `first` to the end of `last`, without comments, about `limit` long."""
        start: int = first.lineno  # type: ignore[attr-defined]
        end: int = last.end_lineno  # type: ignore[attr-defined]
        left = self.column(start, first.col_offset) - 1  # type: ignore[attr-defined]
        right = self.column(end, last.end_col_offset) - 1  # type: ignore[attr-defined]
        if start == end:
            return self.lines[start - 1][left : min(right, left + limit)]
        pieces = [self.lines[start - 1][left : left + limit]]
        size = len(pieces[0])
        for number in range(start + 1, end + 1):
            if size > limit:
                break
            line = self.lines[number - 1]
            pieces.append(line[: min(right, limit)] if number == end else line[:limit])
            size += len(pieces[-1].lstrip())
        return TOKEN.sub(_without_comment, "\n".join(pieces))


def _without_comment(token: re.Match[str]) -> str:
    return "" if token[0].startswith("#") else token[0]


def utf8(data: bytes) -> bytes:
    """The bytes of a source file in UTF-8 without a byte order mark; as they are where they cannot be decoded."""
    if data.startswith(BOM_UTF8):
        return data[len(BOM_UTF8) :]
    cookie = _COOKIE.match(data)
    if cookie is None:
        return data
    try:
        name = lookup(cookie[1].decode("ascii")).name
        if name in _ASCII_BASED:
            return data
        return data.decode(name).encode()
    except (LookupError, UnicodeError, ValueError):
        return data


def parse(data: bytes) -> Source:
    """Parse a file whatever its encoding and content; never raises."""
    return parse_utf8(utf8(data))


def parse_utf8(data: bytes) -> Source:
    """Parse what `utf8` gave: a coding cookie in it no longer counts."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        text = data.decode("utf-8", "replace")
        return Source(text, split_lines(text), None, f"not {error.encoding} at byte {error.start}")
    return Source(text, split_lines(text), *_tree(text))


def parse_around(data: bytes, hits: list[int]) -> Source | None:
    """As `parse_utf8`, but definitions that hold none of the ascending offsets have no body in the tree.

    None where that cannot be told from a cheap look at the lines.
    """
    part = _without_definitions(data, hits)
    if part is None:
        return None
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    tree, _ = _tree(part.decode())
    return None if tree is None else Source(text, split_lines(text), tree)


def _tree(text: str) -> tuple[ast.Module | None, str]:
    """The tree, or why there is none."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text), ""
    except (SyntaxError, ValueError) as error:
        return None, getattr(error, "msg", None) or str(error)
    except (RecursionError, MemoryError):
        return None, "nested too deeply for the parser"


def split_lines(text: str) -> list[str]:
    """The lines as the parser counts them, without their ends."""
    return LINE_BREAK.split(text) if "\r" in text else text.split("\n")


def line_numbers(data: bytes, offsets: Sequence[int]) -> list[int]:
    """The 1-based lines, ascending and without repeats, that hold the ascending offsets."""
    if b"\r" in data:
        starts = [match.end() for match in _LINE_BREAK_BYTES.finditer(data)]
        return sorted({bisect_right(starts, offset) + 1 for offset in offsets})
    lines: list[int] = []
    line, done = 1, 0
    for offset in offsets:
        line += data.count(b"\n", done, offset)
        done = offset
        if not lines or lines[-1] != line:
            lines.append(line)
    return lines


def code_hits(data: bytes, hits: list[int]) -> list[int]:
    """Those of the ascending offsets `hits` in UTF-8 source that may be in code or in a name.

    Dropped are offsets in comments, in strings that are statements by themselves (docstrings), and in
    strings with white space (prose). An f-string is code.
    """
    kept: list[int] = []
    index, count = 0, len(hits)
    gaps: list[tuple[int, int]] = []
    depth = code_from = 0
    for token in _TOKEN_BYTES.finditer(data):
        start, end = token.span()
        while hits[index] < start:
            kept.append(hits[index])
            index += 1
            if index == count:
                return kept
        gaps.append((code_from, start))
        code_from = end
        is_comment = data[start] == 0x23
        if _NESTED_QUOTES and not is_comment and _opens_nested_string(data, start, end):
            return kept + hits[index:]
        if hits[index] >= end:
            continue
        inside = index
        while index < count and hits[index] < end:
            index += 1
        if not is_comment:
            prefix = _PREFIX_BYTES.search(data, max(start - 2, 0), start)
            if prefix is not None and b"f" in prefix[0].lower():
                kept += hits[inside:index]
            # A letter given by its name has blanks in the source only.
            elif not _BLANK.search(data, start, end) or data.find(b"\\N{", start, end) >= 0:
                depth += sum(_depth(data, *gap) for gap in gaps)
                gaps.clear()
                if depth or not _is_statement(data, start, end):
                    kept += hits[inside:index]
        if index == count:
            return kept
    return kept + hits[index:]


def _without_definitions(data: bytes, hits: list[int]) -> bytes | None:
    """The source with every function and class that holds none of the ascending offsets emptied.

    Other lines keep their number and content. None where blocks cannot be told by their indentation;
    a result that does not parse says the same.
    """
    if b"\r" in data or b"\t" in data or b"\f" in data:
        return None
    code = _without_long_strings(data)
    if code is None:
        return None
    kept: list[bytes] = []
    done = at = 0
    while (start := _DEFINITION.search(code, at)) is not None:
        end = _block_end(len(start[1])).search(code, start.end())
        stop = end.start() if end else len(code)
        first = bisect_left(hits, start.start())
        if first < len(hits) and hits[first] < stop:
            at = start.end()
            continue
        kept += [data[done : start.end()], b":0" if start[2] else b"():0"]
        kept.append(b"\n" * data.count(b"\n", start.end(), stop))
        done = at = stop
    return b"".join([*kept, data[done:]])


def _without_long_strings(data: bytes) -> bytes | None:
    """As long as the source, strings of several lines blanked; their last lines begin like a closing bracket.

    None where the ends of strings are not certain.
    """
    parts: list[bytes] = []
    done = 0
    find = data.find
    for token in _TOKEN_BYTES.finditer(data):
        start, end = token.span()
        if _NESTED_QUOTES and _opens_nested_string(data, start, end):
            return None
        if find(b"\n", start, end) >= 0:
            first, *middle, last = data[start:end].split(b"\n")
            blank = b"\n".join([b"_" * len(first), *(b" " * len(line) for line in middle), b")" * len(last)])
            parts += [data[done:start], blank]
            done = end
    return b"".join([*parts, data[done:]])


@lru_cache(maxsize=64)
def _block_end(indent: int) -> re.Pattern[bytes]:
    """The line break before code that is not deeper, continues no other line and closes no bracket."""
    return re.compile(rb"\n(?<!\\\n) {0,%d}[^\s)\]}#]" % indent)


def _depth(data: bytes, start: int, end: int) -> int:
    count = data.count
    opened = count(b"(", start, end) + count(b"[", start, end) + count(b"{", start, end)
    return opened - count(b")", start, end) - count(b"]", start, end) - count(b"}", start, end)


def _is_statement(data: bytes, start: int, end: int) -> bool:
    """Whether the plain string at depth 0 is alone on its logical line."""
    window = max(start - _MAX_INDENT, 0)
    line = max(data.rfind(b"\n", window, start), data.rfind(b"\r", window, start)) + 1
    if not line and window:
        return False
    before = data[line:start]
    prefix = _PREFIX_BYTES.search(before)
    assert prefix is not None
    if before[: prefix.start()].strip(b" \t\f"):
        return False
    continued = data[max(line - 3, 0) : line].rstrip(b"\r\n").endswith(b"\\")
    return not continued and _AFTER_STATEMENT.match(data, end) is not None


def _opens_nested_string(data: bytes, start: int, end: int) -> bool:
    """Whether an f-string seems to end inside a replacement field: its own quote is used in there."""
    prefix = _PREFIX_BYTES.search(data, max(start - 2, 0), start)
    if prefix is None or b"f" not in prefix[0].lower():
        return False
    return data.count(b"{", start, end) != data.count(b"}", start, end)


def mask(text: str) -> str:
    """The text with comments and strings blanked, of the same length and with the same line ends.

    f-strings stay: they hold code.
    """

    def blank(token: re.Match[str]) -> str:
        prefix = _PREFIX.search(text, max(token.start() - 2, 0), token.start())
        if prefix is not None and "f" in prefix[0].lower():
            return token[0]
        return re.sub(r"[^\r\n]", " ", token[0])

    return TOKEN.sub(blank, text)


def dotted(node: ast.AST) -> str | None:
    """`a.b.c` for a chain of attributes on a name, else None."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    names.append(node.id)
    return ".".join(reversed(names))


class Scope(msgspec.Struct, kw_only=True):
    """What names mean in one module, class or function body, whatever the order of its statements."""

    parent: "Scope | None" = None
    is_class: bool = False
    aliases: dict[str, str] = msgspec.field(default_factory=dict)
    bound: set[str] = msgspec.field(default_factory=set)

    def resolve(self, name: str) -> str:
        """The dotted name that `name` stands for; `name` itself when no import or alias says so."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.aliases:
                return scope.aliases[name]
            if name in scope.bound:
                return name
            scope = scope.parent
            while scope is not None and scope.is_class:
                scope = scope.parent
        return name

    def resolve_chain(self, chain: str) -> str:
        head, dot, rest = chain.partition(".")
        return self.resolve(head) + dot + rest

    def bind_import(self, node: ast.Import | ast.ImportFrom) -> None:
        """Record what an import statement binds. Relative modules keep their leading dots."""
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.asname:
                    self.aliases[alias.asname] = alias.name
                else:
                    root = alias.name.partition(".")[0]
                    self.aliases[root] = root
            return
        for module, alias in zip(imported_modules(node), node.names, strict=True):
            if alias.name != "*":
                self.aliases[alias.asname or alias.name] = module

    def bind_target(self, target: ast.AST) -> None:
        """Record the names that an assignment target binds."""
        targets = [target]
        while targets:
            node = targets.pop()
            if isinstance(node, ast.Name):
                self.bound.add(node.id)
            elif isinstance(node, ast.Tuple | ast.List):
                targets += node.elts
            elif isinstance(node, ast.Starred):
                targets.append(node.value)


def arguments_of(arguments: ast.arguments) -> list[ast.arg]:
    """All parameters of a function."""
    named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    return named + [arg for arg in (arguments.vararg, arguments.kwarg) if arg is not None]


def imported_modules(node: ast.Import | ast.ImportFrom) -> list[str]:
    """The dotted name of each thing imported: `from ..a import b` gives `..a.b`."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    module = "." * node.level + (node.module or "")
    separator = "" if module.endswith(".") or not module else "."
    return [module if alias.name == "*" else f"{module}{separator}{alias.name}" for alias in node.names]
