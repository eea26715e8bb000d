"""The one range resolver: which tree is judged, against which base, over which commits."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from gatewright.core.errors import CannotJudge, Unrelated
from gatewright.core.git import Repository
from gatewright.core.policy import default_branch
from gatewright.core.snapshot import Snapshot, commit_snapshot, index_snapshot, work_tree_snapshot


class Change:
    """A judged tree (`head`), the tree its findings are subtracted from (`base`, None: absolute), and why so.

    `commits` are those on no ref of the receiving side, newest first; given as ids to walk from and,
    with a `^` before them, to stop at, so that a ref that moves meanwhile changes nothing.
    `other_bases`: where histories merged each other there are several merge bases, and what one of
    them had is not new. `conflicts` are the paths on which the two sides of a merge do not agree.
    """

    def __init__(
        self,
        repository: Repository | None,
        head: Snapshot,
        base: Snapshot | None = None,
        *,
        commits: Sequence[str] = (),
        notes: Iterable[str] = (),
        conflicts: Iterable[str] = (),
        other_bases: Sequence[Snapshot] = (),
    ) -> None:
        self.repository = repository
        self.head = head
        self.base = base
        self.notes = list(notes)
        self.conflicts = list(conflicts)
        self.other_bases = list(other_bases)
        self._range = list(commits)

    @property
    def commits(self) -> list[str]:
        if self.repository is None or not self._range:
            return []
        wanted = "".join(f"{revision}\n" for revision in self._range)
        return self.repository.git("rev-list", "--ignore-missing", "--stdin", input=wanted.encode()).decode().split()


class Remote(NamedTuple):
    """The receiving side as this repository knows it. `default` is its default branch's tip, or empty."""

    name: str
    branch: str
    default: str


def find_remote(repository: Repository, name: str = "", named_branch: str = "") -> Remote:
    """The remote `name` (or origin, or the only one) and the tip of its default branch.

    Git's own record of that branch comes first: `named_branch` is what the judged tree says, and a
    change must not choose its own base where git knows better.
    """
    branches = ["HEAD", named_branch] if named_branch else ["HEAD", "main", "master"]
    patterns = [f"refs/remotes/{name or '*'}/{branch}" for branch in branches]
    tips: dict[str, dict[str, tuple[str, str]]] = {}
    listing = repository.git("for-each-ref", "--format=%(refname)%00%(objectname)%00%(symref)", *patterns)
    for line in listing.decode(errors="surrogateescape").split("\n")[:-1]:
        ref, tip, target = line.split("\0")
        path = ref.removeprefix("refs/remotes/")
        branch = next(branch for branch in branches if path.endswith("/" + branch))
        remote = path.removesuffix("/" + branch)
        tips.setdefault(remote, {})[branch] = (tip, target.removeprefix(f"refs/remotes/{remote}/") or branch)
    chosen = name or ("origin" if "origin" in tips else next(iter(tips)) if len(tips) == 1 else "")
    for branch in branches:
        if branch in tips.get(chosen, {}):
            tip, real = tips[chosen][branch]
            return Remote(chosen, real, tip)
    return Remote(chosen, named_branch, "")


def upstream_of(repository: Repository, remote: Remote, named_branch: str = "") -> list[str]:
    """For a fork, the tip of the default branch of the remote `upstream`, which its branches may start from.

    What stands there was accepted there. It says nothing about a push to any other remote.
    """
    upstream = find_remote(repository, "upstream", named_branch) if remote.name == "origin" else None
    return [upstream.default] if upstream is not None and upstream.default else []


def tips_of(repository: Repository, folder: str) -> list[str]:
    """Ids of the branches in a folder of refs. They stand in for a default branch that is not known."""
    return list(dict.fromkeys(repository.git("for-each-ref", "--format=%(objectname)", folder).decode().split()))


def _bases(repository: Repository, snapshot: Snapshot, head: str, named: str) -> tuple[list[str], str]:
    """(base commits, note); none where nothing is known. A base that was named and cannot be reached ends the run.

    Zeros, which a continuous integration system gives for a new branch, name no base.
    """
    if not is_zero(named):
        commit = repository.commit_id(named)
        if commit is None:
            raise CannotJudge(
                f"the base {named!r} is not a commit here", "fetch it first: git fetch, or name another --base"
            )
        return repository.merge_bases(head, commit), ""
    branch = default_branch(snapshot)
    remote = find_remote(repository, "", branch)
    if remote.default:
        return repository.merge_bases(head, remote.default, *upstream_of(repository, remote, branch)), ""
    where = f"of remote {remote.name!r} " if remote.name else ""
    note = f"no remote-tracking default branch {where}to compare with"
    tips = tips_of(repository, f"refs/remotes/{remote.name}/" if remote.name else "refs/remotes/")
    # A branch that was pushed is compared with the others, not with itself.
    tips = [tip for tip in tips if tip != head] or tips
    try:
        if tips:
            return repository.merge_bases(head, *tips), f"compared with all remote-tracking branches: {note}"
    except Unrelated:
        pass
    return [], f"absolute: {note}"


def is_zero(object_id: str) -> bool:
    """Git's word for "no object", of any length."""
    return not object_id.strip("0")


def change_of_work_tree(
    repository: Repository, base: str = "", *, staged: bool = False, absolute: bool = False
) -> Change:
    """What is on disk (or, `staged`, in the index), relative to the remote's default branch or `base`.

    Where nothing differs from a base that was not named, there is no change, and the tree is judged absolutely.
    """
    snapshot = index_snapshot(repository) if staged else work_tree_snapshot(repository)
    head = repository.head_id()
    if head is None:
        return Change(repository, snapshot, notes=["absolute: the branch has no commit yet"])
    if absolute:
        return Change(repository, snapshot)
    bases, note = _bases(repository, snapshot, head, base)
    if bases == [head] and is_zero(base):
        committed = commit_snapshot(repository, head)
        if committed.entries == snapshot.entries:
            return Change(repository, snapshot, notes=["absolute: nothing differs from the base"])
        return Change(repository, snapshot, committed)
    return _since(repository, snapshot, head, bases, note)


def change_of_commit(repository: Repository, revision: str, base: str = "", *, absolute: bool = False) -> Change:
    """One commit, relative to the remote's default branch or `base`."""
    head = repository.commit_id(revision)
    if head is None:
        raise CannotJudge(f"{revision!r} is not a commit here", "fetch it first, or check the spelling")
    snapshot = commit_snapshot(repository, head)
    if absolute:
        return Change(repository, snapshot)
    bases, note = _bases(repository, snapshot, head, base)
    if bases == [head] and is_zero(base):
        return Change(repository, snapshot, notes=["absolute: the commit is part of the base"])
    return _since(repository, snapshot, head, bases, note)


def _since(repository: Repository, snapshot: Snapshot, head: str, bases: Sequence[str], note: str) -> Change:
    notes = [note] if note else []
    if not bases:
        return Change(repository, snapshot, notes=notes, commits=[head])
    first, *others = [commit_snapshot(repository, base) for base in bases]
    commits = [head, *(f"^{base}" for base in bases)]
    return Change(repository, snapshot, first, commits=commits, notes=notes, other_bases=others)
