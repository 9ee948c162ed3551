"""`T`: functions that make types of MLIR: `T.f32()`, `T.vector(4, T.f32())`."""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    from fly_dialect import bindings

    return getattr(bindings.module("extras.types"), name)
