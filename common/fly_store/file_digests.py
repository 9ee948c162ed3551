"""Digests of files, for the fingerprints of stages that are programs."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from hashlib import sha256

from fly_common.errors import MissingError

from fly_store.build_id import build_id
from fly_store.store import Store, default_store, key_of

# Digests of files of at least this size are cached in the store: hashing takes about 0.7 ms a
# megabyte.
LARGE = 1 << 20
# Bytes read at a time. Large, because a hashing thread releases the interpreter lock for each piece
# and may wait 5 ms for it; not everything, because allocating 150 MB takes as long as hashing.
PIECE = 32 << 20
# Seconds. A file that was changed more recently may change again with the same modification time.
UNSETTLED = 2.0

Stamp = tuple[str, int, int, int]  # a file's path, inode, size and modification time

_known: dict[Stamp, str] = {}
_builds: dict[Stamp, str] = {}
_threads: dict[str, threading.Thread] = {}  # the threads that compute digests, by path


def digest_of(path: str | os.PathLike[str]) -> str:
    """Returns the sha256 of a file's content in hexadecimal. It is cached while the file's path,
    inode, size and modification time are unchanged. Raises MissingError if the file cannot be
    read."""
    path = os.fspath(path)
    if (thread := _threads.pop(path, None)) is not None:
        thread.join()
    return _digest_of(path)


def build_of(path: str | os.PathLike[str]) -> str:
    """Identifies the build of a library or program: by its build ID, size and modification time, so
    that it need not be read, or by its digest if it has no ID or was changed just now. Raises
    MissingError if the file cannot be read."""
    path = os.fspath(path)
    return _build_of(path) or digest_of(path)


def build_ahead(path: str | os.PathLike[str]) -> None:
    """Starts what takes long in `build_of`."""
    path = os.fspath(path)
    if _build_of(path) is None:
        digest_ahead(path)


def _build_of(path: str) -> str | None:
    try:
        stamp = stamp_of(path)
        if stamp not in _builds:
            found = build_id(path) if is_settled(stamp) else None
            if found is None:
                return None
            _builds[stamp] = f"{found}-{stamp[2]}-{stamp[3]}"
        return _builds[stamp]
    except OSError:
        return None  # `digest_of` reports it


def digest_ahead(path: str | os.PathLike[str]) -> None:
    """Starts to compute the digest of a large file in a thread, unless it is known. Hashing
    releases the interpreter lock."""
    path = os.fspath(path)
    try:
        stamp = stamp_of(path)
    except OSError:
        return  # `digest_of` reports it
    if stamp in _known or stamp[2] < LARGE or path in _threads:
        return
    if (kept := Store(default_store().folder).get(_key(stamp))) is not None:
        _known[stamp] = kept.decode()
        return
    _threads[path] = threading.Thread(target=_digest_quietly, args=(path,), daemon=True)
    _threads[path].start()


def _digest_quietly(path: str) -> None:
    with contextlib.suppress(MissingError):
        _digest_of(path)


def _digest_of(path: str) -> str:
    try:
        stamp = stamp_of(path)
        # Called at each call of a compiled function, so not even links are resolved.
        if (known := _known.get(stamp)) is not None:
            return known
        if not is_settled(stamp):
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


def stamp_of(path: str) -> Stamp:
    """Returns what identifies a file's content. Raises OSError if there is no such file."""
    status = os.stat(path)
    return path, status.st_ino, status.st_size, status.st_mtime_ns


def is_settled(stamp: Stamp) -> bool:
    """Whether the file's next change will have another time."""
    return time.time() - stamp[3] * 1e-9 >= UNSETTLED


def _key(stamp: Stamp) -> str:
    return key_of("digest of a file", repr(stamp).encode())


def named_in(word: str, folder: str) -> list[str]:
    """Returns the existing files that an argument names, relative to `folder`: as a whole, after
    `=` (`--plugin=x.so`), and before `:` (`x.so:name`)."""
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
