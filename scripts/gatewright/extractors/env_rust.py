"""Reads of the process environment in Rust source.

Knows `std::env::var` and its kin, `env!`, `option_env!`, and what clap reads: `env = "X"`, a bare
`env` (the field's name in capitals) and `.env("X")`. Blind spots, each pinned by a test: iteration
over `vars()`, a read inside `macro_rules!` whose name is a macro argument, configuration libraries
that derive names from a prefix.
"""

import re
from collections.abc import Iterator
from functools import cached_property

import msgspec

from gatewright.extractors.env_read import Argument, Call, Constant, EnvFacts, Options, Parameter, Read, Value
from gatewright.readers.blocks import Span, expression_end, split_arguments
from gatewright.readers.positions import encodable
from gatewright.readers.rust import Source

PREFILTER = re.compile(rb"\benv\b|dotenv|\bvar(?:_os)?\b")

_STATEMENT_LIMIT = 200
_REACH = 400
_MAX_WRAPPERS = 4
_MAX_VALUES = 16

_CALL = re.compile(r"(?<![\w.:])((?:\w++\s*+::\s*+){0,8})(var|var_os)\s*+\(")
_MODULES = frozenset({"env", "dotenv", "dotenvy"})
_IMPORTED = re.compile(r"\buse\s+(?:std::)?env::(?:(var|var_os)\b|\{[^{}]*\b(?:var|var_os)\b)")
_MACRO = re.compile(r"(?<!\w)(env|option_env)\s*!\s*[(\[{]")
_CLAP = re.compile(r"#\s*\[\s*(?:arg|clap|structopt)\s*\(")
_CLAP_ENV = re.compile(r"(?<![\w.])env\s*+(=\s*+)?")
_BUILDER = re.compile(r"\.\s*env\s*\(")
_FIELD = re.compile(r"(?:\s|#\s*\[[^\]]*\]|\bpub\b(?:\s*\([^)]*\))?)*+(\w+)\s*:")
_FN = re.compile(r"\bfn\s+(\w+)\s*(?:<[^(]*>)?\s*\(")
_IMPL = re.compile(r"\b(?:impl\b.*\bfor\s+|impl\s*(?:<[^{]*?>)?\s*|trait\s+)(?:\w+\s*::\s*)*(\w+)", re.DOTALL)
_PARAMETER = re.compile(r"\s*(?:mut\s+)?(\w+)\s*:")
_CONSTANT = re.compile(r"\b(?:const|static|let)\s+(?:mut\s+)?(\w+)\s*(?::[^=;{}]{0,200}+)?=")
_NAME = re.compile(r"(?:\w+\s*::\s*)*(\w+)")
_CONVERSION = re.compile(r"\s*\.\s*(?:as_str|as_ref|to_string|to_owned|into|clone|borrow|as_os_str)\s*\(\s*\)\s*\Z")
_ASSEMBLING = re.compile(r"\s*(format|concat)\s*!\s*([(\[{])")
_PLACEHOLDER = re.compile(r"\{\{|\}\}|\{(\w*)[^{}]*\}")
_SELF = re.compile(r"\s*(?:&\s*(?:'\w+\s*)?)?(?:mut\s+)?self\b.*", re.DOTALL)
_CALLED = re.compile(r"\s*(?:::\s*<[^<>()]*>\s*)?\(")
_TARGET = re.compile(r"\b(\w+)\s*(?::[^=;{}]*)?=\s*(?:\w+\s*::\s*)*\Z")
_IDENTIFIER = re.compile(r"(?<!\w)[A-Za-z_]\w*+")


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
            defines=tuple(name for name in file.functions.values() if name.rpartition(".")[2] in wanted),
        )
        return [facts] if facts.calls or facts.constants or facts.defines else []
    if not PREFILTER.search(data):
        return []
    reads = tuple(sorted(_File(Source(data)).reads(), key=lambda read: (read.line, read.column)))
    return [EnvFacts(reads=reads)] if reads else []


class _File:
    """The facts of one file."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.code = source.live
        self._values: dict[Span, Value] = {}
        self.functions: dict[int, str] = {}
        self._parameters: dict[int, list[Span]] = {}
        for block in source.blocks.parents:
            start = source.blocks.header_start(block)
            function = _FN.search(self.code, start, block)
            if function:
                self.functions[block] = self._qualified(function[1], block)
                self._parameters[block] = self._own_parameters(function.end() - 1)

    def reads(self) -> Iterator[Read]:
        imported = _IMPORTED.search(self.code) is not None
        for match in _CALL.finditer(self.code):
            module = match[1].replace("::", " ").split()
            if module[-1] in _MODULES if module else imported:
                yield from self._read(match.start(), match.end() - 1, match[2])
        for match in _MACRO.finditer(self.code):
            yield from self._read(match.start(), match.end() - 1, match[1] + "!")
        for match in _BUILDER.finditer(self.code):
            # With two arguments it is a process builder, which sets the variable for its child.
            if len(split_arguments(self.code, match.end() - 1)) == 1:
                yield from self._read(match.start(), match.end() - 1, "clap")
        for match in _CLAP.finditer(self.code):
            yield from self._clap(match.end() - 1)

    def _read(self, offset: int, bracket: int, form: str) -> Iterator[Read]:
        arguments = split_arguments(self.code, bracket)
        if arguments:
            yield self._site(offset, form, self.value(arguments[0]))

    def _clap(self, bracket: int) -> Iterator[Read]:
        arguments = split_arguments(self.code, bracket)
        for span in arguments:
            found = _CLAP_ENV.match(self.code, *_trimmed(self.code, span))
            if found and found[1]:
                yield self._site(found.start(), "clap", self.value(Span(found.end(), span.end)))
            elif found and found.end() == _trimmed(self.code, span)[1]:
                close = self.code.find("]", arguments[-1].end)
                field = _FIELD.match(self.code, close + 1, close + 1 + _REACH) if close >= 0 else None
                if field:
                    yield self._site(found.start(), "clap", Value(field[1], literal=field[1].upper()))

    def calls(self, names: frozenset[str]) -> Iterator[Call]:
        for match in _IDENTIFIER.finditer(self.code):
            if match[0] not in names:
                continue
            before = self.code[max(0, match.start() - _REACH) : match.start()].rstrip()
            arguments = _CALLED.match(self.code, match.end())
            if arguments is None or before.endswith("fn"):
                continue
            spans = split_arguments(self.code, arguments.end() - 1)
            callee = f"?.{match[0]}" if before.endswith(".") and not before.endswith("self.") else match[0]
            target = _TARGET.search(before)
            line, column, statement = self._place(match.start())
            values = tuple(Argument("", self.value(span)) for span in spans)
            yield Call(line, column, callee, values, statement, target=target[1] if target else "")

    def constants(self, names: frozenset[str]) -> Iterator[Constant]:
        for name in sorted(names & self._definitions.keys()):
            values = {self.value(span).literal for span in self._definitions[name]}
            line = self.source.position(self._definitions[name][0].start)[0]
            yield Constant(name, values.pop() if len(values) == 1 else None, line)

    def value(self, span: Span) -> Value:
        """What the expression at `span` says about a text."""
        if span not in self._values:
            text = encodable(" ".join(self.source.spelling(span.start, span.end).split()))[:_STATEMENT_LIMIT]
            # What a definition by itself, over any detour, comes back to.
            self._values[span] = Value(text, pattern="*")
            self._values[span] = self._evaluate(text, self._unwrapped(span))
        return self._values[span]

    def _evaluate(self, text: str, span: Span) -> Value:
        code = self.code[span.start : span.end].strip(" \t\r\n&*")
        strings = [encodable(string.value) for string in self.source.strings_in(span.start, span.end)]
        if len(strings) == 1 and not code:
            return Value(text, literal=strings[0])
        if not strings and code.isascii() and code.isdigit():
            return Value(text, literal=code)
        if not strings and (name := _NAME.fullmatch(code)):
            return self._named(text, name[1], span.start)
        if assembling := _ASSEMBLING.match(self.code, span.start, span.end):
            return self._assembled(text, assembling[1], assembling.end() - 1)
        return Value(text, pattern="*")

    def _named(self, text: str, name: str, offset: int) -> Value:
        parameter = self._parameter(name, offset)
        if parameter:
            return Value(text, parameter=parameter)
        spans = self._definitions.get(name, [])
        values = dict.fromkeys(self.value(span) for span in spans[:_MAX_VALUES])
        if not values:
            return Value(text, reference=name)
        return msgspec.structs.replace(next(iter(values)), text=text) if len(values) == 1 else Value(text, pattern="*")

    def _assembled(self, text: str, macro: str, bracket: int) -> Value:
        """`concat!("A", "B")` and `format!("ENGINE_{}", name)`, whose holes are unknown."""
        arguments = split_arguments(self.code, bracket)
        parts = [self.value(span) for span in arguments]
        if macro == "concat":
            known = [part.literal for part in parts if part.literal is not None]
            if len(known) == len(parts):
                return Value(text, literal="".join(known))
            return Value(text, pattern=_stars(*(part.literal or "*" for part in parts)))
        template = parts[0].literal if parts else None
        if template is None:
            return Value(text, pattern="*")
        holes = [hole[1] for hole in _PLACEHOLDER.finditer(template) if hole[1] is not None]
        pattern = _stars(_PLACEHOLDER.sub(lambda hole: hole[0][0] if hole[1] is None else "*", template))
        if not holes:
            return Value(text, literal=pattern)
        parameter = None
        if len(holes) == 1 and pattern != "*":
            inline = self._parameter(holes[0], bracket) if holes[0] else None
            parameter = inline or (parts[1].parameter if len(parts) > 1 and not parts[1].pattern else None)
        return Value(text, pattern=pattern, parameter=parameter)

    def _parameter(self, name: str, offset: int) -> Parameter | None:
        for block in self.source.blocks.around(offset):
            for index, span in enumerate(self._parameters.get(block, ())):
                declared = _PARAMETER.match(self.code, span.start, span.end)
                if declared and declared[1] == name:
                    return Parameter(self.functions[block], index, name)
        return None

    def _own_parameters(self, bracket: int) -> list[Span]:
        """Parameters as a caller of the method writes them."""
        spans = split_arguments(self.code, bracket)
        if spans and _SELF.fullmatch(self.code, spans[0].start, spans[0].end):
            return spans[1:]
        return spans

    def _qualified(self, name: str, block: int) -> str:
        around = self.source.blocks.parents[block]
        if around < 0:
            return name
        owner = _IMPL.search(self.code, self.source.blocks.header_start(around), around)
        return f"{owner[1]}.{name}" if owner else name

    def _unwrapped(self, span: Span) -> Span:
        for _ in range(_MAX_WRAPPERS):
            conversion = _CONVERSION.search(self.code, span.start, span.end)
            if conversion is None:
                break
            span = Span(span.start, conversion.start())
        return span

    @cached_property
    def _definitions(self) -> dict[str, list[Span]]:
        found: dict[str, list[Span]] = {}
        for match in _CONSTANT.finditer(self.code):
            span = Span(match.end(), expression_end(self.code, match.end()))
            found.setdefault(match[1], []).append(span)
        return found

    def _site(self, offset: int, form: str, name: Value) -> Read:
        line, column, statement = self._place(offset)
        return Read(line, column, form, name, statement)

    def _place(self, offset: int) -> tuple[int, int, str]:
        line, column = self.source.position(offset)
        start = max(0, offset - _REACH, *(self.code.rfind(mark, max(0, offset - _REACH), offset) + 1 for mark in ";{}"))
        ends = (at for mark in ";{}" if (at := self.code.find(mark, offset, offset + _REACH)) >= 0)
        end = min(ends, default=offset + _REACH - 1) + 1
        return line, column, encodable(" ".join(self.source.spelling(start, end).split()))[:_STATEMENT_LIMIT]


def _trimmed(code: str, span: Span) -> tuple[int, int]:
    text = code[span.start : span.end]
    return span.start + len(text) - len(text.lstrip()), span.start + len(text.rstrip())


def _stars(*pieces: str) -> str:
    return re.sub(r"\*{2,}", "*", "".join(pieces))
