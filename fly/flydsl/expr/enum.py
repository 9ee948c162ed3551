"""`flydsl.expr.enum`: names of the language."""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    from fly.flydsl import expr

    return getattr(expr, name)
