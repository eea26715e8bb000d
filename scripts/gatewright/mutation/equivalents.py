"""The list of mutants that no test can tell from the original, each with a kind and a sentence.

An entry names a function, an operator and the source that is changed, never a line. One that no
longer describes a survivor is a finding: the list must not outlive what it excuses.
"""

from typing import Literal

import msgspec

from gatewright.core.errors import PolicyError
from gatewright.core.finding import Finding
from gatewright.mutation.mutant import Mutant

Kind = Literal[
    "same-value",  # the changed expression has the same value for every input that can occur
    "unreachable",  # no input leads there
    "performance",  # only time or memory differs
    "redundant",  # another statement has the same effect
    "unobservable",  # what differs is visible through no interface
    "platform",  # it differs only on a system that the suites do not run on
]


class Equivalent(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`becomes` empty: whatever stands in the place of `source`."""

    path: str
    function: str
    operator: str
    source: str
    becomes: str = ""
    kind: Kind
    why: str

    def __post_init__(self) -> None:
        if len(self.why.split()) < 4:
            raise ValueError(f"`why` of {self.function}, {self.source!r} must be a sentence")

    def matches(self, mutant: Mutant) -> bool:
        return (
            (self.path, self.function, self.operator, self.source)
            == (mutant.path, mutant.function, mutant.operator, mutant.source)
        ) and self.becomes in ("", mutant.becomes)


class _File(msgspec.Struct, forbid_unknown_fields=True):
    equivalent: list[Equivalent] = []


def read_equivalents(data: bytes, path: str) -> list[Equivalent]:
    """The entries of the list. Raises PolicyError where an entry is not whole."""
    try:
        return msgspec.toml.decode(data, type=_File).equivalent
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise PolicyError(f"{path}: {error}", "an entry is path, function, operator, source, kind and why") from None


def stale(
    entries: list[Equivalent], planned: list[Mutant], survivors: list[Mutant], judged: list[Mutant], path: str
) -> list[Finding]:
    """Entries of `planned` files that describe no mutant, or whose mutants were judged and did not survive."""
    files = {mutant.path for mutant in planned}
    alive = {mutant.identity for mutant in survivors}
    known = {mutant.identity for mutant in judged}
    findings = []
    for entry in entries:
        if entry.path not in files:
            continue
        mutants = [mutant for mutant in planned if entry.matches(mutant)]
        if mutants and (any(m.identity in alive or m.identity not in known for m in mutants)):
            continue
        reason = "is killed by the suites now" if mutants else "describes no mutant"
        findings.append(
            Finding(
                rule="mutation/stale-equivalent",
                path=path,
                message=f"the entry for {entry.function}, {entry.operator} of {entry.source!r} {reason}",
                help="remove the entry, or correct what it names",
                token=f"{entry.path}:{entry.function}:{entry.operator}:{entry.source}:{entry.becomes}",
            )
        )
    return findings
