"""Asserts of what kernels often get wrong: fx.assert_finite, assert_in_bounds, assert_uniform.

They are asserts (docs/language.md, "Asserts and printed lines") with messages that show the values:
of all failures that of the lowest block and thread is reported, at the caller's line, and
`asserts=False` leaves them out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fly_trace.control.carried import trees
from fly_trace.control.runtime import assert_
from fly_trace.core import tracing
from fly_trace.core.tracing import describe
from fly_trace.gpu import lane_moves
from fly_trace.memory.tensors import Tensor
from fly_trace.values.conversion import bitcast, convert, integer
from fly_trace.values.dtypes import I64, U16, U32, U64
from fly_trace.values.functions.math_functions import BY_NAME, where
from fly_trace.values.scalars import Scalar
from fly_trace.values.vector.vector_values import Vector

__all__ = ["assert_finite", "assert_in_bounds", "assert_uniform"]

_WORDS = {16: U16, 32: U32, 64: U64}
_is_finite = BY_NAME["isfinite"]
Message = str | Callable[[], Any] | None


def assert_finite(value: Any, message: Message = None) -> None:
    """Fails the launch if a number is infinite or NaN.

    value: a float, a vector of them, or a tuple, dictionary or object of these. message: by default
    it shows the first such number; a function without arguments may return an f-string that shows
    dynamic values. Cost: one comparison and, for all but the first, one select for each number, and
    a branch for each vector.
    """
    what = "fx.assert_finite"
    tracing.kernel(what)
    for leaf in trees.leaves(value, f"the value of {what}"):
        if not leaf.dtype.is_float:
            tracing.refuse(f"{what} takes floats, not {describe(leaf)}")
        numbers = list(leaf) if isinstance(leaf, Vector) else [leaf]
        shown = numbers[-1]
        for number in reversed(numbers[:-1]):
            shown = where(_is_finite(number), shown, number)
        assert_(_is_finite(shown), _message(message, lambda shown=shown: f"{shown} is not finite"))


def assert_in_bounds(index: Any, extents: Any, message: Message = None) -> None:
    """Fails the launch if an index is negative or not less than its extent.

    index: an integer, or a tuple with one for each mode; None leaves a mode out. extents: a tensor,
    whose extents are meant, an integer, or a tuple of integers. One integer for several modes is
    compared with their product, as tensors take it. message: as of `assert_finite`; by default it
    shows the index and the extent. Cost: two comparisons and a branch for each mode.
    """
    what = "fx.assert_in_bounds"
    tracing.kernel(what)
    name = f" of {extents.name}" if isinstance(extents, Tensor) else ""
    found = extents.shape if isinstance(extents, Tensor) else extents
    if isinstance(found, (Scalar, int)):
        found = (found,)
    limits = [found[mode] for mode in range(len(found))]
    indices = list(index) if isinstance(index, (tuple, list)) else [index]
    if len(indices) == 1 and len(limits) > 1:
        product: Any = 1
        for limit in limits:
            product = product * limit
        limits = [product]
    if len(indices) != len(limits):
        tracing.refuse(f"{what}: {len(indices)} indices are compared with {len(limits)} extents")
    for mode, (one, limit) in enumerate(zip(indices, limits, strict=True)):
        if one is None:
            continue
        at = integer(one, f"an index of {what}", I64)
        most = integer(limit, f"an extent of {what}", I64)
        if at.dtype is not most.dtype or not at.dtype.is_signed:
            at, most = convert(at, I64), convert(most, I64)
        which = f"index {mode}" if len(limits) > 1 else "index"

        def text(at: Any = at, most: Any = most, which: str = which) -> str:
            return f"{which}{name} is {at}, and the extent is {most}"

        inside = (at >= 0) & (at < most)
        assert_(inside, _message(message, text))


def assert_uniform(value: Any, message: Message = None) -> None:
    """Fails the launch if a lane has another value than lane 0 of its wave, bit by bit.

    value: a number of 8 to 64 bits, a vector, or a tuple, dictionary or object of them. All lanes
    of the wave come to it together. message: as of `assert_finite`; by default it shows both
    values. Cost: one read of lane 0 and one comparison for each 32 bits, and a branch for each
    number.
    """
    what = "fx.assert_uniform"
    tracing.kernel(what)
    for number in trees.scalars(value, f"the value of {what}"):
        first = lane_moves.of_lane(number, 0)

        def text(number: Any = number, first: Any = first) -> str:
            return f"{number} differs from {first} of lane 0"

        assert_(_bits(number) == _bits(first), _message(message, text))


def _bits(number: Scalar) -> Scalar:
    """What is compared: a NaN equals itself, and 0.0 is not -0.0."""
    dtype = number.dtype
    return bitcast(number, _WORDS[dtype.bits]) if dtype.is_float else number


def _message(given: Message, default: Callable[[], str]) -> Callable[[], Any]:
    if given is None:
        return default
    return given if callable(given) else lambda: given
