"""A cold run that is killed at a random moment costs the next one time, and nothing else.

`GATEWRIGHT_KILLS` sets how many runs are killed.
"""

import json
import os
import random
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from gates.repositories import Work

pytestmark = pytest.mark.slow

KILLS = int(os.environ.get("GATEWRIGHT_KILLS", "20"))
CACHE = ".git/gatewright-facts.sqlite3"


@pytest.fixture
def large(work: Work) -> Work:
    """Enough files for several workers, and enough facts for many pages of the cache."""
    lines = "".join(f"BAD line {number} of a file\nfine\n" for number in range(60))
    work.commit({f"src/{number}.txt": f"{number}\n{lines}" for number in range(400)})
    work.write({"src/dirty.txt": "BAD and dirty\n"})
    return work


def start(work: Work) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        ["gate", "run", "--output-format", "json"],
        cwd=work.path,
        env=work.place.environ,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def verdict(work: Work, *arguments: str) -> tuple[int, Any]:
    result = work.gate("run", "--output-format", "json", *arguments)
    assert result.stderr == ""
    report = json.loads(result.stdout)
    return result.returncode, {key: value for key, value in report.items() if key not in ("notes", "seconds", "digest")}


def alive(session: int) -> list[str]:
    """Processes of a session that still run."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == session and fields[0] not in "ZX":
            found.append(path.parent.name)
    return found


def wait_until_gone(session: int, seconds: float = 10.0) -> list[str]:
    end = time.monotonic() + seconds
    while (left := alive(session)) and time.monotonic() < end:
        time.sleep(0.02)
    return left


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="no /proc to look for orphans in")
def test_a_killed_run_never_changes_a_later_verdict(large: Work) -> None:
    choose = random.Random(20260101)
    expected = verdict(large, "--no-cache")
    assert expected[0] == 1
    began = time.monotonic()
    start(large).wait()
    duration = time.monotonic() - began
    interrupted = 0
    for _ in range(KILLS):
        if choose.random() < 0.7:
            (large.path / CACHE).unlink(missing_ok=True)
        child = start(large)
        time.sleep(choose.uniform(0, duration * 1.05))
        child.send_signal(signal.SIGKILL)
        interrupted += child.wait() == -signal.SIGKILL
        assert wait_until_gone(child.pid) == []
        assert verdict(large) == expected
    assert interrupted > KILLS // 2
    assert verdict(large) == verdict(large, "--no-cache") == expected
