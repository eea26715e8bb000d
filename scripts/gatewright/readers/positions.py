"""Lines and columns of a text whose lines end at LF, CRLF or a lone CR."""

import re
from bisect import bisect_right
from functools import cached_property

_LINE_END = re.compile(r"\r\n?|\n")


class Positions:
    """A decoded source: undecodable bytes are lone surrogates, one byte order mark is gone."""

    def __init__(self, data: bytes) -> None:
        self.text = data.decode("utf-8", "surrogateescape").removeprefix("\ufeff")

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column of `offset`, both 1-based; columns count code points."""
        line = bisect_right(self._line_starts, offset)
        return line, offset - self._line_starts[line - 1] + 1

    def line(self, number: int) -> str:
        """Text of a 1-based line without its line end; empty where there is no such line."""
        starts = self._line_starts
        if not 0 < number <= len(starts):
            return ""
        end = starts[number] if number < len(starts) else len(self.text)
        return self.text[starts[number - 1] : end].rstrip("\r\n")

    @cached_property
    def _line_starts(self) -> list[int]:
        return [0, *(match.end() for match in _LINE_END.finditer(self.text))]


def encodable(text: str) -> str:
    """Text that any encoder takes: bytes that were not UTF-8 become question marks."""
    return text.encode("utf-8", "replace").decode()
