"""Kills writers of one store with SIGKILL, one after another, and checks the store after each.

    PYTHONPATH=tests python -m store_crash [--kills 1000] [--writers 4] [--seed 1]

`make store-crash` runs it with 1,000 kills. All writers write the same keys of one store, both new
and existing ones, delete keys, wait for each other's locks, and replace a library. One at a time is
killed, after 0 to 20 ms, and replaced by a new one; the others continue meanwhile. After each kill
every entry is read: it must have the content of its key, and every object that of its name. No one
may wait for a lock that a killed process held. The only other files that may remain are temporary
ones, which the store's housekeeping removes.

Prints a line for each problem, and a sum. The exit status is 1 if there are any.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from fly_store import built_library
from fly_store import store as store_module
from fly_store.store import Store, key_of

NAMES = 60  # keys that the writers share
SIZES = (0, 100, 20_000, 150_000)
LONGEST = 0.02  # maximum life of a writer before it is killed, in seconds
PATIENCE = 10.0  # time limit in seconds for obtaining any key
LIBRARY = "library.so"


def content(name: str, size: int) -> bytes:
    """Returns the content for a name: the name, then its digest repeated up to `size` bytes."""
    return name.encode() + b"\n" + sha256(name.encode()).digest() * (size // 32)


def key(name: str) -> str:
    return key_of("stage", name.encode())


def belongs(under: str, data: bytes) -> bool:
    """Whether data is complete and belongs to this key."""
    name = data.partition(b"\n")[0].decode(errors="replace")
    return key(name) == under and data in [content(name, size) for size in SIZES]


def write(folder: str, seed: int) -> None:
    """Writes in an endless loop."""
    numbers = random.Random(seed)
    store = Store(folder)
    library = os.path.join(folder, LIBRARY)
    while True:
        name = f"name {numbers.randrange(NAMES)}"
        data = content(name, numbers.choice(SIZES))
        what = numbers.random()
        if what < 0.5:
            store.put(key(name), data, suffix=".bin", label=name)
        elif what < 0.9:

            def make(data: bytes = data) -> bytes:
                time.sleep(0.001)  # long enough to be killed while holding the lock
                return data

            assert belongs(key(name), store.obtain(key(name), make, label=name))
        elif what < 0.98:
            with suppress(FileNotFoundError):
                os.unlink(store._path("keys", key(name)))
        else:
            with suppress(FileNotFoundError):  # another writer removes leftovers of its name
                built_library.keep(library, data)


def started(folder: str, seed: int) -> int:
    """Starts a writer; returns its process id."""
    if pid := os.fork():
        return pid
    try:
        write(folder, seed)
    except BaseException:
        import traceback

        traceback.print_exc()
    os._exit(1)


def wrong(store: Store, quiet: bool = False) -> Iterator[str]:
    """Yields problems of the store; `quiet` if no one is writing."""
    assert store.folder is not None
    for path in list(store.files("keys")):
        under = os.path.basename(path)
        # A key that others delete and write during the read may be missing, and its object may not
        # exist for a moment; one that stays unreadable is damaged.
        data = store.get(under)
        for _ in range(0 if quiet else 50):
            if data is not None or not os.path.exists(path):
                break
            time.sleep(0.01)
            data = store.get(under)
        if data is not None and not belongs(under, data):
            yield f"{path} stands for {data[:60]!r}…, {len(data)} bytes"
        if data is None and os.path.exists(path):
            yield f"{path} can't be read"
    for path in store.files("objects"):
        name = os.path.basename(path)
        try:
            data = Path(path).read_bytes()
        except FileNotFoundError:  # writers replace objects, and never delete one
            yield f"{path} disappeared"
            continue
        if sha256(data).hexdigest() != name[:64]:
            yield f"{path} does not hold what its name says"
    data, why = built_library.read(os.path.join(store.folder, LIBRARY))
    if why or (data and not belongs(key(data.partition(b"\n")[0].decode()), data)):
        yield f"the library: {why or 'is another'}"


def available(store: Store, numbers: random.Random) -> Iterator[str]:
    """Yields a message if a key can't be obtained in time, because a lock outlived its owner."""
    name = f"name {numbers.randrange(NAMES)}"
    begin = time.monotonic()
    store.obtain(key(name), lambda: content(name, 100))
    if (took := time.monotonic() - begin) > PATIENCE:
        yield f"{name} took {took:.1f} s"


def run(kills: int, writers: int, seed: int, folder: str) -> int:
    numbers = random.Random(seed)
    store = Store(folder)
    store.put(key("name 0"), content("name 0", 0))
    running = [started(folder, seed * 1_000_000 + number) for number in range(writers)]
    begin, found, read = time.monotonic(), 0, 0
    try:
        for kill in range(kills):
            time.sleep(numbers.uniform(0, LONGEST))
            victim = running.pop(numbers.randrange(writers))
            os.kill(victim, signal.SIGKILL)
            _, status = os.waitpid(victim, 0)
            if status != signal.SIGKILL:
                print(f"kill {kill + 1}: a writer had ended by itself")
                found += 1
            for text in (*wrong(store), *available(store, numbers)):
                print(f"kill {kill + 1}: {text}")
                found += 1
            read += sum(1 for _ in store.files("keys"))
            running.append(started(folder, seed * 1_000_000 + writers + kill))
    finally:
        for pid in running:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
    for text in wrong(store, quiet=True):
        print(f"at the end: {text}")
        found += 1
    left = list(store.files("tmp"))
    past = time.time() - 2 * store_module.LEFTOVER_AGE
    for path in (*left, os.path.join(folder, "housekeeping")):
        os.utime(path, (past, past))
    store.put(key("name 0"), content("name 0", 0))
    if remain := [path for path in left if os.path.exists(path)]:
        print(f"housekeeping left {len(remain)} files of killed writers, {remain[0]} among them")
        found += 1
    print(
        f"{kills} kills of {writers} writers in {time.monotonic() - begin:.0f} s: {read} entries"
        f" read after them, {sum(1 for _ in store.files('objects'))} objects,"
        f" {len(left)} leftovers removed; {f'{found} things are wrong' if found else 'whole'}"
    )
    return 1 if found or not read else 0


def main(words: list[str] | None = None) -> int:
    assert __doc__
    parser = argparse.ArgumentParser(prog="store_crash", description=__doc__.partition("\n")[0])
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--writers", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(words)
    with tempfile.TemporaryDirectory(prefix="fly-store-crash-") as folder:
        return run(options.kills, options.writers, options.seed, os.path.join(folder, "store"))


if __name__ == "__main__":
    sys.exit(main())
