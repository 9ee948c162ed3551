"""What identifies a file's content: for the fingerprints of stages that are programs."""

from __future__ import annotations

import os
import time
from hashlib import sha256

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
    path = os.fspath(path)
    try:
        status = os.stat(path)
        stamp = (path, status.st_ino, status.st_size, status.st_mtime_ns)
        # Asked for at each call of a compiled function: not even links are resolved.
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
