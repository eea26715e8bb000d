"""The one range resolver: which tree is judged, against which base, over which commits."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from gatewright.core.errors import CannotJudge, PolicyError
from gatewright.core.git import Repository
from gatewright.core.snapshot import Snapshot, commit_snapshot, index_snapshot, work_tree_snapshot


class Change:
    """A judged tree (`head`), the tree its findings are subtracted from (`base`, None: absolute), and why so.

    `commits` are those on no ref of the receiving side, newest first. `conflicts` are the paths on
    which the two sides of a merge do not agree.
    """

    def __init__(
        self,
        repository: Repository | None,
        head: Snapshot,
        base: Snapshot | None = None,
        *,
        range_arguments: Sequence[str] = (),
        notes: Iterable[str] = (),
        conflicts: Iterable[str] = (),
    ) -> None:
        self.repository = repository
        self.head = head
        self.base = base
        self.notes = list(notes)
        self.conflicts = list(conflicts)
        # What must outlive the snapshots, such as a temporary folder of objects.
        self.keep_alive: Any = None
        self._range = list(range_arguments)

    @property
    def commits(self) -> list[str]:
        if self.repository is None or not self._range:
            return []
        return self.repository.git("rev-list", *self._range, "--").decode().split()


class Remote(NamedTuple):
    """The receiving side as this repository knows it. `default` is its default branch's tip, or empty."""

    name: str
    branch: str
    default: str


def find_remote(repository: Repository, name: str = "", default_branch: str = "") -> Remote:
    """The remote `name` (or origin, or the only one) and the tip of its default branch."""
    branches = [default_branch] if default_branch else ["HEAD", "main", "master"]
    patterns = [f"refs/remotes/{name or '*'}/{branch}" for branch in branches]
    tips: dict[str, dict[str, tuple[str, str]]] = {}
    listing = repository.git("for-each-ref", "--format=%(refname)%00%(objectname)%00%(symref)", *patterns)
    for line in listing.decode(errors="surrogateescape").splitlines():
        ref, tip, target = line.split("\0")
        remote, _, branch = ref.removeprefix("refs/remotes/").rpartition("/")
        tips.setdefault(remote, {})[branch] = (tip, target.rpartition("/")[2] or branch)
    chosen = name or ("origin" if "origin" in tips else next(iter(tips)) if len(tips) == 1 else "")
    for branch in branches:
        if branch in tips.get(chosen, {}):
            tip, real = tips[chosen][branch]
            return Remote(chosen, real, tip)
    return Remote(chosen, default_branch, "")


def _base(repository: Repository, head: str, named: str, remote: Remote) -> tuple[str, str]:
    """(base commit or empty, note). A base that was named and cannot be reached ends the run."""
    if named:
        commit = repository.commit_id(named)
        if commit is None:
            raise CannotJudge(
                f"the base {named!r} is not a commit here", "fetch it first: git fetch, or name another --base"
            )
        return repository.merge_base(head, commit), ""
    if not remote.default:
        where = f"of remote {remote.name!r} " if remote.name else ""
        return "", f"absolute: no remote-tracking default branch {where}to compare with"
    return repository.merge_base(head, remote.default), ""


def _is_zero(object_id: str) -> bool:
    return not object_id.strip("0")


def change_of_work_tree(
    repository: Repository, base: str = "", *, staged: bool = False, default_branch: str = ""
) -> Change:
    """What is on disk (or, `staged`, in the index), relative to the remote's default branch or `base`."""
    snapshot = index_snapshot(repository) if staged else work_tree_snapshot(repository)
    head = repository.commit_id("HEAD")
    if head is None:
        return Change(repository, snapshot, notes=["absolute: the branch has no commit yet"])
    remote = Remote("", "", "") if base and not _is_zero(base) else find_remote(repository, "", default_branch)
    base_commit, note = _base(repository, head, "" if _is_zero(base) else base, remote)
    if base_commit == head:
        committed = commit_snapshot(repository, head)
        if committed.entries == snapshot.entries:
            return Change(repository, snapshot, notes=["absolute: nothing differs from the base"])
        return Change(repository, snapshot, committed)
    if not base_commit:
        return Change(repository, snapshot, notes=[note], range_arguments=[head])
    return Change(
        repository, snapshot, commit_snapshot(repository, base_commit), range_arguments=[f"{base_commit}..{head}"]
    )


def change_of_commit(repository: Repository, revision: str, base: str = "", *, default_branch: str = "") -> Change:
    """One commit, relative to the remote's default branch or `base`."""
    head = repository.commit_id(revision)
    if head is None:
        raise CannotJudge(f"{revision!r} is not a commit here", "fetch it first, or check the spelling")
    named = "" if _is_zero(base) else base
    remote = Remote("", "", "") if named else find_remote(repository, "", default_branch)
    base_commit, note = _base(repository, head, named, remote)
    snapshot = commit_snapshot(repository, head)
    if base_commit == head:
        return Change(repository, snapshot, notes=["absolute: the commit is part of the base"])
    if not base_commit:
        return Change(repository, snapshot, notes=[note], range_arguments=[head])
    return Change(
        repository, snapshot, commit_snapshot(repository, base_commit), range_arguments=[f"{base_commit}..{head}"]
    )


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
    for line in lines.decode(errors="surrogateescape").splitlines():
        fields = line.rsplit(" ", count - 1) if hook == "pre-push" else line.split(" ", count - 1)
        if len(fields) != count:
            raise PolicyError(
                f"{hook} line with {len(fields)} fields, wanted {count}: {line!r}", "git writes these lines"
            )
        yield fields


def changes_of_push(
    repository: Repository,
    updates: Sequence[RefUpdate],
    remote_name: str = "",
    *,
    default_branch: str = "",
    receiving: bool = False,
) -> list[Change]:
    """The changes of one push, each tip once. Deletions are nothing to judge.

    `receiving`: this repository is the receiving side, so its own branches are what it has.
    """
    remote = (
        _receiver(repository, default_branch) if receiving else find_remote(repository, remote_name, default_branch)
    )
    known = ["--not", "--all"] if receiving else ["--not", f"--remotes={remote.name or remote_name}"]
    changes: dict[tuple[str, str], Change] = {}
    for update in updates:
        if _is_zero(update.new):
            continue
        tip = repository.commit_id(update.new)
        if tip is None:
            if not _exists(repository, update.new):
                raise CannotJudge(f"object {update.new} of {update.ref} is missing", "git fsck shows what is damaged")
            continue
        base, notes = _base_of_update(repository, update, tip, remote, receiving=receiving)
        change = changes.get((tip, base))
        if change is None:
            snapshot = commit_snapshot(repository, tip)
            before = commit_snapshot(repository, base) if base else None
            changes[tip, base] = Change(repository, snapshot, before, range_arguments=[tip, *known], notes=notes)
        else:
            change.notes.extend(note for note in notes if note not in change.notes)
    return list(changes.values())


def _exists(repository: Repository, object_id: str) -> bool:
    answer = repository.git("cat-file", "--batch-check", input=object_id.encode() + b"\n")
    return not answer.rstrip().endswith(b"missing")


def _receiver(repository: Repository, default_branch: str) -> Remote:
    head = repository.git("symbolic-ref", "--short", "HEAD", ok=(0, 1, 128)).decode().strip()
    branch = default_branch or head
    return Remote("", branch, repository.commit_id(f"refs/heads/{branch}") or "" if branch else "")


def _base_of_update(
    repository: Repository, update: RefUpdate, tip: str, remote: Remote, *, receiving: bool
) -> tuple[str, list[str]]:
    """(base commit or empty, notes) of one pushed ref."""
    notes: list[str] = []
    old = "" if _is_zero(update.old) else (repository.commit_id(update.old) or "")
    if not old and not _is_zero(update.old):
        notes.append(f"{update.ref}: the remote's {update.old[:12]} is not known here; git fetch would tell more")
    elif old and old != tip and repository.git("merge-base", old, tip, ok=(0, 1)).decode().strip() != old:
        notes.append(f"{update.ref}: history rewritten, {old[:12]} is no ancestor of {tip[:12]}")
    if remote.branch and update.ref == f"refs/heads/{remote.branch}" and old:
        return repository.merge_base(old, tip), notes
    if remote.default and not (receiving and update.ref == f"refs/heads/{remote.branch}"):
        return repository.merge_base(tip, remote.default), notes
    if old:
        return repository.merge_base(old, tip), notes
    return "", [*notes, f"absolute: {update.ref} is new and the remote's default branch is not known here"]
