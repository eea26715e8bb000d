"""Python source through `ast`: decoding, columns as people count them, and what names mean."""

import ast
import re
import warnings
from bisect import bisect_left
from codecs import BOM_UTF8, lookup

import msgspec

from gatewright.readers.python_lexer import TOKEN, split_lines, without_definitions

# PEP 263: in a comment on line 1, or on line 2 when line 1 is blank or a comment.
_COOKIE = re.compile(
    rb"(?:[ \t\f]*(?:#[^\r\n]*)?(?:\r\n|\r|\n))?[ \t\f]*#[^\r\n]*?coding[:=][ \t]*([-\w.]+)",
)
_ASCII_BASED = frozenset({"utf-8", "ascii"})


class Source(msgspec.Struct, frozen=True):
    """One decoded file. `tree` is None when it does not parse; `error` then says why."""

    text: str
    lines: list[str]
    tree: ast.Module | None
    error: str = ""
    _continuations: dict[int, list[int]] = msgspec.field(default_factory=dict)

    def column(self, line: int, offset: int) -> int:
        """The 1-based column in code points of a 0-based offset in UTF-8 bytes (as `ast` gives it)."""
        text = self.lines[line - 1]
        if text.isascii():
            return offset + 1
        inner = self._continuations.get(line)
        if inner is None:
            inner = [i for i, byte in enumerate(text.encode("utf-8", "surrogatepass")) if byte & 0xC0 == 0x80]
            self._continuations[line] = inner
        return offset + 1 - bisect_left(inner, offset)

    def segment(self, first: ast.AST, last: ast.AST, limit: int) -> str:
        """The source from the start of `first` to the end of `last`, without comments, about `limit` long."""
        start: int = first.lineno  # type: ignore[attr-defined]
        end: int = last.end_lineno  # type: ignore[attr-defined]
        left = self.column(start, first.col_offset) - 1  # type: ignore[attr-defined]
        right = self.column(end, last.end_col_offset) - 1  # type: ignore[attr-defined]
        if start == end:
            return self.lines[start - 1][left : min(right, left + limit)]
        pieces = [self.lines[start - 1][left : left + limit]]
        size = len(pieces[0])
        for number in range(start + 1, end + 1):
            if size > limit:
                break
            line = self.lines[number - 1]
            pieces.append(line[: min(right, limit)] if number == end else line[:limit])
            size += len(pieces[-1].lstrip())
        return TOKEN.sub(_without_comment, "\n".join(pieces))


def _without_comment(token: re.Match[str]) -> str:
    return "" if token[0].startswith("#") else token[0]


def utf8(data: bytes) -> bytes:
    """The bytes of a source file in UTF-8 without a byte order mark; as they are where they cannot be decoded."""
    if data.startswith(BOM_UTF8):
        return data[len(BOM_UTF8) :]
    cookie = _COOKIE.match(data)
    if cookie is None:
        return data
    try:
        name = lookup(cookie[1].decode("ascii")).name
        if name in _ASCII_BASED:
            return data
        return data.decode(name).encode()
    except (LookupError, UnicodeError, ValueError):
        return data


def parse(data: bytes) -> Source:
    """Parse a file whatever its encoding and content; never raises."""
    return parse_utf8(utf8(data))


def parse_utf8(data: bytes) -> Source:
    """Parse what `utf8` gave: a coding cookie in it no longer counts."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        text = data.decode("utf-8", "replace")
        return Source(text, split_lines(text), None, f"not {error.encoding} at byte {error.start}")
    return Source(text, split_lines(text), *_tree(text))


def parse_around(data: bytes, hits: list[int]) -> Source | None:
    """As `parse_utf8`, but definitions that hold none of the ascending offsets have no body in the tree.

    None where that cannot be told from a cheap look at the lines.
    """
    part = without_definitions(data, hits)
    if part is None:
        return None
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    tree, _ = _tree(part.decode())
    return None if tree is None else Source(text, split_lines(text), tree)


def _tree(text: str) -> tuple[ast.Module | None, str]:
    """The tree, or why there is none."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text), ""
    except (SyntaxError, ValueError) as error:
        return None, getattr(error, "msg", None) or str(error)
    except (RecursionError, MemoryError):
        return None, "nested too deeply for the parser"


def dotted(node: ast.AST) -> str | None:
    """`a.b.c` for a chain of attributes on a name, else None."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    names.append(node.id)
    return ".".join(reversed(names))


class Scope(msgspec.Struct, kw_only=True):
    """What names mean in one module, class or function body, whatever the order of its statements."""

    parent: "Scope | None" = None
    is_class: bool = False
    aliases: dict[str, str] = msgspec.field(default_factory=dict)
    bound: set[str] = msgspec.field(default_factory=set)

    def resolve(self, name: str) -> str:
        """The dotted name that `name` stands for; `name` itself when no import or alias says so."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.aliases:
                return scope.aliases[name]
            if name in scope.bound:
                return name
            scope = scope.parent
            while scope is not None and scope.is_class:
                scope = scope.parent
        return name

    def resolve_chain(self, chain: str) -> str:
        head, dot, rest = chain.partition(".")
        return self.resolve(head) + dot + rest

    def bind_import(self, node: ast.Import | ast.ImportFrom) -> None:
        """Record what an import statement binds. Relative modules keep their leading dots."""
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.asname:
                    self.aliases[alias.asname] = alias.name
                else:
                    root = alias.name.partition(".")[0]
                    self.aliases[root] = root
            return
        for module, alias in zip(imported_modules(node), node.names, strict=True):
            if alias.name != "*":
                self.aliases[alias.asname or alias.name] = module

    def bind_target(self, target: ast.AST) -> None:
        """Record the names that an assignment target binds."""
        targets = [target]
        while targets:
            node = targets.pop()
            if isinstance(node, ast.Name):
                self.bound.add(node.id)
            elif isinstance(node, ast.Tuple | ast.List):
                targets += node.elts
            elif isinstance(node, ast.Starred):
                targets.append(node.value)


def arguments_of(arguments: ast.arguments) -> list[ast.arg]:
    """All parameters of a function."""
    named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    return named + [arg for arg in (arguments.vararg, arguments.kwarg) if arg is not None]


def imported_modules(node: ast.Import | ast.ImportFrom) -> list[str]:
    """The dotted name of each thing imported: `from ..a import b` gives `..a.b`."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    module = "." * node.level + (node.module or "")
    separator = "" if module.endswith(".") or not module else "."
    return [module if alias.name == "*" else f"{module}{separator}{alias.name}" for alias in node.names]
