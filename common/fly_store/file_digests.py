"""What identifies a file's content: for the fingerprints of stages that are programs."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from hashlib import sha256

from fly_common.errors import MissingError

from fly_store.store import Store, default_store, key_of

# From this size on a digest is kept in the store: hashing takes about 0.7 ms a megabyte.
LARGE = 1 << 20
# Bytes read at a time. Many, because a thread that hashes lets go of the interpreter for each piece
# and may wait 5 ms to have it again; not all, because memory for 150 MB takes as long as hashing.
PIECE = 32 << 20
# A file changed this recently, in seconds, may change again without a new modification time.
UNSETTLED = 2.0

Stamp = tuple[str, int, int, int]  # a file's path, inode, size and modification time

_known: dict[Stamp, str] = {}
_coming: dict[str, threading.Thread] = {}  # by paths: who takes the digest


def digest_of(path: str | os.PathLike[str]) -> str:
    """The sha256 of a file's content, in hexadecimal, remembered as long as its path, inode, size
    and modification time stay. MissingError where the file can't be read."""
    path = os.fspath(path)
    if (thread := _coming.pop(path, None)) is not None:
        thread.join()
    return _digest_of(path)


def digest_ahead(path: str | os.PathLike[str]) -> None:
    """Takes the digest of a large file in a thread of its own, if it is not known already, for
    somebody who will ask for it: hashing leaves the interpreter to others meanwhile."""
    path = os.fspath(path)
    try:
        stamp, _ = _stamped(path)
    except OSError:
        return  # who asks for it will say so
    if stamp in _known or stamp[2] < LARGE or path in _coming:
        return
    if (kept := Store(default_store().folder).get(_key(stamp))) is not None:
        _known[stamp] = kept.decode()
        return
    _coming[path] = threading.Thread(target=_tried, args=(path,), daemon=True)
    _coming[path].start()


def _tried(path: str) -> None:
    with contextlib.suppress(MissingError):
        _digest_of(path)


def _digest_of(path: str) -> str:
    try:
        stamp, changed = _stamped(path)
        # Asked for at each call of a compiled function: not even links are resolved.
        if (known := _known.get(stamp)) is not None:
            return known
        if time.time() - changed < UNSETTLED:
            return _hash(path)
        if stamp[2] < LARGE:
            digest = _hash(path)
        else:
            store = Store(default_store().folder)
            hashed = store.obtain(_key(stamp), lambda: _hash(path).encode(), label="digest")
            digest = hashed.decode()
    except OSError as error:
        raise MissingError(f"{path}: {error.strerror}") from None
    _known[stamp] = digest
    return digest


def _stamped(path: str) -> tuple[Stamp, float]:
    """A file's stamp, and when it changed, in seconds."""
    status = os.stat(path)
    return (path, status.st_ino, status.st_size, status.st_mtime_ns), status.st_mtime


def _key(stamp: Stamp) -> str:
    return key_of("digest of a file", repr(stamp).encode())


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
    total = sha256()
    with open(path, "rb", buffering=0) as file:
        piece = memoryview(bytearray(min(PIECE, os.fstat(file.fileno()).st_size + 1)))
        while count := file.readinto(piece):
            total.update(piece[:count])
    return total.hexdigest()
