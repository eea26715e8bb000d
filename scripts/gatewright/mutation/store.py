"""What earlier runs found, in one SQLite file: verdicts by mutant, baselines by suite.

Each verdict is written as soon as it is known, so a run that is ended goes on where it stopped.
Nothing in here is believed by age: a row is used only while all digests that it names still hold.
"""

import sqlite3
from pathlib import Path

import msgspec

from gatewright.core.errors import CannotJudge
from gatewright.mutation.verdict import Outcome

NAME = "gatewright-mutation.sqlite3"
_TABLES = (
    "CREATE TABLE IF NOT EXISTS verdicts (identity BLOB PRIMARY KEY, function BLOB, tests BLOB, outcome BLOB)",
    "CREATE TABLE IF NOT EXISTS baselines (suite TEXT PRIMARY KEY, tool BLOB, data BLOB)",
)


class Store:
    """`path` None: nothing outlives the run."""

    def __init__(self, path: Path | None) -> None:
        try:
            self._connection = sqlite3.connect(path or ":memory:", isolation_level=None, check_same_thread=False)
            self._connection.execute("PRAGMA busy_timeout = 2000")
            for table in _TABLES:
                self._connection.execute(table)
        except sqlite3.Error as error:
            raise CannotJudge(f"{path}: {error}", "remove the file; what it remembers is found again") from None

    def outcome(self, identity: bytes, function: bytes, tests: dict[str, bytes]) -> Outcome | None:
        """The remembered verdict, if it still holds.

        `function` is the digest of what is mutated and of the tool, `tests` those of the tests that
        reach it. A detection holds while the test that made it is what it was, and still among them;
        a survivor only while no test is added, removed or changed.
        """
        row = self._connection.execute(
            "SELECT function, tests, outcome FROM verdicts WHERE identity = ?", (identity,)
        ).fetchone()
        if row is None or row[0] != function:
            return None
        outcome = msgspec.msgpack.decode(row[2], type=Outcome)
        expected = tests.get(outcome.killer) if outcome.killer else _all(tests)
        return outcome if expected == row[1] else None

    def put(self, identity: bytes, function: bytes, tests: dict[str, bytes], outcome: Outcome) -> None:
        standing_on = tests[outcome.killer] if outcome.killer else _all(tests)
        self._connection.execute(
            "INSERT OR REPLACE INTO verdicts VALUES (?, ?, ?, ?)",
            (identity, function, standing_on, msgspec.msgpack.encode(outcome)),
        )

    def baseline(self, suite: str, tool: bytes) -> bytes | None:
        row = self._connection.execute(
            "SELECT data FROM baselines WHERE suite = ? AND tool = ?", (suite, tool)
        ).fetchone()
        return bytes(row[0]) if row else None

    def put_baseline(self, suite: str, tool: bytes, data: bytes) -> None:
        self._connection.execute("INSERT OR REPLACE INTO baselines VALUES (?, ?, ?)", (suite, tool, data))

    def close(self) -> None:
        self._connection.close()


def _all(tests: dict[str, bytes]) -> bytes:
    from gatewright.mutation.definitions import digest

    return digest([part for name in sorted(tests) for part in (name.encode(), tests[name])])
