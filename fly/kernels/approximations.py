"""Functions of f32 by the target's own instructions, which round less well than IEEE 754 asks for:
their errors are 1 to 2 ulp, and subnormal results may be 0. Those of f64 are exact."""

from __future__ import annotations

from typing import Any

import fly.expr as fx

LOG2_E = 1.4426950408889634


def exp2(x: Any) -> Any:
    """2^x."""
    return fx.exp2(x, fastmath=_flags(x))


def exp(x: Any) -> Any:
    """e^x, of f32 by 2^x."""
    return exp2(x * LOG2_E) if x.dtype is fx.Float32 else fx.exp(x)


def log2(x: Any) -> Any:
    """The logarithm of x to base 2."""
    return fx.log2(x, fastmath=_flags(x))


def reciprocal(x: Any) -> Any:
    """1 / x."""
    if x.dtype is not fx.Float32:
        return 1 / x
    with fx.fastmath("afn"):
        return 1 / x


def rsqrt(x: Any) -> Any:
    """1 / sqrt(x)."""
    return fx.rsqrt(x, fastmath=_flags(x))


def _flags(x: Any) -> str | None:
    return "afn" if x.dtype is fx.Float32 else None
