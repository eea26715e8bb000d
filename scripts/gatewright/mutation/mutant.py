"""One edit of one file: its identity, its source and its diff."""

import difflib
from hashlib import blake2b

import msgspec

from gatewright.core.errors import CannotJudge


class AnchorMissing(CannotJudge):
    """The text that a mutant replaces is not where it was: nothing can be said about its tests."""


class Mutant(msgspec.Struct, frozen=True, kw_only=True):
    """Replaces the bytes `start` to `end` of the file at `path`, which read `before`, with `after`.

    `function` is the qualified name of the function, class or table that is changed. `source` is
    the changed expression or statement in normal form and `becomes` what stands in its place:
    they and `operator` name the mutant wherever its line moves; `ordinal` counts equal ones.
    `first` and `last` are the lines of the statement, `at_import` whether importing executes it.
    """

    path: str
    function: str
    operator: str
    source: str
    becomes: str
    start: int
    end: int
    before: bytes
    after: bytes
    line: int
    first: int
    last: int
    at_import: bool
    ordinal: int = 0

    @property
    def identity(self) -> bytes:
        parts = (self.path, self.function, self.operator, self.source, self.becomes, str(self.ordinal))
        return blake2b("\0".join(parts).encode("utf-8", "surrogatepass"), digest_size=16).digest()

    @property
    def label(self) -> str:
        return f"{self.operator}: {shorten(self.source)} -> {shorten(self.becomes)}"

    def apply(self, original: bytes) -> bytes:
        """The mutated file. Raises AnchorMissing where `original` does not hold what is replaced."""
        if original[self.start : self.end] != self.before:
            raise AnchorMissing(
                f"{self.path}:{self.line}: anchor missing: {shorten(self.source)} is not where it was",
                "the file changed during the run; run gate mutate again",
            )
        return original[: self.start] + self.after + original[self.end :]

    def diff(self, original: bytes) -> str:
        """A unified diff that `git apply` takes, with one line of context."""
        old = original.decode("utf-8", "replace").splitlines(keepends=True)
        new = self.apply(original).decode("utf-8", "replace").splitlines(keepends=True)
        lines = difflib.unified_diff(old, new, f"a/{self.path}", f"b/{self.path}", n=1)
        return "".join(line if line.endswith("\n") else line + "\n" for line in lines).rstrip("\n")


def shorten(text: str, limit: int = 60) -> str:
    line = " ".join(text.split()) or "(nothing)"
    return line if len(line) <= limit else line[: limit - 3] + "..."


def numbered(mutants: list[Mutant]) -> list[Mutant]:
    """Give equal edits of one function ordinals, in the order of their places, and drop doubles."""
    seen: dict[tuple[str, ...], int] = {}
    edits: set[tuple[int, int, bytes]] = set()
    result = []
    for mutant in sorted(mutants, key=lambda m: (m.start, m.end)):
        edit = (mutant.start, mutant.end, mutant.after)
        if edit in edits or mutant.after == mutant.before:
            continue
        edits.add(edit)
        key = (mutant.function, mutant.operator, mutant.source, mutant.becomes)
        seen[key] = seen.get(key, -1) + 1
        result.append(msgspec.structs.replace(mutant, ordinal=seen[key]))
    return result
