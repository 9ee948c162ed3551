"""`flydsl.expr.math`: the language's functions. FlyDSL's `math` has no others."""

from __future__ import annotations

from typing import Any

from fly_trace.expr import math as _language
from fly_trace.expr.math import *  # noqa: F403

__all__ = list(_language.__all__)


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    from fly.flydsl._mlir.dialects import math

    return getattr(math, name)
