"""Which test executes which line, and which files a suite depends on."""

import importlib.abc
import importlib.machinery
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any


class Measure(importlib.abc.MetaPathFinder):
    """Which test executes which line, and which files a suite depends on.

    What a module executes while it is imported is counted for no test, whichever test comes first.
    """

    def __init__(self, root: Path, package: str) -> None:
        import coverage

        self.root, self.package = os.fspath(root) + "/", package
        self.opened: set[str] = set()
        self.listed: set[str] = set()
        self.runs_programs = False
        self.current, self.depth = "", 0
        self.before = set(sys.modules)
        self.coverage = coverage.Coverage(
            data_file=None, config_file=False, include=[f"{self.root}*"], messages=False, check_preimported=False
        )
        self.coverage.set_option("run:disable_warnings", ["no-data-collected", "module-not-measured"])
        sys.addaudithook(self._audit)
        sys.meta_path.insert(0, self)
        self.coverage.start()

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event in ("open", "os.listdir", "os.scandir"):
            path = arguments[0]
            if isinstance(path, (str, bytes, os.PathLike)):
                full = _absolute(path)
                if full.startswith(self.root) or full + "/" == self.root:
                    (self.opened if event == "open" else self.listed).add(full[len(self.root) :])
        elif event == "subprocess.Popen":
            folder = _absolute(arguments[2] or ".")
            self.runs_programs |= (folder + "/").startswith(self.root)

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        if fullname.partition(".")[0] != self.package:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path)
        if spec is not None and isinstance(spec.loader, importlib.machinery.SourceFileLoader):
            spec.loader = _MeasuredLoader(spec.loader.name, spec.loader.path)
            spec.loader.measure = self
        return spec

    def enter(self, test: str) -> None:
        self.current = test
        self.coverage.switch_context(test)

    def leave(self) -> None:
        self.current = ""
        self.coverage.switch_context("")

    def result(self) -> dict[str, Any]:
        self.coverage.stop()
        data = self.coverage.get_data()
        numbers = {test: number for number, test in enumerate(sorted(data.measured_contexts() | {""}))}
        lines = {}
        for path in data.measured_files():
            contexts = data.contexts_by_lineno(path)
            lines[path.removeprefix(self.root)] = {
                line: sorted({numbers[test] for test in tests}) for line, tests in contexts.items()
            }
        files = [getattr(module, "__file__", None) or "" for module in list(sys.modules.values())]
        loaded = sorted(file.removeprefix(self.root) for file in files if file.startswith(self.root))
        package = [name for name in sys.modules if name.partition(".")[0] == self.package]
        origins = {name: getattr(sys.modules[name], "__file__", None) or self.root for name in package}
        foreign = sorted(name for name, origin in origins.items() if not origin.startswith(self.root))
        return {
            "contexts": list(numbers),
            "lines": lines,
            "loaded": loaded,
            "opened": sorted(self.opened),
            "listed": sorted(self.listed),
            "runs_programs": self.runs_programs,
            "foreign": foreign,
            "libraries": sorted(name for name in sys.modules.keys() - self.before if not self._is_of_tree(name)),
        }

    def _is_of_tree(self, name: str) -> bool:
        file = getattr(sys.modules[name], "__file__", None)
        return name.partition(".")[0] == self.package or (file is not None and file.startswith(self.root))


def _absolute(path: Any) -> str:
    """Without following links, and cheap: an audit hook sees every file that is opened."""
    return os.path.normpath(os.path.join(os.getcwd(), os.fsdecode(path)))  # noqa: PTH109, PTH118


class _MeasuredLoader(importlib.machinery.SourceFileLoader):
    measure: Measure

    def exec_module(self, module: ModuleType) -> None:
        measure = self.measure
        measure.depth += 1
        measure.coverage.switch_context("")
        try:
            super().exec_module(module)
        finally:
            measure.depth -= 1
            if not measure.depth:
                measure.coverage.switch_context(measure.current)
