"""Identifies code for cache keys: Python's sources, without importing them, LLVM's programs and
MLIR's bindings."""

from __future__ import annotations

import functools
import os
import sys
from hashlib import sha256
from importlib.machinery import PathFinder

from fly_common.errors import MissingError

# The packages that tools share, except the dialect: the dependencies of stages without MLIR.
SHARED = (
    *("fly_backend", "fly_common", "fly_host", "fly_image", "fly_numerics", "fly_store"),
    "fly_target",
)
# The packages of this project. Each stage's fingerprint has those that it uses.
OWN = frozenset(
    (
        *SHARED,
        *("fly", "fly_dialect", "fly_draw"),
        *("fly_link", "fly_llc", "fly_opt", "fly_run", "fly_trace"),
    )
)
BINDINGS = ("mlir", "torch_mlir")  # in the order in which fly_dialect.bindings tries them


@functools.cache
def sources(*packages: str) -> str:
    """Returns a digest of the Python sources of top-level packages, by content.

    It is computed once per process, because the running code is that which was imported.
    """
    return sha256("".join(map(_sources, packages)).encode()).hexdigest()


@functools.cache
def _sources(package: str) -> str:
    total = sha256(package.encode())
    for root in _folders(package):
        for folder, folders, names in os.walk(root):
            folders.sort()
            for name in sorted(names):
                if name.endswith(".py"):
                    path = os.path.join(folder, name)
                    with open(path, "rb") as file:
                        digest = sha256(file.read()).digest()
                    total.update(os.path.relpath(path, root).encode() + b"\0" + digest)
    return total.hexdigest()


@functools.cache
def guests(*packages: str) -> str:
    """Returns a digest of packages and modules of others, by their sources; "" if all of
    `packages` are this project's. Raises MissingError for one that has no source file."""
    return " ".join(f"{name} {_guest(name)}" for name in packages if name not in OWN)


def _guest(name: str) -> str:
    """Returns the digest of a top-level package or module: the imported one, if it is imported."""
    module = sys.modules.get(name)
    spec = getattr(module, "__spec__", None) or PathFinder.find_spec(name)
    if spec is not None and spec.submodule_search_locations:
        return _sources(name)
    path = (spec and spec.origin) or getattr(module, "__file__", None)
    if path is None or not os.path.isfile(path):
        raise MissingError(f"the Python module {name} has no source file")
    with open(path, "rb") as file:
        return sha256(file.read()).hexdigest()


@functools.cache
def bindings() -> str:
    """Identifies MLIR's bindings: the package, and the size and time of its libraries, whose
    content is 150 MB. Returns "none" if there are none."""
    for package in BINDINGS:
        try:
            folders = [os.path.join(root, "_mlir_libs") for root in _folders(package)]
        except MissingError:
            continue
        for folder in filter(os.path.isdir, folders):
            names = sorted(name for name in os.listdir(folder) if ".so" in name)
            if names:
                statuses = [(name, os.stat(os.path.join(folder, name))) for name in names]
                parts = [f"{name}:{s.st_size}:{s.st_mtime_ns}" for name, s in statuses]
                return "|".join([folder, *parts])
    return "none"


def program(name: str) -> str:
    """Identifies the build of one of LLVM's programs, by the content of the program and of its LLVM
    library. The library's digest (0.1 s for 150 MB) is cached by path, size and time."""
    from fly_common import toolchain

    from fly_store import file_digests

    paths = (toolchain.find_program(name), _library())
    return "|".join(f"{path}:{file_digests.digest_of(path)}" for path in paths if path is not None)


def program_ahead() -> None:
    """Starts to compute the slow parts of later fingerprints in a thread."""
    from fly_store import file_digests

    if (library := _library()) is not None:
        file_digests.digest_ahead(library)


def _library() -> str | None:
    from fly_common import toolchain

    try:
        return toolchain.find_library()
    except MissingError:
        return None


def _folders(package: str) -> list[str]:
    spec = PathFinder.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise MissingError(f"the Python package {package} was not found")
    return list(spec.submodule_search_locations)
