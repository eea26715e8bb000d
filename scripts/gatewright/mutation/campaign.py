"""One run of `gate mutate`: measure the suites, then judge what is not known yet."""

import functools
import platform
from collections import Counter
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import msgspec

from gatewright.core.errors import CannotJudge
from gatewright.mutation.baseline import Baseline, Tree, measure
from gatewright.mutation.definitions import digest
from gatewright.mutation.mutant import Mutant
from gatewright.mutation.pool import Ask, Pool, Worker
from gatewright.mutation.project import Project
from gatewright.mutation.selection import Selection
from gatewright.mutation.store import Store
from gatewright.mutation.trial import Candidate, try_mutant
from gatewright.mutation.verdict import Outcome
from gatewright.mutation.workspace import Workspace

Progress = Callable[[str, int, int], None]


class Result(msgspec.Struct):
    """`suites` are the sources of the baselines' suites.

    `known` counts outcomes that were remembered, `run` are those of mutants run now.
    """

    plan: Selection
    outcomes: dict[bytes, Outcome]
    baselines: list[Baseline]
    suites: dict[str, bytes]
    known: int
    run: list[Outcome]


def run(
    project: Project,
    files: Sequence[str],
    chosen: Selection,
    store: Store,
    *,
    tool: bytes,
    suites: Sequence[str],
    jobs: int,
    budget: float,
    progress: Progress,
) -> Result:
    """Judge every mutant of the plan.

    `files` are those of the tree that the suites may need, `tool` is the digest of what judges,
    `budget` the seconds of tests for one mutant.
    """
    with Workspace() as workspace:
        needed = min(jobs, max(1, len(suites), len(chosen.mutants)))
        trees = [workspace.copy(project.root, files, number, chosen.sources) for number in range(needed)]
        for copied in trees:
            workspace.compile(copied, (project.package_folder, project.suites))
        pool = Pool([Worker(workspace, tree, project.package) for tree in trees])
        if any(b"hypothesis" in project.read(path) for path in project.test_files()):
            pool.preload(["hypothesis"])
        try:
            tree = Tree(trees[0])
            baselines = _measure(project, suites, tree, files, tool, store, pool, progress)
            pool.preload({library for baseline in baselines for library in baseline.libraries})
            return _Campaign(project, tree, tool, store, baselines, chosen, budget).run(pool, progress)
        finally:
            pool.close()


def _measure(
    project: Project,
    suites: Sequence[str],
    tree: Tree,
    files: Sequence[str],
    tool: bytes,
    store: Store,
    pool: Pool,
    progress: Progress,
) -> list[Baseline]:
    jobs = [functools.partial(measure, project, suite, tree, files, tool, store) for suite in suites]
    baselines = []
    for baseline in pool.map(jobs):
        baselines.append(baseline)
        progress("suites", len(baselines), len(suites))
    return sorted(baselines, key=lambda baseline: baseline.suite)


class _Campaign:
    def __init__(
        self,
        project: Project,
        tree: Tree,
        tool: bytes,
        store: Store,
        baselines: Sequence[Baseline],
        plan: Selection,
        budget: float,
    ) -> None:
        self.plan, self.budget = plan, budget
        self.project, self.tree, self.tool, self.store, self.baselines = project, tree, tool, store, list(baselines)
        self.digests = {b.suite: _test_digests(b, project, tree) for b in baselines}
        # Tests that killed a mutant of a function come first for its other mutants.
        self.killers: dict[tuple[str, str], Counter[str]] = {}

    def run(self, pool: Pool, progress: Progress) -> Result:
        outcomes: dict[bytes, Outcome] = {}
        jobs = []
        for mutant in self.plan.mutants:
            reach = self.reach(mutant)
            function, tests = self.function_digest(mutant), self.digests_of(reach)
            known = self.store.outcome(mutant.identity, function, tests)
            if known is not None:
                outcomes[mutant.identity] = known
                self.remember_killer(mutant, known)
            else:
                jobs.append(functools.partial(self.judge, mutant, reach, function, tests))
        known_count, run = len(outcomes), list[Outcome]()
        for mutant, outcome in pool.map(jobs):
            outcomes[mutant.identity] = outcome
            run.append(outcome)
            progress("mutants", len(run), len(jobs))
        sources = {b.suite: (self.tree.root / b.suite).read_bytes() for b in self.baselines}
        return Result(self.plan, outcomes, self.baselines, sources, known_count, run)

    def reach(self, mutant: Mutant) -> list[tuple[Baseline, list[int]]]:
        """Suites and the numbers of their tests that can see the mutant."""
        reach = []
        seen_by_all = self.is_seen_by_all(mutant)
        for baseline in self.baselines:
            if mutant.path.endswith(".py"):
                numbers = baseline.reaching(mutant.path, mutant.first, mutant.last, at_import=seen_by_all)
            else:
                numbers = list(range(len(baseline.tests))) if mutant.path in baseline.opened else []
            numbers = [number for number in numbers if baseline.tests[number].judges]
            if numbers:
                reach.append((baseline, numbers))
        return reach

    def is_seen_by_all(self, mutant: Mutant) -> bool:
        """Whether it is run once for many tests: when its module is imported, or by the first that fills a cache."""
        own = self.tree.definitions(mutant.path).at(mutant.line) if mutant.path.endswith(".py") else None
        return mutant.at_import or (own is not None and own.is_cached)

    def function_digest(self, mutant: Mutant) -> bytes:
        """Of the tool and its budget, of what is mutated, and of what that names in its file."""
        parts = [self.tool, repr(self.budget).encode(), mutant.after]
        if mutant.path.endswith(".py"):
            definitions = self.tree.definitions(mutant.path)
            own = definitions.at(mutant.line)
            parts += [part.digest for part in definitions.reach(own)] if own else []
        else:
            parts.append(self.tree.file(mutant.path))
        return digest(parts)

    def digests_of(self, reach: Sequence[tuple[Baseline, list[int]]]) -> dict[str, bytes]:
        return {b.tests[n].name: self.digests[b.suite][n] for b, numbers in reach for n in numbers}

    def judge(
        self,
        mutant: Mutant,
        reach: list[tuple[Baseline, list[int]]],
        function: bytes,
        tests: dict[str, bytes],
        ask: Ask,
    ) -> tuple[Mutant, Outcome]:
        outcome = self.attempt(mutant, reach, ask) if reach else Outcome(verdict="SURVIVED", detail=UNREACHED)
        self.remember_killer(mutant, outcome)
        self.store.put(mutant.identity, function, tests, outcome)
        return mutant, outcome

    def attempt(self, mutant: Mutant, reach: list[tuple[Baseline, list[int]]], ask: Ask) -> Outcome:
        source = mutant.apply(self.plan.sources[mutant.path]).decode()
        if mutant.path.endswith(".py"):
            edit = {"module": self.project.module_name(mutant.path), "path": mutant.path, "source": source}
        else:
            edit = {"write": mutant.path, "source": source}
        candidates = [
            Candidate(b.suite, b.tests[n].name, b.tests[n].seconds, b.limit(n), near is None or n in near)
            for b, numbers in reach
            for near in [self.users_of_table(mutant, b)]
            for n in numbers
        ]
        load_limits = {baseline.suite: baseline.load_limit for baseline, _ in reach}
        kills = self.killers.get((mutant.path, mutant.function), Counter())
        return try_mutant(edit, candidates, load_limits, kills, self.budget, ask)

    def users_of_table(self, mutant: Mutant, baseline: Baseline) -> set[int] | None:
        """Tests that execute a function of the same file that names the table or cache which is mutated.

        None where the mutant is in neither, so that all tests that reach it execute it.
        """
        if not self.is_seen_by_all(mutant) or not mutant.path.endswith(".py"):
            return None
        table = mutant.function.rpartition(".")[2]
        users = [part for part in self.tree.definitions(mutant.path).parts if part.is_function and table in part.uses]
        return {n for u in users for n in baseline.reaching(mutant.path, u.body, u.last, at_import=False)}

    def remember_killer(self, mutant: Mutant, outcome: Outcome) -> None:
        if outcome.killer:
            self.killers.setdefault((mutant.path, mutant.function), Counter())[outcome.killer] += 1


# Of the extra `test`.
_LIBRARIES = ("pytest", "hypothesis", "coverage", "tomlkit")
UNREACHED = "no test executes it"


def _test_digests(baseline: Baseline, project: Project, tree: Tree) -> list[bytes]:
    """For each test: what it executes, what its suite executes on import, its fixtures and data."""
    common: set[tuple[str, bytes]] = {(path, tree.file(path)) for path in baseline.opened}
    own: list[set[tuple[str, bytes]]] = [set() for _ in baseline.tests]
    for path in {*baseline.loaded, baseline.suite}:
        is_test = path.startswith(project.suites)
        definitions = tree.definitions(path)
        for part in definitions.parts:
            if not part.is_function or (is_test and part.is_fixture):
                common.add((path, part.digest))
        for line, tests in baseline.lines.get(path, {}).items():
            executed = definitions.at(line)
            if executed is not None and line >= executed.body:
                for test in tests:
                    (common if test < 0 else own[test]).add((path, executed.digest))
    shared = digest([part for path, d in sorted(common) for part in (path.encode(), d)])
    return [
        digest([test.name.encode(), shared, *(part for path, d in sorted(o) for part in (path.encode(), d))])
        for test, o in zip(baseline.tests, own, strict=True)
    ]


def tool_digest() -> bytes:
    """Of this package, the interpreter and the libraries it works with. Raises CannotJudge where one is missing."""
    folder = Path(__file__).resolve().parent
    parts = [path.read_bytes() for path in sorted(folder.rglob("*.py"))]
    parts.append(platform.python_version().encode())
    for name in _LIBRARIES:
        try:
            parts.append(version(name).encode())
        except PackageNotFoundError:
            raise CannotJudge(
                f"gate mutate needs {name}, which is not installed", "pip install 'gatewright[test]'"
            ) from None
    return digest(parts)
