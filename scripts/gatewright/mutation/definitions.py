"""The named parts of a Python file and their digests: what a verdict is remembered by."""

import ast
from bisect import bisect_right
from hashlib import blake2b

import msgspec


class Definition(msgspec.Struct, frozen=True):
    """A function, method or top-level statement, from its first decorator to its last line.

    `body` is the first line that runs when it is called: defining it runs those before. `uses` are
    the names and attributes in it. Code between definitions belongs to none.
    """

    name: str
    first: int
    body: int
    last: int
    digest: bytes
    uses: frozenset[str]
    is_function: bool
    is_fixture: bool = False
    # It runs for the first test that asks, and all that follow see its result.
    is_cached: bool = False


class Definitions:
    """The parts of one file. A file that does not parse is one part."""

    def __init__(self, source: bytes) -> None:
        self.lines = source.splitlines(keepends=True)
        try:
            parts = list(self._parts(ast.parse(source).body, ""))
        except SyntaxError:
            digest = blake2b(source, digest_size=16).digest()
            parts = [Definition("<module>", 1, 1, len(self.lines) + 1, digest, frozenset(), False)]
        self.parts = sorted(parts, key=lambda part: part.first)
        self._starts = [part.first for part in self.parts]

    def _parts(self, body: list[ast.stmt], scope: str) -> "list[Definition]":
        parts = []
        for node in body:
            if isinstance(node, ast.ClassDef):
                inner = self._parts(node.body, f"{scope}{node.name}.")
                first = inner[0].first if inner else node.lineno + 1
                head = self._part(node, f"{scope}{node.name}", last=max(node.lineno, first - 1), walk=False)
                parts += [head, *inner]
            else:
                parts.append(self._part(node, scope + _own_name(node)))
        return parts

    def _part(self, node: ast.stmt, name: str, last: int = 0, *, walk: bool = True) -> Definition:
        decorators = getattr(node, "decorator_list", [])
        first = min([node.lineno, *(d.lineno for d in decorators)])
        last = last or node.end_lineno or node.lineno
        names = {n.id if isinstance(n, ast.Name) else n.attr for n in ast.walk(node) if isinstance(n, _NAMES)}
        return Definition(
            name,
            first,
            node.body[0].lineno if isinstance(node, _FUNCTIONS) else first,
            last,
            blake2b(b"".join(self.lines[first - 1 : last]), digest_size=16).digest(),
            frozenset(names) if walk else frozenset(),
            isinstance(node, _FUNCTIONS),
            any("fixture" in ast.unparse(d) for d in decorators),
            any(ast.unparse(d).partition("(")[0].rpartition(".")[2] in ("cache", "lru_cache") for d in decorators),
        )

    def at(self, line: int) -> Definition | None:
        """The part that `line` lies in."""
        number = bisect_right(self._starts, line) - 1
        part = self.parts[number] if number >= 0 else None
        return part if part is not None and line <= part.last else None

    def reach(self, start: Definition) -> list[Definition]:
        """`start` and the parts of the file that it names, directly or through others."""
        by_name: dict[str, list[Definition]] = {}
        for part in self.parts:
            by_name.setdefault(part.name.rpartition(".")[2], []).append(part)
        found = {start.first: start}
        queue = [start]
        while queue:
            for name in queue.pop().uses:
                for part in by_name.get(name, ()):
                    if part.first not in found:
                        found[part.first] = part
                        queue.append(part)
        return [found[first] for first in sorted(found)]


def _own_name(node: ast.stmt) -> str:
    """What a statement defines or binds."""
    targets = getattr(node, "targets", [getattr(node, "target", None)])
    bound = next((target.id for target in targets if isinstance(target, ast.Name)), "<module>")
    return getattr(node, "name", bound)


_NAMES = (ast.Name, ast.Attribute)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def digest(parts: "list[bytes]") -> bytes:
    state = blake2b(digest_size=16)
    for part in parts:
        state.update(len(part).to_bytes(8, "big") + part)
    return state.digest()
