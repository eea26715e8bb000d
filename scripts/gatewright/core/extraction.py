"""Takes facts from many files on all cores. Imported only where a file must be read."""

import multiprocessing
import os
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gatewright.core.facts import Extractor
from gatewright.core.snapshot import Reader, Snapshot
from gatewright.core.tree import read_and_extract

# Below this many files a pool costs more than it saves.
_POOL_FROM = 48
_CHUNK = 12

Result = tuple[str, int, bytes | None]


def extract_all(
    snapshot: Snapshot, extractors: Sequence[Extractor], todo: Mapping[str, Sequence[int]]
) -> Iterator[Result]:
    """Yield (path, extractor number, encoded facts or None where too large) for all of `todo`."""
    job = _Job(snapshot, extractors)
    work = list(todo.items())
    workers = min(os.cpu_count() or 1, len(work) // _POOL_FROM + 1)
    # Forking beside other threads can copy a held lock into the child.
    if workers < 2 or not hasattr(os, "fork") or sys.platform == "darwin" or threading.active_count() > 1:
        try:
            yield from job.run(work)
        finally:
            job.close()
        return
    chunks = [work[start : start + _CHUNK] for start in range(0, len(work), _CHUNK)]
    job.load()
    with multiprocessing.get_context("fork").Pool(workers, _adopt, (job,)) as pool:
        for results in pool.imap_unordered(_run_chunk, chunks):
            yield from results
        pool.close()
        pool.join()


class _Job:
    """What a worker needs; its reader is opened in the process that uses it."""

    def __init__(self, snapshot: Snapshot, extractors: Sequence[Extractor]) -> None:
        self.snapshot = snapshot
        self.extractors = extractors
        self.functions: list[tuple[Any, Any]] = []
        self.reader: Reader | None = None

    def load(self) -> None:
        self.functions = [(e.load(), e.options) for e in self.extractors]

    def run(self, work: Sequence[tuple[str, Sequence[int]]]) -> Iterator[Result]:
        if not self.functions:
            self.load()
        if self.reader is None:
            self.reader = self.snapshot.open()
        for path, numbers in work:
            chosen = [self.functions[number] for number in numbers]
            facts = read_and_extract(self.reader, path, self.snapshot.entries[path], chosen)
            for position, number in enumerate(numbers):
                yield path, number, None if facts is None else facts[position]

    def close(self) -> None:
        if self.reader is not None:
            self.reader.close()


_job: _Job | None = None


def _adopt(job: _Job) -> None:
    global _job
    _job = job


def _run_chunk(work: Sequence[tuple[str, Sequence[int]]]) -> list[Result]:
    assert _job is not None
    return list(_job.run(work))
