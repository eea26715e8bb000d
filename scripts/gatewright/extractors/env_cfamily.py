"""Reads of the process environment in C-family source.

Blind spots, each pinned by a test: iteration over `environ`, a name assembled in a buffer, a macro
that turns its argument into the name with `#`, a name that is passed through a data structure.
"""

import re
from collections.abc import Container, Iterator, Mapping

from gatewright.extractors.env_c_values import MAX_VALUES, Values
from gatewright.extractors.env_read import Argument, Call, Constant, EnvFacts, Options, Read, Value
from gatewright.readers.blocks import Span, split_arguments
from gatewright.readers.c_functions import Functions
from gatewright.readers.cfamily import Source
from gatewright.readers.positions import encodable

# Which argument of each reading function is the variable's name.
GETTERS: Mapping[str, int] = {
    "getenv": 0,
    "secure_getenv": 0,
    "__secure_getenv": 0,
    "_wgetenv": 0,
    "qgetenv": 0,
    "qEnvironmentVariable": 0,
    "GetEnvironmentVariable": 0,
    "GetEnvironmentVariableA": 0,
    "GetEnvironmentVariableW": 0,
    "_dupenv_s": 2,
    "_wdupenv_s": 2,
    "getenv_s": 3,
}
PREFILTER = re.compile(rb"getenv|dupenv|EnvironmentVariable")

_STATEMENT_LIMIT = 200
# The words before a name are looked at this far back.
_BEFORE = 80

_IDENTIFIER = re.compile(r"(?<!\w)[A-Za-z_]\w*+")
_GETTER = re.compile(r"\b(?:" + "|".join(GETTERS) + r")\b")
_CALLED = re.compile(r"\s*+(?:<[\w\s:,*&]*+>\s*+)?+[({]")
_CONSTRUCTED = re.compile(r"\s++([A-Za-z_]\w*+)\s*+[({]")
_LAST_WORD = re.compile(r"(?<!\w)([A-Za-z_]\w*+)\s*+\Z")
_SCOPE = re.compile(r"(?:(?<![\w:])([A-Za-z_]\w*+)\s*+)?::\s*+\Z")
_TARGET = re.compile(r"(?<!\w)([A-Za-z_]\w*+)\s*+=\s*+\Z")
# An argument that declares a parameter: a type before a name, or a pointer or reference without one.
_DECLARES = re.compile(
    r"[\w>&*]\s++[*&\s]*+[A-Za-z_]\w*+\s*+(?:=|\Z|\[)|[*&]\s*+[A-Za-z_]\w*+\s*+=|[\w>]\s*+[*&]++\s*+(?:\w*+\s*+)?\Z"
)
_STATEMENT = frozenset({"return", "case", "else", "do", "throw", "and", "or", "not", "co_return", "co_yield", "new"})


def extract(data: bytes, options: Options) -> list[EnvFacts]:
    """First pass: direct reads. With `options.names`: calls, constants and definitions of those names."""
    if options.names:
        wanted = frozenset(options.names)
        if not any(name.encode("utf-8", "surrogateescape") in data for name in wanted):
            return []
        file = _File(Source(data))
        facts = EnvFacts(
            calls=tuple(sorted(file.calls(wanted), key=lambda call: (call.line, call.column))),
            constants=tuple(file.constants(wanted)),
            defines=tuple(dict.fromkeys(header.name for header in file.functions.named(wanted))),
        )
        return [facts] if facts.calls or facts.constants or facts.defines else []
    if not PREFILTER.search(data):
        return []
    reads = tuple(sorted(_File(Source(data)).reads(), key=lambda read: (read.line, read.column)))
    return [EnvFacts(reads=reads)] if reads else []


class _Use:
    """A name in live code, and how it is used there."""

    def __init__(self, source: Source, code: str, start: int, end: int) -> None:
        self.start, self.name = start, code[start:end]
        before = code[max(0, start - _BEFORE) : start]
        scope = _SCOPE.search(before)
        self.scope = (scope[1] or "") if scope else ""
        before = before[: scope.start()] if scope else before
        self.before = before.rstrip()
        word = _LAST_WORD.search(before)
        self.after_name = word is not None and word[1] not in _STATEMENT
        target = _TARGET.search(before)
        self.target = target[1] if target else ""
        self.after = code[end : end + _BEFORE].lstrip()[:1]
        self.arguments: list[Span] = []
        if opened := _CALLED.match(code, end):
            self.arguments = split_arguments(code, opened.end() - 1)
        elif constructed := _CONSTRUCTED.match(code, end):
            self.arguments = split_arguments(code, constructed.end() - 1)
            self.target, self.after_name = constructed[1], False
        texts = bool(self.arguments) and bool(source.strings_in(self.arguments[0].start, self.arguments[-1].end))
        declares = any(_DECLARES.search(code, span.start, span.end) for span in self.arguments)
        self.is_call = (
            bool(self.arguments)
            and not declares
            and (texts or not (self.after_name or code[self.arguments[0].start - 1] == "{"))
        )

    @property
    def is_member(self) -> bool:
        return self.before.endswith((".", "->")) and not self.before.endswith("this->")

    @property
    def is_handed_on(self) -> bool:
        return not self.arguments and self.before.endswith(("=", "(", ",", "&")) and self.after in (";", ")", ",")


class _File:
    """The facts of one file."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.functions = Functions(source)
        self.values = Values(source, self.functions)

    def reads(self) -> Iterator[Read]:
        for use in self._uses(_GETTER, GETTERS):
            line, column, statement = self._place(use.start)
            index = GETTERS[use.name]
            if use.is_handed_on and not use.is_member:
                yield Read(line, column, "escape", Value(use.name, pattern="*"), statement)
            elif use.is_call and index < len(use.arguments):
                for value in self.values.of(use.arguments[index]):
                    if value.literal is not None or not use.is_member:
                        yield Read(line, column, use.name, value, statement)

    def calls(self, names: frozenset[str]) -> Iterator[Call]:
        for use in self._uses(_IDENTIFIER, names):
            if not use.is_call and not use.is_handed_on:
                continue
            line, column, statement = self._place(use.start)
            callee = "?." + use.name if use.is_member else f"{use.scope}.{use.name}" if use.scope else use.name
            arguments = [Argument("", value) for span in use.arguments for value in self.values.of(span)[:1]]
            form = "call" if use.is_call else "escape"
            yield Call(line, column, callee, tuple(arguments), statement, target=use.target, form=form)

    def constants(self, names: frozenset[str]) -> Iterator[Constant]:
        for name in sorted(names):
            definitions = self.values.definitions(name)
            texts = {None if d.appends else value.literal for d in definitions for value in self.values.of(d.span)}
            if definitions:
                line = self.source.position(definitions[0].span.start)[0]
                one_text = len(texts) == 1 and len(definitions) < MAX_VALUES
                yield Constant(name, texts.pop() if one_text else None, line)

    def _uses(self, pattern: re.Pattern[str], names: Container[str]) -> Iterator[_Use]:
        """Uses of `names` among what `pattern` finds in statements, then those in macros."""
        for code in (self.source.live, self.source.macros):
            for match in pattern.finditer(code):
                if match[0] in names and not self._is_defined_here(match.start()):
                    yield _Use(self.source, code, match.start(), match.end())

    def _is_defined_here(self, offset: int) -> bool:
        """Whether the name at `offset` is the one that its `#define` defines."""
        directive = self.source.directive_at(offset)
        return directive is not None and not self.source.code[directive.body : offset].strip()

    def _place(self, offset: int) -> tuple[int, int, str]:
        line, column = self.source.position(offset)
        return line, column, encodable(" ".join(self.source.statement(offset).split()))[:_STATEMENT_LIMIT]
