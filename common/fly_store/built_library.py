"""Shared libraries that are built on first use on this machine, and cached.

    FOLDER/NAME        the library, an ELF file, followed by a seal:
                       sha256(NAME ‖ library), 32 bytes, then "fly-library 1\\n"
    FOLDER/NAME.lock   held while it is built

Such a library runs in the user's processes. It is therefore only loaded from a private cache
folder, and from a file that nobody else can have written. Its bytes are read and checked against
the seal, and a copy of these bytes in memory is loaded (`in_memory`) instead of the file. A
truncated, damaged or replaced library is built again. Programs that load libraries ignore the seal.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Callable, Iterator
from hashlib import sha256

from fly_common import diagnostics, paths
from fly_common.errors import MissingError
from fly_common.programs import process
from fly_common.record import record

MARK = b"fly-library 1\n"
DIGEST = 32  # bytes of a sha256
LARGEST = 256 << 20  # bytes; a larger file is not one of these libraries
LOCK_TIMEOUT = 120.0  # seconds to wait for another process that builds the same library
PATIENCE = 1.0  # seconds before a message, if stderr is not a terminal
KEEP = "set FLY_CACHE_DIR to a writable directory with 10 MB of free space"


@record
class Recipe:
    """How to build a library: `build` returns its bytes. `noun` is its name in messages, `takes`
    the build time ("about 5 s")."""

    name: str
    build: Callable[[], bytes]
    noun: str
    takes: str


def obtain(recipe: Recipe) -> bytes:
    """Returns the library's bytes: cached ones if they are intact, otherwise new ones, which are
    cached.

    If several processes need it at the same time, one builds it. If the library cannot be cached,
    it is built for this process only, with a warning: a full disk costs seconds, not the result. A
    message on stderr announces a build, or a wait for another process that builds.
    """
    try:
        folder = paths.private_cache_dir()
    except MissingError as error:
        return _build_uncached(recipe, error.message, error.hint or KEEP)
    path = os.path.join(folder, recipe.name)
    data, _ = read(path)
    if data is not None:
        return data
    made: bytes | None = None
    try:
        os.scandir(folder).close()  # its error is clearer than the lock's
        with _lock(path, recipe):
            data, why = read(path)
            if data is not None:
                return data
            made = _announced(recipe, why)
            keep(path, made)
            return made
    except OSError as error:
        return _build_uncached(recipe, f"{folder}: {error.strerror or error}", KEEP, made)


def in_memory(data: bytes) -> tuple[int, str]:
    """Copies a library to a file in memory. Returns its descriptor, and the path for loading it.
    The descriptor must stay open while the library is loaded, because the loader identifies
    libraries by path, and the number would be reused."""
    handle = process.in_memory(data)
    return handle, f"/proc/self/fd/{handle}"


def sealed(name: str, data: bytes) -> bytes:
    """Returns the content of the file that caches a library as `name`."""
    return data + _seal(name, data)


def _seal(name: str, data: bytes | memoryview) -> bytes:
    total = sha256(name.encode() + b"\0")
    total.update(data)
    return total.digest() + MARK


def read(path: str) -> tuple[bytes | None, str]:
    """Returns the library cached at `path`, or None and the reason; "" if there is no file."""
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


def keep(path: str, data: bytes, sync: bool = True) -> None:
    """Writes a library to `path` atomically, replacing what is there. Raises OSError if that fails.
    With `sync` the file is synced before it is renamed: for libraries that take seconds to build,
    which a power failure would otherwise lose."""
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
            if sync:
                file.flush()
                os.fsync(handle)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def _build_uncached(recipe: Recipe, why: str, hint: str, made: bytes | None = None) -> bytes:
    what = f"{recipe.noun} can't be cached and will be built each time: {why}"
    diagnostics.warner("fly")(diagnostics.Warning(what, hint=hint))
    try:
        return _announced(recipe, "", again=True) if made is None else made
    except OSError as failure:
        raise MissingError(
            f"{recipe.noun} can't be built: {failure.strerror or failure}",
            hint="free memory, and space in the directory for temporary files (TMPDIR)",
        ) from None


@contextlib.contextmanager
def _lock(path: str, recipe: Recipe) -> Iterator[None]:
    """Holds the library's lock, which the system releases when the process exits. Continues without
    it after LOCK_TIMEOUT, because its holder may be stopped. Raises OSError if a lock file cannot
    be created."""
    from filelock import FileLock, Timeout

    lock = FileLock(f"{path}.lock", mode=0o600)
    try:
        try:
            lock.acquire(timeout=0)
        except Timeout:
            _print_message(f"waiting for another process that builds {recipe.noun}")
            with contextlib.suppress(Timeout):
                lock.acquire(timeout=LOCK_TIMEOUT)
        except NotImplementedError:  # no locks on this file system: both build, which is harmless
            pass
        yield
    finally:
        lock.release()


def _announced(recipe: Recipe, why: str, again: bool = False) -> bytes:
    """Builds the library and prints a line on stderr that explains the delay: immediately on a
    terminal, otherwise after PATIENCE. `again`: the next process will have to build it again."""
    anew = f" again, because the cached file can't be used: {why}" if why else ""
    often = "each time" if again else "once for each version"
    message = f"building {recipe.noun}{anew} ({recipe.takes}, {often})"
    if sys.stderr is not None and sys.stderr.isatty():
        _print_message(message)
        return recipe.build()
    timer = threading.Timer(PATIENCE, _print_message, (message,))
    timer.daemon = True
    timer.start()
    try:
        return recipe.build()
    finally:
        timer.cancel()


def _print_message(text: str) -> None:
    with contextlib.suppress(OSError, ValueError):  # a closed stream
        print(f"fly: {text}", file=sys.stderr, flush=True)
