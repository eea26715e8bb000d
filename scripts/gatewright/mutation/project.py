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

    def named(self, name: str) -> list[str]:
        """The file of a module or package by its dotted name; all that begin so, where the name is cut off."""
        base = f"{self.source}/{name.replace('.', '/')}"
        if name.endswith((".", "_")):
            return [path for path in self.modules() if path.startswith(base)]
        return [p for p in (f"{base}.py", f"{base}/__init__.py") if (self.root / p).is_file()][:1]


def target_files(project: Project, targets: Sequence[str]) -> dict[str, list[str]]:
    """Target -> the files that are mutated for it, each file once. No target: everything.

    A target is a check (its module, what it stands on of the extractors and readers, its policy),
    a package such as `core`, or the path of one file. Raises PolicyError for any other name.
    """
    known = _known_targets(project)
    result: dict[str, list[str]] = {}
    taken: set[str] = set()
    for target in targets or _in_order(project, known):
        files = [target] if target in project.modules() + project.policies() else known.get(target)
        if files is None:
            raise PolicyError(f"nothing to mutate is named {target!r}", f"there are: {', '.join(sorted(known))}")
        result[target] = [path for path in files if path not in taken]
        taken.update(files)
    return result


def _in_order(project: Project, known: Iterable[str]) -> list[str]:
    """Packages, then checks, so that a reader counts as one, then what no check stands on."""
    checks = {
        path.stem.replace("_", "-") for path in map(PurePosixPath, project.modules()) if path.parent.name == "checks"
    }
    return sorted(known, key=lambda name: (name in ("checks", "extractors"), name in checks, name))


def _known_targets(project: Project) -> dict[str, list[str]]:
    known: dict[str, list[str]] = {}
    for path in project.modules():
        inner = PurePosixPath(path).relative_to(project.package_folder)
        if inner.parts[0] == "checks" and len(inner.parts) == 2 and not inner.stem.startswith("_"):
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
            for reached in project.named(name):
                room = PurePosixPath(reached).relative_to(project.package_folder).parts
                if reached not in found and len(room) > 1 and room[0] in _FOUNDATIONS:
                    found.append(reached)
    return [found[0], *sorted(found[1:])]


def reaching_suites(project: Project, mutated: Iterable[str]) -> list[str]:
    """Suites that may import one of the files, or read it where it is none of the package.

    Follows imports as they are written, through test helpers too.
    """
    wanted = set(mutated)
    if any(not path.endswith(".py") for path in wanted):
        return project.suite_files()
    edges: dict[str, set[str]] = {}
    return [s for s in project.suite_files() if wanted & _closure(project, _test_references(project, s), edges)]


def _test_references(project: Project, suite: str) -> set[str]:
    """What a suite refers to, with the helpers that it imports and every `conftest.py` that pytest reads for it."""
    helpers = [path for path in project.test_files() if not PurePosixPath(path).name.startswith("test_")]
    queue = [suite, *(path for path in helpers if _is_conftest_of(path, suite))]
    for path in queue:
        source = project.read(path)
        imported = {alias for name in _imported(source) for alias in name.split(".")}
        queue += [h for h in helpers if h not in queue and PurePosixPath(h).stem in imported]
    return {name for path in queue for name in _references(project, project.read(path))}


def _is_conftest_of(path: str, suite: str) -> bool:
    folder = PurePosixPath(path).parent
    return PurePosixPath(path).name == "conftest.py" and folder in PurePosixPath(suite).parents


def _imported(source: bytes) -> Iterable[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module or ''}.{alias.name}" for alias in node.names)


def _closure(project: Project, names: Iterable[str], edges: dict[str, set[str]]) -> set[str]:
    """Files of the modules that `names` reach. `edges` is filled as modules are read."""
    found: set[str] = set()
    queue = list(names)
    while queue:
        for path in set(project.named(queue.pop())) - found:
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
