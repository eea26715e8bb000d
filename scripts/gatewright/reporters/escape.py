"""Text from judged files made safe to print. A path is an `os.fsdecode`d string: bytes that are not
UTF-8 are lone surrogates in it, which no encoder accepts."""

import os
import re
from typing import Any

_SURROGATES = re.compile("[\ud800-\udfff]")
# What XML 1.0 cannot hold in any spelling.
_NOT_XML = "[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"


def _escaped(char: str) -> str:
    code = ord(char)
    return f"\\x{code - 0xDC00:02x}" if 0xDC80 <= code <= 0xDCFF else char.encode("unicode_escape").decode()


def encodable(text: str) -> str:
    r"""Surrogates spelled out, all else kept: the byte ff becomes the four characters `\xff`."""
    return text if text.isascii() else _SURROGATES.sub(lambda match: _escaped(match[0]), text)


def printable(text: str) -> str:
    r"""One line that a terminal shows as it is: controls, line ends and direction marks as `\x1b`, `\n`, `\u202e`."""
    return text if text.isprintable() else "".join(c if c.isprintable() else _escaped(c) for c in text)


def printable_lines(text: str) -> list[str]:
    """The lines of a text that is meant to have several, each `printable`."""
    return [printable(line) for line in text.strip("\n").split("\n")]


def one_line(text: str) -> str:
    """The lines of a text joined by blanks."""
    return " ".join(printable_lines(text))


def path_uri(path: str) -> str:
    """A relative URI reference that holds the raw bytes of `path`; `./` for the whole tree."""
    from urllib.parse import quote

    try:
        raw = os.fsencode(path)
    except UnicodeEncodeError:
        raw = path.encode("utf-8", "surrogatepass")
    return quote(raw, safe="/") or "./"


def encodable_tree(value: Any) -> Any:
    """`encodable` applied to every string of nested dicts and lists."""
    if isinstance(value, str):
        return encodable(value)
    if isinstance(value, dict):
        return {encodable(key): encodable_tree(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [encodable_tree(item) for item in value]
    return value


def to_json(value: Any) -> str:
    """Indented JSON with a final newline."""
    import msgspec

    return msgspec.json.format(msgspec.json.encode(encodable_tree(value)), indent=2).decode() + "\n"


def xml_text(text: str) -> str:
    """Characters that XML cannot hold removed; surrogates spelled out."""
    return re.sub(_NOT_XML, "", encodable(text))


def code_span(text: str) -> str:
    """A Markdown code span that shows the text itself, on one line."""
    text = printable(text)
    fence = "`" * (max(map(len, re.findall("`+", text)), default=0) + 1)
    return f"{fence} {text} {fence}" if text else ""


def markdown(text: str) -> str:
    """Markdown that renders as the text itself, on one line."""
    return re.sub(r"([\\`*_{}\[\]()<>#+!|~&$@:.-])", r"\\\1", printable(text))
