"""`flydsl.expr.vector`: the dialect `vector`, with values of the language."""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    from fly.flydsl._mlir.dialects import vector

    return getattr(vector, name)
