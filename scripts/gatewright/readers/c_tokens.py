"""Tokenizer of C-family source: finds the text that is not code, and blanks it."""

import re
from typing import Literal, cast

import msgspec

LINE_END = r"(?:\r\n?|\n)"
# GCC and Clang join lines also where blanks follow the backslash.
SPLICE = rf"\\[ \t\v\f]*+{LINE_END}"

TokenKind = Literal["comment", "string", "raw", "char", "header"]

# The leading character class lets the engine skip ordinary code at full speed, and possessive
# repeats leave nothing to backtrack into. A number is matched only to keep its digit separators
# (1'000) from opening a character literal; a raw string is matched up to its parenthesis, because
# its end depends on its delimiter.
_TOKEN = re.compile(
    rf"""
    [/"'\#0-9] (?:
        (?<=/) (?P<comment>
            / [^\\\r\n]*+ (?: (?:{SPLICE}|\\) [^\\\r\n]*+ )*+
          | \* [^*]*+ (?: \*(?!/) [^*]*+ )*+ (?:\*/)?+ )
      | (?<=") (?P<raw>
            (?: (?<=R")(?<!\wR") | (?<=[LuU]R")(?<!\w[LuU]R") | (?<=u8R")(?<!\wu8R") )
            (?P<delimiter> [^()\\\s"]{{0,16}}+ ) \( )
      | (?<=") (?P<string> [^"\\\r\n]*+ (?: (?:{SPLICE}|\\.?+) [^"\\\r\n]*+ )*+ "?+ )
      | (?<=') (?P<char>   [^'\\\r\n]*+ (?: (?:{SPLICE}|\\.?+) [^'\\\r\n]*+ )*+ '?+ )
      | (?<=\#) (?P<header> [ \t]*+ (?:include(?:_next)?+|import)\b [ \t]*+ < [^<>\r\n]*+ > )
      | (?<=[0-9])(?<!\w[0-9])(?<![\w.]\.[0-9]) (?P<number> [\w.]*+ (?: '\w[\w.]*+ )++ )
    )
    """,
    re.VERBOSE,
)
_PREFIX = re.compile(r"(?<!\w)(?:(?:u8|[LuU])R?+|R)\Z")
_ESCAPE = re.compile(rf"{SPLICE}|\\(?:([0-7]{{1,3}})|x([0-9a-fA-F]++)|u([0-9a-fA-F]{{4}})|U([0-9a-fA-F]{{8}})|(.?))")
_CONTROL = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
_LINE_TEXT = re.compile(r"[^\r\n]++")
_SPLICE = re.compile(SPLICE)


class Token(msgspec.Struct, frozen=True, gc=False):
    """A stretch of text that is not code; `end` is exclusive. A literal includes prefix and quotes."""

    kind: TokenKind
    start: int
    end: int


def tokenize(text: str) -> tuple[list[Token], str]:
    """Tokens in order, and the text with all of them, and the backslashes of continued lines, blanked."""
    tokens: list[Token] = []
    pieces: list[str] = []
    search, end = _TOKEN.search, 0
    while match := search(text, end):
        last, (start, end), kind = end, match.span(), match.lastgroup
        if kind == "number":
            pieces.append(text[last:end])
            continue
        if kind == "raw":
            close = f'){match["delimiter"]}"'
            at = text.find(close, end)
            end = at + len(close) if at >= 0 else len(text)
        elif kind == "header":
            start = text.index("<", start)
        if kind != "comment" and text[start - 1 : start].isalnum():
            prefix = _PREFIX.search(text, max(last, start - 3), start)
            start = prefix.start() if prefix else start
        tokens.append(Token(cast(TokenKind, kind), start, end))
        pieces += (text[last:start], blank(text[start:end]))
    pieces.append(text[end:])
    code = "".join(pieces)
    return tokens, _SPLICE.sub(lambda splice: " " + splice[0][1:], code) if "\\" in code else code


def blank(text: str) -> str:
    """Spaces in place of `text`, line ends kept."""
    if "\n" in text or "\r" in text:
        return _LINE_TEXT.sub(lambda line: " " * len(line[0]), text)
    return " " * len(text)


def literal_value(spelling: str, raw: bool) -> str:
    """What a string literal means: prefix and quotes removed, escapes decoded unless it is raw."""
    body = spelling.partition('"')[2]
    if raw:
        return body.partition("(")[2].rpartition(")")[0]
    body = body.removesuffix('"')
    return _ESCAPE.sub(_unescape, body) if "\\" in body else body


def _unescape(match: re.Match[str]) -> str:
    octal, *codes, simple = match.groups()
    if simple is not None:
        return _CONTROL.get(simple, simple)
    number = int(octal, 8) if octal else next((int(code, 16) for code in codes if code), None)
    if number is None:
        return ""
    return chr(number) if number < 0xD800 or 0xDFFF < number <= 0x10FFFF else "\ufffd"
