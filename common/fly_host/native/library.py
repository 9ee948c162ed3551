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
from collections.abc import Callable
from hashlib import sha256

from fly_common import paths
from fly_common.errors import FlyError
from fly_store import built_library

from fly_host.native import engine
from fly_host.native.in_process import Linked
from fly_host.native.specialisation import Options
from fly_host.native.unavailable import NotCompiled

_loaded: dict[str, ctypes.CDLL | Linked] = {}
_locks: dict[str, threading.Lock] = {}
_guard = threading.Lock()
_room: dict[int, threading.Semaphore] = {}
_count = itertools.count()


def load(text: str, options: Options) -> ctypes.CDLL | Linked:
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
            _loaded[key] = _made(key, text, options, room)
        return _loaded[key]


def _made(key: str, text: str, options: Options, room: threading.Semaphore) -> ctypes.CDLL | Linked:
    """A shared library; an object linked in this process, where there is no linker."""
    if (kept := _kept(f"launcher-{key}.so")) is not None:
        return opened(kept)
    binding = engine.binding_without_linker(options)
    if binding is None:
        return opened(_compiled(f"launcher-{key}.so", engine.library, text, options, room))
    name = f"launcher-{key}.o"
    data = _kept(name) or _compiled(name, engine.relocatable, text, options, room)
    return Linked(binding, data)


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


def _path(name: str) -> str | None:
    try:
        return os.path.join(paths.private_cache_dir(), name)
    except FlyError:
        return None


def _kept(name: str) -> bytes | None:
    """The bytes of kept code, if they are whole."""
    path = _path(name)
    return built_library.read(path)[0] if path is not None else None


def _compiled(
    name: str,
    compile_text: Callable[[str, Options], bytes],
    text: str,
    options: Options,
    room: threading.Semaphore,
) -> bytes:
    """New code, which is kept where that can be. Unlike `built_library.obtain` it says nothing and
    waits for nobody: what is made in 30 ms may be made twice."""
    with room:
        data = compile_text(text, options)
    if (path := _path(name)) is not None:
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
