"""Functions of `math` and NumPy with dynamic values. They compute while tracing, so they are
refused, with the name of the language's function."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Iterable
from types import BuiltinFunctionType
from typing import Any, NoReturn

from fly_trace.control.calls import call
from fly_trace.core import tracing
from fly_trace.core.tracing import describe
from fly_trace.memory.tensors import Tensor
from fly_trace.values.scalars import Scalar
from fly_trace.values.vector.vector_values import Vector

_KINDS = (Scalar, Vector, Tensor)
# Functions of `math` and NumPy → those of `fx` with other names, or expressions.
_OTHER_NAMES = {
    "absolute": "abs(x)",
    "arccos": "fx.acos",
    "arcsin": "fx.asin",
    "arctan": "fx.atan",
    "arctan2": "fx.atan2",
    "degrees": "x * (180 / math.pi)",
    "fabs": "abs(x)",
    "fmax": "fx.maxnumf",
    "fmin": "fx.minnumf",
    "fmod": "%, which has the sign of the divisor, as in Python",
    "hypot": "fx.sqrt(x * x + y * y)",
    "power": "fx.pow",
    "radians": "x * (math.pi / 180)",
    "rint": "fx.roundeven",
    "square": "x * x",
}


# NumPy's functions that are operators of Python: it computes them on arrays of objects.
_OPERATORS = frozenset(
    (
        *("add", "subtract", "multiply", "divide", "floor_divide", "remainder", "power"),
        *("negative", "positive", "absolute", "invert", "left_shift", "right_shift"),
        *("bitwise_and", "bitwise_or", "bitwise_xor"),
    )
)
_COMPARISONS = frozenset(("less", "less_equal", "greater", "greater_equal", "equal", "not_equal"))


def _refuse(module: str, name: str, given: Any) -> NoReturn:
    from fly_trace import expr

    other = _OTHER_NAMES.get(name)
    if other is None and name in (*dir(expr.math), *expr.__all__):
        other = f"fx.{name}"
    tracing.refuse(
        f"{module}.{name} computes while the kernel is traced, and not with {describe(given)}",
        other and f"use {other}",
    )


def array_ufunc(self: Any, ufunc: Any, method: str, *inputs: Any, **named: Any) -> Any:
    """`__array_ufunc__`: what NumPy calls for `ufunc(*inputs)`, of which one is `self`."""
    import numpy as np

    name = ufunc.__name__
    if name in _COMPARISONS:
        named.setdefault("dtype", object)  # the results are no bools of Python's
    elif name not in _OPERATORS:
        _refuse("np", name, self)
    if isinstance(self, Tensor) or method != "__call__":
        _refuse("np", name, self)

    def as_array(value: Any) -> Any:
        if isinstance(value, (np.ndarray, np.generic)):
            return value
        made = np.empty((), dtype=object)
        made[()] = value
        return made

    return ufunc(*map(as_array, inputs), **named)


def _of_math(function: Callable[..., Any]) -> Callable[..., Any]:
    def traced(*given: Any, **named: Any) -> Any:
        for value in given:
            items = value if isinstance(value, (list, tuple)) else (value,)
            for item in items:
                if isinstance(item, _KINDS):
                    _refuse("math", function.__name__, item)
        return function(*given, **named)

    return traced


def _product(items: Iterable[Any], /, *, start: Any = 1) -> Any:
    """`math.prod`, which only multiplies."""
    return functools.reduce(operator.mul, items, start)


call.TRACED.update(
    {
        function: _of_math(function)
        for function in vars(math).values()
        if type(function) is BuiltinFunctionType
    }
)
call.TRACED[math.prod] = _product
for _kind in _KINDS:
    _kind.__array_ufunc__ = array_ufunc  # type: ignore[attr-defined]
