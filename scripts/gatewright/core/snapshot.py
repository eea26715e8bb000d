"""An immutable tree: a commit, the index, the work tree, or a dictionary. All checks read through it."""

import hashlib
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, Protocol

import msgspec

from gatewright.core.errors import CannotJudge
from gatewright.core.git import Objects, Repository, records

Kind = Literal["file", "symlink", "submodule"]


class Entry(msgspec.Struct, frozen=True):
    """What lies at a path. `id` is the blob's id, or empty where the content is known to no object."""

    kind: Kind
    id: str = ""


class Reader(Protocol):
    """Reads the files of one snapshot; each process opens its own."""

    def read(self, path: str, entry: Entry) -> bytes: ...

    def close(self) -> None: ...


class Snapshot:
    """`label` says in words which tree this is; `entries` maps paths (os.fsdecode'd) to what lies there."""

    def __init__(self, label: str, entries: Mapping[str, Entry]) -> None:
        self.label = label
        self.entries = dict(sorted(entries.items()))

    @property
    def files(self) -> list[str]:
        return [path for path, entry in self.entries.items() if entry.kind == "file"]

    def open(self) -> Reader:
        raise NotImplementedError

    def read(self, path: str) -> bytes:
        """Content of one file. Raises KeyError where there is none."""
        entry = self.entries[path]
        reader = self.open()
        try:
            return reader.read(path, entry)
        finally:
            reader.close()


class DictSnapshot(Snapshot):
    """Files given in memory, for executed manuals and tests."""

    def __init__(self, files: Mapping[str, str | bytes], label: str = "given files") -> None:
        super().__init__(label, {path: Entry("file") for path in files})
        self.contents = {p: c.encode("utf-8", "surrogateescape") if isinstance(c, str) else c for p, c in files.items()}

    def open(self) -> Reader:
        return _DictReader(self.contents)


class _DictReader:
    def __init__(self, contents: Mapping[str, bytes]) -> None:
        self.contents = contents

    def read(self, path: str, entry: Entry) -> bytes:
        return self.contents[path]

    def close(self) -> None:
        pass


class ObjectSnapshot(Snapshot):
    """A commit, a tree or the index: every file is an object."""

    def __init__(self, repository: Repository, label: str, entries: Mapping[str, Entry]) -> None:
        super().__init__(label, entries)
        self.repository = repository

    def open(self) -> Reader:
        return _ObjectReader(self.repository.objects())


class _ObjectReader:
    def __init__(self, objects: Objects) -> None:
        self.objects = objects

    def read(self, path: str, entry: Entry) -> bytes:
        return self.objects.read(entry.id)

    def close(self) -> None:
        self.objects.close()


class WorkTreeSnapshot(Snapshot):
    """Tracked files as they lie on disk, and untracked ones that git does not ignore."""

    def __init__(self, repository: Repository, root: Path, entries: Mapping[str, Entry]) -> None:
        super().__init__("work tree", entries)
        self.repository = repository
        self.root = root

    def open(self) -> Reader:
        return _WorkTreeReader(self.repository, self.root)


class _WorkTreeReader:
    """Reads the file on disk where its bytes are the blob's own, else the blob.

    A file that git calls clean may still differ in bytes (line endings, filters, a sparse
    checkout). The facts of a blob are cached by its id, so the bytes are compared with the id.
    """

    def __init__(self, repository: Repository, root: Path) -> None:
        self.root = os.fspath(root) + "/"
        self.hash = hashlib.sha256 if repository.object_format == "sha256" else hashlib.sha1
        self.objects = repository.objects()

    def read(self, path: str, entry: Entry) -> bytes:
        try:
            with open(self.root + path, "rb", opener=_no_follow) as file:
                data = file.read() if stat.S_ISREG(os.fstat(file.fileno()).st_mode) else None
        except OSError as error:
            if entry.id:
                return self.objects.read(entry.id)
            raise CannotJudge(f"{printable(path)}: {error.strerror}", "make the file readable, or remove it") from None
        if data is None:
            raise CannotJudge(f"{printable(path)} is neither file nor link", "remove it, or git checkout it")
        if not entry.id or self.hash(b"blob %d\0" % len(data) + data).hexdigest() == entry.id:
            return data
        return self.objects.read(entry.id)

    def close(self) -> None:
        self.objects.close()


def _no_follow(path: str, flags: int) -> int:
    # A pipe in the file's place must not be waited for.
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))


def printable(path: str) -> str:
    """A path for people: bytes that are not UTF-8 and control characters as escapes."""
    text = "".join(f"\\x{ord(c) - 0xDC00:02x}" if 0xDC80 <= ord(c) <= 0xDCFF else c for c in path)
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


_KINDS: dict[bytes, Kind] = {b"120000": "symlink", b"160000": "submodule"}


def _entry(mode: bytes, object_id: bytes = b"") -> Entry:
    return Entry(_KINDS.get(mode, "file"), object_id.decode())


def commit_snapshot(repository: Repository, commit: str, label: str = "") -> Snapshot:
    """The tree of a commit (or of a tree id)."""
    entries = {}
    for record in records(repository.git("ls-tree", "-r", "-z", "--full-tree", commit)):
        meta, _, path = record.partition(b"\t")
        mode, _, object_id = meta.split(b" ")
        entries[os.fsdecode(path)] = _entry(mode, object_id)
    return ObjectSnapshot(repository, label or f"commit {commit[:12]}", entries)


def _index(repository: Repository, output: bytes) -> tuple[dict[str, Entry], list[str]]:
    entries: dict[str, Entry] = {}
    unmerged: list[str] = []
    for record in records(output):
        meta, _, path = record.partition(b"\t")
        mode, object_id, stage = meta.split(b" ")
        name = os.fsdecode(path)
        if stage == b"0":
            entries[name] = _entry(mode, object_id)
        else:
            unmerged.append(name)
    return entries, unmerged


def index_snapshot(repository: Repository) -> Snapshot:
    """What a commit made now would hold. Raises CannotJudge while paths are unmerged."""
    # Unlike ls-files, this leaves out what is only intended to be added.
    arguments = ["diff-index", "--cached", "--raw", "-z", "--no-renames", "--ita-invisible-in-index", "--no-abbrev"]
    fields = records(repository.git(*arguments, repository.empty_tree, "--"))
    entries: dict[str, Entry] = {}
    unmerged: list[str] = []
    for meta in fields:
        _, mode, _, object_id, status = meta.split(b" ")
        name = os.fsdecode(next(fields))
        if status == b"U":
            unmerged.append(name)
        else:
            entries[name] = _entry(mode, object_id)
    if unmerged:
        raise CannotJudge(
            f"the index holds {len(unmerged)} unmerged paths, first {printable(unmerged[0])}",
            "finish the merge: git status lists the conflicted paths",
        )
    return ObjectSnapshot(repository, "index", entries)


def work_tree_snapshot(repository: Repository) -> Snapshot:
    """The work tree. A clean file carries the index's id; a dirty or untracked one none."""
    root = repository.root
    if root is None:
        raise CannotJudge("this repository has no work tree", "name what to judge: gate run --commit REV")
    listing, changed, untracked = repository.git_all(
        [
            ["ls-files", "-s", "-z", "--full-name", ":/"],
            ["diff-files", "-z", "--raw", "--no-renames", "--ignore-submodules=all"],
            ["ls-files", "-o", "-z", "--exclude-standard", "--full-name", ":/"],
        ]
    )
    entries, unmerged = _index(repository, listing)
    for name in unmerged:
        _set_from_disk(entries, root, name)
    fields = records(changed)
    for meta in fields:
        _, mode, _, _, status = meta.split(b" ")
        name = os.fsdecode(next(fields))
        if status == b"D":
            entries.pop(name, None)
        elif status != b"U":
            entries[name] = _entry(mode)
    for path in records(untracked):
        # A trailing slash is a repository of its own inside this one.
        if not path.endswith(b"/"):
            _set_from_disk(entries, root, os.fsdecode(path))
    return WorkTreeSnapshot(repository, root, entries)


def _set_from_disk(entries: dict[str, Entry], root: Path, name: str) -> None:
    try:
        mode = os.lstat(root / name).st_mode
    except OSError:
        entries.pop(name, None)
        return
    if stat.S_ISLNK(mode):
        entries[name] = Entry("symlink")
    elif stat.S_ISREG(mode):
        entries[name] = Entry("file")
