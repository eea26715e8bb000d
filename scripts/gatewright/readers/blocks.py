"""Blocks in braces, and lists in brackets, of code whose comments and literals are blanked."""

import re
from bisect import bisect_right
from collections.abc import Iterator

import msgspec

# Headers are read this far back from their brace, brackets this far on, blocks this many outward.
REACH = 2000
DEPTH = 40

_BRACES = re.compile(r"[{}]")
_LIST = re.compile(r"[()\[\]{},]")
_EXPRESSION = re.compile(r"[()\[\]{},;]")


class Span(msgspec.Struct, frozen=True, gc=False):
    """Offsets of a stretch of text; `end` is exclusive."""

    start: int
    end: int


class Blocks:
    """The blocks of a text, each named by the offset of its `{`. Unbalanced braces are tolerated."""

    def __init__(self, code: str) -> None:
        self.code = code
        self.parents: dict[int, int] = {}
        self.ends: dict[int, int] = {}
        self._marks, self._innermost = [0], [-1]
        block = -1
        for brace in _BRACES.finditer(code):
            if brace[0] == "{":
                self.parents[brace.start()] = block
                block = brace.start()
            elif block >= 0:
                self.ends[block] = brace.end()
                block = self.parents[block]
            self._marks.append(brace.end())
            self._innermost.append(block)

    def around(self, offset: int) -> Iterator[int]:
        """The blocks that hold `offset`, innermost first; before them a block whose header holds it."""
        index = bisect_right(self._marks, offset)
        if index < len(self._marks):
            following = self._marks[index] - 1
            if following in self.parents and self.header_start(following) <= offset:
                yield following
        block = self._innermost[index - 1]
        for _ in range(DEPTH):
            if block < 0:
                return
            yield block
            block = self.parents[block]

    def header_start(self, block: int) -> int:
        """Where the text before the brace begins that may say what the block is."""
        floor = max(0, block - REACH)
        return max(floor, *(self.code.rfind(mark, floor, block) + 1 for mark in ";{}"))


def split_arguments(code: str, opening: int) -> list[Span]:
    """Spans of what the bracket at `opening` encloses, divided by its own commas; empty when it is unclosed.

    A comma between `<` and `>`, as in `std::map<K, V>`, does not divide.
    """
    depth, start = 0, opening + 1
    spans: list[Span] = []
    for bracket in _LIST.finditer(code, opening, opening + REACH):
        mark, at = bracket[0], bracket.start()
        if mark in "([{":
            depth += 1
        elif mark in ")]}":
            depth -= 1
            if depth == 0:
                return [*spans, Span(start, at)] if at > opening + 1 else []
        elif depth == 1 and not _inside_template(code, start, at):
            spans.append(Span(start, at))
            start = at + 1
    return []


def expression_end(code: str, start: int) -> int:
    """Where the expression at `start` ends: at a `;`, or at a comma or a bracket that it did not open."""
    depth = 0
    for mark in _EXPRESSION.finditer(code, start, start + REACH):
        if mark[0] in "([{":
            depth += 1
        elif mark[0] == ";" or depth == 0:
            return mark.start()
        elif mark[0] in ")]}":
            depth -= 1
    return min(len(code), start + REACH)


def _inside_template(code: str, start: int, comma: int) -> bool:
    before = code[start:comma].replace("->", "").replace("<<", "")
    return before.count("<") > before.count(">") and ">" in code[comma : comma + 200]
