"""How large a store is, what is deleted to keep it small, and when that is looked at."""

from __future__ import annotations

import os
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from fly_store import store as store_module
from fly_store.store import Store, key_of

HOUR = 3600


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


@pytest.fixture
def now(monkeypatch) -> int:
    """The store's clock stands still, on a whole second."""
    now = int(time.time())
    monkeypatch.setattr(store_module, "time", SimpleNamespace(time=lambda: float(now)))
    return now


def files(store: Store) -> list[Path]:
    folders = [Path(store.folder or "", kind) for kind in ("keys", "objects", "tmp")]
    return [path for folder in folders for path in folder.rglob("*") if path.is_file()]


def on_disk(store: Store) -> int:
    """Bytes in whole blocks of keys and objects, as `du` counts them."""
    paths = [path for path in files(store) if path.parent.name in ("keys", "objects")]
    return sum(path.stat().st_blocks for path in paths) * 512


def filled(store: Store, entries: int) -> list[Path]:
    """The files of so many entries, each of 100,000 bytes, in the order in which they were used."""
    for index in range(entries):
        store.put(key_of("stage", bytes([index])), bytes([index]) * 100_000)
    made = sorted(files(store))
    for age, path in enumerate(reversed(made)):
        os.utime(path, (1000.0 - age, 1000.0 - age))
    return made


def test_the_size_is_that_of_keys_and_objects(store: Store):
    assert store.size() == 0
    filled(store, 3)
    assert store.size() == on_disk(store) > 300_000


def test_a_store_that_fits_is_not_pruned(store: Store):
    made = filled(store, 5)
    assert store.prune(on_disk(store)) == 0
    assert sorted(files(store)) == made


def test_pruning_stops_at_four_fifths_of_the_limit(store: Store):
    """Exactly: the file that would be the next one stays."""
    made = filled(store, 10)
    sizes = [path.stat().st_blocks * 512 for path in made]
    before, most = on_disk(store), sum(sizes[12:])
    assert before > most * 5 // 4
    assert most % 4 == 0
    assert store.prune(most * 5 // 4) == before - most
    assert sorted(files(store)) == made[12:]
    assert on_disk(store) == most


def test_a_store_that_is_a_block_too_large_is_pruned(store: Store):
    filled(store, 5)
    before = on_disk(store)
    freed = store.prune(before - 1)
    assert freed == before - on_disk(store)
    assert on_disk(store) <= (before - 1) * 4 // 5


def test_clearing_leaves_no_file(store: Store):
    filled(store, 2)
    Path(store.folder or "", "tmp", "left").write_bytes(b"half")
    store.clear()
    assert not files(store)


def leftover(store: Store, name: str, time: float) -> Path:
    path = Path(store.folder or "", "tmp", name)
    path.write_bytes(b"half")
    os.utime(path, (time, time))
    return path


def looked_at(store: Store, when: float) -> None:
    os.utime(Path(store.folder or "", "housekeeping"), (when, when))


def test_leftovers_are_those_of_more_than_an_hour(store: Store, now: int):
    store.put(key_of("a", b""), b"data")
    at_most = leftover(store, "at-most", now - HOUR)
    older = leftover(store, "older", now - HOUR - 0.5)
    looked_at(store, now - HOUR)
    store.put(key_of("b", b""), b"data")
    assert at_most.exists()
    assert not older.exists()


def test_leftovers_are_looked_for_once_an_hour(store: Store, now: int):
    store.put(key_of("a", b""), b"data")
    old = leftover(store, "old", now - 2 * HOUR)
    looked_at(store, now - HOUR + 0.5)
    store.put(key_of("b", b""), b"data")
    assert old.exists()
    looked_at(store, now - HOUR)
    store.put(key_of("c", b""), b"data")
    assert not old.exists()
    old = leftover(store, "old", now - 2 * HOUR)
    store.put(key_of("d", b""), b"data")
    assert old.exists(), "it was looked at just now"


def test_a_use_is_written_down_once_an_hour(store: Store, now: int):
    """Reading an entry brings its files' times up to date, where they are off by more."""
    key = key_of("a", b"")
    store.put(key, b"data")
    for age, renewed in ((HOUR, False), (HOUR + 0.5, True)):
        for path in files(store):
            os.utime(path, (now - age, now - age))
        assert store.get(key) == b"data"
        times = [path.stat().st_mtime for path in files(store)]
        assert all((abs(time - now) < HOUR / 2) is renewed for time in times), age
