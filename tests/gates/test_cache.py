"""The facts cache: lost, damaged, locked or out of reach, it costs time and one note, and never an answer."""

import os
import random
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gatewright.core import cache as module
from gatewright.core.cache import Cache

KEY, OTHER = b"key", b"other"
FACTS = {f"blob{number}": b"facts of %d" % number for number in range(600)}

as_root = hasattr(os, "geteuid") and os.geteuid() == 0


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A cache file that holds FACTS under KEY."""
    path = tmp_path / "facts.sqlite3"
    cache = Cache(path)
    cache.put(KEY, FACTS.items())
    cache.close()
    return path


@pytest.fixture
def opened() -> Iterator[Callable[[Path | None], Cache]]:
    caches: list[Cache] = []

    def open_cache(path: Path | None) -> Cache:
        caches.append(Cache(path))
        return caches[-1]

    yield open_cache
    for cache in caches:
        cache.close()


def test_what_was_put_is_there_for_the_next_process(path: Path, opened: Callable[..., Cache]) -> None:
    cache = opened(path)
    assert cache.get(KEY, list(FACTS)) == FACTS
    assert cache.get(KEY, ["blob1", "nowhere"]) == {"blob1": b"facts of 1"}
    assert cache.get(OTHER, list(FACTS)) == {}
    assert cache.get(KEY, []) == {}
    assert cache.notes == []


def test_a_later_fact_replaces_an_earlier_one(path: Path, opened: Callable[..., Cache]) -> None:
    opened(path).put(KEY, [("blob1", b"new")])
    assert opened(path).get(KEY, ["blob1"]) == {"blob1": b"new"}


def test_without_a_path_nothing_is_kept(opened: Callable[..., Cache]) -> None:
    cache = opened(None)
    cache.put(KEY, FACTS.items())
    cache.trim()
    assert cache.get(KEY, list(FACTS)) == {}
    assert cache.notes == []


def test_nothing_is_open_before_the_first_use_and_after_close(path: Path) -> None:
    descriptors = Path("/proc/self/fd")
    if not descriptors.is_dir():
        pytest.skip("no /proc to look at open files")

    def held() -> bool:
        return any(entry.exists() and entry.samefile(path) for entry in list(descriptors.iterdir()))

    cache = Cache(path)
    assert not held()
    cache.get(KEY, ["blob1"])
    assert held()
    cache.close()
    assert not held()


def _random_bytes(path: Path) -> None:
    path.write_bytes(random.Random(1).randbytes(50_000))


def _truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:5000])


def _half_a_header(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:60])


def _another_database(path: Path) -> None:
    path.unlink()
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE facts (unrelated TEXT)")
    connection.close()


def _text_that_is_not_utf8(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE facts SET blob = CAST(x'ff' AS TEXT) WHERE blob = 'blob1'")
        connection.execute("UPDATE facts SET data = 5000000000 WHERE blob = 'blob2'")
        connection.execute("UPDATE facts SET data = 'text' WHERE blob = 'blob3'")
        connection.execute("UPDATE facts SET data = NULL WHERE blob = 'blob4'")
    connection.close()


@pytest.mark.parametrize("damage", [_random_bytes, _truncated, _half_a_header, _another_database])
def test_a_damaged_file_is_made_anew_with_one_note(
    path: Path, opened: Callable[..., Cache], damage: Callable[[Path], None]
) -> None:
    damage(path)
    cache = opened(path)
    known = cache.get(KEY, list(FACTS))
    assert known.items() <= FACTS.items()
    cache.put(KEY, FACTS.items())
    assert len(cache.notes) == 1
    assert cache.notes[0].startswith("facts cache rebuilt: ")
    again = opened(path)
    assert again.get(KEY, list(FACTS)) == FACTS
    assert again.notes == []


def test_rows_of_another_type_are_no_answer(path: Path, opened: Callable[..., Cache]) -> None:
    _text_that_is_not_utf8(path)
    cache = opened(path)
    known = cache.get(KEY, list(FACTS))
    assert known.items() <= FACTS.items()
    assert not {"blob1", "blob2", "blob3", "blob4"} & known.keys()


def test_an_empty_file_is_a_new_cache(tmp_path: Path, opened: Callable[..., Cache]) -> None:
    (tmp_path / "empty").touch()
    cache = opened(tmp_path / "empty")
    cache.put(KEY, FACTS.items())
    assert (cache.get(KEY, list(FACTS)), cache.notes) == (FACTS, [])


def test_a_flipped_byte_is_never_an_answer(path: Path, opened: Callable[..., Cache]) -> None:
    sound = path.read_bytes()
    choose = random.Random(2)
    wrong = []
    for _ in range(100):
        damaged = bytearray(sound)
        for _ in range(choose.choice([1, 1, 40])):
            damaged[choose.randrange(len(damaged))] ^= 1 << choose.randrange(8)
        path.write_bytes(damaged)
        cache = opened(path)
        known = cache.get(KEY, list(FACTS))
        cache.put(KEY, [("blob1", b"facts of 1")])
        wrong += [name for name, data in known.items() if FACTS.get(name) != data]
        assert len(cache.notes) <= 1
        cache.close()
    assert wrong == []


def test_a_row_under_another_key_or_blob_is_no_answer(path: Path, opened: Callable[..., Cache]) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE facts SET key = ? WHERE blob = 'blob1'", (OTHER,))
        connection.execute("UPDATE facts SET blob = 'moved' WHERE blob = 'blob2'")
    connection.close()
    cache = opened(path)
    assert cache.get(OTHER, ["blob1"]) == {}
    assert cache.get(KEY, ["moved"]) == {}


@pytest.mark.parametrize("lock", ["EXCLUSIVE", "IMMEDIATE"])
def test_a_cache_that_another_process_locks_is_passed_by_with_one_note(
    path: Path, opened: Callable[..., Cache], lock: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_BUSY_SECONDS", 0.05)
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute(f"BEGIN {lock}")
    try:
        cache = opened(path)
        known = cache.get(KEY, list(FACTS))
        assert known == ({} if lock == "EXCLUSIVE" else FACTS)
        cache.put(KEY, [("new", b"new")])
        cache.trim()
        assert cache.get(KEY, ["new"]) == {}
        assert cache.notes == [f"facts cache not used: database is locked ({path})"]
    finally:
        holder.close()
    assert opened(path).get(KEY, list(FACTS)) == FACTS


@pytest.mark.skipif(as_root, reason="root may write to a read-only file")
def test_a_read_only_file_is_read_and_not_written(path: Path, opened: Callable[..., Cache]) -> None:
    path.chmod(0o444)
    path.parent.chmod(0o555)
    try:
        cache = opened(path)
        assert cache.get(KEY, list(FACTS)) == FACTS
        cache.put(KEY, [("new", b"new")])
        assert len(cache.notes) == 1
    finally:
        path.parent.chmod(0o755)


def test_a_file_that_sqlite_calls_read_only_is_left_alone(
    path: Path, opened: Callable[..., Cache], monkeypatch: pytest.MonkeyPatch
) -> None:
    connect = sqlite3.connect
    monkeypatch.setattr(
        module.sqlite3, "connect", lambda p, **options: connect(f"file:{p}?mode=ro", uri=True, **options)
    )
    cache = opened(path)
    assert cache.get(KEY, list(FACTS)) == FACTS
    cache.put(KEY, [("new", b"new")])
    assert cache.notes == [f"facts cache not used: attempt to write a readonly database ({path})"]
    assert path.exists()


@pytest.mark.parametrize("place", ["missing/facts", "folder", "file/facts"])
def test_a_place_that_cannot_hold_a_file_is_passed_by_with_one_note(
    tmp_path: Path, opened: Callable[..., Cache], place: str
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    cache = opened(tmp_path / place)
    assert cache.get(KEY, list(FACTS)) == {}
    cache.put(KEY, FACTS.items())
    cache.trim()
    assert cache.get(KEY, list(FACTS)) == {}
    assert len(cache.notes) == 1
    assert cache.notes[0].startswith("facts cache not used: unable to open")


def test_an_oversized_cache_loses_first_what_this_run_did_not_use(
    path: Path, opened: Callable[..., Cache], monkeypatch: pytest.MonkeyPatch
) -> None:
    opened(path).put(OTHER, [(f"old{number}", b"x" * 1000) for number in range(500)])
    monkeypatch.setattr(module, "LIMIT_BYTES", 200_000)
    assert path.stat().st_size > 200_000
    cache = opened(path)
    cache.get(KEY, ["blob1"])
    cache.trim()
    assert path.stat().st_size <= 200_000
    assert cache.get(KEY, list(FACTS)) == FACTS
    assert cache.get(OTHER, ["old1"]) == {}
    monkeypatch.setattr(module, "LIMIT_BYTES", 20_000)
    cache.trim()
    assert path.stat().st_size <= 20_000
    assert cache.get(KEY, ["blob1"]) == {}
    assert cache.notes == []


def test_two_writers_at_once_lose_nothing(path: Path, opened: Callable[..., Cache]) -> None:
    one, two = opened(path), opened(path)
    for number in range(20):
        one.put(KEY, [(f"one{number}", b"1")])
        two.put(OTHER, [(f"two{number}", b"2")])
    assert len(opened(path).get(KEY, [f"one{number}" for number in range(20)])) == 20
    assert len(opened(path).get(OTHER, [f"two{number}" for number in range(20)])) == 20
