"""Exemptions in source comments: `gate: allow RULE (OWNER): reason`.

A comment that stands alone covers the next line that is no exemption itself; one behind code
covers its own line. Only a comment that begins with the words counts, so prose suppresses nothing.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import msgspec

from gatewright.readers.positions import encodable

NEEDLE = b"gate: allow"
_BEGINS = re.compile(r"gate:\s*allow\b")
_FORM = re.compile(r"gate:\s*allow\s+([a-z][\w-]*/[\w-]+)\s+\(([^()]*)\)\s*:\s*(.*\S)\s*", re.DOTALL)


class Exemption(msgspec.Struct, frozen=True, array_like=True):
    """`covers` is the 1-based line whose findings it exempts; `rule` is empty where it is malformed."""

    line: int
    covers: int
    rule: str
    owner: str
    reason: str


class Comment(NamedTuple):
    """`end` is its last line; `alone` says that no code stands before it on its line."""

    line: int
    end: int
    text: str
    alone: bool


def exemptions(comments: Iterable[Comment]) -> list[Exemption]:
    begun = [c._replace(text=encodable(c.text)) for c in comments if _BEGINS.match(c.text)]
    found = [(comment, _FORM.fullmatch(comment.text)) for comment in begun]
    alone = {comment.line: comment.end for comment, _ in found if comment.alone}
    result = []
    for comment, form in found:
        covers = comment.line
        if comment.alone:
            covers = comment.end + 1
            while covers in alone:
                covers = alone[covers] + 1
        rule, owner, reason = form.groups() if form else ("", "", comment.text)
        result.append(Exemption(comment.line, covers, rule, owner.strip(), reason))
    return result


def of_python(data: bytes, options: Any) -> list[Exemption]:
    return exemptions(_python_comments(data)) if NEEDLE in data else []


def _python_comments(data: bytes) -> Iterator[Comment]:
    import io
    import tokenize

    try:
        for token in tokenize.tokenize(io.BytesIO(data).readline):
            if token.type == tokenize.COMMENT:
                alone = not token.line[: token.start[1]].strip()
                yield Comment(token.start[0], token.start[0], token.string.lstrip("#").strip(), alone)
    except (tokenize.TokenError, SyntaxError, ValueError):
        return


def of_cfamily(data: bytes, options: Any) -> list[Exemption]:
    return exemptions(_c_comments(data)) if NEEDLE in data else []


def _c_comments(data: bytes) -> Iterator[Comment]:
    from gatewright.readers.cfamily import Source

    source = Source(data)
    for token in source.comments:
        line, column = source.position(token.start)
        end, _ = source.position(max(token.start, token.end - 1))
        text = re.sub(r"\A(?://+|/\*+)\s*|\s*\*/\Z", "", source.text[token.start : token.end])
        before = source.code[token.start - column + 1 : token.start]
        yield Comment(line, end, text.strip(), not before.strip())


def of_hash(data: bytes, options: Any) -> list[Exemption]:
    """TOML, YAML, shell, CMake and Docker files: a comment that has its line to itself."""
    if NEEDLE not in data:
        return []
    lines = enumerate(data.decode("utf-8", "surrogateescape").split("\n"), 1)
    stripped = ((number, line.strip()) for number, line in lines)
    return exemptions(Comment(n, n, line.lstrip("#").strip(), True) for n, line in stripped if line.startswith("#"))


def of_markdown(data: bytes, options: Any) -> list[Exemption]:
    """HTML comments; fenced text is no comment."""
    if NEEDLE not in data:
        return []
    from gatewright.readers.markdown import parse

    blocks = parse(data).comments
    return exemptions(Comment(b.line, b.line + b.text.count("\n"), b.text, True) for b in blocks)
