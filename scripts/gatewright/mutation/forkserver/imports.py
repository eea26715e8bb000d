"""The import hook that gives one module the source of a mutant."""

import importlib.abc
import importlib.machinery
import importlib.util
import os
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from .events import Events


class MutantFinder(importlib.abc.MetaPathFinder):
    """Gives one module other source than its file holds; bytecode of neither is read or written."""

    def __init__(self, module: str, path: Path, source: bytes, events: "Events") -> None:
        self.module, self.path, self.source, self.events = module, path, source, events

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        if fullname != self.module:
            return None
        loader = _MutantLoader(fullname, os.fspath(self.path))
        loader.finder = self
        package = [os.fspath(self.path.parent)] if self.path.name == "__init__.py" else None
        return importlib.util.spec_from_file_location(
            fullname, self.path, loader=loader, submodule_search_locations=package
        )


class _MutantLoader(importlib.machinery.SourceFileLoader):
    finder: MutantFinder

    def get_code(self, fullname: str) -> CodeType:
        code: CodeType = compile(self.finder.source, self.path, "exec", dont_inherit=True)
        return code

    def exec_module(self, module: ModuleType) -> None:
        try:
            super().exec_module(module)
        except Exception as error:
            self.finder.events.send("import-error", text=f"{type(error).__name__}: {error}")
            raise
        self.finder.events.send("imported")
