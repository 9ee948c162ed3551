"""The libraries of launchers: kept by content, loaded once in a process.

The key of a library is a digest of its LLVM IR, the triple and processor, the compiler, and
Python's binary interface. What is loaded is a copy in memory of bytes that were verified, as for
the emulator's handlers: this is the one place that knows where they are kept.
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import os
import sys
import sysconfig
import threading
from hashlib import sha256

from fly_common import paths
from fly_common.errors import FlyError
from fly_store import built_library

from fly_host.native import engine
from fly_host.native.specialisation import Options
from fly_host.native.unavailable import NotCompiled

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
            _loaded[key] = opened(_obtained(f"launcher-{key}.so", text, options, room))
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


def _obtained(name: str, text: str, options: Options, room: threading.Semaphore) -> bytes:
    """The bytes of a library: kept ones, if they are whole, else new ones, which are kept where
    that can be. Unlike `built_library.obtain` it says nothing and waits for nobody: what is made in
    30 ms may be made twice."""
    try:
        path = os.path.join(paths.private_cache_dir(), name)
    except FlyError:
        path = None
    data = built_library.read(path)[0] if path is not None else None
    if data is None:
        with room:
            data = engine.library(text, options)
        if path is not None:
            with contextlib.suppress(OSError):
                built_library.keep(path, data, sync=False)
    return data


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
        raise NotCompiled(f"the launcher can't be loaded: {error}") from None
    finally:
        os.close(handle)
