"""Shared libraries that are built on this machine when they are first wanted, and kept.

    FOLDER/NAME        the library, an ELF file, and behind it a seal:
                       sha256(NAME ‖ library), 32 bytes, then "fly-library 1\\n"
    FOLDER/NAME.lock   held while it is built

Such a library runs in the user's processes. So it is taken only from a cache folder that is private
and from a file that nobody else can have written; its bytes are read, held against the seal, and
what is loaded is a copy of these bytes in memory (`in_memory`), not the file of that name. One that
was cut, flipped or exchanged is built again. Programs that load libraries don't mind the seal.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import sha256

from fly_common import paths, process
from fly_common.errors import MissingError

MARK = b"fly-library 1\n"
DIGEST = 32  # bytes of a sha256
LARGEST = 256 << 20  # bytes; what is larger is none of ours
LOCK_TIMEOUT = 120.0  # seconds to wait for another process that builds the same library
PATIENCE = 1.0  # seconds without a word where nobody sits at a terminal
KEEP = "set FLY_CACHE_DIR to a writable directory with 10 MB of free space"


@dataclass(frozen=True)
class Recipe:
    """How to get a library: `build` gives its bytes. `noun` names it in messages, `takes` says how
    long building takes ("about 5 s")."""

    name: str
    build: Callable[[], bytes]
    noun: str
    takes: str


def obtain(recipe: Recipe) -> bytes:
    """The library's bytes: kept ones, if they are whole, else new ones, which are kept.

    Of several processes that ask at once one builds. Where the library can't be kept it is built
    for this process alone, with a warning: a full disk costs seconds, not the result. Building is
    announced on stderr, and so is waiting for another process that builds.
    """
    try:
        folder = paths.private_cache_dir()
    except MissingError as error:
        return _unkept(recipe, error.message, error.hint or KEEP)
    path = os.path.join(folder, recipe.name)
    data, _ = read(path)
    if data is not None:
        return data
    made: bytes | None = None
    try:
        os.scandir(folder).close()  # says better than the lock does what a folder lacks
        with _lock(path, recipe):
            data, why = read(path)
            if data is not None:
                return data
            made = _announced(recipe, why)
            keep(path, made)
            return made
    except OSError as error:
        return _unkept(recipe, f"{folder}: {error.strerror or error}", KEEP, made)


def in_memory(data: bytes) -> tuple[int, str]:
    """A copy of a library that is in no folder: its descriptor, and the path it is loaded by while
    the descriptor is open. The descriptor has to stay open as long as the library is loaded: the
    loader knows libraries by their paths, and the number would soon be another's."""
    handle = process.in_memory(data)
    return handle, f"/proc/self/fd/{handle}"


def sealed(name: str, data: bytes) -> bytes:
    """The content of the file that keeps a library under `name`."""
    return data + _seal(name, data)


def _seal(name: str, data: bytes | memoryview) -> bytes:
    total = sha256(name.encode() + b"\0")
    total.update(data)
    return total.digest() + MARK


def read(path: str) -> tuple[bytes | None, str]:
    """The library kept at `path`, or None and why not: "" where there is none."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None, ""
    except OSError as error:
        return None, error.strerror or str(error)
    with open(handle, "rb") as file:
        status = os.fstat(handle)
        if not paths.is_own(status):
            return None, "others can write to it"
        content = file.read() if status.st_size <= LARGEST else b""
    size = len(content) - DIGEST - len(MARK)
    if size <= 0 or content[size:] != _seal(os.path.basename(path), memoryview(content)[:size]):
        return None, "it is damaged"
    return content[:size], ""


def keep(path: str, data: bytes) -> None:
    """Puts a library at `path`, whole or not at all, whatever is there. OSError where that can't
    be. The file is synced before it gets its name: what a power cut takes costs the user the whole
    time of building once more."""
    folder, name = os.path.split(path)
    for leftover in os.listdir(folder):
        if leftover.startswith(f".{name}."):  # of a process that was killed
            with contextlib.suppress(OSError):
                os.unlink(os.path.join(folder, leftover))
    temporary = os.path.join(folder, f".{name}.{os.urandom(6).hex()}")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with open(handle, "wb") as file:
            file.write(sealed(name, data))
            file.flush()
            os.fsync(handle)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def _unkept(recipe: Recipe, why: str, hint: str, made: bytes | None = None) -> bytes:
    print(
        f"fly: warning: {recipe.noun} can't be cached and will be built each time: {why}\n  {hint}",
        file=sys.stderr,
    )
    try:
        return _announced(recipe, "", again=True) if made is None else made
    except OSError as failure:
        raise MissingError(
            f"{recipe.noun} can't be built: {failure.strerror or failure}",
            hint="free memory, and space in the directory for temporary files (TMPDIR)",
        ) from None


@contextlib.contextmanager
def _lock(path: str, recipe: Recipe) -> Iterator[None]:
    """Holds the library's lock, which the system frees with its process. Goes on without it after
    LOCK_TIMEOUT: whoever holds it may be stopped. OSError where there can be no lock file."""
    from filelock import FileLock, Timeout

    lock = FileLock(f"{path}.lock", mode=0o600)
    try:
        try:
            lock.acquire(timeout=0)
        except Timeout:
            _say(f"waiting for another process that builds {recipe.noun}")
            with contextlib.suppress(Timeout):
                lock.acquire(timeout=LOCK_TIMEOUT)
        except NotImplementedError:  # a file system without locks: both build, which is harmless
            pass
        yield
    finally:
        lock.release()


def _announced(recipe: Recipe, why: str, again: bool = False) -> bytes:
    """What building gives, with a line on stderr that says what takes so long: at once for a person
    at a terminal, else once it has taken PATIENCE. `again`: the next process will do so too."""
    anew = f" again, because the cached file can't be used: {why}" if why else ""
    often = "each time" if again else "once for each version"
    said = f"building {recipe.noun}{anew} ({recipe.takes}, {often})"
    if sys.stderr is not None and sys.stderr.isatty():
        _say(said)
        return recipe.build()
    timer = threading.Timer(PATIENCE, _say, (said,))
    timer.daemon = True
    timer.start()
    try:
        return recipe.build()
    finally:
        timer.cancel()


def _say(text: str) -> None:
    with contextlib.suppress(OSError, ValueError):  # a stream that is closed
        print(f"fly: {text}", file=sys.stderr, flush=True)
