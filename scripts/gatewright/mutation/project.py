"""What is mutated and by which suites it is judged: the layout of a tree, and the modules of a target."""

import ast
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath

import msgspec

from gatewright.core.errors import PolicyError

# A check stands on these; what lies in other packages is a target of its own.
_FOUNDATIONS = ("checks", "extractors", "readers")


class Project(msgspec.Struct, frozen=True, kw_only=True):
    """Folders of a tree, relative to its root: `source` holds `package`, `suites` its tests."""

    root: Path
    source: str = "scripts"
    package: str = "gatewright"
    suites: str = "tests/gates"
    policy: str = "policy"
    equivalents: str = "tests/gates/mutation-equivalents.toml"
    # A suite with this marker runs for minutes; mutants are judged by the others.
    slow_marker: str = "slow"

    @property
    def package_folder(self) -> str:
        return f"{self.source}/{self.package}"

    def modules(self) -> list[str]:
        return self._list(self.package_folder, "*.py")

    def suite_files(self) -> list[str]:
        return self._list(self.suites, "test_*.py")

    def test_files(self) -> list[str]:
        return self._list(self.suites, "*.py")

    def policies(self) -> list[str]:
        return self._list(self.policy, "*.toml")

    def read(self, path: str) -> bytes:
        return (self.root / path).read_bytes()

    def _list(self, folder: str, pattern: str) -> list[str]:
        return sorted(path.relative_to(self.root).as_posix() for path in (self.root / folder).rglob(pattern))

    def module_name(self, path: str) -> str:
        parts = PurePosixPath(path).relative_to(self.source).with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    def module_path(self, name: str) -> str | None:
        """The file of a module or package of this project, by its dotted name."""
        base = f"{self.source}/{name.replace('.', '/')}"
        return next((p for p in (f"{base}.py", f"{base}/__init__.py") if (self.root / p).is_file()), None)


def target_files(project: Project, targets: Sequence[str]) -> dict[str, list[str]]:
    """Target -> the files that are mutated for it, each file once. No target: everything.

    A target is a check (its module, what it stands on of the extractors and readers, its policy),
    a package such as `core`, or the path of one file. Raises PolicyError for any other name.
    """
    known = _known_targets(project)
    result: dict[str, list[str]] = {}
    taken: set[str] = set()
    for target in targets or sorted(known):
        files = [target] if target in project.modules() + project.policies() else known.get(target)
        if files is None:
            raise PolicyError(f"nothing to mutate is named {target!r}", f"there are: {', '.join(sorted(known))}")
        result[target] = [path for path in files if path not in taken]
        taken.update(files)
    return result


def _known_targets(project: Project) -> dict[str, list[str]]:
    known: dict[str, list[str]] = {}
    for path in project.modules():
        inner = PurePosixPath(path).relative_to(project.package_folder)
        if inner.parts[0] == "checks":
            if len(inner.parts) == 2 and not inner.stem.startswith("_"):
                name = inner.stem.replace("_", "-")
                policy = f"{project.policy}/{name}.toml"
                known[name] = [*stands_on(project, path), *([policy] if (project.root / policy).is_file() else [])]
        else:
            known.setdefault(inner.parts[0] if len(inner.parts) > 1 else "commands", []).append(path)
    return known


def stands_on(project: Project, path: str) -> list[str]:
    """The module at `path` and what it reaches in the packages that checks stand on."""
    found = [path]
    for current in found:
        for name in _references(project, project.read(current)):
            reached = project.module_path(name)
            if reached is not None and reached not in found:
                room = PurePosixPath(reached).relative_to(project.package_folder).parts
                if len(room) > 1 and room[0] in _FOUNDATIONS:
                    found.append(reached)
    return [found[0], *sorted(found[1:])]


def reaching_suites(project: Project, mutated: Iterable[str]) -> list[str]:
    """Suites that may import one of the files, or read it where it is none of the package.

    Follows imports as they are written, through test helpers too; a name that ends in a dot stands
    for every module of that package.
    """
    wanted = set(mutated)
    if any(not path.endswith(".py") for path in wanted):
        return project.suite_files()
    helpers = [path for path in project.test_files() if not path.rpartition("/")[2].startswith("test_")]
    shared = {name for path in helpers for name in _references(project, project.read(path))}
    edges: dict[str, set[str]] = {}
    suites = []
    for suite in project.suite_files():
        names = {*_references(project, project.read(suite)), *shared}
        if wanted & _closure(project, names, edges):
            suites.append(suite)
    return suites


def _closure(project: Project, names: Iterable[str], edges: dict[str, set[str]]) -> set[str]:
    """Files of the modules that `names` reach. `edges` is filled as modules are read."""
    found: set[str] = set()
    queue = list(names)
    while queue:
        name = queue.pop()
        if name.endswith("."):
            folder = f"{project.source}/{name.replace('.', '/')}"
            paths = {path for path in project.modules() if path.startswith(folder)}
        else:
            path = project.module_path(name)
            paths = {path} if path else set()
        for path in paths - found:
            found.add(path)
            if path not in edges:
                edges[path] = set(_references(project, project.read(path)))
            queue += edges[path]
    return found


def _references(project: Project, source: bytes) -> Iterable[str]:
    """Dotted names of modules that a source imports, or names in a string such as "package.module:function"."""
    prefix = project.package + "."
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.startswith(prefix))
        elif isinstance(node, ast.ImportFrom) and node.module and (node.module + ".").startswith(prefix):
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith(prefix):
            yield node.value.partition(":")[0]
