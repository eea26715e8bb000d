"""What a judge sees: the paths of one snapshot and the facts of their files."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Any

import msgspec

from gatewright.core.cache import Cache
from gatewright.core.facts import Extractor
from gatewright.core.globs import PathSet
from gatewright.core.snapshot import DictSnapshot, Snapshot

# A source file above this size is not parsed; it is reported as unread.
MAX_BYTES = 8 * 1024 * 1024
_EMPTY = b"\x90"

Progress = Callable[[str, int, int], None]
# Extractor key -> content's name -> facts: what the trees of one run share, since most of their files are equal.
Known = dict[bytes, dict[str, list[Any]]]


class Tree:
    """One snapshot with its facts. Facts are a pure function of a file's content; see `Extractor`."""

    def __init__(
        self,
        snapshot: Snapshot,
        cache: Cache | None = None,
        progress: Progress | None = None,
        known: Known | None = None,
    ) -> None:
        self.snapshot = snapshot
        self._progress = progress
        self.paths: list[str] = snapshot.files
        self.unread: dict[str, str] = {}
        self._cache = cache or Cache(None)
        self._known: Known = {} if known is None else known
        self._facts: dict[Extractor, dict[str, list[Any]]] = {}
        self._counts: dict[Extractor, int] = {}
        self._contents: dict[str, str] = {}
        # A file that is no object may change meanwhile; its facts must be those of the bytes that named it.
        self._held: dict[str, bytes] = {}
        self._paths = tuple(self.paths)

    @classmethod
    def of(cls, files: Mapping[str, str | bytes]) -> "Tree":
        """A tree of given files, for tests and executed manuals."""
        return cls(DictSnapshot(files))

    def facts(self, extractor: Extractor) -> dict[str, list[Any]]:
        """The non-empty facts by path, in path order."""
        self.prefetch([extractor])
        return self._facts[extractor]

    def examined(self, extractor: Extractor) -> int:
        """How many files the extractor was run on."""
        self.prefetch([extractor])
        return self._counts[extractor]

    def select(self, paths: PathSet) -> list[str]:
        """The tree's files in a path set, in order."""
        return _select(paths, self._paths)

    def prefetch(self, extractors: Iterable[Extractor]) -> None:
        """Take the facts of several extractors, reading each file that must be read once."""
        wanted = [e for e in extractors if e not in self._facts]
        if not wanted:
            return
        selected = [self.select(e.paths) for e in wanted]
        self._read_unnamed({path for paths in selected for path in paths})
        todo: dict[str, list[int]] = {}
        for number, (extractor, paths) in enumerate(zip(wanted, selected, strict=True)):
            for path in self._unknown(extractor, paths):
                todo.setdefault(path, []).append(number)
        if todo:
            self._extract(wanted, todo)
        for extractor, paths in zip(wanted, selected, strict=True):
            self._collect(extractor, paths)

    def _unknown(self, extractor: Extractor, paths: Sequence[str]) -> Iterable[str]:
        """One path for each content whose facts neither this run nor the cache knows."""
        known = self._known.setdefault(extractor.key(), {})
        missing = {name: path for path in reversed(paths) if (name := self._name(path)) not in known}
        if missing:
            decode = _decoder(extractor)
            stored = self._cache.get(extractor.key(), list(missing))
            known.update((name, decode(data)) for name, data in stored.items())
        return [path for name, path in reversed(missing.items()) if name not in known]

    def _name(self, path: str) -> str:
        """What the content of a path is cached under: the blob's id, or a digest of other bytes."""
        return self.snapshot.entries[path].id or self._contents[path]

    def _read_unnamed(self, paths: Iterable[str]) -> None:
        unnamed = [p for p in paths if not self.snapshot.entries[p].id and p not in self._contents]
        if not unnamed:
            return
        reader = self.snapshot.open()
        try:
            for path in unnamed:
                data = reader.read(path, self.snapshot.entries[path])
                self._contents[path] = "content:" + blake2b(data, digest_size=20).hexdigest()
                self._held[path] = data
        finally:
            reader.close()

    def _extract(self, extractors: Sequence[Extractor], todo: dict[str, list[int]]) -> None:
        from gatewright.core.extraction import extract_all

        self._cache.close()
        fresh: list[list[tuple[str, bytes]]] = [[] for _ in extractors]
        total = sum(map(len, todo.values()))
        for done, (path, number, data) in enumerate(extract_all(self.snapshot, extractors, todo, self._held), 1):
            if self._progress is not None:
                self._progress(f"reading {self.snapshot.label}", done, total)
            if data is None:
                self.unread[path] = f"larger than {MAX_BYTES} bytes"
                continue
            fresh[number].append((self._name(path), data))
        for extractor, facts in zip(extractors, fresh, strict=True):
            if facts:
                decode = _decoder(extractor)
                self._known[extractor.key()].update((name, decode(data)) for name, data in facts)
                self._cache.put(extractor.key(), facts)

    def _collect(self, extractor: Extractor, paths: Sequence[str]) -> None:
        known = self._known[extractor.key()]
        found = {path: known[name] for path in paths if (name := self._name(path)) in known}
        self._counts[extractor] = len(found)
        self._facts[extractor] = {path: facts for path, facts in found.items() if facts}


@lru_cache(maxsize=256)
def _select(paths: PathSet, files: tuple[str, ...]) -> list[str]:
    """Of one run's trees, most hold the same files and are asked for the same sets."""
    return paths.select(files)


def _decoder(extractor: Extractor) -> Callable[[bytes], list[Any]]:
    decode = msgspec.msgpack.Decoder(list[extractor.fact]).decode  # type: ignore[name-defined]
    return lambda data: [] if data == _EMPTY else decode(data)


def encoded_facts(data: bytes, functions: Sequence[tuple[Any, Any]]) -> list[bytes] | None:
    """Encoded facts of one file for each (function, options); None where it is too large to parse."""
    if len(data) > MAX_BYTES:
        return None
    return [msgspec.msgpack.encode(function(data, options)) for function, options in functions]
