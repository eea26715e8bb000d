"""The changes of one push, from the lines that git gives to its hooks."""

import os
import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

from gatewright.core.change import Change, Remote, find_remote, is_zero, tips_of, upstream_of
from gatewright.core.errors import CannotJudge, PolicyError, Unrelated
from gatewright.core.git import Repository, records
from gatewright.core.policy import CORE, default_branch, policy_names
from gatewright.core.snapshot import Snapshot, commit_snapshot, printable

# Zeros of any length stand for no object.
_ID = re.compile(r"0+|[0-9a-f]{40}|[0-9a-f]{64}")


class RefUpdate(NamedTuple):
    """One line of a hook's standard input. `old` is what the receiving side has, `new` what it gets."""

    ref: str
    old: str
    new: str


def parse_pre_push(lines: bytes) -> list[RefUpdate]:
    """`local-ref local-id remote-ref remote-id` lines; the local name may be any expression and is not used."""
    return [RefUpdate(remote_ref, old, new) for _, new, remote_ref, old in _fields(lines, 4, "pre-push")]


def parse_pre_receive(lines: bytes) -> list[RefUpdate]:
    """`old-id new-id ref` lines."""
    return [RefUpdate(ref, old, new) for old, new, ref in _fields(lines, 3, "pre-receive")]


def _fields(lines: bytes, count: int, hook: str) -> Iterator[list[str]]:
    """The fields of each line. No ref and no id ends in a carriage return, which some wrappers add."""
    for line in filter(None, (line.rstrip("\r") for line in lines.decode(errors="surrogateescape").split("\n"))):
        fields = line.rsplit(" ", count - 1) if hook == "pre-push" else line.split(" ", count - 1)
        if len(fields) != count:
            raise PolicyError(
                f"{hook} line with {len(fields)} fields, wanted {count}: {line!r}", "git writes these lines"
            )
        for field in fields[1::2] if hook == "pre-push" else fields[:2]:
            if not _ID.fullmatch(field):
                raise PolicyError(f"{hook} line with {field!r} for an object id: {line!r}", "git writes these lines")
        yield fields


def changes_of_push(
    repository: Repository, updates: Sequence[RefUpdate], remote_name: str = "", *, receiving: bool = False
) -> list[Change]:
    """The changes of one push, each tip once. Deletions and notes are nothing to judge.

    `receiving`: this repository is the receiving side, so its own branches are what it has.
    """
    remote_name = _name_of(repository, remote_name)
    known = _known_to_receiver(repository, remote_name, receiving=receiving)
    receiver = _Receiver(repository, remote_name, receiving=receiving)
    changes: dict[tuple[str, ...], Change] = {}
    snapshots: dict[str, tuple[Snapshot, str]] = {}
    for update in updates:
        nothing = is_zero(update.new) or update.ref.startswith("refs/notes/")
        tip = None if nothing else receiver.pushed_commit(update)
        if tip is None:
            continue
        if tip not in snapshots:
            pushed = commit_snapshot(repository, tip, f"commit {tip[:12]} of {printable(update.ref)}")
            snapshots[tip] = pushed, default_branch(pushed)
        snapshot, named = snapshots[tip]
        try:
            bases, old, notes = receiver.bases(update, tip, named)
        except Unrelated:
            # A branch of pages or of data has a root of its own; without a policy there is no verdict to miss.
            if policy_names(snapshot) != [CORE]:
                raise
            note = f"{printable(update.ref)}: it shares no history with the remote's default branch"
            bases, old, notes = [], "", [note]
        change = changes.get((tip, *bases))
        if change is None:
            before = [commit_snapshot(repository, base) for base in bases]
            walk = [tip, *known, *([f"^{old}"] if old else [])]
            first = before[0] if before else None
            changes[tip, *bases] = Change(
                repository, snapshot, first, commits=walk, notes=notes, other_bases=before[1:]
            )
        else:
            change.notes.extend(note for note in notes if note not in change.notes)
    return list(changes.values())


def _name_of(repository: Repository, remote: str) -> str:
    """The name of the remote that is pushed to; git gives a hook the address where it was called with one."""
    if not re.search(r"[/:]", remote):
        return remote
    settings = repository.git("config", "-z", "--get-regexp", r"^remote\..*\.(push)?url$", ok=(0, 1))
    for record in records(settings):
        key, _, address = os.fsdecode(record).partition("\n")
        if address == remote:
            return key.partition(".")[2].rpartition(".")[0]
    return remote


def _known_to_receiver(repository: Repository, remote: str, *, receiving: bool) -> list[str]:
    """Ids, at this moment, of what the receiving side has, each with a `^` before it."""
    if not receiving and not remote:
        return []
    place = [] if receiving else [f"refs/remotes/{remote}/"]
    return [f"^{tip}" for tip in repository.git("for-each-ref", "--format=%(objectname)", *place).decode().split()]


class _Receiver:
    """What is known here of the side that a push goes to. A push of many refs asks the same of git again and again."""

    def __init__(self, repository: Repository, name: str, *, receiving: bool) -> None:
        self.repository = repository
        self.name = name
        self.receiving = receiving
        self._remote = cache(self._find)
        self._commit_id = cache(repository.commit_id)
        self._merge_bases = cache(repository.merge_bases)

    def pushed_commit(self, update: RefUpdate) -> str | None:
        """The commit of an updated ref; None for a tag of something else, of which there is nothing to judge."""
        tip = self._commit_id(update.new)
        if tip is None and self.repository.git("cat-file", "-t", update.new + "^{}").strip() == b"commit":
            raise CannotJudge(f"commit {update.new} of {printable(update.ref)} cannot be read", "git fsck tells more")
        return tip

    def bases(self, update: RefUpdate, tip: str, named: str) -> tuple[list[str], str, list[str]]:
        """(base commits, the receiving side's commit where it is known here, notes) of one pushed ref.

        `named` is the default branch that the pushed policy names.
        """
        ref = printable(update.ref)
        remote, upstream = self._remote(named)
        old, notes = self._old(update, tip)
        if old and remote.branch and update.ref == f"refs/heads/{remote.branch}":
            return self._merge_bases(tip, old, *upstream), old, notes
        if remote.default:
            return self._merge_bases(tip, remote.default, *upstream), old, notes
        remedy = f"git remote set-head {remote.name or 'NAME'} --auto"
        unknown = f"the remote's default branch is not known here ({remedy} finds it)"
        try:
            if tips := self._tips():
                note = f"{ref}: compared with all branches that are known of the remote; {unknown}"
                return self._merge_bases(tip, *filter(None, (old, *tips))), old, [*notes, note]
            if old:
                note = f"{ref}: compared with what the remote had; {unknown}"
                return self._merge_bases(tip, old), old, [*notes, note]
            other = Remote("", "", "") if self.receiving else find_remote(self.repository, "", named)
            if other.default:
                note = f"{ref}: compared with the default branch of {other.name}; {unknown}"
                return self._merge_bases(tip, other.default), old, [*notes, note]
        except Unrelated:
            pass
        return [], old, [*notes, f"absolute: {ref} is new and {unknown}"]

    def _find(self, named: str) -> tuple[Remote, list[str]]:
        if not self.receiving:
            remote = find_remote(self.repository, self.name, named)
            return remote, upstream_of(self.repository, remote, named)
        head = self.repository.git("symbolic-ref", "--quiet", "HEAD", ok=(0, 1)).decode(errors="surrogateescape")
        for branch in (head.strip().removeprefix("refs/heads/"), named, "main", "master"):
            tip = self.repository.commit_id(f"refs/heads/{branch}") if branch else None
            if tip is not None:
                return Remote("", branch, tip), []
        return Remote("", named, ""), []

    def _old(self, update: RefUpdate, tip: str) -> tuple[str, list[str]]:
        if is_zero(update.old):
            return "", []
        ref = printable(update.ref)
        old = self._commit_id(update.old) or ""
        if not old:
            return "", [f"{ref}: the remote's {update.old[:12]} is not known here; git fetch would tell more"]
        if old != tip and not self._is_ancestor(old, tip):
            return old, [f"{ref}: history rewritten, {old[:12]} is no ancestor of {tip[:12]}"]
        return old, []

    def _tips(self) -> list[str]:
        if not self.receiving and not self.name:
            return []
        return tips_of(self.repository, "refs/heads/" if self.receiving else f"refs/remotes/{self.name}/")

    def _is_ancestor(self, old: str, tip: str) -> bool:
        return self.repository.git("merge-base", old, tip, ok=(0, 1)).decode().strip() == old
