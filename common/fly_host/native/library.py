"""The libraries of launchers: kept by content, loaded once in a process.

The key of a library is a digest of its LLVM IR, the triple and processor, the compiler, and
Python's binary interface. What is loaded is a copy in memory of bytes that were verified, as for
the emulator's handlers: this is the one place that knows where they are kept.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import sys
import sysconfig
import threading
from hashlib import sha256

from fly_common import built_library

from fly_host.native import engine
from fly_host.native.specialisation import Options
from fly_host.native.unavailable import Unavailable

_loaded: dict[str, ctypes.CDLL] = {}
_locks: dict[str, threading.Lock] = {}
_guard = threading.Lock()
_room: dict[int, threading.Semaphore] = {}
_count = itertools.count()


def load(text: str, options: Options) -> ctypes.CDLL:
    """The library of a module: the one that this process has, a kept one, or a new one."""
    key = key_of(text, options)
    found = _loaded.get(key)
    if found is not None:
        return found
    with _guard:
        lock = _locks.setdefault(key, threading.Lock())
        room = _room.setdefault(options.num_threads, threading.Semaphore(options.num_threads))
    with lock:
        if key not in _loaded:
            recipe = built_library.Recipe(
                f"launcher-{key}.so", lambda: _built(text, options, room), "a launcher", "0.05 s"
            )
            try:
                data = built_library.obtain(recipe)
            except Unavailable:
                raise
            except Exception as error:
                raise Unavailable(f"the launcher can't be kept: {error}") from error
            _loaded[key] = opened(data)
        return _loaded[key]


def key_of(text: str, options: Options) -> str:
    """What the library depends on."""
    parts = (
        text,
        *engine.target(),
        engine.identity(options),
        f"-O{options.opt_level}",
        f"{sys.implementation.cache_tag} {sysconfig.get_config_var('SOABI')}",
    )
    return sha256("\0".join(parts).encode()).hexdigest()[:32]


def _built(text: str, options: Options, room: threading.Semaphore) -> bytes:
    with room:
        return engine.library(text, options)


def opened(data: bytes) -> ctypes.CDLL:
    """Loads a library from a copy in memory.

    The loader knows libraries by their paths, and takes one of a known path for the same library.
    The number of the descriptor is used again after it is closed, so that the path is spelled in a
    way of its own each time: "/proc/self/fd/./" and "/proc/self/fd//" name the same folder.
    """
    handle, path = built_library.in_memory(data)
    folder, name = os.path.split(path)
    spelled = "".join("./" if bit == "1" else "/" for bit in f"1{next(_count):b}")
    try:
        return ctypes.CDLL(f"{folder}/{spelled}{name}")
    except OSError as error:
        raise Unavailable(f"the launcher can't be loaded: {error}") from None
    finally:
        os.close(handle)
