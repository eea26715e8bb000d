"""What kind of code lies where in a repository, guessed from the names of folders and files alone."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath

import msgspec

from gatewright.init.words import WORDS

PYTHON = (".py",)
CFAMILY = (".c", ".cc", ".cpp", ".cxx", ".h", ".hh", ".hpp", ".hxx", ".inl", ".ipp")
RUST = (".rs",)
SOURCES = frozenset({*PYTHON, *CFAMILY, *RUST, *WORDS.device_source})

_FOLDERS = WORDS.folders
_KEPT_OUT = _FOLDERS.tests | _FOLDERS.vendored | _FOLDERS.examples


class Layout(msgspec.Struct):
    """Globs of the packages by language, and of what is left out.

    `exclude` lies inside the packages; `tests` and `vendored` are top folders, `aside` names the other
    ones. `known` and `other` are the folders of the packages, with and without the name of a layer.
    """

    python: list[str]
    cfamily: list[str]
    rust: list[str]
    exclude: list[str]
    tests: list[str]
    vendored: list[str]
    aside: list[str]
    known: list[str]
    other: list[str]
    names: list[str]


def guess_layout(files: Iterable[str]) -> tuple[Layout, "Packages"]:
    """The layout of a tree with these paths. Every glob in it matches at least one of them."""
    product: list[str] = []
    left_out: list[tuple[str, str]] = []
    for path in files:
        if PurePosixPath(path).suffix in SOURCES and path.isprintable():
            glob = _left_out(path)
            (left_out.append((path, glob)) if glob else product.append(path))
    packages = Packages(product)
    exclude: set[str] = set()
    tops = set(packages.scripts)
    for path, glob in left_out:
        root = packages.root(path)
        if root in packages.roots:
            exclude.add(f"{literal(root)}/**/{glob}")
        else:
            tops.add(path.split("/")[0])
    known, other = _folders(packages)
    tests = {top for top in tops if top.lower() in _FOLDERS.tests}
    vendored = {top for top in tops if top.lower() in _FOLDERS.vendored}
    return Layout(
        python=packages.globs(PYTHON),
        cfamily=packages.globs((*CFAMILY, *WORDS.device_source)),
        rust=packages.globs(RUST),
        exclude=sorted(exclude),
        tests=[f"{literal(top)}/**" for top in sorted(tests)],
        vendored=[f"{literal(top)}/**" for top in sorted(vendored)],
        aside=sorted(tops - tests - vendored),
        known=known,
        other=other,
        names=packages.names,
    ), packages


def literal(path: str) -> str:
    """A glob for one path: the characters that mean something in a glob match any one character."""
    return re.sub(r"[*?{}]", "?", path)


def _left_out(path: str) -> str:
    """A glob, below its package, for a file that is no product; nothing for one that is."""
    parts = path.split("/")
    for depth, part in enumerate(parts[:-1]):
        low = part.lower()
        if low in _KEPT_OUT or low.endswith(("_vendored", "_test", "_tests")):
            return f"{literal(part)}/**"
        if depth == 0 and (low in _FOLDERS.side or part.startswith(".")):
            return f"{literal(part)}/**"
    name, suffix = parts[-1], PurePosixPath(path).suffix
    if name in ("conftest.py", "setup.py") or len(parts) == 1:
        return literal(name)
    if name.startswith("test_"):
        return "test_*"
    return f"*_test{suffix}" if name.endswith(f"_test{suffix}") else ""


class Packages:
    """The product's files, each with the folder of its package.

    A package lies in a top folder, or one below where the top folder is a container of packages.
    `scripts` are top folders of loose Python files beside a real package, or of next to nothing.
    """

    def __init__(self, files: Sequence[str]) -> None:
        modules = {path.removesuffix("/__init__.py") for path in files if path.endswith("/__init__.py")}
        below: dict[str, set[str]] = defaultdict(set)
        for path in files:
            below[path.split("/")[0]].add("/".join(path.split("/")[:2]) if path.count("/") > 1 else "")
        self._split = {
            top
            for top, inner in below.items()
            if top in _FOLDERS.containers and (len(inner - {""}) == 1 or inner & modules)
        }
        sizes = Counter(map(self.root, files))
        self.python = modules & sizes.keys()
        other = {self.root(path) for path in files if not path.endswith(PYTHON)}
        self.scripts = sorted(
            root
            for root, size in sizes.items()
            if root not in self.python and ((self.python and root not in other) or size * 100 < len(files))
        )
        self.roots = sorted(sizes.keys() - set(self.scripts))
        self.files = [path for path in files if self.root(path) not in self.scripts]
        inner = {root: sorted(below[root] - {""}) for root in self.roots if root in _FOLDERS.containers}
        folders = [folder for root in self.roots for folder in inner.get(root, [root])]
        self.names = list(dict.fromkeys(folder.rpartition("/")[2] for folder in folders))

    def root(self, path: str) -> str:
        parts = path.split("/")
        return "/".join(parts[: 2 if parts[0] in self._split and len(parts) > 2 else 1])

    def folders(self, path: str) -> list[str]:
        """The folders of a path from the top; the package's own only where it is no Python package."""
        parts, own = path.split("/"), self.root(path)
        first = own.count("/") + (2 if own in self.python or own in _FOLDERS.containers else 1)
        return ["/".join(parts[:depth]) for depth in range(first, len(parts))]

    def globs_outside(self, paths: Iterable[str]) -> list[str]:
        """The globs of both languages of layers, for packages that are not wholly made of `paths`."""
        return [*self.globs(PYTHON, paths), *self.globs(CFAMILY, paths)]

    def globs(self, suffixes: Sequence[str], without: Iterable[str] = ()) -> list[str]:
        """One glob for each package with files of these suffixes."""
        found: dict[str, set[str]] = defaultdict(set)
        without = set(without)
        for path in self.files:
            if PurePosixPath(path).suffix in suffixes and path not in without:
                found[self.root(path)].add(PurePosixPath(path).suffix)
        return [
            f"{literal(root)}/**/*{_ending([s for s in suffixes if s in used])}" for root, used in sorted(found.items())
        ]


def _ending(suffixes: Sequence[str]) -> str:
    return suffixes[0] if len(suffixes) == 1 else ".{" + ",".join(s[1:] for s in suffixes) + "}"


def _folders(packages: Packages) -> tuple[list[str], list[str]]:
    folders = set()
    for path in packages.files:
        root = packages.root(path)
        inner = path[len(root) + 1 :].split("/")
        if len(inner) > 1:
            folders.add(f"{root}/{inner[0]}")
    known = {folder for folder in folders if folder.rpartition("/")[2].lower() in _FOLDERS.layers}
    return sorted(known), sorted(folders - known)
