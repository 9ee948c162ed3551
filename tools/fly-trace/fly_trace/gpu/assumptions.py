"""fx.assume: facts about an integer that the compiler cannot derive."""

from __future__ import annotations

from math import lcm
from typing import TYPE_CHECKING, Any

from fly_dialect.layouts.integers import Int

from fly_trace.core import tracing
from fly_trace.core.tracing import describe
from fly_trace.gpu.immediates import number
from fly_trace.layouts.int_tuples import IntTuple
from fly_trace.values import integer_ops
from fly_trace.values.conversion import convert
from fly_trace.values.dtypes import I32, I64
from fly_trace.values.scalars import Scalar
from fly_trace.values.value_ranges import promise

if TYPE_CHECKING:
    from fly_trace.session.builder import Builder

__all__ = ["assume"]

_SIGNED_LESS_EQUAL, _UNSIGNED_LESS_EQUAL = 3, 7  # arith's CmpIPredicate


def assume(
    src: Any, divby: int | None = None, *, least: int | None = None, most: int | None = None
) -> Any:
    """Returns the integer `src`, with the assumption that `divby` divides it and that it is in the
    range from `least` to `most`. Layouts made from it use the divisor; LLVM uses all of it. A false
    assumption is undefined behavior. For a static number it is checked."""
    what = "fx.assume"
    divisor = 1 if divby is None else number(divby, f"divby of {what}", 2**31 - 1)
    if divisor == 0:
        tracing.refuse(f"divby of {what} must be at least 1, not 0")
    for limit in (least, most):
        if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int)):
            tracing.refuse(f"a bound of {what} must be a Python int, not {describe(limit)}")
    if isinstance(src, IntTuple):
        src = src.unpack()
    known = src.number if isinstance(src, Scalar) else src
    if isinstance(known, int) and not isinstance(known, bool):
        _check(known, divisor, least, most)
        return src
    if not isinstance(src, Scalar) or not src.dtype.is_integer:
        tracing.refuse(f"{what} takes an integer, not {describe(src)}")
    builder = tracing.current(what)
    if not builder.host:
        for condition in _conditions(builder, src, divisor, least, most):
            attributes = {"op_bundle_sizes": builder.attribute("array<i32>")}
            builder.op("llvm.intr.assume", [], [condition], attributes)
        if src.dtype.is_signed and builder.region == 0:  # in a branch it only holds there
            promise(builder, src.value, least, most)
    if src.leaf is not None:
        leaf = Int(None, src.leaf.width, lcm(src.leaf.divisibility, divisor))
        return Scalar(src.dtype, src.value, leaf=leaf)
    if src.dtype not in (I32, I64):
        return src  # a layout would hold a different integer, without the assumption
    return Scalar(src.dtype, src.value, leaf=Int(None, src.dtype.bits, divisor))


def _check(known: int, divisor: int, least: int | None, most: int | None) -> None:
    if known % divisor:
        tracing.refuse(f"fx.assume: {divisor} does not divide {known}")
    if least is not None and known < least:
        tracing.refuse(f"fx.assume: {known} is less than {least}")
    if most is not None and known > most:
        tracing.refuse(f"fx.assume: {known} is more than {most}")


def _conditions(
    builder: Builder, src: Scalar, divisor: int, least: int | None, most: int | None
) -> list[Any]:
    """The assumptions as i1 values."""
    dtype, value = src.dtype, builder.ssa(src)
    unsigned = dtype.kind == "uint"
    compare = _UNSIGNED_LESS_EQUAL if unsigned else _SIGNED_LESS_EQUAL

    def constant(limit: int) -> Any:
        return builder.ssa(convert(limit, dtype))

    found = []
    if divisor > 1:
        name = "arith.remui" if unsigned else "arith.remsi"
        rest = builder.one(name, dtype.ir, value, constant(divisor))
        found.append(integer_ops.test(builder, 0, rest, constant(0)))
    if least is not None:
        found.append(integer_ops.test(builder, compare, constant(least), value))
    if most is not None:
        found.append(integer_ops.test(builder, compare, value, constant(most)))
    return found
