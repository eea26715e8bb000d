"""Position-preserving reader of C, C++, CUDA, HIP, Objective-C++ and Metal source.

Every view of a file has the length and the line ends of its text, so an offset in one is an
offset in all. Nothing here raises, whatever the bytes, and every step is linear in their number.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from functools import cached_property
from itertools import islice

import msgspec

from gatewright.readers.c_tokens import blank, literal_value, tokenize
from gatewright.readers.positions import Positions
from gatewright.readers.preprocessor import Directive, Preprocessor, read_preprocessor

STATEMENT_REACH = 400


class Comment(msgspec.Struct, frozen=True, gc=False):
    """A comment as written, with its markers; `line` is the 1-based line where it begins."""

    line: int
    start: int
    end: int
    text: str


class StringLiteral(msgspec.Struct, frozen=True, gc=False):
    """Adjacent string literals as the compiler joins them, escapes decoded; `end` is exclusive."""

    start: int
    end: int
    value: str


def read(data: bytes) -> "Source":
    """Reads one file. Costs about a microsecond per token: look for the bytes that matter first."""
    return Source(data)


class Source(Positions):
    """One source file: its text, its tokens, and the views that checks match against.

    `text` is the decoded source; undecodable bytes are lone surrogates, and one byte order mark
    is gone. Lines end at LF, CRLF or a lone CR, as compilers count them. `code` has comments,
    literals, header names and the backslashes of continued lines blanked, so that white space is
    all there is between two tokens of code.
    """

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self.tokens, self.code = tokenize(self.text)

    @cached_property
    def live(self) -> str:
        """`code` without directives, and without what every configuration drops (`#if 0`)."""
        return self._blanked(self.preprocessor.dropped())

    @cached_property
    def macros(self) -> str:
        """Of `code` only what live macros are defined as, from their names on, with a `;` before each."""
        pieces: list[str] = []
        last = 0
        for directive in self.directives:
            if directive.keyword == "define" and not directive.dead:
                pieces += (blank(self.code[last : directive.start]), ";", " " * (directive.body - directive.start - 1))
                pieces.append(self.code[directive.body : directive.end])
                last = directive.end
        return "".join(pieces) + blank(self.code[last:])

    def view(self, offset: int) -> str:
        """Whichever of `live` and `macros` shows the code at `offset`."""
        directive = self.directive_at(offset)
        return self.macros if directive and directive.keyword == "define" else self.live

    @cached_property
    def preprocessor(self) -> Preprocessor:
        return read_preprocessor(self.text, self.code, self.tokens)

    @property
    def directives(self) -> list[Directive]:
        return self.preprocessor.directives

    @cached_property
    def comments(self) -> list[Comment]:
        return [
            Comment(self.position(token.start)[0], token.start, token.end, self.text[token.start : token.end])
            for token in self.tokens
            if token.kind == "comment"
        ]

    @cached_property
    def strings(self) -> list[StringLiteral]:
        """String literals in order, also those of directives and of dead code."""
        found: list[StringLiteral] = []
        parts: list[str] = []
        start = end = 0
        for token in self.tokens:
            if token.kind == "comment":
                continue
            part = token.kind in ("string", "raw")
            if parts and not (part and self._adjacent(end, token.start)):
                found.append(StringLiteral(start, end, "".join(parts)))
                parts = []
            if part:
                start = start if parts else token.start
                parts.append(literal_value(self.text[token.start : token.end], token.kind == "raw"))
                end = token.end
        if parts:
            found.append(StringLiteral(start, end, "".join(parts)))
        return found

    def strings_in(self, start: int, end: int) -> list[StringLiteral]:
        """The string literals that lie in `start..end`."""
        first = bisect_left(self.strings, start, key=lambda string: string.start)
        last = bisect_left(self.strings, end, lo=first, key=lambda string: string.start)
        return self.strings[first:last]

    def is_dead(self, offset: int) -> bool:
        """Whether the preprocessor drops the text at `offset` under every configuration."""
        return self.preprocessor.is_dead(offset)

    def guarded(self, test: Callable[[str], bool]) -> Callable[[int], bool]:
        """A predicate on offsets: does the condition of a branch around it satisfy `test`?"""
        answers = self.preprocessor.enclosed(test)
        return lambda offset: (index := self.preprocessor.branch_at(offset)) >= 0 and answers[index]

    def directive_at(self, offset: int) -> Directive | None:
        """The directive whose text holds `offset`."""
        index = bisect_right(self.directives, offset, key=lambda directive: directive.start) - 1
        return self.directives[index] if index >= 0 and offset < self.directives[index].end else None

    def statement(self, offset: int) -> str:
        """The statement or directive around `offset`: comments blanked, literals as written.

        Statements end at `;`, `{`, `}` and at directives; one that is longer than `STATEMENT_REACH`
        on a side of `offset` is cut there.
        """
        directive = self.directive_at(offset)
        if directive:
            return self.spelling(directive.start, min(directive.end, offset + STATEMENT_REACH))
        before, behind = max(0, offset - STATEMENT_REACH), offset + STATEMENT_REACH
        index = bisect_right(self.directives, offset, key=lambda directive: directive.start)
        if index:
            before = max(before, self.directives[index - 1].end)
        if index < len(self.directives):
            behind = min(behind, self.directives[index].start)
        start = max(self.code.rfind(mark, before, offset) + 1 for mark in ";{}")
        end = min((at for mark in ";{}" if (at := self.code.find(mark, offset, behind)) >= 0), default=behind)
        return self.spelling(max(start, before), min(end + 1, behind))

    def spelling(self, start: int, end: int) -> str:
        """Text of `start..end` with its comments blanked."""
        pieces: list[str] = []
        first = bisect_left(self.tokens, start, key=lambda token: token.start)
        for token in islice(self.tokens, first, None):
            if token.start >= end:
                break
            if token.kind != "comment":
                pieces += (self.code[start : token.start], self.text[token.start : token.end])
                start = token.end
        return "".join(pieces) + self.code[start:end]

    def _blanked(self, spans: list[tuple[int, int]]) -> str:
        pieces: list[str] = []
        last = 0
        for start, end in spans:
            start = max(start, last)
            pieces += (self.code[last:start], blank(self.code[start:end]))
            last = max(last, min(end, len(self.code)))
        return "".join(pieces) + self.code[last:]

    def _adjacent(self, end: int, start: int) -> bool:
        gap = self.code[end:start]
        return not gap or (gap.isspace() and not self.preprocessor.ends_between(end, start))
