"""What an expression of C-family source says about a text, as far as one file can tell."""

import re
from bisect import bisect_left
from collections.abc import Iterator
from functools import cached_property

import msgspec

from gatewright.extractors.env_read import Parameter, Value
from gatewright.readers.blocks import Span, expression_end, split_arguments
from gatewright.readers.c_functions import Functions
from gatewright.readers.cfamily import Source
from gatewright.readers.positions import encodable

MAX_VALUES = 16
_MAX_WRAPPERS = 4
# The words before a name are looked at this far back.
_BEFORE = 80
_TEXT_LIMIT = 200

_NAME = re.compile(r"(?:::\s*)?(?:[A-Za-z_]\w*\s*::\s*)*([A-Za-z_]\w*)")
_NUMBER = re.compile(r"[-+]?\s*(?:0[xX][0-9a-fA-F']+|[0-9][0-9']*(?:\.[0-9]*)?)[uUlLfF]*|true|false")
_AS_CHARS = re.compile(r"\s*\.\s*(?:c_str|data)\s*\(\s*\)\s*\Z")
_CONVERSION = re.compile(
    r"\s*+(?:(?:::\s*+)?+(?:std\s*+::\s*+)?+(?:w?string(?:_view)?+|TEXT|_T|QString|QByteArray)\s*+)?+[({]"
)
_TEXT_BUILDERS = frozenset(
    {"std", "string", "wstring", "string_view", "absl", "StrCat", "c_str", "data", "fmt", "format"}
)
_FIELD = re.compile(r"\{[^{}]*\}|%[-+ #0]*\d*(?:\.\d+)?(?:hh|h|ll|l|z|j|t)?[a-zA-Z]")
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*+")
_DEFINED = re.compile(r"(?<![\w.>])([A-Za-z_]\w*+)(?:\s*+\[\s*+\w*+\s*+\])?\s*+(\+?=(?!=)|[({])")
# A type or a declarator before a name that is initialised in brackets; not `return f("...")`.
_TYPE_BEFORE = re.compile(r"(?:[>*&]|\b(?!(?:return|case|else|throw|and|or|not|new)\b)[A-Za-z_]\w*+)\s*+\Z")
_LITERAL_STARTS = frozenset({'"', "L", "u", "U", "R"})
_OBJECT_MACRO = re.compile(r"[ \t]++([A-Za-z_]\w*+)(?!\()")


class Values:
    """Evaluates expressions of one file. A name is looked up in the functions around it, then in the file."""

    def __init__(self, source: Source, functions: Functions) -> None:
        self._source = source
        self._functions = functions
        self._known: dict[Span, list[Value]] = {}

    def of(self, span: Span) -> list[Value]:
        """The values that the expression at `span` may have; at least one."""
        if span not in self._known:
            text = encodable(" ".join(self._source.spelling(span.start, span.end).split()))[:_TEXT_LIMIT]
            # What a definition by itself, over any detour, comes back to.
            self._known[span] = [Value(text, pattern="*")]
            self._known[span] = list(dict.fromkeys(self._evaluate(text, self._unwrapped(span))))[:MAX_VALUES]
        return self._known[span]

    def definitions(self, name: str, offset: int | None = None) -> list["Definition"]:
        """What `name` is defined with: in the innermost function around `offset` that does so, else in the file.

        At most `MAX_VALUES`, those nearest before `offset`.
        """
        found = self._table.get(name, [])
        for function in self._functions.enclosing(offset) if offset is not None else ():
            first = bisect_left(found, function.body, key=lambda definition: definition.span.start)
            last = bisect_left(found, offset, key=lambda definition: definition.span.start)
            if first < last:
                return found[max(first, last - MAX_VALUES) : last]
        return found[:MAX_VALUES]

    def _evaluate(self, text: str, span: Span) -> list[Value]:
        code = self._source.view(span.start)[span.start : span.end].strip()
        strings = [encodable(string.value) for string in self._source.strings_in(span.start, span.end)]
        if len(strings) == 1 and code in ("", "s", "sv"):
            return [Value(text, literal=strings[0])]
        if strings and "?" in code and ":" in code:
            return [Value(text, literal=string) for string in strings]
        if not strings and _NUMBER.fullmatch(code):
            return [Value(text, literal=code)]
        if not strings and (name := _NAME.fullmatch(code)):
            return self._named(text, name[1], span.start)
        return [self._assembled(text, span)]

    def _named(self, text: str, name: str, offset: int) -> list[Value]:
        parameter = self._parameter(name, offset)
        if parameter:
            return [Value(text, parameter=parameter)]
        definitions = self.definitions(name, offset)
        if not definitions:
            return [Value(text, reference=name)]
        values = [value for definition in definitions for value in self.of(definition.span)]
        if any(definition.appends for definition in definitions):
            known = values[0].literal if values[0].literal is not None else values[0].pattern
            return [Value(text, pattern=_joined([known, "*"]), parameter=values[0].parameter)]
        return [msgspec.structs.replace(value, text=text) for value in values]

    def _parameter(self, name: str, offset: int) -> Parameter | None:
        for function in self._functions.enclosing(offset):
            for index, parameter in enumerate(function.parameters):
                if parameter.name == name:
                    value = self.of(parameter.default)[0] if parameter.default else None
                    text, literal = (value.text, value.literal) if value else (None, None)
                    return Parameter(function.name, index, name, text, literal)
        return None

    def _assembled(self, text: str, span: Span) -> Value:
        """A text that is put together: literals as they are, everything else unknown."""
        pieces: list[str] = []
        parameters: list[Parameter] = []
        position = span.start
        code = self._source.view(span.start)
        formats = "format" in code[span.start : span.end] or "printf" in text
        for string in [*self._source.strings_in(span.start, span.end), None]:
            gap_end = string.start if string else span.end
            for name in _IDENTIFIER.finditer(code, position, gap_end):
                if name[0] in _TEXT_BUILDERS or formats:
                    continue
                pieces.append("*")
                parameter = self._parameter(name[0], name.start())
                parameters += [parameter] if parameter else []
            if string:
                value = encodable(string.value)
                pieces.append(_FIELD.sub("*", value) if formats else value)
                position = string.end
        pattern = _joined(pieces) or "*"
        sole = parameters[0] if len(parameters) == 1 and pattern.count("*") == 1 and pattern != "*" else None
        return Value(text, pattern=pattern, parameter=sole)

    def _unwrapped(self, span: Span) -> Span:
        """Without `.c_str()`, `std::string(...)` and parentheses around the whole."""
        code = self._source.view(span.start)
        for _ in range(_MAX_WRAPPERS):
            inner = _AS_CHARS.search(code, span.start, span.end)
            if inner:
                span = Span(span.start, inner.start())
                continue
            opened = _CONVERSION.match(code, span.start, span.end)
            arguments = split_arguments(code, opened.end() - 1) if opened else []
            if len(arguments) != 1 or code[arguments[0].end + 1 : span.end].strip():
                break
            span = arguments[0]
        return span

    @cached_property
    def _table(self) -> dict[str, list["Definition"]]:
        table: dict[str, list[Definition]] = {}
        for name, definition in sorted(self._definitions(), key=lambda item: item[1].span.start):
            table.setdefault(name, []).append(definition)
        return table

    def _definitions(self) -> Iterator[tuple[str, "Definition"]]:
        code = self._source.live
        for directive in self._source.directives:
            if directive.keyword == "define" and (
                macro := _OBJECT_MACRO.match(self._source.macros, directive.body, directive.end)
            ):
                yield macro[1], Definition(Span(macro.end(), directive.end))
        for match in _DEFINED.finditer(code):
            if match[2] in ("=", "+="):
                end = expression_end(code, match.end())
                # A default argument belongs to its parameter.
                if code[end : end + 1] != ")":
                    yield match[1], Definition(Span(match.end(), end), match[2] == "+=")
            elif self._source.text[match.end() : match.end() + 1] in _LITERAL_STARTS:
                arguments = split_arguments(code, match.end() - 1)
                if len(arguments) == 1 and _TYPE_BEFORE.search(code, max(0, match.start() - _BEFORE), match.start()):
                    yield match[1], Definition(arguments[0])


class Definition(msgspec.Struct, frozen=True):
    """An expression that a name stands for, or with `appends` one that is added to its text."""

    span: Span
    appends: bool = False


def _joined(pieces: list[str]) -> str:
    """The pieces as one glob, neighbouring stars merged."""
    return re.sub(r"\*{2,}", "*", "".join(pieces))
