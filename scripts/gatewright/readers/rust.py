"""Position-preserving reader of Rust source: comments and literals blanked, code left alone.

Nothing here raises, whatever the bytes, and every step is linear in their number.
"""

import re
from bisect import bisect_left

import msgspec

from gatewright.readers.blocks import Blocks
from gatewright.readers.c_tokens import blank
from gatewright.readers.positions import Positions

# A lifetime ('a) is no character literal: one of those is closed behind a single character or escape.
_TOKEN = re.compile(
    r"""
    [/"'] (?:
        (?<=/) (?P<line> /[^\n]*+ )
      | (?<=/) (?P<block> \* )
      | (?<=") (?P<string> [^"\\]*+ (?: \\[\s\S] [^"\\]*+ )*+ "?+ )
      | (?<=') (?P<char> (?: \\(?:u\{[0-9a-fA-F_]{0,16}\}|x[0-9a-fA-F]{2}|.) | [^'\\\n\r] ) ' )
    )
    """,
    re.VERBOSE,
)
_COMMENT_EDGE = re.compile(r"/\*|\*/")
_PREFIX = re.compile(r"(?<!\w)(?:[bc]?r(?P<hashes>\#{0,64})|[bc])\Z")
_PREFIX_LENGTH = 68
_ESCAPE = re.compile(r"\\(?:x([0-7][0-9a-fA-F])|u\{([0-9a-fA-F_]{1,16})\}|(\r?\n\s*+)|([\s\S]))")
_SIMPLE = {"n": "\n", "t": "\t", "r": "\r", "0": "\0"}
_TEST_MODULE = re.compile(r"\#\s*\[\s*cfg\s*\(\s*test\s*\)\s*\]\s*(?:pub\s+)?mod\s+\w+\s*\{")


class RustString(msgspec.Struct, frozen=True, gc=False):
    """A string literal with its prefix and quotes; `value` has its escapes decoded."""

    start: int
    end: int
    value: str


class Source(Positions):
    """One Rust file. `code` has the length and the line ends of `text`, comments and literals blanked.

    `live` is `code` without `#[cfg(test)]` modules, which are in no build that is shipped.
    """

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self.strings: list[RustString] = []
        self.comments: list[tuple[int, int]] = []
        pieces: list[str] = []
        last = position = 0
        while match := _TOKEN.search(self.text, position):
            start, end = self._token(match, last)
            pieces += (self.text[last:start], blank(self.text[start:end]))
            last = position = end
        self.code = "".join(pieces) + self.text[last:]
        self.blocks = Blocks(self.code)
        self.live = self._without_tests()

    def strings_in(self, start: int, end: int) -> list[RustString]:
        """The string literals that begin in `start..end`."""
        first = bisect_left(self.strings, start, key=lambda string: string.start)
        last = bisect_left(self.strings, end, lo=first, key=lambda string: string.start)
        return self.strings[first:last]

    def spelling(self, start: int, end: int) -> str:
        """Text of `start..end` with its comments blanked."""
        pieces: list[str] = []
        for string in self.strings_in(start, end):
            pieces += (self.code[start : string.start], self.text[string.start : string.end])
            start = string.end
        return "".join(pieces) + self.code[start:end]

    def _token(self, match: re.Match[str], floor: int) -> tuple[int, int]:
        """Note the token that begins at `match`, and give its span."""
        start, end = match.span()
        if match.lastgroup in ("line", "block"):
            end = end if match.lastgroup == "line" else self._comment_end(start)
            self.comments.append((start, end))
            return start, end
        prefix = _PREFIX.search(self.text, max(floor, start - _PREFIX_LENGTH), start)
        body = self.text[start + 1 : end].removesuffix('"')
        if prefix and prefix["hashes"] is not None and match.lastgroup == "string":
            close = '"' + prefix["hashes"]
            at = self.text.find(close, start + 1)
            at = at if at >= 0 else len(self.text)
            body, end = self.text[start + 1 : at], min(at + len(close), len(self.text))
        elif "\\" in body:
            body = _ESCAPE.sub(_unescape, body)
        start = prefix.start() if prefix else start
        if match.lastgroup == "string":
            self.strings.append(RustString(start, end, body))
        return start, end

    def _comment_end(self, start: int) -> int:
        """Where a block comment ends; those of Rust nest."""
        depth = 0
        for edge in _COMMENT_EDGE.finditer(self.text, start):
            depth += 1 if edge[0] == "/*" else -1
            if not depth:
                return edge.end()
        return len(self.text)

    def _without_tests(self) -> str:
        pieces: list[str] = []
        last = 0
        for module in _TEST_MODULE.finditer(self.code):
            if module.start() >= last:
                end = self.blocks.ends.get(module.end() - 1, len(self.code))
                pieces += (self.code[last : module.start()], blank(self.code[module.start() : end]))
                last = end
        return "".join(pieces) + self.code[last:]


def _unescape(match: re.Match[str]) -> str:
    hexadecimal, unicode, joined, simple = match.groups()
    if joined:
        return ""
    if simple:
        return _SIMPLE.get(simple, simple)
    number = int((hexadecimal or unicode).replace("_", "") or "0", 16)
    return chr(number) if number < 0xD800 or 0xDFFF < number <= 0x10FFFF else "\ufffd"
