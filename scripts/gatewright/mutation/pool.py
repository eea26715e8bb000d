"""Fork servers, one for each job, and the requests that they serve."""

import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from gatewright.core.errors import CannotJudge
from gatewright.mutation.workspace import Workspace

_BOOT = (
    "import sys; sys.path.insert(0, sys.argv.pop(1)); from forkserver.server import main; "
    "del sys.path[0]; sys.exit(main(*sys.argv[1:]))"
)
_PATIENCE_SECONDS = 5.0

T = TypeVar("T")
Ask = Callable[[dict[str, Any]], dict[str, Any]]


class WorkerDied(CannotJudge):
    """The fork server ended; nothing is known about the request."""


class Closed(Exception):
    """The run is over: no request is served any more."""


class Worker:
    """One fork server in a copy of the tree. Started by its first request, and again after it died."""

    def __init__(self, workspace: Workspace, tree: Path, package: str) -> None:
        self.workspace, self.tree, self.package = workspace, tree, package
        self.scratch = workspace.folder / f"scratch-{tree.name}"
        self.log = workspace.folder / f"{tree.name}.log"
        self.process: subprocess.Popen[bytes] | None = None
        self.libraries: list[str] = []
        self.closed = False

    def _start(self) -> "subprocess.Popen[bytes]":
        self.scratch.mkdir(exist_ok=True)
        here = os.fspath(Path(__file__).resolve().parent)
        command = [sys.executable, "-P", "-c", _BOOT, here, self.package]
        command += [os.fspath(self.scratch), os.fspath(self.workspace.bytecode)]
        with self.log.open("ab") as log:
            process = subprocess.Popen(
                command,
                cwd=self.tree,
                env=self.workspace.environment(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
        self.process = process
        hello = self._receive(process)
        if not hello["ready"]:
            raise CannotJudge(
                f"{hello['early'][0]} is imported before any test is collected, so no mutant of it could be seen",
                "import it in the suites, not in a plugin or in a conftest.py of the root",
            )
        if self.libraries:
            self.ask({"preload": self.libraries})
        return process

    def preload(self, libraries: Iterable[str]) -> None:
        """Have these modules imported before the fork, in this server and those that may follow it."""
        self.libraries = sorted(libraries)
        if self.process is not None:
            self.ask({"preload": self.libraries})

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """Send one request and wait for its answer. Raises WorkerDied."""
        if self.closed:
            raise Closed
        process = self.process or self._start()
        assert process.stdin is not None
        try:
            process.stdin.write(json.dumps({"package": self.package, **request}).encode() + b"\n")
            process.stdin.flush()
        except BrokenPipeError:
            raise self._died(process) from None
        return self._receive(process)

    def _receive(self, process: "subprocess.Popen[bytes]") -> dict[str, Any]:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            raise self._died(process)
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _died(self, process: "subprocess.Popen[bytes]") -> Exception:
        if self.closed:
            return Closed()
        self.process = None
        process.communicate()
        words = self.log.read_text(errors="replace").strip().splitlines()[-3:]
        return WorkerDied(
            f"the fork server ended with {process.returncode}: {' '.join(words) or 'no words'}",
            "run the suites by hand",
        )

    def close(self) -> None:
        self.closed = True
        process, self.process = self.process, None
        if process is None:
            return
        # Not at once with SIGKILL: the server has a child to end.
        process.terminate()
        try:
            process.wait(timeout=_PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        for stream in (process.stdin, process.stdout):
            assert stream is not None
            stream.close()


class Pool:
    """Runs jobs on several workers; a job is a function that asks its worker as often as it needs."""

    def __init__(self, workers: list[Worker]) -> None:
        self.workers = workers
        self.threads: list[threading.Thread] = []

    def map(self, jobs: Iterable[Callable[[Ask], T]]) -> Iterator[T]:
        """Results in the order in which they come. The first exception of a job ends the run."""
        todo: queue.SimpleQueue[Callable[[Ask], T] | None] = queue.SimpleQueue()
        done: queue.SimpleQueue[T | BaseException] = queue.SimpleQueue()
        count = 0
        for job in jobs:
            todo.put(job)
            count += 1

        def serve(worker: Worker) -> None:
            while (job := todo.get()) is not None:
                try:
                    done.put(job(worker.ask))
                except BaseException as error:
                    done.put(error)
                    return

        self.threads = [threading.Thread(target=serve, args=(worker,), daemon=True) for worker in self.workers]
        for thread in self.threads:
            todo.put(None)
            thread.start()
        for _ in range(count):
            result = done.get()
            if isinstance(result, BaseException):
                raise result
            yield result

    def preload(self, libraries: Iterable[str]) -> None:
        libraries = set(libraries)
        for worker in self.workers:
            worker.preload(libraries)

    def close(self) -> None:
        for worker in self.workers:
            worker.close()
        for thread in self.threads:
            thread.join(_PATIENCE_SECONDS)
