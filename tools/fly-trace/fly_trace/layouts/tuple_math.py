"""Arithmetic and structure of integer tuples. `get_`, `select` and similar functions also accept
layouts and tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fly_trace.core import tracing
from fly_trace.core.dialect_value import DialectValue, apply
from fly_trace.core.tracing import describe
from fly_trace.layouts.coord_tensors import CoordTensor, along
from fly_trace.layouts.int_tuples import IntTuple, int_tuple
from fly_trace.values.dtypes import BOOL
from fly_trace.values.scalars import Scalar

__all__ = [
    "append",
    "ceil_div",
    "dice",
    "elem_less",
    "equal",
    "get",
    "get_",
    "group",
    "int_tuple_add",
    "int_tuple_div",
    "int_tuple_mod",
    "int_tuple_mul",
    "int_tuple_product",
    "int_tuple_product_each",
    "int_tuple_product_like",
    "int_tuple_sub",
    "prepend",
    "select",
    "shape_div",
    "slice",
    "take",
]


def _elementwise(name: str, meaning: str) -> Any:
    def function(lhs: Any, rhs: Any) -> Any:
        return apply(name, int_tuple(lhs, f"fx.{name}"), int_tuple(rhs, f"fx.{name}"))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = meaning
    return function


int_tuple_add = _elementwise("int_tuple_add", "lhs + rhs, leaf by leaf.")
int_tuple_sub = _elementwise("int_tuple_sub", "lhs - rhs, leaf by leaf.")
int_tuple_mul = _elementwise("int_tuple_mul", "lhs * rhs, leaf by leaf.")
int_tuple_div = _elementwise("int_tuple_div", "lhs / rhs, leaf by leaf; the quotient truncates.")
int_tuple_mod = _elementwise("int_tuple_mod", "The remainder of int_tuple_div, leaf by leaf.")
int_tuple_product_like = _elementwise(
    "int_tuple_product_like", "The products of lhs's parts that stand where rhs has leaves."
)
shape_div = _elementwise("shape_div", "What remains of the shape lhs when rhs of it is taken away.")
ceil_div = _elementwise("ceil_div", "lhs / rhs rounded up, mode by mode.")


def int_tuple_product(int_tuple: Any) -> Any:
    """The product of all leaves: 24 for (2, (3, 4))."""
    return apply("int_tuple_product", _tuple("int_tuple_product", int_tuple))


def int_tuple_product_each(int_tuple: Any) -> Any:
    """The product of each mode: (6, 4) for ((2, 3), 4)."""
    return apply("int_tuple_product_each", _tuple("int_tuple_product_each", int_tuple))


def _tuple(name: str, value: Any) -> IntTuple:
    return int_tuple(value, f"fx.{name}")


def elem_less(lhs: Any, rhs: Any) -> Scalar:
    """Whether each leaf of lhs is less than that of rhs: (i, j) is inside the shape (M, N). A
    bool."""
    return _test("elem_less", lhs, rhs)


def equal(lhs: Any, rhs: Any) -> Scalar:
    """Whether two tuples are equal, leaf by leaf. A bool."""
    return _test("equal", lhs, rhs)


def _test(name: str, lhs: Any, rhs: Any) -> Scalar:
    operands = _tuple(name, lhs), _tuple(name, rhs)
    builder = tracing.kernel(f"fx.{name}")
    values = [operand.value(builder) for operand in operands]
    try:
        return Scalar(BOOL, builder.fly_op(name, values, {}))
    except ValueError as error:
        tracing.refuse(str(error))


# -- modes -----------------------------------------------------------------------------------------


def shaped(name: str, value: Any) -> DialectValue:
    """Returns a layout or a tensor unchanged, and converts anything else to an int tuple."""
    return value if isinstance(value, DialectValue) else int_tuple(value, f"fx.{name}")


def modes_of(name: str, modes: Any) -> tuple[int, ...]:
    items = tuple(modes) if isinstance(modes, Sequence) else (modes,)
    for item in items:
        if isinstance(item, bool) or not hasattr(type(item), "__index__"):
            tracing.refuse(f"fx.{name} takes the numbers of modes, not {describe(item)}")
    return tuple(int(item) for item in items)


def get_(int_tuple: Any, mode: Any) -> Any:
    """A mode of a tuple, layout or tensor. Several numbers are a path."""
    value, path = shaped("get_", int_tuple), modes_of("get_", mode)
    return along(value, path) if isinstance(value, CoordTensor) else apply("get", value, mode=path)


def get(int_tuple: Any, mode: int) -> Any:
    """One mode of a tuple."""
    return shaped("get", int_tuple)[mode]  # type: ignore[index]


def take(int_tuple: Any, begin: int, end: int) -> Any:
    """The modes from `begin` up to, but not including, `end`."""
    return apply("take", shaped("take", int_tuple), begin=begin, end=end)


def select(int_tuple: Any, indices: Any) -> Any:
    """The modes at `indices`, in that order."""
    return apply("select", shaped("select", int_tuple), indices=modes_of("select", indices))


def group(int_tuple: Any, begin: int, end: int) -> Any:
    """Groups the modes from `begin` up to, but not including, `end` into one nested mode."""
    return apply("group", shaped("group", int_tuple), begin=begin, end=end)


def append(base: Any, elem: Any, *, n: int | None = None) -> Any:
    """Appends `elem` to `base` as a mode, once or until there are `n` modes."""
    return apply("append", shaped("append", base), shaped("append", elem), n=n)


def prepend(base: Any, elem: Any, *, n: int | None = None) -> Any:
    """Prepends `elem` to `base` as a mode, once or until there are `n` modes."""
    return apply("prepend", shaped("prepend", base), shaped("prepend", elem), n=n)


def slice(src: Any, coord: Any) -> Any:
    """The modes where the coordinate is None. For a tensor, a view at the position that its
    integers give; for a layout, the layout of those modes."""
    return apply("slice", shaped("slice", src), _tuple("slice", coord))


def dice(src: Any, coord: Any) -> Any:
    """The modes where the coordinate is not None."""
    return apply("dice", shaped("dice", src), _tuple("dice", coord))
