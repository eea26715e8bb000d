"""Forks a child for each request and follows it to its end. Requests and answers are JSON, one a line."""

import contextlib
import gc
import importlib
import json
import os
import resource
import select
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from .child import Child
from .events import Events
from .imports import MutantFinder

# A mutant that eats memory must fail before the machine does.
_MEMORY_BYTES = 8 << 30
_POLL_SECONDS = 0.05
_OPTIONS = ("--assert=plain", "--capture=sys", "--continue-on-collection-errors", "-o", "addopts=")
_PLUGINS_LEFT_OUT = ("cacheprovider", "terminal", "junitxml", "doctest", "pastebin", "stepwise", "faulthandler")


class Server:
    """Forks a child at the moment when pytest is about to collect, and follows it to its end."""

    def __init__(self, package: str, scratch: Path) -> None:
        self.package, self.scratch = package, scratch
        self.answers = os.dup(1)
        self.requests = os.dup(0)
        quiet = os.open(os.devnull, os.O_RDWR)
        os.dup2(quiet, 0)
        os.dup2(quiet, 1)
        self.number = 0

    def pytest_collection(self, session: pytest.Session) -> bool | None:
        early = [name for name in sys.modules if name.partition(".")[0] == self.package]
        self.answer({"ready": not early, "early": early[:3]})
        gc.collect()
        gc.freeze()
        for request in self.read_requests():
            if "preload" in request:
                self.answer({"preloaded": _preload(request["preload"])})
                gc.freeze()
            elif self.handle(request, session):
                return None
        session.items = []
        return True

    def read_requests(self) -> Iterator[dict[str, Any]]:
        with os.fdopen(self.requests, "rb", closefd=False) as stream:
            for line in stream:
                yield json.loads(line)

    def answer(self, value: dict[str, Any]) -> None:
        data = json.dumps(value).encode() + b"\n"
        while data:
            data = data[os.write(self.answers, data) :]

    def handle(self, request: dict[str, Any], session: pytest.Session) -> bool:
        """Serve one request. True in the child, where pytest goes on with collection."""
        self.number += 1
        scratch = self.scratch / str(self.number)
        scratch.mkdir(parents=True)
        policy = Path(request["write"]) if request.get("write") else None
        original = policy.read_bytes() if policy else b""
        if policy:
            policy.write_text(request["source"], encoding="utf-8")
        reading, writing = os.pipe()
        started = time.perf_counter()
        pid = os.fork()
        if not pid:
            os.close(reading)
            self.become_child(request, session, Events(writing), scratch)
            return True
        os.close(writing)
        try:
            answer = _follow(pid, reading, self.requests, request)
        finally:
            processor_seconds = _end_group(pid)
            os.close(reading)
            if policy:
                policy.write_bytes(original)
            shutil.rmtree(scratch, ignore_errors=True)
        times = {"seconds": time.perf_counter() - started, "processor_seconds": processor_seconds}
        self.answer({**answer, **times})
        return False

    def become_child(self, request: dict[str, Any], session: pytest.Session, events: Events, scratch: Path) -> None:
        os.setsid()
        os.close(self.answers)
        os.close(self.requests)
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, resource.getrlimit(resource.RLIMIT_AS)[1]))
        os.environ["TMPDIR"] = tempfile.tempdir = os.fspath(scratch)
        if not request.get("measure"):
            sys.dont_write_bytecode = True
            os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
        if request.get("module"):
            source = request["source"].encode()
            sys.meta_path.insert(0, MutantFinder(request["module"], Path(request["path"]).resolve(), source, events))
        session.config.args[:] = request["suites"]
        session.config.pluginmanager.register(Child(request, events))


def _follow(pid: int, reading: int, requests: int, request: dict[str, Any]) -> dict[str, Any]:
    """Events of the child until it ends. The system ends it where one step computes longer than its limit.

    One that waits is ended here; it gets more time, as on a busy machine everything waits.
    """
    limits = dict(request.get("tests") or [])
    otherwise = request.get("step_seconds", 600.0)
    deadline = time.monotonic() + _patience(request["load_seconds"])
    events: list[dict[str, Any]] = []
    at, data = "", b""
    while True:
        if time.monotonic() > deadline:
            return {"ended": "timeout", "at": at, "events": events}
        ready = select.select([reading, requests], [], [], _POLL_SECONDS)[0]
        if requests in ready:
            # One request is served at a time: this is the end of the stream, whoever asked is gone.
            sys.exit("the other side is gone")
        if not ready:
            if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                return {"ended": _ending(pid), "at": at, "events": events}
            continue
        chunk = os.read(reading, 1 << 16)
        if not chunk:
            return {"ended": _ending(pid), "at": at, "events": events}
        *lines, data = (data + chunk).split(b"\n")
        for event in map(json.loads, lines):
            events.append(event)
            if event["kind"] == "start":
                at = event["test"]
                deadline = time.monotonic() + _patience(limits.get(at, otherwise))
            elif event["kind"] == "finish":
                at = ""
                deadline = time.monotonic() + _patience(request["load_seconds"])
            elif event["kind"] == "end":
                return {"ended": "normally", "at": "", "events": events}


def _patience(processor_seconds: float) -> float:
    return 5 * processor_seconds + 5


def _ending(pid: int) -> str:
    """How a child ended that gave no report: out of its time, or otherwise."""
    status = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    assert status is not None
    return "timeout" if status.si_code == os.CLD_KILLED and status.si_status == signal.SIGPROF else "died"


def _end_group(pid: int) -> float:
    """End the child and everything it started in its session's group; the processor time that the child took."""
    try:
        os.killpg(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        # It has not reached setsid, or all of it is gone.
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    usage = os.wait4(pid, 0)[2]
    return usage.ru_utime + usage.ru_stime


def _fix_randomness() -> None:
    """Verdicts must not depend on the day: property tests draw the same examples in every run."""
    import hypothesis.strategies

    checks = list(hypothesis.HealthCheck)
    phases = (hypothesis.Phase.explicit, hypothesis.Phase.generate)
    hypothesis.settings.register_profile(
        "mutation", derandomize=True, database=None, deadline=None, phases=phases, suppress_health_check=checks
    )
    hypothesis.settings.load_profile("mutation")


def _preload(modules: Sequence[str]) -> int:
    """Import what the suites need of the outside, once; what cannot be imported alone is left to them."""
    for name in modules:
        with contextlib.suppress(Exception):
            importlib.import_module(name)
    if "hypothesis" in sys.modules:
        _fix_randomness()
    return len(modules)


def main(package: str, scratch: str, bytecode: str) -> int:
    """Serve until the requests end. `bytecode`: where modules of the tree are compiled to, read by nobody else."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))
    # Only from here on: what is installed is never mutated, so its own bytecode is good.
    sys.pycache_prefix = os.environ["PYTHONPYCACHEPREFIX"] = bytecode
    # An empty folder, so that no conftest of the suites is read before the fork.
    empty = tempfile.mkdtemp(dir=scratch)
    options = [*_OPTIONS, f"--rootdir={Path.cwd()}", *(f"-pno:{name}" for name in _PLUGINS_LEFT_OUT)]
    if Path("pyproject.toml").is_file():
        options += ["-c", "pyproject.toml"]
    return int(pytest.main([*options, empty], plugins=[Server(package, Path(scratch))]))
