"""Edits of text: regular expressions and messages."""

import re
import warnings
from collections.abc import Iterator

MARK = "XX"
_SWAPS = {r"\d": r"\D", r"\w": r"\W", r"\s": r"\S", r"\b": r"\B"}
_SWAPS |= {after: before for before, after in _SWAPS.items()}
_TOKEN = re.compile(
    r"\\[AZbBdDsSwW]|\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\(\?(?:[=!]|<[=!]|:|P<\w+>|#|[aiLmsux-]+[):])?|\{\d*,?\d*\}"
    r"|[*+?][+?]?|.",
    re.DOTALL,
)
_LOOKAROUNDS = {"(?=": "(?!", "(?!": "(?=", "(?<=": "(?<!", "(?<!": "(?<="}
_QUANTIFIERS = {"*": "+", "+": "*", "?": ""}


def is_message(text: str) -> bool:
    """Text for people: at least two words."""
    return len(re.findall(r"[A-Za-z]{2,}", text)) > 1 and " " in text


def message_edits(text: str) -> Iterator[str]:
    """A page or test that asserts a whole text notices a mark in it."""
    yield MARK + text


def regex_edits(pattern: str) -> Iterator[str]:
    """Patterns that differ from `pattern` in one token and still compile."""
    tokens = _TOKEN.findall(pattern)
    seen = {pattern}
    for number, token in enumerate(tokens):
        # One literal of a run stands for all of them.
        if token.isalnum() and number and tokens[number - 1].isalnum():
            continue
        for replacement in _replacements(token):
            edited = "".join([*tokens[:number], replacement, *tokens[number + 1 :]])
            if edited not in seen and _compiles(edited):
                seen.add(edited)
                yield edited
    for edited in _without_alternative(tokens):
        if edited not in seen and _compiles(edited):
            seen.add(edited)
            yield edited


def _replacements(token: str) -> Iterator[str]:
    if token in _SWAPS:
        yield _SWAPS[token]
    if token in ("^", "$", r"\b", r"\A", r"\Z"):
        yield ""
    if token[0] in _QUANTIFIERS:
        yield _QUANTIFIERS[token[0]] + token[1:] if token[0] != "?" else ""
        # A possessive one finds the same as a greedy one in most places, only sooner.
        if token.endswith("?") and len(token) == 2:
            yield token[0]
    elif token in _LOOKAROUNDS:
        yield _LOOKAROUNDS[token]
    elif token.startswith("[") and len(token) > 2:
        yield "[" + token[2:] if token.startswith("[^") else "[^" + token[1:]
    elif re.fullmatch(r"\(\?[aiLmsux]+\)", token) or re.fullmatch(r"\{\d*,?\d*\}", token):
        yield ""
    elif token.isalnum():
        yield token + MARK[0]


def _without_alternative(tokens: list[str]) -> Iterator[str]:
    """Drop each alternative of each `|`, with the bar that joins it to its neighbour."""
    for number, token in enumerate(tokens):
        if token != "|":
            continue
        end = _edge(tokens, number, 1)
        yield "".join([*tokens[:number], *tokens[end:]])
        start = _edge(tokens, number, -1)
        yield "".join([*tokens[: start + 1], *tokens[number + 1 :]])


def _edge(tokens: list[str], bar: int, step: int) -> int:
    """Where the alternative beside a bar ends: at a bar or bracket of its own level, or the pattern's end."""
    enters, leaves = (_opens, _closes) if step > 0 else (_closes, _opens)
    depth, position = 0, bar + step
    while 0 <= position < len(tokens):
        token = tokens[position]
        if not depth and (token == "|" or leaves(token)):
            break
        depth += enters(token) - leaves(token)
        position += step
    return position


def _opens(token: str) -> bool:
    return token.startswith("(") and not token.endswith(")")


def _closes(token: str) -> bool:
    return token == ")"


def _compiles(pattern: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            re.compile(pattern)
    except (re.error, Warning, OverflowError, RecursionError):
        return False
    return True
