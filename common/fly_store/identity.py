"""Identifies code for cache keys: Python's sources, without importing them, LLVM's programs and
MLIR's bindings."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Iterator
from hashlib import sha256
from importlib.machinery import PathFinder

from fly_common.errors import MissingError

# The packages that tools share, except the dialect: the dependencies of stages without MLIR.
SHARED = (
    *("fly_backend", "fly_common", "fly_host", "fly_image", "fly_numerics", "fly_plugin"),
    *("fly_store", "fly_target"),
)
# The packages of this project. Each stage's fingerprint has those that it uses.
OWN = frozenset(
    (
        *SHARED,
        *("fly", "fly_cpu", "fly_dialect", "fly_draw"),
        *("fly_link", "fly_llc", "fly_opt", "fly_run", "fly_trace"),
    )
)
BINDINGS = ("mlir", "torch_mlir")  # in the order in which fly_dialect.bindings tries them


@functools.cache
def sources(*packages: str) -> str:
    """Returns a digest of the Python sources of packages, by content.

    It is computed once per process, because the running code is that which was imported.
    """
    return sha256("".join(map(_sources, packages)).encode()).hexdigest()


@functools.cache
def _sources(package: str) -> str:
    """The digest of a package. It is kept in the store while each file's path, inode, size and time
    are unchanged, so that a start reads none of them."""
    from fly_store import file_digests
    from fly_store.store import Store, default_store, key_of

    name, *inner = package.split(".")
    roots = [os.path.join(root, *inner) for root in _folders(name)]
    files = [(path, path[len(root) :]) for root in roots for path in _files(root)]
    stamps = [file_digests.stamp_of(path) for path, _ in files]

    def digest() -> bytes:
        total = sha256(package.encode())
        for path, name in files:
            with open(path, "rb") as file:
                total.update(name.encode() + b"\0" + sha256(file.read()).digest())
        return total.hexdigest().encode()

    if not all(map(file_digests.is_settled, stamps)):
        return digest().decode()
    key = key_of(f"digest of the package {package}", repr(stamps).encode())
    return Store(default_store().folder).obtain(key, digest, label="digest").decode()


def _files(folder: str) -> Iterator[str]:
    """The Python sources below a folder, in the order of their names, folders last."""
    with os.scandir(folder) as found:
        entries = sorted(found, key=lambda entry: entry.name)
    for entry in entries:
        if entry.name.endswith(".py") and entry.is_file():
            yield entry.path
    for entry in entries:
        if entry.name != "__pycache__" and entry.is_dir():
            yield from _files(entry.path)


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
    """Identifies the build of one of LLVM's programs, by the program and its LLVM library: their
    build IDs with sizes and times, or their content. Without a build ID the library's digest takes
    0.1 s for 150 MB, and is cached by path, size and time."""
    from fly_common.programs import toolchain

    from fly_store import file_digests

    paths = (toolchain.find_program(name), _library())
    return "|".join(f"{path}:{file_digests.build_of(path)}" for path in paths if path is not None)


def program_ahead() -> None:
    """Starts to compute the slow parts of later fingerprints in a thread."""
    from fly_store import file_digests

    if (library := _library()) is not None:
        file_digests.build_ahead(library)


def _library() -> str | None:
    from fly_common.programs import toolchain

    try:
        return toolchain.find_library()
    except MissingError:
        return None


def _folders(package: str) -> list[str]:
    spec = PathFinder.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise MissingError(f"the Python package {package} was not found")
    return list(spec.submodule_search_locations)
