"""One line of progress on a terminal."""

import sys
import time

_INTERVAL = 0.1


class Progress:
    """Counts finished requests and tokens; silent unless it is shown."""

    def __init__(self, requests: int, shown: bool) -> None:
        self._requests = requests
        self._shown = shown
        self._finished = 0
        self._tokens = 0
        self._start = self._last = time.monotonic()

    def token(self, finished: bool) -> None:
        """One more token; `finished` when it was its request's last."""
        self._tokens += 1
        self._finished += finished
        now = time.monotonic()
        if self._shown and (finished or now - self._last > _INTERVAL):
            self._last = now
            rate = self._tokens / max(now - self._start, 1e-9)
            line = f"\r{self._finished}/{self._requests} requests, {self._tokens} tokens, {rate:.0f} tokens/s"
            print(line, end="", file=sys.stderr, flush=True)

    def close(self) -> None:
        """Leave the line."""
        if self._shown and self._tokens:
            print(file=sys.stderr)
