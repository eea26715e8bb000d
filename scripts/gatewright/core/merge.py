"""The tree that a merge would give, without a checkout and without a trace in the repository."""

import copy
import os
import shutil
import tempfile
import weakref

from gatewright.core.change import Change
from gatewright.core.errors import CannotJudge
from gatewright.core.git import Repository, records
from gatewright.core.snapshot import commit_snapshot


def change_of_merge(repository: Repository, ref: str) -> Change:
    """HEAD merged with `ref`, relative to `ref`: what it would receive. Conflicts keep HEAD's files.

    The objects of the merge go to a temporary folder that lives as long as the change. Configured
    merge drivers are not run, as they may be programs of the judged tree: git's own stands in.
    """
    ours, theirs = repository.commit_id("HEAD"), repository.commit_id(ref)
    if ours is None or theirs is None:
        missing = "HEAD" if ours is None else ref
        raise CannotJudge(f"{missing!r} is not a commit here", "fetch it first, or check the spelling")
    repository.merge_base(ours, theirs)
    scratch, folder = _with_scratch_objects(repository)
    output = scratch.git(*_without_drivers(repository), "merge-tree", "--write-tree", "-z", ours, theirs, ok=(0, 1))
    tree, *fields = [os.fsdecode(field) for field in records(output)]
    conflicts: dict[str, None] = {}
    for field in fields:
        if not field:
            break
        conflicts[field.partition("\t")[2]] = None
    head = commit_snapshot(scratch, tree, f"merge of {ours[:12]} with {ref} ({theirs[:12]})")
    kept = commit_snapshot(scratch, ours).entries
    for path in conflicts:
        if path in kept:
            head.entries[path] = kept[path]
        else:
            head.entries.pop(path, None)
    change = Change(scratch, head, commit_snapshot(scratch, theirs), conflicts=conflicts)
    weakref.finalize(change, _remove, folder, os.getpid())
    return change


def _remove(folder: str, owner: int) -> None:
    # A forked worker has a copy of the change, and its end must not take the objects away.
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)


def _with_scratch_objects(repository: Repository) -> tuple[Repository, str]:
    folder = tempfile.mkdtemp(prefix="gatewright-merge-")
    objects = os.fsdecode(repository.git("rev-parse", "--git-path", "objects").rstrip(b"\n"))
    alternates = [os.fspath((repository.start / objects).resolve())]
    alternates += filter(None, [repository.environ.get("GIT_ALTERNATE_OBJECT_DIRECTORIES")])
    scratch = copy.copy(repository)
    # merge-tree names conflicts relative to the folder it runs in.
    scratch.start = repository.root or repository.start
    scratch.environ = {
        **repository.environ,
        "GIT_OBJECT_DIRECTORY": folder,
        "GIT_ALTERNATE_OBJECT_DIRECTORIES": os.pathsep.join(alternates),
    }
    return scratch, folder


def _without_drivers(repository: Repository) -> list[str]:
    names = repository.git("config", "--name-only", "-z", "--get-regexp", r"^merge\..*\.driver$", ok=(0, 1))
    return [
        argument for name in records(names) for argument in ("-c", os.fsdecode(name) + "=git merge-file -q %A %O %B")
    ]
