"""Which mutants of which targets a run judges."""

from collections.abc import Mapping, Sequence
from hashlib import blake2b

import msgspec

from gatewright.mutation.definitions import Definitions
from gatewright.mutation.mutant import Mutant
from gatewright.mutation.plan import plan_module
from gatewright.mutation.project import Project, target_files
from gatewright.mutation.tables import plan_policy


class Selection(msgspec.Struct):
    """`all` are the mutants of the targets' files, `chosen` those of this run, by target.

    `sources` are those files as they were planned: the run goes by them, whatever is edited meanwhile.
    """

    all: list[Mutant]
    chosen: dict[str, list[Mutant]]
    sources: dict[str, bytes]

    @property
    def mutants(self) -> list[Mutant]:
        return [mutant for mutants in self.chosen.values() for mutant in mutants]


def select(
    project: Project, targets: Sequence[str], base: Mapping[str, bytes] | None, sample: int | None, seed: int
) -> Selection:
    """The mutants of the targets; with `base` (path -> content) only those in definitions that differ from it.

    `sample` bounds the mutants of each target. Which ones is decided by their identity and the seed
    alone, so a change elsewhere does not exchange them.
    """
    everything: list[Mutant] = []
    sources: dict[str, bytes] = {}
    chosen: dict[str, list[Mutant]] = {}
    for target, files in target_files(project, targets).items():
        mutants: list[Mutant] = []
        for path in files:
            source = sources[path] = project.read(path)
            planned = plan_module(path, source) if path.endswith(".py") else plan_policy(path, source)
            everything += planned
            mutants += planned if base is None else _changed(planned, source, base.get(path))
        if sample is not None and sample < len(mutants):
            key = seed.to_bytes(8, "big", signed=True)
            order = sorted(mutants, key=lambda m: blake2b(m.identity, key=key).digest())
            kept = {mutant.identity for mutant in order[:sample]}
            mutants = [mutant for mutant in mutants if mutant.identity in kept]
        chosen[target] = mutants
    return Selection(everything, chosen, sources)


def _changed(mutants: list[Mutant], source: bytes, base: bytes | None) -> list[Mutant]:
    if base is None:
        return mutants
    if base == source:
        return []
    if mutants and not mutants[0].path.endswith(".py"):
        return mutants
    before = {(part.name, part.digest) for part in Definitions(base).parts}
    now = Definitions(source)
    return [m for m in mutants if (part := now.at(m.line)) is None or (part.name, part.digest) not in before]
