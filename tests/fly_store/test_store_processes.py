"""A store that threads and processes use at once, also such as are killed."""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from fly_store import store as store_module
from fly_store.store import Store, key_of

from .stores import DATA, crash, python


@contextlib.contextmanager
def started(words: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    """A process that said "in"; it is gone afterwards."""
    with subprocess.Popen(words, stdout=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stdout.readline() == b"in\n"
        yield process
        process.kill()


def test_threads_make_once(store: Store):
    made = []

    def make() -> bytes:
        made.append(1)
        time.sleep(0.1)
        return DATA

    results = []
    threads = [
        threading.Thread(target=lambda: results.append(store.obtain(key_of("a", b""), make)))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [DATA] * 8
    assert made == [1]


MAKER = """
import sys, os, time
from fly_store.store import Store, key_of
folder, log, name = sys.argv[1:4]
def make():
    with open(log, "a") as file:
        file.write(name + "\\n")
    time.sleep(0.2)
    return name.encode() * 1000
data = Store(folder).obtain(key_of("stage", name.encode()), make)
assert data == name.encode() * 1000
"""


def test_processes_make_once(store: Store, tmp_path: Path):
    log = tmp_path / "log"
    names = ["one"] * 4 + ["two"] * 2 + ["three"]
    running = [subprocess.Popen(python(MAKER, str(store.folder), str(log), name)) for name in names]
    assert [process.wait(30) for process in running] == [0] * len(names)
    assert sorted(log.read_text().split()) == ["one", "three", "two"]


def test_a_killed_maker_does_not_block(store: Store, tmp_path: Path):
    code = MAKER.replace("time.sleep(0.2)", "print('in', flush=True); time.sleep(60)")
    words = python(code, str(store.folder), str(tmp_path / "log"), "one")
    with started(words) as process:
        process.kill()
    begin = time.monotonic()
    assert store.obtain(key_of("stage", b"one"), lambda: DATA) == DATA
    assert time.monotonic() - begin < 5


def test_a_lock_that_is_held_for_too_long_is_not_waited_for(store: Store, tmp_path, monkeypatch):
    monkeypatch.setattr(store_module, "LOCK_TIMEOUT", 0.1)
    code = MAKER.replace("time.sleep(0.2)", "print('in', flush=True); time.sleep(60)")
    words = python(code, str(store.folder), str(tmp_path / "log"), "one")
    with started(words):
        assert store.obtain(key_of("stage", b"one"), lambda: DATA) == DATA


# Writes without end: new entries, and the same ones again.
WRITER = """
import sys, random
from hashlib import sha256
from fly_store.store import Store, key_of
store, seed = Store(sys.argv[1]), int(sys.argv[2])
numbers = random.Random(seed)
print("in", flush=True)
while True:
    name = str(numbers.randrange(40)).encode()
    size = numbers.choice((0, 100, 50_000, 400_000))
    store.put(key_of("stage", name), sha256(name).digest() * (size // 32), suffix=".bin")
"""


def test_writers_killed_in_the_middle_leave_the_store_whole():
    """A sample of `make store-crash`."""
    done = crash("", 15)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    assert done.stdout.startswith("15 kills of 4 writers in ")
    assert done.stdout.endswith("; whole\n")


def test_old_leftovers_of_killed_writers_go(store: Store):
    store.put(key_of("a", b""), DATA)
    folder = Path(store.folder or "")
    old, young = folder / "tmp" / "old", folder / "tmp" / "young"
    for path in (old, young):
        path.write_bytes(b"half")
    for path in (old, folder / "housekeeping"):
        os.utime(path, (0, time.time() - 2 * store_module.LEFTOVER_AGE))
    store.put(key_of("b", b""), DATA)
    assert not old.exists()
    assert young.exists()


def test_pruning_while_others_write(store: Store):
    words = python(WRITER, str(store.folder), "1")
    with started(words) as process:
        for _ in range(20):
            store.prune(100_000)
            store.clear()
        assert process.poll() is None, "the writer died"
