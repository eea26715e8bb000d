"""Casts of an integer into a C++ enumeration, whatever the spelling.

Works on code without comments and literals. Blind spots, each pinned by a test: an alias of the
type, a template parameter, `memcpy` or a union, a pointer to the type. What a name holds is not
known either: a cast from another variable of the same type counts.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

# How far before a type its qualifiers, and behind it an operand, are read.
_BEFORE = 120
_REACH = 400

_LEAD = re.compile(r"(?:\b(?:const|volatile|enum|class|typename)\b\s*+)*+(?:::\s*+)?+(?:\b\w++\s*+::\s*+)*+\Z")
_NAMED_CAST = re.compile(r"\b\w*?_cast\s*<\s*\Z")
_NAMED_CAST_END = re.compile(r"\s*(?:const\b\s*)?&{0,2}\s*>\s*\(")
_C_STYLE_END = re.compile(r"\s*(?:const\b\s*)?\)\s*(?=[\w(~+!:{-]|[*&]\w)")
_VARIABLE = re.compile(r"\s+(\w+)\s*(?:(?P<literal>=\s*\{?|\()\s*|(?P<brace>\{))")
_OPENED = re.compile(r"\s*[({]")
_ELABORATED = re.compile(r"(?:enum|class)\b")
_FUNCTION_POINTER = re.compile(r"\s*\(\s*\*\s*\w*\s*\)\s*\(")
_UNEVALUATED = re.compile(r"\b(?:sizeof|alignof|_Alignof|alignas|typeid|decltype)\s*\(\s*\Z")
_WORD_BEFORE = re.compile(r"(\w*)\s*\Z")
_WORD = re.compile(r"\w*+")
_INTEGER = re.compile(r"[-+~!\s]*+\d")
_TOKEN = re.compile(r"\w+|\S")
_UNARY = re.compile(r"[-+~!*&\s]*+(?:\w|::|\.|->)*+")
_CHAIN = re.compile(r"(?:\w++::)*(\w++)")

# Behind these a value is used; behind any other name something is declared.
_STATEMENT = frozenset(
    {"return", "case", "else", "do", "throw", "and", "or", "not", "xor", "co_return", "co_await", "co_yield", "new"}
)
# A type behind these is named or defined.
_DEFINING = frozenset(
    {"enum", "class", "struct", "union", "namespace", "operator", "using", "typename", "concept", "goto"}
)
# These follow the parameters of a function, never a cast.
_AFTER_PARAMETERS = frozenset(
    {"const", "volatile", "override", "final", "noexcept", "requires", "mutable", "throw", "and", "or"}
)
_TYPE = re.compile(
    r"(?:un)?signed|int|long|short|char|bool|float|double|void|auto|const|size_t|u?int\d+_t|typename|struct"
)
_WORD_OPERATORS = frozenset(
    {"and", "or", "xor", "not", "bitand", "bitor", "compl", "sizeof", "alignof", "co_await", "new"}
)
_BRACKETS = {"(": re.compile(r"[()]"), "{": re.compile(r"[{}]")}


class Cast(NamedTuple):
    """`start` is the offset of the cast, `type` the name of the enumeration, `operand` what is cast."""

    start: int
    type: str
    operand: str


def integer_casts(code: str, types: Sequence[str]) -> Iterator[Cast]:
    """Casts to one of `types` (names, `*` for any run of letters) whose operand may be an integer."""
    for match in _names(tuple(types)).finditer(code):
        before = code[max(0, match.start() - _BEFORE) : match.start()]
        lead = _LEAD.search(before)
        before = before[: lead.start()] if lead else before
        start = match.start() - (len(lead[0]) if lead else 0)
        found = _cast(code, before, start, match.end())
        if found and found[1] and not _is_enumerator(found[1], match[0]):
            yield Cast(found[0], match[0], found[1])


@lru_cache(maxsize=16)
def _names(types: tuple[str, ...]) -> re.Pattern[str]:
    last = (name.rpartition("::")[2] for name in types)
    return re.compile(r"\b(?:" + "|".join(r"\w*".join(map(re.escape, name.split("*"))) for name in last) + r")\b")


def _cast(code: str, before: str, start: int, end: int) -> tuple[int, str] | None:
    """Start and operand of the cast to the type at `start..end`, or None where it is something else."""
    if named := _NAMED_CAST.search(before):
        close = _NAMED_CAST_END.match(code, end)
        return (start - len(before) + named.start(), _bracketed(code, close.end() - 1)) if close else None
    if before.rstrip().endswith("(") and (close := _C_STYLE_END.match(code, end)):
        parenthesis = before.rindex("(")
        if not _is_cast_in_c(before[:parenthesis], code, close.end()):
            return None
        return start - len(before) + parenthesis, _unary(code, close.end())
    word = _word_before(before)
    if word in _DEFINING or before.rstrip().endswith("->") or _UNEVALUATED.search(before):
        return None
    if opened := _OPENED.match(code, end):
        if _ELABORATED.match(code, start) or _FUNCTION_POINTER.match(code, end):
            return None
        operand = _bracketed(code, opened.end() - 1)
        if _INTEGER.match(operand):
            return start, operand
        declares = word and word not in _STATEMENT
        return None if declares or _is_parameters(operand) else (start, operand)
    variable = _VARIABLE.match(code, end)
    if variable is None or variable[1] in _AFTER_PARAMETERS:
        return None
    operand = _unary(code, variable.end()) if variable["literal"] else _bracketed(code, variable.start("brace"))
    if _INTEGER.match(operand) or not (variable["literal"] or _is_parameters(operand)):
        return start, operand
    return None


def _is_cast_in_c(before: str, code: str, operand: int) -> bool:
    """Whether `(Type)` between `before` and `operand` is a cast, and not the parameters of a function."""
    if _INTEGER.match(code, operand):
        return _word_before(before) not in ("sizeof", "alignof", "_Alignof", "alignas", "typeid")
    word = _word_before(before)
    after_name = word not in _STATEMENT if word else before.rstrip()[-1:] in (")", "]", ">")
    following = _WORD.match(code, operand)
    return not after_name and not (following and following[0] in _AFTER_PARAMETERS)


def _bracketed(code: str, opening: int) -> str:
    """What the bracket at `opening` encloses, on one line; cut where it is longer than `_REACH`."""
    depth, end = 0, min(len(code), opening + _REACH)
    for bracket in _BRACKETS[code[opening]].finditer(code, opening, end):
        depth += 1 if bracket[0] == code[opening] else -1
        if not depth:
            end = bracket.start()
            break
    return " ".join(code[opening + 1 : end].split())


def _unary(code: str, start: int) -> str:
    """The operand of a prefix operator: a bracketed expression, or a name or number with its signs."""
    if code[start : start + 1] in _BRACKETS:
        return _bracketed(code, start)
    match = _UNARY.match(code, start, start + _REACH)
    return match[0] if match else ""


def _is_parameters(operand: str) -> bool:
    """Whether the text between the brackets declares parameters, or is no operand at all."""
    tokens = _TOKEN.findall(operand)
    depth = 0
    previous = ""
    for token in tokens:
        depth += (token in "([{") - (token in ")]}")
        if token == "," and depth == 0:
            return True
        if previous and _is_word(token) and previous not in _WORD_OPERATORS and token not in _WORD_OPERATORS:
            return True
        previous = token if _is_word(token) else ""
    return not tokens or tokens[-1] in ("&", "*", "...") or _TYPE.fullmatch(tokens[-1]) is not None


def _is_enumerator(operand: str, type_name: str) -> bool:
    """`kCPU`, `DeviceType::CPU`: judged as an enumerator, not as an integer."""
    chain = _CHAIN.fullmatch("".join(operand.split()).strip("()"))
    return chain is not None and (f"{type_name}::" in chain[0] or re.match(r"k[A-Z]", chain[1]) is not None)


def _word_before(text: str) -> str:
    match = _WORD_BEFORE.search(text)
    return match[1] if match else ""


def _is_word(token: str) -> bool:
    return token[:1].isalpha() or token[:1] == "_"
