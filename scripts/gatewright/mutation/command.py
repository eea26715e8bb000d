"""`gate mutate`: what it does apart from parsing the command line of its caller."""

import contextlib
import os
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import msgspec

from gatewright.command import Options as Output
from gatewright.command import publish
from gatewright.core.change import change_of_work_tree
from gatewright.core.errors import CannotJudge, PolicyError
from gatewright.core.git import Repository
from gatewright.core.snapshot import Snapshot, work_tree_snapshot
from gatewright.mutation import campaign
from gatewright.mutation.equivalents import Equivalent, read_equivalents
from gatewright.mutation.mutant import shorten
from gatewright.mutation.project import Project, reaching_suites
from gatewright.mutation.scores import report
from gatewright.mutation.selection import Selection, select
from gatewright.mutation.store import NAME, Store
from gatewright.reporters import FORMATS
from gatewright.reporters.terminal import Progress


class Options(msgspec.Struct, kw_only=True):
    """The options of `gate mutate`, named as on its command line."""

    changed: bool = False
    base: str = ""
    sample: int | None = None
    seed: int = 0
    jobs: int = 1
    suites: Sequence[str] = ()
    budget: float = 5.0
    listing: bool = False
    fresh: bool = False
    output_format: str = "text"
    output_file: Path | None = None


@click.command()
@click.argument("targets", metavar="[CHECK]...", nargs=-1)
@click.option("--changed", is_flag=True, help="Mutate only definitions that differ from the base.")
@click.option("--base", metavar="REV", default="", help="With --changed: the merge base with REV is the base.")
@click.option(
    "--sample", metavar="N", type=click.IntRange(min=1), default=None, help="At most N mutants of each target."
)
@click.option("--seed", metavar="S", type=int, default=0, show_default=True, help="Which ones a sample holds.")
@click.option(
    "--jobs", metavar="N", type=click.IntRange(min=1), default=os.cpu_count() or 1, help="Default: all cores."
)
@click.option(
    "--budget", metavar="SECONDS", type=float, default=5.0, show_default=True, help="Of tests, for one mutant."
)
@click.option("--suite", "suites", metavar="PATH", multiple=True, help="Judge by this suite alone (may be repeated).")
@click.option("--list", "listing", is_flag=True, help="Print the mutants and run nothing.")
@click.option("--fresh", is_flag=True, help="Believe no verdict of an earlier run.")
@click.option("--output-format", type=click.Choice(FORMATS), default="text", show_default=True, help="How to print.")
@click.option("--output-file", type=click.Path(path_type=Path), default=None, help="Write there instead of to stdout.")
@click.pass_obj
def mutate(folder: Path, /, targets: tuple[str, ...], **options: Any) -> None:
    """Change checks one edit at a time; an edit that no test notices is a finding.

    CHECK is a check, a package such as core, readers or reporters, or the path of one file. Without one,
    everything is mutated.
    """
    raise SystemExit(run(folder, targets, Options(**options)))


def run(folder: Path, targets: Sequence[str], options: Options) -> int:
    """Judge the mutants that the options name, print the report, return the exit code."""
    started = time.perf_counter()
    tool = campaign.tool_digest()
    repository = Repository(folder.resolve())
    snapshot = work_tree_snapshot(repository)
    assert repository.root is not None
    project = Project(root=repository.root)
    if not project.modules():
        raise PolicyError(f"no {project.package_folder}/ in this tree: there is nothing to mutate", "name one with -C")
    base, tree = _base(repository, options) if options.changed else (None, "all definitions")
    plan = select(project, targets, base, options.sample, options.seed)
    if options.listing:
        _print(plan)
        return 0
    mutated = sorted({mutant.path for mutant in plan.mutants})
    suites = list(options.suites) or reaching_suites(project, mutated)
    _require(project, suites)
    store = Store(None if options.fresh else repository.common_dir / NAME)
    progress = Progress()
    with _ending_cleanly(), contextlib.closing(store), contextlib.closing(progress):
        files = [path for path in snapshot.files if (project.root / path).is_file()]
        result = campaign.run(
            project,
            files,
            plan,
            store,
            suites=suites,
            tool=tool,
            jobs=options.jobs,
            budget=options.budget,
            progress=progress.update,
        )
    sampled = f", at most {options.sample} mutants of each target with seed {options.seed}" if options.sample else ""
    judged = f"{snapshot.label}, {tree}{sampled}"
    outcome = report(project, result, equivalents(project), judged, time.perf_counter() - started)
    publish(outcome, Output(output_format=options.output_format, output_file=options.output_file))
    return outcome.exit_code


def equivalents(project: Project) -> list[Equivalent]:
    path = project.root / project.equivalents
    return read_equivalents(path.read_bytes(), project.equivalents) if path.is_file() else []


def _require(project: Project, suites: Sequence[str]) -> None:
    unknown = [path for path in suites if not (project.root / path).is_file()]
    if unknown:
        raise PolicyError(f"there is no suite {unknown[0]}", f"the suites are in {project.suites}/")


def _base(repository: Repository, options: Options) -> tuple[Mapping[str, bytes], str]:
    """Content of the base's files, and which tree that is in words."""
    change = change_of_work_tree(repository, options.base)
    if change.base is None:
        nothing = [note for note in change.notes if "nothing differs" in note]
        if not nothing:
            raise CannotJudge(f"--changed has no base: {'; '.join(change.notes)}", "name one with --base")
        return _Contents(change.head), "definitions that differ from the base (none)"
    return _Contents(change.base), f"definitions that differ from {change.base.label}"


class _Contents(Mapping[str, bytes]):
    """The files of a snapshot, read when they are asked for."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot

    def __getitem__(self, path: str) -> bytes:
        return self.snapshot.read(path)

    def __iter__(self) -> Iterator[str]:
        return iter(self.snapshot.files)

    def __len__(self) -> int:
        return len(self.snapshot.files)


def _print(plan: Selection) -> None:
    for target, mutants in plan.chosen.items():
        for mutant in mutants:
            edit = f"{shorten(mutant.source)} -> {shorten(mutant.becomes)}"
            click.echo(f"{mutant.path}:{mutant.line}: {mutant.function} {mutant.operator}: {edit}")
        click.echo(f"{target}: {len(mutants)} mutants")


@contextlib.contextmanager
def _ending_cleanly() -> Iterator[None]:
    """SIGTERM ends the run as an exception, so that children are ended and the copies are removed."""

    def end(number: int, _: object) -> None:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
