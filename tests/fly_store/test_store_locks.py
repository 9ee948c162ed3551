"""Who asks for what another process makes waits for it, and does without the lock where it must."""

from __future__ import annotations

import errno
import fcntl
import os
import struct
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest
from fly_common.programs import prefetch
from fly_store import store as store_module
from fly_store.store import Store, key_of

KEY = key_of("stage", b"input")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


class Clock(SimpleNamespace):
    """Time that passes only while somebody sleeps."""

    def __init__(self) -> None:
        super().__init__(seconds=0.0, pauses=[], meanwhile=lambda: None)

    def time(self) -> float:
        return 1e9 + self.seconds

    def monotonic(self) -> float:
        return self.seconds

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.seconds += seconds
        self.meanwhile()


@pytest.fixture
def clock(monkeypatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(store_module, "time", clock)
    return clock


def whole_file(handle: int, kind: int) -> None:
    """Locks or unlocks all bytes of a file for whoever has it open by `handle`."""
    fcntl.fcntl(handle, fcntl.F_OFD_SETLK, struct.pack("hhqqi0q", kind, os.SEEK_SET, 0, 0, 0))


@pytest.fixture
def held(store: Store):
    """The locks of all keys, held by somebody else: they belong to the open file."""
    folder = Path(store.folder or "")
    folder.mkdir(parents=True)
    handle = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    whole_file(handle, fcntl.F_WRLCK)
    yield handle
    os.close(handle)


def test_a_lock_that_stays_held_is_waited_for_two_minutes(store: Store, clock: Clock, held: int):
    assert store.obtain(KEY, lambda: b"made") == b"made"
    assert 120 < clock.seconds < 120.1


def test_what_was_waited_for_is_taken_soon_after_it_was_made(store: Store, clock: Clock, held: int):
    other = Store(store.folder)

    def meanwhile() -> None:
        if len(clock.pauses) == 5:
            other.put(KEY, b"theirs")
            whole_file(held, fcntl.F_UNLCK)

    clock.meanwhile = meanwhile
    assert store.obtain(KEY, lambda: pytest.fail("made again")) == b"theirs"
    assert len(clock.pauses) == 5
    assert max(clock.pauses) <= 0.02


def test_what_was_made_between_look_and_lock_is_taken(store: Store, monkeypatch):
    """Nobody held the lock any more: there was nothing to wait for."""
    lock = store_module._lock_byte

    def late(handle: int, operation: int, at: int) -> None:
        Store(store.folder).put(KEY, b"theirs")
        lock(handle, operation, at)

    monkeypatch.setattr(store_module, "_lock_byte", late)
    assert store.obtain(KEY, lambda: pytest.fail("made again")) == b"theirs"


@pytest.mark.parametrize("module", [None, SimpleNamespace()])
def test_a_system_without_locks(store: Store, monkeypatch, module):
    monkeypatch.setattr(store_module, "fcntl", module)
    assert store.obtain(KEY, lambda: b"made") == b"made" == store.get(KEY)
    assert not Path(store.folder or "", "lock").exists()


def test_a_file_system_without_locks(store: Store, monkeypatch, clock: Clock):
    def refused(handle: int, operation: int, wanted: bytes) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "fcntl", refused)
    assert store.obtain(KEY, lambda: b"made") == b"made" == store.get(KEY)
    assert not clock.pauses


def test_where_no_lock_can_be_made_there_are_results_all_the_same(store: Store):
    folder = Path(store.folder or "")
    folder.mkdir()
    (folder / "lock").mkdir()
    assert store.obtain(KEY, lambda: b"made") == b"made" == store.get(KEY)


def test_a_key_that_others_make_holds_up_no_other(store: Store):
    def make() -> bytes:
        return Store(store.folder).obtain(key_of("stage", b"other"), lambda: b"other")

    assert store.obtain(KEY, make) == b"other"


def test_keys_leave_no_files_of_their_locks(store: Store):
    for number in range(3):
        store.obtain(key_of("stage", b"%d" % number), lambda: b"made")
    folder = Path(store.folder or "")
    assert {path.name for path in folder.iterdir()} == {
        *("housekeeping", "keys", "lock", "objects", "tmp")
    }
    assert (folder / "lock").stat().st_size == 0


def test_what_is_kept_later_is_locked_until_then(store: Store):
    made = []

    def make() -> bytes:
        made.append(1)
        return b"data"

    def other() -> bytes:
        return store.obtain(KEY, make)

    with prefetch.postponing(), ThreadPoolExecutor(1) as threads:
        assert store.obtain(KEY, make) == b"data"
        assert store.get(KEY) is None
        waits = threads.submit(other)
        time.sleep(0.05)
        assert not waits.done()
        prefetch.do_postponed()
        assert waits.result() == b"data"
    assert made == [1]


def test_a_thread_does_not_wait_for_what_it_keeps_later(store: Store):
    with prefetch.postponing():
        assert store.obtain(KEY, lambda: b"data") == b"data"
        assert store.obtain(KEY, lambda: b"other") == b"data"
