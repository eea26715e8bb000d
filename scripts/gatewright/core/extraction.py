"""Takes facts from many files on all cores. Imported only where a file must be read."""

import gc
import multiprocessing
import os
import signal
import sys
import threading
import traceback
from collections.abc import Iterator, Mapping, Sequence
from multiprocessing.connection import Connection, wait
from typing import Any

from gatewright.core.errors import CannotJudge, GateError
from gatewright.core.facts import Extractor
from gatewright.core.snapshot import Reader, Snapshot
from gatewright.core.tree import encoded_facts

# Below this many files workers cost more than they save.
_WORKER_FROM = 48
_CHUNK = 12
# Chunks that a worker has been sent; two, so that it need not wait. They fit a pipe's buffer.
_AHEAD = 2

Work = Sequence[tuple[str, Sequence[int]]]
Result = tuple[str, int, bytes | None]


def extract_all(
    snapshot: Snapshot, extractors: Sequence[Extractor], todo: Mapping[str, Sequence[int]], held: Mapping[str, bytes]
) -> Iterator[Result]:
    """Yield (path, extractor number, encoded facts or None where too large) for all of `todo`.

    `held` are the contents of the paths that have been read already.
    """
    job = _Job(snapshot, extractors, held)
    work = list(todo.items())
    workers = min(os.cpu_count() or 1, len(work) // _WORKER_FROM + 1)
    # Forking beside other threads can copy a held lock into the child.
    if workers < 2 or not hasattr(os, "fork") or sys.platform == "darwin" or threading.active_count() > 1:
        try:
            yield from job.run(work)
        finally:
            job.close()
        return
    yield from _share(job, [work[start : start + _CHUNK] for start in range(0, len(work), _CHUNK)], workers)


class _Job:
    """What a worker needs; its reader is opened in the process that uses it."""

    def __init__(self, snapshot: Snapshot, extractors: Sequence[Extractor], held: Mapping[str, bytes]) -> None:
        self.snapshot = snapshot
        self.held = held
        self.functions: list[tuple[Any, Any]] = [(e.load(), e.options) for e in extractors]
        self.reader: Reader | None = None

    def run(self, work: Work) -> Iterator[Result]:
        if self.reader is None:
            self.reader = self.snapshot.open()
        for path, numbers in work:
            chosen = [self.functions[number] for number in numbers]
            data = self.held[path] if path in self.held else self.reader.read(path, self.snapshot.entries[path])
            facts = encoded_facts(data, chosen)
            for position, number in enumerate(numbers):
                yield path, number, None if facts is None else facts[position]

    def close(self) -> None:
        if self.reader is not None:
            self.reader.close()


def _share(job: _Job, chunks: Sequence[Work], workers: int) -> Iterator[Result]:
    """Hand the chunks to forked workers. One that dies ends the run; when this process dies, they end."""
    context = multiprocessing.get_context("fork")
    children = []
    ends: list[Connection] = []
    try:
        for _ in range(workers):
            ours, theirs = context.Pipe()
            ends.append(ours)
            child = context.Process(target=_serve, args=(job, theirs, ends), daemon=True)
            child.start()
            children.append(child)
            theirs.close()
        yield from _exchange(ends, chunks)
    finally:
        for end in ends:
            end.close()
        for child in children:
            child.join()


def _exchange(ends: Sequence[Connection], chunks: Sequence[Work]) -> Iterator[Result]:
    waiting = iter(chunks)
    owed = dict.fromkeys(ends, 0)
    try:
        for end in [*ends] * _AHEAD:
            if (chunk := next(waiting, None)) is not None:
                end.send(chunk)
                owed[end] += 1
        while busy := [end for end, count in owed.items() if count]:
            ready = wait(busy)
            for end in filter(ready.__contains__, busy):
                answer = end.recv()
                if (chunk := next(waiting, None)) is not None:
                    end.send(chunk)
                else:
                    owed[end] -= 1
                if isinstance(answer, Exception):
                    raise answer
                yield from answer
    except (EOFError, ConnectionError):
        raise CannotJudge(
            "a process that read files was killed", "run again; the machine may be short of memory"
        ) from None


def _serve(job: _Job, pipe: Connection, inherited: Sequence[Connection]) -> None:
    # Whoever holds the other ends keeps the workers alive, and only the parent shall.
    for end in inherited:
        end.close()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Syntax trees hold no cycles, and a worker lives for seconds: collecting costs a tenth of its time for nothing.
    gc.disable()
    try:
        while True:
            pipe.send(_answer(job, pipe.recv()))
    except (EOFError, ConnectionError):
        pass
    finally:
        job.close()


def _answer(job: _Job, work: Work) -> list[Result] | Exception:
    try:
        return list(job.run(work))
    except GateError as error:
        return error
    except Exception:
        return RuntimeError(f"in a worker process:\n{traceback.format_exc()}")
