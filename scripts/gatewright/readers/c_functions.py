"""Which function definitions enclose a place in C-family source, and their parameters.

Told by brackets and the words before them, not by a grammar: enough to know the parameter of a
wrapper from other names. A body whose header cannot be read counts as part of what is around it.
"""

import re
from collections.abc import Iterator

import msgspec

from gatewright.readers.blocks import Blocks, Span, split_arguments
from gatewright.readers.cfamily import Source

_LAMBDA = re.compile(r"(?:\b(\w+)\s*=\s*)?(?<![\w)\]])\[[^\[\]]*\]\s*\(")
_CALLABLE = re.compile(r"((?:\b\w++\s*+::\s*+){0,8}\b[A-Za-z_]\w*+)\s*+\(")
_MACRO = re.compile(r"[ \t]*+([A-Za-z_]\w*+)\(")
_TYPE = re.compile(
    r"\b(?:class|struct|union)\b(?:\s+(?:alignas\s*\([^)]*\)|\[\[[^\]]*\]\]|[A-Z_]+\b(?=\s+\w)))*\s+(\w+)"
)
_NO_FUNCTION = frozenset({"decltype", "noexcept", "alignas", "__attribute__", "__declspec", "requires", "explicit"})
_CONTROL = frozenset({"if", "for", "while", "switch", "catch", "return", "do", "else"})
_LAST_NAME = re.compile(r"([A-Za-z_]\w*+)\s*+(?:\[[^\]]*\]\s*+)?\Z")


class NamedParameter(msgspec.Struct, frozen=True):
    """`name` is empty for an unnamed parameter; `default` is where its default argument stands."""

    name: str
    default: Span | None


class FunctionHeader(msgspec.Struct, frozen=True):
    """`name` is "function", or "Class.method"; a class stands for its constructor.

    A lambda that is bound to a name and a function-like macro count as functions. `body` is the
    offset where the definition's body begins.
    """

    name: str
    body: int
    parameters: tuple[NamedParameter, ...]

    @property
    def bare(self) -> str:
        return self.name.rpartition(".")[2]


class Functions:
    """The function definitions of one file."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._code = source.live
        self._blocks = Blocks(self._code)
        self._headers: dict[int, FunctionHeader | None] = {}

    def enclosing(self, offset: int) -> list[FunctionHeader]:
        """The functions around `offset`, innermost first."""
        directive = self._source.directive_at(offset)
        if directive and directive.keyword == "define":
            code = self._source.macros
            macro = _MACRO.match(code, directive.body)
            return [FunctionHeader(macro[1], directive.body, _parameters(code, macro.end() - 1))] if macro else []
        headers = (self._header(block) for block in self._blocks.around(offset))
        return [header for header in headers if header]

    def named(self, names: frozenset[str]) -> Iterator[FunctionHeader]:
        """The definitions whose bare name is one of `names`."""
        for block in self._blocks.parents:
            header = self._header(block)
            if header and header.bare in names:
                yield header
        for directive in self._source.directives:
            macro = _MACRO.match(self._source.macros, directive.body) if directive.keyword == "define" else None
            if macro and macro[1] in names:
                yield FunctionHeader(macro[1], directive.body, ())

    def _header(self, block: int) -> FunctionHeader | None:
        if block not in self._headers:
            self._headers[block] = self._read_header(block)
        return self._headers[block]

    def _read_header(self, block: int) -> FunctionHeader | None:
        """The function whose body opens at `block`; None for a type, a namespace, a loop, a branch."""
        start = self._blocks.header_start(block)
        if closure := _LAMBDA.search(self._code, start, block):
            return FunctionHeader(closure[1], block, _parameters(self._code, closure.end() - 1)) if closure[1] else None
        for match in _CALLABLE.finditer(self._code, start, block):
            name = match[1]
            if name in _CONTROL:
                return None
            if name not in _NO_FUNCTION:
                return FunctionHeader(self._qualified(name, block), block, _parameters(self._code, match.end() - 1))
        return None

    def _qualified(self, name: str, block: int) -> str:
        *scopes, bare = [part.strip() for part in name.split("::")]
        around = self._blocks.parents[block]
        if not scopes and around >= 0:
            scopes = _TYPE.findall(self._code, self._blocks.header_start(around), around)[:1]
        if not scopes or scopes[-1] == bare:
            return bare
        return f"{scopes[-1]}.{bare}"


def _parameters(code: str, parenthesis: int) -> tuple[NamedParameter, ...]:
    found = []
    for span in split_arguments(code, parenthesis):
        declared, equals, _ = code[span.start : span.end].partition("=")
        name = _LAST_NAME.search(declared.rstrip())
        default = Span(span.start + len(declared) + 1, span.end) if equals else None
        found.append(NamedParameter(name[1] if name else "", default))
    return tuple(found)
