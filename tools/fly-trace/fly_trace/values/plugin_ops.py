"""Builders of the ops of plugins' dialects, for the functions that kernels see as `fx.NAME.…`.

    from fly_trace.values.plugin_ops import build

    def scale(x, *, by):
        \"\"\"x times `by`.\"\"\"
        return build("hello.scale", x, by=by)

The op's rule (`fly_dialect.op_info.OpInfo.infer`) gives the type of the result. A number, a vector
and a value of the dialects are operands; Python's numbers are not, because they have no type. Types
of the plugin's own have values of a class that is registered with `values_of`.
"""

from __future__ import annotations

from typing import Any

from fly_trace.core import tracing
from fly_trace.core.dialect_value import DialectValue, values_of, wrap
from fly_trace.core.tracing import describe
from fly_trace.values.dtypes import EVERY, DType
from fly_trace.values.scalars import Scalar
from fly_trace.values.vector.vector_values import Vector

__all__ = ["DialectValue", "build", "values_of"]


def build(name: str, *operands: Any, **attributes: Any) -> Any:
    """Builds the op `name` of a plugin's dialect and returns the language's value of its result;
    None if it has none. Attributes are integers, tuples of integers, or strings. Operands that the
    op does not take are refused at the user's line."""
    from fly_dialect.op_table import find

    what = f"fx.{name}"
    builder = tracing.kernel(what)
    if find(name) is None:
        tracing.refuse(f"{what}: no active plugin defines this operation")
    values = [_value(builder, what, operand) for operand in operands]
    try:
        made = builder.fly_op(name, values, attributes)
    except ValueError as error:
        tracing.refuse(str(error))
    if made is None:
        return None
    return _wrapped(made, operands)


def _value(builder: Any, what: str, operand: Any) -> Any:
    if isinstance(operand, Scalar):
        return builder.ssa(operand)
    if isinstance(operand, Vector):
        return operand.value
    if isinstance(operand, DialectValue):
        return operand.value(builder)
    tracing.refuse(
        f"{what} takes typed values, not {describe(operand)}", "write fx.Float32(2), for example"
    )


def _wrapped(value: Any, operands: tuple[Any, ...]) -> Any:
    """Returns the language's value of an SSA value. MLIR's types don't say whether an integer is
    signed, nor a vector's shape: both are those of the first operand that fits."""
    from fly_dialect.dialect import spec_of

    spec = spec_of(value.type)
    if not isinstance(spec, str):
        origin = next((one for one in operands if isinstance(one, DialectValue)), None)
        return wrap(spec, value, origin)
    if not spec.startswith("vector<"):
        return Scalar(_dtype(spec, operands), value)
    count, _, element = spec.removeprefix("vector<").removesuffix(">").partition("x")
    vectors = (one for one in operands if isinstance(one, Vector) and one.numel == int(count))
    shape = next((one.shape for one in vectors), int(count))
    return Vector(value, shape, _dtype(element, operands))


def _dtype(text: str, operands: tuple[Any, ...]) -> DType:
    known = (one.dtype for one in operands if isinstance(one, (Scalar, Vector)))
    return next(one for one in (*known, *EVERY.values()) if one.ir == text)
