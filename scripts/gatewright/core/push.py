"""The changes of one push, from the lines that git gives to its hooks."""

import os
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from gatewright.core.change import Change, Remote, find_remote, is_zero
from gatewright.core.errors import CannotJudge, PolicyError, Unrelated
from gatewright.core.git import Repository, records
from gatewright.core.policy import CORE, default_branch, policy_names
from gatewright.core.snapshot import commit_snapshot, printable


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
    for line in filter(None, lines.decode(errors="surrogateescape").split("\n")):
        fields = line.rsplit(" ", count - 1) if hook == "pre-push" else line.split(" ", count - 1)
        if len(fields) != count:
            raise PolicyError(
                f"{hook} line with {len(fields)} fields, wanted {count}: {line!r}", "git writes these lines"
            )
        yield fields


def changes_of_push(
    repository: Repository, updates: Sequence[RefUpdate], remote_name: str = "", *, receiving: bool = False
) -> list[Change]:
    """The changes of one push, each tip once. Deletions and notes are nothing to judge.

    `receiving`: this repository is the receiving side, so its own branches are what it has.
    """
    remote_name = _name_of(repository, remote_name)
    known = _known_to_receiver(repository, remote_name, receiving=receiving)
    changes: dict[tuple[str, str], Change] = {}
    for update in updates:
        nothing = is_zero(update.new) or update.ref.startswith("refs/notes/")
        tip = None if nothing else _pushed_commit(repository, update)
        if tip is None:
            continue
        snapshot = commit_snapshot(repository, tip, f"commit {tip[:12]} of {printable(update.ref)}")
        named = default_branch(snapshot)
        remote = _receiver(repository, named) if receiving else find_remote(repository, remote_name, named)
        try:
            base, old, notes = _base_of_update(repository, update, tip, remote)
        except Unrelated:
            # A branch of pages or of data has a root of its own; without a policy there is no verdict to miss.
            if policy_names(snapshot) != [CORE]:
                raise
            base, old, notes = (
                "",
                "",
                [f"{printable(update.ref)}: it shares no history with the remote's default branch"],
            )
        change = changes.get((tip, base))
        if change is None:
            before = commit_snapshot(repository, base) if base else None
            walk = [tip, *known, *([f"^{old}"] if old else [])]
            changes[tip, base] = Change(repository, snapshot, before, commits=walk, notes=notes)
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


def _pushed_commit(repository: Repository, update: RefUpdate) -> str | None:
    """The commit of an updated ref; None for a tag of something else, of which there is nothing to judge."""
    tip = repository.commit_id(update.new)
    if tip is None and repository.git("cat-file", "-t", update.new + "^{}").strip() == b"commit":
        raise CannotJudge(f"commit {update.new} of {printable(update.ref)} cannot be read", "git fsck tells more")
    return tip


def _receiver(repository: Repository, named: str) -> Remote:
    head = repository.git("symbolic-ref", "--quiet", "HEAD", ok=(0, 1)).decode(errors="surrogateescape").strip()
    for branch in (head.removeprefix("refs/heads/"), named):
        tip = repository.commit_id(f"refs/heads/{branch}") if branch else None
        if tip is not None:
            return Remote("", branch, tip)
    return Remote("", named, "")


def _base_of_update(repository: Repository, update: RefUpdate, tip: str, remote: Remote) -> tuple[str, str, list[str]]:
    """(base commit or empty, the receiving side's commit where it is known here, notes) of one pushed ref."""
    notes: list[str] = []
    ref = printable(update.ref)
    old = "" if is_zero(update.old) else (repository.commit_id(update.old) or "")
    if not old and not is_zero(update.old):
        notes.append(f"{ref}: the remote's {update.old[:12]} is not known here; git fetch would tell more")
    elif old and old != tip and repository.git("merge-base", old, tip, ok=(0, 1)).decode().strip() != old:
        notes.append(f"{ref}: history rewritten, {old[:12]} is no ancestor of {tip[:12]}")
    if old and remote.branch and update.ref == f"refs/heads/{remote.branch}":
        return repository.merge_base(old, tip), old, notes
    if remote.default:
        return repository.merge_base(tip, remote.default), old, notes
    unknown = "the remote's default branch is not known here (git remote set-head NAME --auto finds it)"
    if old:
        return repository.merge_base(old, tip), old, [*notes, f"{ref}: compared with what the remote had; {unknown}"]
    return "", "", [*notes, f"absolute: {ref} is new and {unknown}"]
