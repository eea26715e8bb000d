"""The unmutated run of a suite: which test executes which line, how long it takes, what it depends on."""

from collections.abc import Iterable
from hashlib import blake2b
from pathlib import Path

import msgspec

from gatewright.core.errors import CannotJudge
from gatewright.mutation.definitions import Definitions, digest
from gatewright.mutation.pool import Ask
from gatewright.mutation.project import Project
from gatewright.mutation.store import Store

_LIMIT_SECONDS = 900.0
# Under a mutant a test may take this much of its measured time, and this many seconds more.
_FACTOR, _ALLOWANCE_SECONDS = 4.0, 1.0


class Measured(msgspec.Struct):
    """A test and the processor time that it takes, in seconds."""

    name: str
    seconds: float
    skipped: bool = False
    # Why it fails unmutated; such a test can judge nothing.
    red: str = ""

    @property
    def judges(self) -> bool:
        return not self.skipped and not self.red


class Baseline(msgspec.Struct):
    """One suite. `lines`: path -> line -> numbers of tests, -1 for what importing executes.

    `loaded` are the files of the tree that were imported, `opened` those that were read otherwise.
    `broken` says why the suite cannot be collected, where it cannot.
    """

    suite: str
    tests: list[Measured]
    lines: dict[str, dict[int, list[int]]]
    loaded: list[str]
    opened: list[str]
    slow: list[str]
    libraries: list[str]
    load_seconds: float
    broken: str = ""

    @property
    def load_limit(self) -> float:
        return self.load_seconds * _FACTOR + _ALLOWANCE_SECONDS * 2

    def limit(self, number: int) -> float:
        return self.tests[number].seconds * _FACTOR + _ALLOWANCE_SECONDS

    def reaching(self, path: str, first: int, last: int, *, at_import: bool) -> list[int]:
        """Tests that execute one of the lines; those of an imported table are all that could see it."""
        lines = self.lines.get(path, {})
        hit = {test for line in range(first, last + 1) for test in lines.get(line, ())}
        if at_import or -1 in hit:
            return list(range(len(self.tests))) if path in self.loaded else []
        return sorted(hit)


class _Remembered(msgspec.Struct):
    """A baseline and the digests of all that it depends on: it is valid while they hold."""

    baseline: Baseline
    files: dict[str, bytes]
    folders: dict[str, bytes]


class Tree:
    """Digests of the files of a copy, each computed once."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._files: dict[str, bytes] = {}
        self._definitions: dict[str, Definitions] = {}

    def file(self, path: str) -> bytes:
        if path not in self._files:
            try:
                self._files[path] = blake2b((self.root / path).read_bytes(), digest_size=16).digest()
            except OSError:
                self._files[path] = b"missing"
        return self._files[path]

    def folder(self, path: str) -> bytes:
        try:
            names = sorted(p.name for p in (self.root / path).iterdir() if p.name not in (".git", "__pycache__"))
        except OSError:
            return b"missing"
        return digest([name.encode("utf-8", "surrogateescape") for name in names])

    def definitions(self, path: str) -> Definitions:
        if path not in self._definitions:
            self._definitions[path] = Definitions((self.root / path).read_bytes())
        return self._definitions[path]


def measure(
    project: Project, suite: str, tree: Tree, all_files: Iterable[str], tool: bytes, store: Store, ask: Ask
) -> Baseline:
    """Run one suite unmutated, unless what is remembered of it still holds.

    A red test is part of the result, and is never remembered. Raises CannotJudge where the suite does not end.
    """
    remembered = store.baseline(suite, tool)
    if remembered is not None:
        known = msgspec.msgpack.decode(remembered, type=_Remembered)
        if all(tree.file(p) == d for p, d in known.files.items()) and all(
            tree.folder(p) == d for p, d in known.folders.items()
        ):
            return known.baseline
    answer = ask(
        {
            "suites": [suite],
            "measure": True,
            "markers_left_out": [project.slow_marker],
            "load_seconds": _LIMIT_SECONDS,
            "step_seconds": _LIMIT_SECONDS,
        }
    )
    measured = next((e for e in answer["events"] if e["kind"] == "measured"), None)
    if measured is None or answer["ended"] != "normally":
        raise CannotJudge(
            f"{suite} did not end on the unmutated tree ({answer['ended']} in {answer['at'] or 'collection'})",
            f"run it by hand: python -m pytest {suite}",
        )
    if measured["foreign"]:
        raise CannotJudge(
            f"{suite} imports {measured['foreign'][0]} from outside the judged tree",
            "the pytest option `pythonpath` must name the folder of the package",
        )
    baseline = _baseline(project, suite, answer["events"], measured)
    files = sorted({*baseline.loaded, *baseline.opened, suite, "pyproject.toml"})
    if measured["runs_programs"]:
        files = sorted({*files, *all_files})
    kept = _Remembered(
        baseline, {path: tree.file(path) for path in files}, {path: tree.folder(path) for path in measured["listed"]}
    )
    if not baseline.broken and not any(test.red for test in baseline.tests):
        store.put_baseline(suite, tool, msgspec.msgpack.encode(kept))
    return baseline


def _baseline(project: Project, suite: str, events: list[dict], measured: dict) -> Baseline:  # type: ignore[type-arg]
    red = {event["test"]: event["text"] or "it fails" for event in events if event["kind"] == "fail"}
    broken = next((event["text"] for event in events if event["kind"] == "collect-error"), "")
    skipped = {event["test"] for event in events if event["kind"] == "skip"}
    seconds = {event["test"]: event["seconds"] for event in events if event["kind"] == "finish"}
    number = {test: position for position, test in enumerate(seconds)}
    tests_of = [number.get(context, -1) for context in measured["contexts"]]
    lines = {
        path: {int(line): [tests_of[context] for context in contexts] for line, contexts in hits.items()}
        for path, hits in measured["lines"].items()
    }
    slow = next(event["tests"] for event in events if event["kind"] == "left-out")
    loads = next(event for event in events if event["kind"] == "collected")
    return Baseline(
        suite=suite,
        tests=[Measured(test, taken, test in skipped, red.get(test, "")) for test, taken in seconds.items()],
        lines=lines,
        loaded=measured["loaded"],
        opened=[path for path in measured["opened"] if not path.endswith((".py", ".pyc"))],
        slow=slow,
        libraries=measured["libraries"],
        load_seconds=loads["seconds"],
        broken=broken,
    )
