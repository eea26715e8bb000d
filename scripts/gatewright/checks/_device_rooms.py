"""Which device room an import or an include of a shared file leads into."""

import posixpath
from collections.abc import Sequence

from gatewright.checks._device_policy import Policy


class Modules:
    """The modules and headers of one tree, as they are named in imports and includes."""

    def __init__(self, paths: Sequence[str], policy: Policy) -> None:
        self._policy = policy
        self._files = set(paths)
        self._folders = {folder for path in paths for folder in _parents(path)}
        packages = {posixpath.dirname(path) for path in paths if posixpath.basename(path) == "__init__.py"}
        self._roots = sorted({posixpath.dirname(folder) for folder in packages} - packages | {""})
        self._room_files = policy.room_files.select(list(paths))

    def imported(self, path: str, module: str) -> str:
        """The room of a module that the Python file `path` imports, or nothing.

        `module` has its leading dots, and may end with a name that is in the module.
        """
        name = module.lstrip(".")
        level = len(module) - len(name)
        roots = [_ancestor(path, level)] if level else self._roots
        parts = name.split(".") if name else []
        for size in range(len(parts), 0, -1):
            found = [file for root in roots if (file := self._module(posixpath.join(root, *parts[:size])))]
            if found:
                return next(filter(None, map(self._policy.room_of, found)), "")
        return ""

    def _module(self, stem: str) -> str:
        """The file of a module; for a folder without `__init__.py` the path that it would have."""
        package = f"{stem}/__init__.py"
        for candidate in (f"{stem}.py", f"{stem}.pyi", package):
            if candidate in self._files:
                return candidate
        return package if stem in self._folders else ""

    def included(self, path: str, header: str) -> str:
        """The room of a header that a C-family file includes, or nothing."""
        beside = posixpath.normpath(posixpath.join(posixpath.dirname(path), header))
        if beside in self._files:
            return self._policy.room_of(beside)
        tail = "/" + header.lstrip("./")
        return next((self._policy.room_of(file) for file in self._room_files if f"/{file}".endswith(tail)), "")


def _parents(path: str) -> list[str]:
    parts = path.split("/")[:-1]
    return ["/".join(parts[:size]) for size in range(1, len(parts) + 1)]


def _ancestor(path: str, level: int) -> str:
    for _ in range(level):
        path = posixpath.dirname(path)
    return path
