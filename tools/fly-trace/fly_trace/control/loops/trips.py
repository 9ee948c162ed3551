"""The iterations of `range` with dynamic bounds: the parameters of scf.for."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from fly_common.record import record

from fly_trace.control.branches import dynamic
from fly_trace.control.calls import call
from fly_trace.core import tracing
from fly_trace.core.tracing import describe
from fly_trace.values import integer_ops
from fly_trace.values.arithmetic import compare
from fly_trace.values.conversion import convert
from fly_trace.values.dtypes import DType
from fly_trace.values.functions.math_functions import meet
from fly_trace.values.promotion import default, promote
from fly_trace.values.scalars import Scalar
from fly_trace.values.value_ranges import Interval, interval

if TYPE_CHECKING:
    from fly_trace.session.builder import Builder


def static(value: Any) -> Any:
    """A number that is known while tracing as Python's."""
    return value.number if isinstance(value, Scalar) and value.number is not None else value


@record
class Bounds:
    """The arguments of `range`. `backward`: of `reversed(range(…))`."""

    start: Any
    stop: Any
    step: Any
    backward: bool = False


def reversed_range(*arguments: Any) -> Iterator[int]:
    """`reversed(range(…))`, which loops know by this function."""
    return reversed(range(*arguments))


RANGES = (range, reversed_range)


def ranged(reversing: Any, range_: Any) -> Callable[..., Any]:
    """What a loop over `reversed(range(…))` iterates with the arguments of `range`."""
    if reversing is reversed and range_ is range:
        return reversed_range
    return lambda *arguments: call.call(reversing, range_(*arguments))


def bounds_of(range_: Any, arguments: tuple[Any, ...]) -> Bounds:
    """The bounds of a loop over `range_`, which is one of RANGES."""
    if not 1 <= len(arguments) <= 3:
        raise TypeError(f"range expected 1 to 3 arguments, got {len(arguments)}")
    for argument in arguments:
        ok = (
            argument.dtype.is_integer
            if isinstance(argument, Scalar)
            else hasattr(argument, "__index__")
        )
        if not ok:
            tracing.refuse(f"range takes integers, not {describe(argument)}")
    given = [
        argument if isinstance(argument, Scalar) else operator.index(argument)
        for argument in arguments
    ]
    start, stop = (0, given[0]) if len(given) == 1 else given[:2]
    step = given[2] if len(given) == 3 else 1
    if not dynamic(step) and static(step) == 0:
        raise ValueError("range() arg 3 must not be zero")
    return Bounds(start, stop, step, range_ is reversed_range)


def loop_type(bounds: Bounds) -> DType:
    """The loop variable's type: the promotion of the bounds. A static step only has to fit."""
    start, stop, step = bounds.start, bounds.stop, bounds.step
    if isinstance(step, Scalar):
        return meet("range", start, stop, step)
    if isinstance(start, Scalar) or isinstance(stop, Scalar):
        return meet("range", start, stop)
    return promote(default(start), default(stop))


@record
class Trips:
    """The parameters of scf.for: bounds and step, whether it compares them as unsigned, and the
    function from its counter to the loop variable."""

    lower: Any
    upper: Any
    step: Any
    unsigned: bool
    item: Callable[[Any], Any] = lambda counter: counter


def trips_of(builder: Builder, bounds: Bounds, dtype: DType) -> Trips:
    """Computes the parameters of scf.for for a range.

    scf.for adds the step once more after the last iteration, and this must not overflow. If it
    could, a loop over non-negative numbers uses unsigned comparison, which has enough range. Other
    loops count iterations, and compute the variable from the count, as those do that run backward.
    """
    start, stop, step = bounds.start, bounds.stop, bounds.step

    def ssa(value: Any) -> Any:
        return builder.ssa(convert(value, dtype))

    first, end = ssa(start), ssa(stop)
    size = static(step)
    if not dynamic(step) and size > 0 and not bounds.backward:
        plain = Trips(first, end, ssa(size), unsigned=not dtype.is_signed)
        if size == 1 or dtype.bits == 64:  # with 64 bits, the program guarantees that the sum fits
            return plain
        ends = _numbers(builder, stop, end, dtype)
        if ends[1] + size - 1 <= dtype.range[1]:
            return plain
        if dtype.is_signed and _numbers(builder, start, first, dtype)[0] >= 0:
            if ends[0] < 0:
                end = builder.one("arith.maxsi", dtype.ir, end, builder.constant(0, dtype))
            return Trips(first, end, plain.step, unsigned=True)

    def make(name: str, *operands: Any) -> Any:
        return builder.one(f"arith.{name}", dtype.ir, *operands)

    zero, one = builder.constant(0, dtype), builder.constant(1, dtype)
    up = builder.ssa(compare(builder, "lt", Scalar(dtype, first), Scalar(dtype, end)))
    down = builder.ssa(compare(builder, "lt", Scalar(dtype, end), Scalar(dtype, first)))
    if dynamic(step):
        by = ssa(step)
        is_forward = compare(builder, "gt", Scalar(dtype, by), Scalar(dtype, zero))
        forward = builder.ssa(is_forward)
        runs = builder.one("arith.select", "i1", forward, up, down)
        # Python raises an error for a step of zero; here the loop does not run.
        moves = integer_ops.test(builder, 1, by, zero)
        runs = builder.one("arith.andi", "i1", runs, moves)
        span = make("select", forward, make("subi", end, first), make("subi", first, end))
        pace = make("maxui", make("select", forward, by, make("subi", zero, by)), one)
    else:
        runs = up if size > 0 else down
        ends = (end, first) if size > 0 else (first, end)
        span, pace = make("subi", *ends), builder.constant(abs(size), dtype)
        by = builder.constant(
            size if dtype.is_signed or size > 0 else size + dtype.range[1] + 1, dtype
        )
    count = make("addi", make("divui", make("subi", span, one), pace), one)
    count = make("select", runs, count, zero)

    def item(counter: Any) -> Any:
        if bounds.backward:
            counter = make("subi", make("subi", count, one), counter)
        return make("addi", first, make("muli", counter, by))

    return Trips(zero, count, one, unsigned=True, item=item)


def _numbers(builder: Builder, bound: Any, ssa: Any, dtype: DType) -> Interval:
    """The interval of a bound with the SSA value `ssa`."""
    if not dynamic(bound):
        return static(bound), static(bound)
    found = interval(builder, ssa)
    return found if dtype.is_signed or found[0] >= 0 else dtype.range
