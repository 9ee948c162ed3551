"""What identifies a file's content: for the fingerprints of stages that are programs."""

from __future__ import annotations

import os
import time
from hashlib import sha256
from importlib.machinery import PathFinder

from fly_common.errors import MissingError
from fly_common.store import Store, default_store, key_of

# From this size on a digest is kept in the store: hashing takes about 1 ms a megabyte.
LARGE = 1 << 20
# A file changed this recently, in seconds, may change again without a new modification time.
UNSETTLED = 2.0

_known: dict[tuple[str, int, int, int], str] = {}


def digest_of(path: str | os.PathLike[str]) -> str:
    """The sha256 of a file's content, in hexadecimal, remembered as long as its path, inode, size
    and modification time stay. MissingError where the file can't be read."""
    path = os.path.realpath(path)
    try:
        status = os.stat(path)
        stamp = (path, status.st_ino, status.st_size, status.st_mtime_ns)
        if (known := _known.get(stamp)) is not None:
            return known
        if time.time() - status.st_mtime < UNSETTLED:
            return _hash(path)
        if status.st_size < LARGE:
            digest = _hash(path)
        else:
            key = key_of("digest of a file", repr(stamp).encode())
            store = Store(default_store().folder)
            digest = store.obtain(key, lambda: _hash(path).encode(), label="digest").decode()
    except OSError as error:
        raise MissingError(f"{path}: {error.strerror}") from None
    _known[stamp] = digest
    return digest


def digest_of_package(name: str) -> str:
    """The sha256 over the Python sources of the top-level package `name`, which is not imported."""
    if (known := _known.get((name, 0, 0, 0))) is not None:
        return known
    spec = PathFinder.find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        raise MissingError(f"the Python package {name} was not found")
    total = sha256()
    for root in spec.submodule_search_locations:
        for folder, folders, names in os.walk(root):
            folders.sort()
            for file in sorted(names):
                if file.endswith(".py"):
                    path = os.path.join(folder, file)
                    total.update(os.path.relpath(path, root).encode() + b"\0")
                    total.update(bytes.fromhex(_hash(path)))
    # The code that runs is what was on disk when it was imported: once a process is right.
    _known[name, 0, 0, 0] = total.hexdigest()
    return total.hexdigest()


def named_in(word: str, folder: str) -> list[str]:
    """The existing files that a word of a command line names, relative to `folder`: as a whole,
    after `=` (`--plugin=x.so`), and before `:` (`x.so:name`)."""
    if word.startswith("-") and "=" not in word:
        return []
    value = word.rpartition("=")[2]
    candidates = dict.fromkeys((word, value, value.rpartition(":")[0]))
    paths = (os.path.join(folder, candidate) for candidate in candidates if candidate)
    return [path for path in paths if os.path.isfile(path)]


def _hash(path: str) -> str:
    with open(path, "rb") as file:
        return sha256(file.read()).hexdigest()
