"""What a check is: a module with a `CHECK`, found on disk, whose four rooms share its name."""

import importlib
import pkgutil
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

import msgspec

from gatewright.core.facts import Extractor
from gatewright.core.finding import Finding

if TYPE_CHECKING:
    from gatewright.core.change import Change
    from gatewright.core.tree import Tree

Lane = Literal["hook", "pr", "main", "schedule"]
LANES: tuple[Lane, ...] = ("hook", "pr", "main", "schedule")

P = TypeVar("P", bound=msgspec.Struct)


class Rule(msgspec.Struct, frozen=True):
    """One sentence that a check enforces.

    `empty_ok`: zero things examined is a legitimate PASS. `unit` says in the plural what it examines,
    for the summary of its check. `shown_by`: the suite that shows the rule
    both ways, where no tree on a manual page can.
    """

    id: str
    summary: str
    scope: Literal["tree", "change", "message"] = "tree"
    lanes: tuple[Lane, ...] = LANES
    empty_ok: bool = False
    # Findings that are listed but never fail a run.
    advisory: bool = False
    unit: str = ""
    shown_by: str = ""


class Judgement(msgspec.Struct):
    """Findings of one tree under one policy, and how many things each rule looked at."""

    findings: list[Finding] = msgspec.field(default_factory=list)
    examined: dict[str, int] = msgspec.field(default_factory=dict)
    notes: list[str] = msgspec.field(default_factory=list)


class Check(Generic[P]):
    """Base of every check.

    `policy` is the msgspec struct that `policy/<name>.toml` must satisfy (unknown keys refused);
    `ordinary` names its fields, by dotted path, whose entries may be added without being a
    loosening (an internal variable's name, a path's class). `globs` names those that hold path
    patterns. A dotted path may hold `*` for any key of a table.
    """

    name: str
    summary: str
    policy: type[P]
    rules: tuple[Rule, ...]
    ordinary: tuple[str, ...] = ()
    globs: tuple[str, ...] = ()

    def extractors(self, policy: P) -> Sequence[Extractor]:
        """The first-pass facts that `judge` will ask for; read and cached together."""
        raise NotImplementedError

    def judge(self, tree: "Tree", policy: P) -> Judgement:
        """Findings of one tree. Pure: reads only `tree` and `policy`."""
        raise NotImplementedError

    def judge_change(self, change: "Change", policy: P) -> Judgement:
        """Findings about the change itself (rules of scope change and message)."""
        return Judgement()

    def outside(self, tree: "Tree", policy: P, paths: Sequence[str]) -> list[Finding]:
        """Sites in those of `paths` that `judge` does not judge, in the shape it would give them.

        Used to say that a new site was moved in from an unscanned place.
        """
        return []


def load_check(name: str) -> Check[Any]:
    """The check whose policy file is `policy/<name>.toml`. Raises KeyError when there is none."""
    module_name = "gatewright.checks." + name.replace("-", "_")
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name != module_name:
            raise
        raise KeyError(name) from None
    check: Check[Any] = module.CHECK
    return check


def check_names() -> list[str]:
    """Every check on disk: the modules of `gatewright.checks` whose name has no leading underscore."""
    import gatewright.checks

    return sorted(
        module.name.replace("_", "-")
        for module in pkgutil.iter_modules(gatewright.checks.__path__)
        if not module.name.startswith("_")
    )
