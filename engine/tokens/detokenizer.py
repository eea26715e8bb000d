"""Incremental detokenization: text as soon as it is certain, and nothing twice."""

from collections.abc import Callable

REPLACEMENT = "\ufffd"
# A character of UTF-8 has at most 4 bytes, so at most 3 of them can be waiting for the last.
_MAX_WAITING = 3
# A stream that has not ended in a whole character for so many tokens is not text.
_MAX_PENDING = 32


class Detokenizer:
    """Turns a stream of token ids into pieces of text.

    A piece may depend on its neighbours (a space that is dropped at the start of a text), so new
    tokens are decoded after those of the last piece. Bytes that may still become a character wait;
    once they cannot, they are written as replacement characters.
    """

    def __init__(self, decode: Callable[[list[int]], str]) -> None:
        self._decode = decode
        self._context: list[int] = []
        self._pending: list[int] = []
        # Characters of the pending tokens that were given out already.
        self._given = 0

    def add(self, token: int) -> str:
        """The text that is certain now and was not before; often empty inside a character."""
        self._pending.append(token)
        text = self._pending_text()
        if text.endswith(REPLACEMENT) and len(self._pending) < _MAX_PENDING:
            waiting = min(len(text) - len(text.rstrip(REPLACEMENT)), _MAX_WAITING)
            certain = text[self._given : len(text) - waiting]
            self._given += len(certain)
            return certain
        return self._settle(text)

    def flush(self) -> str:
        """What still waits, at the end of the stream."""
        return self._settle(self._pending_text()) if self._pending else ""

    def _settle(self, text: str) -> str:
        rest = text[self._given :]
        # Tokens without text (special ones) are no context for what follows them.
        if text:
            self._context = self._pending
        self._pending = []
        self._given = 0
        return rest

    def _pending_text(self) -> str:
        before = self._decode(self._context)
        text = self._decode(self._context + self._pending)
        # Some decoders rewrite a run of bytes when more bytes follow it.
        return text[len(before) :] if text.startswith(before) else self._decode(self._pending)
