"""What identifies this version of the tracer for a cache key."""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
from pathlib import Path


@functools.cache
def fingerprint() -> str:
    """The hash of the sources that shape the module's text, and the bindings' version. MLIR is not
    imported."""
    import fly_common
    import fly_dialect

    digest = hashlib.sha256()
    for folder in (Path(__file__).parent, *map(_folder, (fly_dialect, fly_common))):
        for path in sorted(folder.rglob("*.py")):
            digest.update(f"{path.relative_to(folder.parent)}\0".encode())
            digest.update(path.read_bytes())
    digest.update(_bindings().encode())
    return digest.hexdigest()


def _folder(package: object) -> Path:
    return Path(package.__file__).parent  # type: ignore[attr-defined]


def _bindings() -> str:
    """The version of whichever package carries MLIR's bindings, in the order of preference."""
    for name in ("mlir-python-bindings", "torch-mlir"):
        try:
            return f"{name} {importlib.metadata.version(name)}"
        except importlib.metadata.PackageNotFoundError:
            continue
    return "unknown"
