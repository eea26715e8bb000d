"""From a reference in one file to the symbol it stands for in another, following imports and bases."""

from collections.abc import Container, Iterable, Iterator

from gatewright.extractors.env_read import Base, Constant, EnvFacts

Symbol = tuple[str, str]

# Chains of re-exports and base classes are followed this far.
MAX_STEPS = 16


class Modules:
    """The symbols of a tree's files, as far as the passes so far have asked for them.

    `wanted` collects bare names whose facts a further pass should bring.
    """

    def __init__(self, paths: Iterable[str]) -> None:
        self.wanted: set[str] = set()
        self.by_tail: dict[str, list[tuple[str, ...]]] = {}
        self.files: dict[tuple[str, ...], str] = {}
        for path in paths:
            if path.endswith(".py"):
                parts = module_parts(path)
                self.files[parts] = path
                if parts:
                    self.by_tail.setdefault(parts[-1], []).append(parts)
        self.exports: dict[str, dict[str, dict[str, None]]] = {}
        self.values: dict[Symbol, Constant] = {}
        self.bases: dict[Symbol, dict[Base, None]] = {}
        self.defined: dict[str, dict[str, None]] = {}

    def add(self, path: str, facts: EnvFacts) -> None:
        for export in facts.exports:
            self.exports.setdefault(path, {}).setdefault(export.name, {})[export.target] = None
        for constant in facts.constants:
            self.values[path, constant.name] = constant
        for base in facts.bases:
            self.bases.setdefault((path, base.name), {})[base] = None
        for name in facts.defines:
            self.defined.setdefault(bare_name(name), {})[f"{path}\0{name}"] = None

    def find(self, path: str, reference: str) -> Iterator[Symbol]:
        """The symbols of the tree that a reference may stand for, aliases resolved."""
        if not path.endswith(".py"):
            yield from self._bare(path, reference)
            return
        yield from dict.fromkeys(self._python(path, reference, MAX_STEPS))

    def lookup(self, path: str, reference: str, known: Container[Symbol]) -> Iterator[Symbol]:
        """Those of `known` that a reference stands for, base classes included."""
        for symbol in self.find(path, reference):
            yield from dict.fromkeys(self._inherited(symbol, known, MAX_STEPS))

    def constants(self, path: str, reference: str) -> list[str | None]:
        """The texts that a constant may have; None for one that is bound more than once."""
        bare = bare_name(reference)
        self.wanted.add(bare)
        if path.endswith(".py"):
            found = list(self.lookup(path, reference, self.values.keys()))
        else:
            found = _own_first(path, [symbol for symbol in self.values if bare_name(symbol[1]) == bare])
        return list(dict.fromkeys(self.values[symbol].value for symbol in found))

    def derived(self, path: str, name: str) -> Iterator[str]:
        """Bare names of the known classes that have the class `name` among their bases."""
        for (where, own), bases in self.bases.items():
            for base in bases:
                if bare_name(base.base) == bare_name(name) and (path, name) in self.find(where, base.base):
                    yield bare_name(own)

    def _python(self, path: str, reference: str, steps: int) -> Iterator[Symbol]:
        if not steps:
            return
        if reference.startswith(":"):
            yield from self._member(path, reference[1:].split("."), steps)
            return
        level = len(reference) - len(reference.lstrip("."))
        parts = tuple(reference[level:].split("."))
        if level:
            package = module_parts(path)
            keep = len(package) - level + path.endswith("__init__.py")
            parts = (*package[: max(keep, 0)], *parts)
        for length in range(len(parts), 0, -1):
            target = self._file(path, parts[:length], absolute=bool(level))
            if target is not None:
                if parts[length:]:
                    yield from self._member(target, list(parts[length:]), steps)
                return

    def _member(self, path: str, names: list[str], steps: int) -> Iterator[Symbol]:
        """A symbol of one file: its own, or what it imports under that name."""
        self.wanted.add(names[0])
        exports = self.exports.get(path, {})
        targets = exports.get(names[0], {})
        for target in targets:
            yield from self._python(path, ".".join((target, *names[1:])), steps - 1)
        if targets:
            return
        yield path, ".".join(names)
        for module in exports.get("*", {}):
            separator = "" if module.endswith(".") else "."
            yield from self._python(path, module + separator + ".".join(names), steps - 1)

    def _inherited(self, symbol: Symbol, known: Container[Symbol], steps: int) -> Iterator[Symbol]:
        if symbol in known:
            yield symbol
            return
        path, name = symbol
        owner, _, attribute = name.rpartition(".")
        for key, rest in ((symbol, ""), ((path, owner), "." + attribute)):
            for base in self.bases.get(key, ()) if steps else ():
                if not rest and base.constructor:
                    continue
                for target in self.find(path, base.base + rest):
                    yield from self._inherited(target, known, steps - 1)

    def _file(self, importer: str, parts: tuple[str, ...], *, absolute: bool) -> str | None:
        """The file of a module: at the root, beside or above its importer, or the only one of that name."""
        if parts in self.files or absolute:
            return self.files.get(parts)
        folder = importer.split("/")[:-1]
        for depth in range(len(folder), 0, -1):
            candidate = (*folder[:depth], *parts)
            if candidate in self.files:
                return self.files[candidate]
        rooted = [
            module
            for module in self.by_tail.get(parts[-1], ())
            if module[-len(parts) :] == parts and module[: -len(parts)] not in self.files
        ]
        return self.files[rooted[0]] if len(rooted) == 1 else None

    def _bare(self, path: str, reference: str) -> Iterator[Symbol]:
        """Languages without imports here: the file's own symbol of that name, else every other file's."""
        name = bare_name(reference)
        self.wanted.add(name)
        symbols = [(where, own) for where, _, own in (key.partition("\0") for key in self.defined.get(name, ()))]
        yield from _own_first(path, symbols)


def _own_first(path: str, symbols: Iterable[Symbol]) -> list[Symbol]:
    rust = path.endswith(".rs")
    same = [symbol for symbol in symbols if symbol[0].endswith(".rs") == rust and not symbol[0].endswith(".py")]
    return [symbol for symbol in same if symbol[0] == path] or same


def bare_name(reference: str) -> str:
    """The last part of a reference, whatever separates its parts."""
    return reference.replace("::", ".").rpartition(".")[2].removeprefix(":")


def module_parts(path: str) -> tuple[str, ...]:
    """`a/b/c.py` -> (a, b, c); a package is its folder."""
    parts = path.removesuffix(".py").split("/")
    return tuple(parts[:-1] if parts[-1] == "__init__" else parts)
