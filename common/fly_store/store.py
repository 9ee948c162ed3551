"""The content store: caches the result of a stage under a key of the stage and its input.

    FOLDER/keys/abcdef…       a few lines of text: the object of a key
    FOLDER/objects/123456….ll     the artifact itself, named by the sha256 of its bytes
    FOLDER/tmp/               files that are being written
    FOLDER/lock               each key that is being computed locks a byte of it

Today's file systems find a name among 100,000 in one folder as fast as among ten, and a new folder
for each entry of a new store takes as long as its file.

A key is `sha256(fingerprint ‖ input)`; see `key_of`. A file is written under a temporary name and
renamed, so a reader sees all of it or nothing, even if a writer is killed. A key's file contains
its key, and an object is checked against its name on each read: a replaced or damaged one counts as
missing and is made again. Therefore nothing is fsynced: losses by a power failure are detected, and
syncing the 14 files of a cold compile would take 10 ms on an idle disk and 200 ms on a busy one.
Any file may be deleted at any time, at the cost of one recomputation. A file that others than the
user can write also counts as missing, and the user's store is in a private folder
(`paths.private_cache_dir`).

The store never causes a failure: if it cannot be read or written, results are computed and not
stored, with one line on stderr. `FLY_CACHE=off` disables it, `FLY_CACHE=explain` reports hits and
misses on stderr, `FLY_CACHE_LIMIT=2G` limits its size.

It does not use a library because each compile starts with a look-up, which takes 0.03 ms; sqlite3,
on which such libraries are built, takes 10 ms to import.
"""

from __future__ import annotations

import contextlib
import os
import struct
import sys
import time
from collections.abc import Callable, Iterator
from hashlib import sha256

from fly_common import diagnostics, paths
from fly_common.errors import MissingError, UsageError

try:
    import fcntl
except ImportError:  # no locks: two processes may then do the same work, which is harmless
    fcntl = None

FORMAT = "fly-store 2"
LIMIT = 4 << 30  # bytes on disk; FLY_CACHE_LIMIT overrides it
LEFTOVER_AGE = 3600.0  # seconds after which a temporary file is assumed to have no writer
HOUSEKEEPING = 3600.0  # seconds between two checks of the store's size
LOCK_TIMEOUT = 120.0  # seconds to wait for another process that makes the same thing
_LOCK = struct.Struct("hhqqi0q")  # C's struct flock on 64-bit Linux: type, whence, start, length
_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def key_of(fingerprint: str, data: bytes) -> str:
    """Returns the key for a stage's fingerprint and its input: 64 hexadecimal digits."""
    text = fingerprint.encode()
    # The length distinguishes ("ab", "c") from ("a", "bc").
    return sha256(b"%d\n%b%b" % (len(text), text, data)).hexdigest()


def default_store() -> Store:
    """Returns the user's store, as configured by the current environment."""
    mode = os.environ.get("FLY_CACHE", "")
    if mode not in ("", "on", "1", "off", "0", "explain"):
        raise UsageError(f"FLY_CACHE={mode}: must be on, off or explain")
    folder = None if mode in ("off", "0") else _private_folder()
    return Store(folder, explain=mode == "explain", limit=_limit())


def _private_folder() -> str | None:
    """Returns the folder of the user's store, or None, with a warning, if others could write
    there."""
    try:
        return os.path.join(paths.private_cache_dir(), "store")
    except MissingError as error:
        _warn_once(paths.cache_dir(), f"{error.message}; no results are kept\n  {error.hint}")
        return None


class Store:
    """A store in `folder`, limited to `limit` bytes on disk. With None it stores and finds
    nothing."""

    def __init__(
        self,
        folder: str | os.PathLike[str] | None,
        *,
        explain: bool = False,
        limit: int = LIMIT,
    ):
        self.folder = None if folder is None else os.fspath(folder)
        self.explain = explain
        self.limit = limit

    def get(self, key: str) -> bytes | None:
        """Returns the data of `key`, or None if it is missing, unreadable or damaged."""
        return self._read(key)[0]

    def put(
        self,
        key: str,
        data: bytes,
        *,
        label: str = "",
        suffix: str = "",
        origin: tuple[str, bytes] | None = None,
    ) -> bool:
        """Stores `data` under `key`. Returns whether that succeeded. `label` is recorded in the
        key's file as its maker, `suffix` is the suffix of the object's name (".ll"), `origin` is
        the content of the key, for `FLY_CACHE=explain`."""
        if self.folder is None:
            return False
        digest = sha256(data).hexdigest()
        entry = f"{FORMAT}\nkey {key}\nobject {digest}{suffix}\nlabel {label}\n"
        if origin is not None:
            entry += f"input {sha256(origin[1]).hexdigest()}\nfingerprint {origin[0]!r}\n"
        try:
            # The object first, so that a key never refers to a missing object.
            self._write(self._path("objects", digest + suffix), data)
            self._write(self._path("keys", key), entry.encode())
        except OSError as error:
            _warn_once(
                self.folder,
                f"the store {self.folder} can't be written: {error.strerror}; results are not"
                " cached"
                "\n  free some space there, or set FLY_CACHE_DIR to another directory, or"
                " FLY_CACHE=off",
            )
            return False
        self._housekeeping()
        return True

    def obtain(
        self,
        key: str,
        make: Callable[[], bytes],
        *,
        label: str = "",
        suffix: str = "",
        valid: Callable[[], bool] = lambda: True,
        origin: tuple[str, bytes] | None = None,
    ) -> bytes:
        """Returns the data of `key`, or `make()`, which is stored if `valid()` afterwards, within
        `prefetch.postponing` later than this returns. For `origin` see `put`.

        If several processes or threads request it at the same time, one makes it and the others
        wait. A wait ends when the maker exits, for whatever reason, or after LOCK_TIMEOUT.
        """
        data, found = self._read(key)
        if data is None:
            from fly_common.programs import prefetch

            with contextlib.ExitStack() as lock:
                lock.enter_context(self._lock(key))
                data, found = self._read(key)  # another process may have made it
                if data is None:
                    self._explain(label, found, key, origin)
                    made = make()
                    locked = lock.pop_all()

                    def keep() -> None:
                        with locked:
                            if valid():
                                self.put(key, made, label=label, suffix=suffix, origin=origin)

                    prefetch.postpone(keep)
                    return made
        self._explain(label, found, key)
        return data

    def entries(self) -> Iterator[tuple[str, bytes | None]]:
        """Yields every key with its data, None if that is missing or damaged."""
        for path in self.files("keys"):
            key = os.path.basename(path)
            yield key, self.get(key)

    def size(self) -> int:
        """Returns the size on disk in bytes, in whole blocks."""
        return sum(status.st_blocks * 512 for _, status in self._statuses())

    def clear(self) -> None:
        """Deletes everything. Safe while others work: they compute again what they need."""
        for kind in ("keys", "objects", "tmp"):
            for path in self.files(kind):
                _unlink(path)

    def prune(self, limit: int) -> int:
        """Deletes the least recently used files until the store fits into `limit` bytes, and then a
        fifth more, so that the next entry does not start it again. Returns the number of bytes
        freed."""
        found = sorted(self._statuses(), key=lambda item: item[1].st_mtime)
        total = sum(status.st_blocks * 512 for _, status in found)
        if total <= limit:
            return 0
        freed = 0
        for path, status in found:
            if total - freed <= limit * 4 // 5:
                break
            _unlink(path)
            freed += status.st_blocks * 512
        return freed

    def _path(self, kind: str, name: str) -> str:
        assert self.folder is not None
        return os.path.join(self.folder, kind, name)

    def _read(self, key: str) -> tuple[bytes | None, str]:
        """Returns the data and "hit", or None and the reason."""
        if self.folder is None:
            return None, "off"
        try:
            lines = _read_used(self._path("keys", key)).decode().splitlines()
            if lines[:2] != [FORMAT, f"key {key}"]:
                return None, "damaged"
            name = lines[2].removeprefix("object ")
            data = _read_used(self._path("objects", name))
        except OSError:
            return None, "miss"
        except (ValueError, IndexError):
            return None, "damaged"
        if sha256(data).hexdigest() != name[:64]:
            return None, "damaged"
        return data, "hit"

    def _write(self, path: str, data: bytes) -> None:
        assert self.folder is not None
        # There is one folder for temporary files, on the same file system, so that files of killed
        # writers are found without walking the whole store.
        temporary = os.path.join(self.folder, "tmp", os.urandom(12).hex())
        handle = _open_in_folder(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        try:
            with open(handle, "wb") as file:
                file.write(data)
            try:
                os.replace(temporary, path)
            except FileNotFoundError:
                paths.make_private(os.path.dirname(path))
                os.replace(temporary, path)
        except BaseException:
            _unlink(temporary)
            raise

    @contextlib.contextmanager
    def _lock(self, key: str) -> Iterator[None]:
        """Holds the lock of `key`. If locking is not possible, it continues without, because the
        lock only saves work.

        The lock is Linux's for a byte of an open file: the system frees it with the process,
        threads exclude each other, and no file is created for a key, which would take longer than
        all the rest.
        """
        operation = getattr(fcntl, "F_OFD_SETLK", None)
        if operation is None or self.folder is None:
            yield
            return
        try:
            path = os.path.join(self.folder, "lock")
            handle = _open_in_folder(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC)
        except OSError:
            yield
            return
        try:
            _lock_byte(handle, operation, int(key[:15], 16))
            yield
        finally:
            os.close(handle)

    def _housekeeping(self) -> None:
        """Occasionally deletes files of killed writers, and prunes the store to its limit."""
        assert self.folder is not None
        stamp = os.path.join(self.folder, "housekeeping")
        now = time.time()
        with contextlib.suppress(OSError):
            if now - os.stat(stamp).st_mtime < HOUSEKEEPING:
                return
        with contextlib.suppress(OSError):
            os.close(os.open(stamp, os.O_WRONLY | os.O_CREAT, 0o600))
            os.utime(stamp)
            for path in self.files("tmp"):
                if now - os.stat(path).st_mtime > LEFTOVER_AGE:
                    _unlink(path)
            self.prune(self.limit)

    def files(self, kind: str) -> Iterator[str]:
        if self.folder is not None:
            for folder, _, names in os.walk(os.path.join(self.folder, kind)):
                for name in names:
                    yield os.path.join(folder, name)

    def _statuses(self) -> Iterator[tuple[str, os.stat_result]]:
        for kind in ("keys", "objects"):
            for path in self.files(kind):
                with contextlib.suppress(FileNotFoundError):
                    yield path, os.stat(path)

    def _explain(
        self, label: str, found: str, key: str, origin: tuple[str, bytes] | None = None
    ) -> None:
        if not self.explain:
            return
        why = ""
        if found == "miss" and origin is not None:
            from fly_store import explanation

            why = f": {explanation.of(self, label, origin)}"
        print(f"fly: cache: {label}: {found} {key[:16]}{why}", file=sys.stderr)


def _read_used(path: str) -> bytes:
    """Returns a file's bytes, and updates its time of use for `prune`. Raises OSError if others
    than the user could have written it."""
    with open(path, "rb") as file:
        status = os.fstat(file.fileno())
        if not paths.is_own(status):
            raise PermissionError(path)
        data = file.read()
        if time.time() - status.st_mtime > HOUSEKEEPING:
            with contextlib.suppress(OSError):
                os.utime(path)
    return data


def _open_in_folder(path: str, flags: int) -> int:
    """Opens `path` with access for the user only. Creates its folder if it is missing."""
    try:
        return os.open(path, flags, 0o600)
    except FileNotFoundError:
        paths.make_private(os.path.dirname(path))
        return os.open(path, flags, 0o600)


def _lock_byte(handle: int, operation: int, at: int) -> None:
    """Locks the byte at `at` of a file, waiting at most LOCK_TIMEOUT."""
    from fly_common.programs import prefetch

    assert fcntl is not None
    wanted = _LOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, at, 1, 0)
    deadline = time.monotonic() + LOCK_TIMEOUT
    while True:
        try:
            fcntl.fcntl(handle, operation, wanted)
            return
        except BlockingIOError:
            prefetch.do_postponed()  # no thread waits that holds a lock itself
            if time.monotonic() > deadline:
                return
            time.sleep(0.01)
        except OSError:  # a file system without locks
            return


def _unlink(path: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(path)


def _limit() -> int:
    """Returns the size limit from the environment, in bytes."""
    text = os.environ.get("FLY_CACHE_LIMIT", "").strip().upper().removesuffix("B")
    if not text:
        return LIMIT
    unit = _UNITS.get(text[-1])
    try:
        return int(float(text if unit is None else text[:-1]) * (unit or 1))
    except (ValueError, OverflowError):  # not a number, or infinite
        raise UsageError(
            f"FLY_CACHE_LIMIT={os.environ['FLY_CACHE_LIMIT']}: is not a size",
            hint="write it as 500M or 4G",
        ) from None


_warned: set[str] = set()


def _warn_once(folder: str, text: str) -> None:
    if folder not in _warned:
        _warned.add(folder)
        diagnostics.warner("fly")(text)
