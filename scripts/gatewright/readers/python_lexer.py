"""Python source without a parser: lines, comments, strings and blocks, with every place kept.

The cheap stage before `ast`. It may take text for code, never code for text.
"""

import re
import sys
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import lru_cache

# The only line ends that Python's tokenizer knows; str.splitlines has more.
LINE_BREAK = re.compile(r"\r\n|\r|\n")
_LINE_BREAK_BYTES = re.compile(rb"\r\n|\r|\n")

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
# What stands before a string that may hold source: an annotation, or an argument of eval.
_BEFORE_SOURCE = re.compile(rb"(?:[:>,\[|]|(?:eval|exec|compile)[ \t]*\()[ \t\r\n]*[rRbBuU]{0,2}\Z")
# White space in a string, a joined line apart.
_BLANK = re.compile(rb"[ \t]|(?<!\\)(?:\r|(?<!\r)\n)")
_DEFINITION = re.compile(rb"\n( *)(?:(?:async +)?def|(class)) +[^\s(:\[]+")
_AFTER_STATEMENT = re.compile(rb"[ \t\f]*(?:#|\r|\n|\Z)")
# A docstring further to the right is taken for code, which keeps the look back short.
_MAX_INDENT = 200
_NESTED_QUOTES = sys.version_info >= (3, 12)


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
    strings with white space (prose), unless they stand where source may. An f-string is code.
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
            elif (
                not _BLANK.search(data, start, end)
                or data.find(b"\\N{", start, end) >= 0
                or _BEFORE_SOURCE.search(data, max(start - 40, 0), start)
            ):
                depth += sum(_depth(data, *gap) for gap in gaps)
                gaps.clear()
                if depth or not _is_statement(data, start, end):
                    kept += hits[inside:index]
        if index == count:
            return kept
    return kept + hits[index:]


def without_definitions(data: bytes, hits: list[int]) -> bytes | None:
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
