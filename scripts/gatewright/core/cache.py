"""The facts cache: one SQLite file in the repository's common git directory, addressed by content.

It may be lost, damaged, locked or read-only at any time: then facts are extracted again, and one
note says so. Every row carries a digest of its key and content, so damage is never an answer.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from pathlib import Path

NAME = "gatewright-facts.sqlite3"
LIMIT_BYTES = 64 * 1024 * 1024
_BUSY_SECONDS = 1.0
_CHUNK = 500
_OUT_OF_REACH = frozenset(
    {
        sqlite3.SQLITE_PERM,
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_AUTH,
    }
)


def _seal(key: bytes, blob: str, data: bytes) -> bytes:
    return blake2b(b"\0".join((key, blob.encode(), data)), digest_size=8).digest() + data


class Cache:
    """Maps (extractor key, blob) to encoded facts. `path` None: nothing is kept."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.notes: list[str] = []
        self._opened: sqlite3.Connection | None = None
        self._keys: set[bytes] = set()

    @property
    def _connection(self) -> sqlite3.Connection | None:
        if self._opened is None and self.path is not None:
            self._open(self.path)
        return self._opened

    def _open(self, path: Path, *, again: bool = True) -> None:
        try:
            self._opened = sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None)
            # A loss of power may damage the file, which is noticed; waiting for the disk is not worth it.
            self._opened.execute("PRAGMA synchronous = OFF")
            self._opened.execute(
                "CREATE TABLE IF NOT EXISTS facts"
                " (key BLOB, blob TEXT, data BLOB, PRIMARY KEY (key, blob)) WITHOUT ROWID"
            )
        except sqlite3.Error as error:
            self._damaged(error)
            if again and self.path is not None:
                self._open(path, again=False)

    def _bypass(self, reason: str) -> None:
        self.close()
        self.notes = [f"facts cache not used: {reason} ({self.path})"]
        self.path = None

    @staticmethod
    def _remove(path: Path) -> bool:
        try:
            path.unlink(missing_ok=True)
            path.with_name(path.name + "-journal").unlink(missing_ok=True)
        except OSError:
            return False
        return True

    def _damaged(self, error: Exception) -> None:
        """A file that is locked or out of reach is left alone; one that is damaged is removed and made anew, once."""
        self.close()
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if self.path is None:
            return
        if code in _OUT_OF_REACH or isinstance(error, OSError) or self.notes or not self._remove(self.path):
            self._bypass(str(error))
        else:
            self.notes = [f"facts cache rebuilt: {error}"]

    def get(self, key: bytes, blobs: Sequence[str]) -> dict[str, bytes]:
        """The known facts among `blobs`."""
        self._keys.add(key)
        known: dict[str, bytes] = {}
        connection = self._connection
        if connection is None:
            return known
        try:
            for chunk in _chunks(blobs):
                marks = ",".join("?" * len(chunk))
                query = f"SELECT blob, data FROM facts WHERE key = ? AND blob IN ({marks})"
                for blob, sealed in connection.execute(query, (key, *chunk)):
                    # A damaged row may hold values of any type.
                    if isinstance(blob, str) and isinstance(sealed, bytes) and _seal(key, blob, sealed[8:]) == sealed:
                        known[blob] = sealed[8:]
        except sqlite3.Error as error:
            self._damaged(error)
        return known

    def put(self, key: bytes, facts: Iterable[tuple[str, bytes]]) -> None:
        """Keep new facts: all of them, or none when the process is killed."""
        connection = self._connection
        if connection is None:
            return
        rows = [(key, blob, _seal(key, blob, data)) for blob, data in facts]
        try:
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany("INSERT OR REPLACE INTO facts VALUES (?, ?, ?)", rows)
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            self._damaged(error)

    def trim(self) -> None:
        """Hold the file under its limit: first drop what this run did not use, then all."""
        connection = self._connection
        if connection is None or self.path is None:
            return
        try:
            if self.path.stat().st_size <= LIMIT_BYTES:
                return
            marks = ",".join("?" * len(self._keys))
            connection.execute(f"DELETE FROM facts WHERE key NOT IN ({marks})", tuple(self._keys))
            connection.execute("VACUUM")
            if self.path.stat().st_size > LIMIT_BYTES:
                connection.execute("DELETE FROM facts")
                connection.execute("VACUUM")
        except (sqlite3.Error, OSError) as error:
            self._damaged(error)

    def close(self) -> None:
        """Let go of the file. A later use opens it again, so nothing is held across a fork."""
        if self._opened is not None:
            self._opened.close()
            self._opened = None


def _chunks(blobs: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(blobs), _CHUNK):
        yield blobs[start : start + _CHUNK]
