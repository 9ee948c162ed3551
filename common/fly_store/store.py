"""The content store: what a stage made of an input, found again by what made it.

    FOLDER/keys/ab/cdef…      a few lines of text: which object the key stands for
    FOLDER/objects/12/3456….ll    the artifact itself, named by the sha256 of its bytes
    FOLDER/tmp/               files being written
    FOLDER/locks/             one per key being made

A key is `sha256(fingerprint ‖ input)`; see `key_of`. A file comes to be under a temporary name and
is renamed, so a reader sees all of it or nothing, whoever is killed when. A key's file names its
key, and an object is checked against its name on each read: one that was exchanged or is damaged
counts as missing and is made again. That is why nothing is fsynced: what a power cut takes is
noticed, and the 14 files of a cold compile would take 10 ms to sync on an idle disk, 200 ms on a
busy one. Any file may be deleted at any time: that costs one recomputation. A file that others than
the user can write counts as missing too, and the user's store lies in a folder that is private
(`paths.private_cache_dir`).

The store never stands in the way: where it can't be read or written, results are made and not
kept, with one line on stderr. `FLY_CACHE=off` does without it, `FLY_CACHE=explain` says on stderr
what was found and what was not, `FLY_CACHE_LIMIT=2G` bounds its size.

It is code of our own because each compile looks here first: a look-up takes 0.03 ms, where sqlite3,
on which libraries of this kind are built, takes 10 ms to import.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterator
from hashlib import sha256

from fly_common import paths
from fly_common.errors import MissingError, UsageError

try:
    import fcntl
except ImportError:  # no flock here: two processes may then do the same work, which is harmless
    fcntl = None

FORMAT = "fly-store 2"
LIMIT = 4 << 30  # bytes on disk, unless FLY_CACHE_LIMIT says otherwise
LEFTOVER_AGE = 3600.0  # seconds after which a temporary file has no living writer
HOUSEKEEPING = 3600.0  # seconds between two looks at the store's size
LOCK_TIMEOUT = 120.0  # seconds to wait for another process that makes the same thing
_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def key_of(fingerprint: str, data: bytes) -> str:
    """The key of what a stage with this fingerprint makes of `data`: 64 hexadecimal digits."""
    text = fingerprint.encode()
    # The length in front keeps ("ab", "c") and ("a", "bc") apart.
    return sha256(b"%d\n%b%b" % (len(text), text, data)).hexdigest()


def default_store() -> Store:
    """The user's store, as the environment asks for it now."""
    mode = os.environ.get("FLY_CACHE", "")
    if mode not in ("", "on", "1", "off", "0", "explain"):
        raise UsageError(f"FLY_CACHE={mode}: must be on, off or explain")
    folder = None if mode in ("off", "0") else _private_folder()
    return Store(folder, explain=mode == "explain", limit=_limit())


def _private_folder() -> str | None:
    """The folder of the user's store; None, with a warning, where others could write there."""
    try:
        return os.path.join(paths.private_cache_dir(), "store")
    except MissingError as error:
        _warn_once(paths.cache_dir(), f"{error.message}; no results are kept\n  {error.hint}")
        return None


class Store:
    """A store in `folder`, of `limit` bytes on disk; None keeps nothing and finds nothing."""

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
        """What was put under `key`; None where that is nothing, unreadable or damaged."""
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
        """Keeps `data` under `key` and says whether that went well. `label` says in the key's file
        what made it, `suffix` ends the object's name (".ll"), `origin` is what the key was made
        of, which `FLY_CACHE=explain` compares."""
        if self.folder is None:
            return False
        digest = sha256(data).hexdigest()
        entry = f"{FORMAT}\nkey {key}\nobject {digest}{suffix}\nlabel {label}\n"
        if origin is not None:
            entry += f"input {sha256(origin[1]).hexdigest()}\nfingerprint {origin[0]!r}\n"
        try:
            # The object first: a key never stands for what isn't there yet.
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
        """What is kept under `key`, else `make()`, kept if `valid()` afterwards. For `origin` see
        `put`.

        Of several processes and threads that ask at once, one makes it and the others wait; a
        wait ends when the maker does, however it ends, or after LOCK_TIMEOUT.
        """
        data, found = self._read(key)
        if data is None:
            with self._lock(key):
                data, found = self._read(key)  # somebody may have made it meanwhile
                if data is None:
                    self._say(label, found, key, origin)
                    data = make()
                    if valid():
                        self.put(key, data, label=label, suffix=suffix, origin=origin)
                    return data
        self._say(label, found, key)
        return data

    def entries(self) -> Iterator[tuple[str, bytes | None]]:
        """Every key with its data, None where that is missing or damaged."""
        for path in self.files("keys"):
            key = os.path.basename(os.path.dirname(path)) + os.path.basename(path)
            yield key, self.get(key)

    def size(self) -> int:
        """Bytes on disk, in whole blocks."""
        return sum(status.st_blocks * 512 for _, status in self._statuses())

    def clear(self) -> None:
        """Deletes everything kept. Safe while others work: they make again what they need."""
        for kind in ("keys", "objects", "locks", "tmp"):
            for path in self.files(kind):
                _unlink(path)

    def prune(self, limit: int) -> int:
        """Deletes what was not used for longest until the store fits into `limit` bytes, then a
        fifth more, so that the next entry doesn't start over. Returns the bytes freed."""
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
        return os.path.join(self.folder, kind, name[:2], name[2:])

    def _read(self, key: str) -> tuple[bytes | None, str]:
        """The data and "hit", or None and why not."""
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
        # One folder for temporary files, on the file system where they end: leftovers of killed
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
        """Holds the lock of `key`. Goes on all the same where there can be no lock: it saves work,
        nothing else depends on it.

        flock belongs to the open file: the system frees it with the process, and a lock file that
        stays behind locks nothing.
        """
        if fcntl is None or self.folder is None:
            yield
            return
        path = os.path.join(self.folder, "locks", key)
        try:
            handle = _open_in_folder(path, os.O_RDWR | os.O_CREAT)
        except OSError:
            yield
            return
        try:
            _flock(handle)
            yield
        finally:
            # Whoever waits on the file that goes away here gets its lock, looks, and finds the
            # entry.
            with contextlib.suppress(OSError):
                if os.path.samestat(os.fstat(handle), os.stat(path)):
                    _unlink(path)
            os.close(handle)

    def _housekeeping(self) -> None:
        """Now and then: leftovers of killed writers go, and the store is cut to its size."""
        assert self.folder is not None
        stamp = os.path.join(self.folder, "housekeeping")
        now = time.time()
        with contextlib.suppress(OSError):
            if now - os.stat(stamp).st_mtime < HOUSEKEEPING:
                return
        with contextlib.suppress(OSError):
            os.close(os.open(stamp, os.O_WRONLY | os.O_CREAT, 0o600))
            os.utime(stamp)
            for kind in ("tmp", "locks"):
                for path in self.files(kind):
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

    def _say(
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
    """A file's bytes; its time of use is brought up to date, for `prune`. OSError where others than
    the user could have written it."""
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
    """Opens `path`, a file for the user alone; makes its folder where that is missing."""
    try:
        return os.open(path, flags, 0o600)
    except FileNotFoundError:
        paths.make_private(os.path.dirname(path))
        return os.open(path, flags, 0o600)


def _flock(handle: int) -> None:
    """Locks, waiting LOCK_TIMEOUT at most."""
    assert fcntl is not None
    deadline = time.monotonic() + LOCK_TIMEOUT
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > deadline:
                return
            time.sleep(0.01)
        except OSError:  # a file system without locks
            return


def _unlink(path: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(path)


def _limit() -> int:
    """The size bound that the environment asks for, in bytes."""
    text = os.environ.get("FLY_CACHE_LIMIT", "").strip().upper().removesuffix("B")
    if not text:
        return LIMIT
    unit = _UNITS.get(text[-1])
    try:
        return int(float(text if unit is None else text[:-1]) * (unit or 1))
    except (ValueError, OverflowError):  # no number; infinite
        raise UsageError(
            f"FLY_CACHE_LIMIT={os.environ['FLY_CACHE_LIMIT']}: is not a size",
            hint="write it as 500M or 4G",
        ) from None


_warned: set[str] = set()


def _warn_once(folder: str, text: str) -> None:
    if folder not in _warned:
        _warned.add(folder)
        print(f"fly: warning: {text}", file=sys.stderr)
