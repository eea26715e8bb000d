"""What the place that output goes to can show. All variables that shape output are read here."""

import sys
import time
from collections.abc import Mapping
from typing import TextIO

import msgspec


class OutputEnvironment(msgspec.Struct, frozen=True):
    no_color: bool
    force_color: bool
    dumb: bool
    step_summary: str


def read_environment(env: Mapping[str, str]) -> OutputEnvironment:
    """The variables of `env` that shape output; an empty one counts as unset."""
    return OutputEnvironment(
        no_color=bool(env.get("NO_COLOR")),
        force_color=bool(env.get("FORCE_COLOR")),
        dumb=env.get("TERM") == "dumb",
        step_summary=env.get("GITHUB_STEP_SUMMARY", ""),
    )


def use_colour(stream: TextIO, env: Mapping[str, str]) -> bool:
    """NO_COLOR wins over FORCE_COLOR, which wins over what the stream is."""
    settings = read_environment(env)
    if settings.no_color:
        return False
    return settings.force_color or (stream.isatty() and not settings.dumb)


def write(text: str, stream: TextIO, *, data: bool) -> None:
    """Write a rendered report. `data`: for programs, UTF-8 and "\\n" whatever the locale says."""
    encoding = "utf-8" if data else stream.encoding or "utf-8"
    buffer = getattr(stream, "buffer", None)
    if buffer is None:
        stream.write(text)
        return
    stream.flush()
    buffer.write(text.encode(encoding, "backslashreplace"))
    buffer.flush()


class Progress:
    """A line on a terminal's stderr that appears when a run takes longer than `after` seconds."""

    def __init__(self, stream: TextIO | None = None, after: float = 1.0, every: float = 0.1) -> None:
        self.stream = sys.stderr if stream is None else stream
        # Python has no stream for a descriptor that is closed.
        self.enabled = self.stream is not None and self.stream.isatty()
        self.every = every
        self.due = time.monotonic() + after
        self.shown = False

    def update(self, what: str, done: int, total: int) -> None:
        now = time.monotonic()
        if not self.enabled or now < self.due:
            return
        self.due, self.shown = now + self.every, True
        self.stream.write(f"\r\x1b[K{what}: {done}/{total}")
        self.stream.flush()

    def close(self) -> None:
        if self.shown:
            self.stream.write("\r\x1b[K")
            self.stream.flush()
