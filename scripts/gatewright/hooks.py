"""Git hooks: what a push or a receive hands over is judged as one, whatever lies in the work tree."""

import os
import re
import shlex
import stat
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from gatewright.command import Options, has_policy, open_cache, publish
from gatewright.core.change import Change
from gatewright.core.errors import CannotJudge, PolicyError
from gatewright.core.git import Repository
from gatewright.core.push import RefUpdate, changes_of_push, parse_pre_push, parse_pre_receive
from gatewright.core.runner import run


def run_pre_push(folder: Path, remote: str, url: str, lines: bytes, then: str) -> int:
    """Judge the refs of a push. Returns the exit code that git reads."""
    started = time.perf_counter()
    repository = Repository(folder.resolve(), in_hook=True)
    updates = parse_pre_push(lines)
    changes = changes_of_push(repository, updates, remote) if updates else _changes_of_head(repository, remote)
    return _judge(repository, changes, started) or _then(then, [remote, url], lines)


def run_pre_receive(folder: Path, lines: bytes, then: str) -> int:
    """Judge the refs that are being received, before any of them moves."""
    started = time.perf_counter()
    repository = Repository(folder.resolve(), in_hook=True)
    updates = parse_pre_receive(lines)
    if not updates:
        raise CannotJudge(
            "no refs on standard input: an earlier hook has read them",
            "call gate first, and let it hand on what it read: gate hook pre-receive --then PROGRAM",
        )
    changes = changes_of_push(repository, updates, receiving=True)
    return _judge(repository, changes, started) or _then(then, [], lines)


def _changes_of_head(repository: Repository, remote: str) -> list[Change]:
    """No line came: nothing is pushed, or a hook before this one has read the input.

    HEAD stands in as a new branch would, so what the remote has already is not held against it.
    """
    head = repository.head_id()
    if head is None:
        return []
    changes = changes_of_push(repository, [RefUpdate("HEAD", "0", head)], remote)
    for change in changes:
        change.notes.append("no refs on standard input (nothing to push, or an earlier hook read them): HEAD is judged")
    return changes


def _judge(repository: Repository, changes: Sequence[Change], started: float) -> int:
    if not changes:
        return 0
    ruled = [change for change in changes if has_policy(change)]
    for change in changes:
        if change not in ruled:
            print(f"gate: no policy/ in {change.head.label}: nothing to judge")
    if not ruled:
        return 0
    cache = open_cache(repository)
    report = run(ruled, cache, lane="hook")
    cache.close()
    report.seconds = time.perf_counter() - started
    publish(report, Options())
    return report.exit_code


def _then(program: str, arguments: Sequence[str], lines: bytes) -> int:
    """Run the next hook of a chain with the same arguments and input."""
    if not program:
        return 0
    sys.stdout.flush()
    try:
        return subprocess.run([program, *arguments], input=lines, check=False).returncode
    except OSError as error:
        raise CannotJudge(f"the next hook {program!r} cannot run: {error.strerror}", "correct --then") from None


def _script(hook: str) -> str:
    command = shlex.quote(os.fspath(Path(sys.argv[0]).resolve()))
    return f'#!/bin/sh\ngate={command}; [ -x "$gate" ] || gate=gate\nexec "$gate" hook {hook} "$@"\n'


def _calls_gate(script: str, hook: str) -> bool:
    """Whether a line of a script runs gate and heeds its verdict; a comment or a text that names the call does not."""
    call = rf'^(?![ \t]*(?:echo|printf|:)[ \t])[^#\n]*\bgate"?[ \t]+hook[ \t]+{hook}(?![\w-])(.*)$'
    unheeded = r"\|\|[ \t]*(?:true|:)|[^&>]&[ \t]*$"
    return any(not re.search(unheeded, line[1]) for line in re.finditer(call, script, re.MULTILINE))


def install_hook(folder: Path, hook: str) -> str:
    """Write the hook where git reads it; returns what was done. Raises PolicyError rather than touch another's."""
    repository = Repository(folder.resolve())
    place = os.fsdecode(repository.git("rev-parse", "--git-path", f"hooks/{hook}").removesuffix(b"\n"))
    path = Path(os.path.normpath(repository.start / place))
    call = f"gate hook {hook}"
    setting = repository.configuration("core.hooksPath")
    if path.exists():
        if path.is_file() and _calls_gate(path.read_text(encoding="utf-8", errors="replace"), hook):
            _executable(path)
            return f"already installed: {path}"
        raise PolicyError(
            f"{path} exists and does not call gate",
            f'add a line to it: {call} "$@" || exit 1  (or call it with --then from a hook of gate\'s)',
        )
    if setting is not None and path.parent != repository.common_dir / "hooks":
        value, origin = setting
        raise PolicyError(
            f"core.hooksPath = {value!r} ({origin}): git does not read this repository's own hooks folder",
            f'add a line to the hooks there: {call} "$@" || exit 1 (or unset core.hooksPath for this repository)',
        )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(_script(hook))
    except OSError as error:
        raise CannotJudge(f"cannot write {path}: {error.strerror}", "make the folder writable") from None
    _executable(path)
    return f"installed: {path}"


def _executable(path: Path) -> None:
    mode = path.stat().st_mode
    if not mode & stat.S_IXUSR:
        path.chmod(mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
