"""`flydsl.expr.math`: the language's functions, which take values of MLIR too. FlyDSL's `math` has
no others."""

from __future__ import annotations

import functools
from typing import Any

from fly_trace.expr import math as _language

from fly.flydsl.numbers.classes import flags
from fly.flydsl.numbers.raw import RawScalar, RawVector, lift, raw_scalar

__all__ = list(_language.__all__)


def _taking_values(function: Any) -> Any:
    """The function for values of MLIR: it gives one if it gets nothing else."""

    @functools.wraps(function)
    def called(*operands: Any, fastmath: Any = None, **named: Any) -> Any:
        given = [lift(one) for one in operands]
        if fastmath is not None:
            named["fastmath"] = flags(fastmath)
        found = function(*given, **named)
        is_raw = all(isinstance(one, (RawScalar, RawVector)) for one in given)
        return _raw(found) if is_raw and given else found

    return called


def _raw(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_raw, value))
    made = getattr(value, "ssa", None)
    if made is None:
        return value
    if hasattr(value, "shape"):
        return RawVector(made, value.shape, value.dtype)
    return raw_scalar(value.dtype, made)


globals().update({name: _taking_values(getattr(_language, name)) for name in __all__})


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    from fly.flydsl._mlir.dialects import math

    return getattr(math, name)
