"""What a result of this stage depends on, apart from its input: for the content store's key."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import importlib.util
from pathlib import Path

from fly_common import toolchain
from fly_common.errors import MissingError

from fly_opt import devicelibs
from fly_opt.options import Options


def fingerprint(options: Options) -> str:
    """A digest of the options, of this compiler's sources, of the MLIR bindings and of the device
    libraries. Imports no MLIR: a warm cache hit must not pay for it."""
    parts = [
        repr(dataclasses.astuple(options)),
        _sources(),
        _bindings(),
        devicelibs.identity(),
        _linker(),
    ]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


@functools.cache
def _sources() -> str:
    """A digest of the sources of fly_opt, fly_dialect and fly_common, by their content."""
    digest = hashlib.sha256()
    for package in ("fly_opt", "fly_dialect", "fly_common"):
        found = importlib.util.find_spec(package)
        root = Path(found.origin).parent  # type: ignore[union-attr,arg-type]
        for path in sorted(root.rglob("*.py")):
            digest.update(f"{package}/{path.relative_to(root)}\0".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()


@functools.cache
def _bindings() -> str:
    """The bindings' package, by the size and time of its libraries: their content is 150 MB."""
    for name in ("mlir", "torch_mlir"):
        found = importlib.util.find_spec(name)
        for folder in (found.submodule_search_locations or ()) if found else ():
            libraries = sorted(Path(folder, "_mlir_libs").glob("*.so*"))
            if libraries:
                status = [(path, path.stat()) for path in libraries]
                return "|".join(f"{p}:{s.st_size}:{s.st_mtime_ns}" for p, s in status)
    return "none"


def _linker() -> str:
    try:
        return toolchain.fingerprint("llvm-link")
    except MissingError:
        return "none"
