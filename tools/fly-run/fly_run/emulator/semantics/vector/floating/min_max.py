"""Vector minimum, maximum and median of floats (CDNA3 ISA manual, V_MIN_F32 and similar; RDNA4 ISA
manual, V_MINIMUM_F32). -0 is less than +0."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from fly_run.emulator.irgen import Value
from fly_run.emulator.semantics.base.emit import Lanes
from fly_run.emulator.semantics.base.operation import Operation, rows, valu
from fly_run.emulator.semantics.vector.floating.float import (
    SHORT,
    Body,
    integer,
    is_nan,
    is_signaling,
    order,
    quieted,
)


def operations() -> Iterator[Operation]:
    for element, short in SHORT.items():
        two, three = (f"{element} = {', '.join([element] * count)}" for count in (2, 3))
        options: dict[str, Any] = {"chunk": 16, "keeps_high": element == "half"}
        if element == "half":
            options["kinds"] = rows(3)
        for name in ("min", "max"):
            yield valu(f"v_{name}_{short}", two, of_two(picking(name)), chunk=16)
            if element != "double":
                body = of_three(picking(name), picking(name))
                yield valu(f"v_{name}3_{short}", three, body, **options)
            if element == "float":  # gfx950
                body = of_three(propagating(name), propagating(name))
                yield valu(f"v_{name}imum3_f32", three, body, **options)
        if element != "double":
            yield valu(f"v_med3_{short}", three, _median, **options)


class Number(NamedTuple):
    """A source of minimum and maximum: quiet, and flushed if MODE says so (f16 by separate steps).
    `signaling` tells whether it was; None for the result of an operation, which never is."""

    value: Value
    nan: Value
    signaling: Value | None

    @staticmethod
    def read(k: Lanes, source: Value) -> Number:
        nan, signaling = is_nan(source), is_signaling(source)
        if source.element == "half":
            return Number(nan.select(quieted(source), source), nan, signaling)
        return Number(k.handler.intrinsic("llvm.canonicalize", source), nan, signaling)

    @staticmethod
    def made(value: Value) -> Number:
        if value.element != "half":
            return Number(value, value.is_nan(), None)
        return Number(value, (integer(value) & 0x7E00).compare("eq", 0x7E00), None)

    @staticmethod
    def plain(k: Lanes, source: Value) -> Number:
        """Reads a source that is never the result if it is NaN."""
        return (
            Number(source, is_nan(source), None)
            if source.element == "half"
            else Number.read(k, source)
        )


Step = Callable[[Lanes, Number, Number], Value]


def _ordered(name: str, a: Value, b: Value) -> Value:
    """Returns the smaller or larger of two values that are not NaN."""
    chosen = a.function.intrinsic(f"llvm.s{name}", order(a), order(b))
    # `order` is its own inverse.
    return order(chosen.bits(a.element)).bits(a.element)


def picking(name: str) -> Step:
    """v_min, v_max: prefers a number to NaN. With MODE.IEEE a signaling NaN is the result, quieted
    (ISA manual, V_MIN_F32)."""

    def run(k: Lanes, a: Number, b: Number) -> Value:
        result = b.nan.select(a.value, _ordered(name, a.value, b.value))
        result = a.nan.select(b.value, result)
        ieee = k.ieee().splat(k.chunk)
        for one in (b, a):
            if one.signaling is not None:
                result = (one.signaling & ieee).select(one.value, result)
        return result

    return run


def choosing(name: str) -> Step:
    """v_min_num, v_max_num of gfx12, which has no MODE.IEEE: prefers a number to NaN. Of two NaNs
    the second is the result."""

    def run(k: Lanes, a: Number, b: Number) -> Value:
        result = b.nan.select(a.value, _ordered(name, a.value, b.value))
        return a.nan.select(b.value, result)

    return run


def propagating(name: str) -> Step:
    """v_minimum, v_maximum of IEEE 754-2019: a NaN is the result, quieted. MODE.IEEE has no
    effect."""

    def run(k: Lanes, a: Number, b: Number) -> Value:
        result = b.nan.select(b.value, _ordered(name, a.value, b.value))
        return a.nan.select(a.value, result)

    return run


def of_two(step: Step) -> Body:
    return lambda k, a, b: step(k, Number.read(k, a), Number.read(k, b))


def two_numbers(step: Step) -> Body:
    """Like `of_two`, for `choosing`."""
    return lambda k, a, b: step(k, Number.plain(k, a), Number.read(k, b))


def three_numbers(first: Step, second: Step) -> Body:
    """Like `of_three`, for `choosing`."""

    def run(k: Lanes, a: Value, b: Value, c: Value) -> Value:
        so_far = first(k, Number.plain(k, a), Number.read(k, b))
        return second(k, Number.made(so_far), Number.read(k, c))

    return run


def of_three(first: Step, second: Step) -> Body:
    """Combines the first two, then that with the third."""

    def run(k: Lanes, a: Value, b: Value, c: Value) -> Value:
        so_far = first(k, Number.read(k, a), Number.read(k, b))
        return second(k, Number.made(so_far), Number.read(k, c))

    return run


def _median(k: Lanes, *sources: Value) -> Value:
    """v_med3: the middle one; if any is NaN, the minimum of all three."""
    numbers = [Number.read(k, source) for source in sources]
    a, b, c = (number.value for number in numbers)
    large = _ordered("min", _ordered("max", a, b), c)
    middle = _ordered("max", _ordered("min", a, b), large)
    low = picking("min")
    lowest = low(k, Number.made(low(k, *numbers[:2])), numbers[2])
    any_nan = numbers[0].nan | numbers[1].nan | numbers[2].nan
    return any_nan.select(lowest, middle)
