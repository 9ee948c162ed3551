"""What a result of this stage depends on besides its input, for the content store's key."""

from __future__ import annotations

import hashlib
import re

from fly_common.errors import MissingError
from fly_store import identity
from fly_target import registry

from fly_opt.lowering import interface
from fly_opt.pipeline.options import Options


def fingerprint(options: Options) -> str:
    """Returns a digest of the options, this compiler's sources, the MLIR bindings and the device
    libraries. Does not import MLIR, so that a warm cache hit does not pay for it."""
    parts = [
        repr(options),
        identity.sources("fly_opt", "fly_dialect", *identity.SHARED),
        identity.bindings(),
        *(lowering.identity() for lowering in _lowerings(options)),
        _linker(),
        *_rows(options),
    ]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _targets(options: Options) -> list[str]:
    """Returns the names of the targets that the options mention."""
    named = {options.target, *re.findall(r"\b(?:chip|arch)=([\w.-]+)", options.passes or "")}
    return sorted(name for name in named if name is not None)


def _lowerings(options: Options) -> tuple[interface.Lowering, ...]:
    """Returns the lowerings that can be used: those of the targets, or all if none is known."""
    rows = [registry.get(name) for name in _targets(options)]
    if not rows or None in rows or "backend=" in (options.passes or ""):
        return interface.loaded()
    names = dict.fromkeys(options.backend or row.backend for row in rows if row is not None)
    return tuple(map(interface.of_backend, names))


def _rows(options: Options) -> list[str]:
    """Returns the rows of targets from other packages; the built-in ones are among the sources."""
    return [repr(registry.get(name)) for name in _targets(options) if name not in registry.BUILT_IN]


def _linker() -> str:
    try:
        return identity.program("llvm-link")
    except MissingError:
        return "none"
