"""Static bounds of integer expressions: an interval that contains the value, and whether the
expression is defined for all values of its leaves.

The interval holds only if the expression is defined (`fly_host.graph` says when it is).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from fly_host.integers import BINARY, HIGHEST, LOWEST


class Bounds(NamedTuple):
    """`low <= value <= high`; `defined` if the expression is defined for all leaves."""

    low: int
    high: int
    defined: bool

    @property
    def constant(self) -> int | None:
        """The value, if there is only one and it is always defined."""
        return self.low if self.defined and self.low == self.high else None


ANY = Bounds(LOWEST, HIGHEST, True)
EXTENT = Bounds(0, HIGHEST, True)
UNKNOWN = Bounds(LOWEST, HIGHEST, False)


def bounds_of(op: str, a: Bounds, b: Bounds) -> Bounds:
    """The bounds of a binary operation on operands with these bounds."""
    low, high, total = _RULES[op](op, a, b)
    fits = low >= LOWEST and high <= HIGHEST
    low, high = max(low, LOWEST), min(high, HIGHEST)
    if low > high:  # it never has a value
        return UNKNOWN
    return Bounds(low, high, a.defined and b.defined and total and fits)


def of_select(condition: Bounds, a: Bounds, b: Bounds) -> Bounds:
    defined = condition.defined and a.defined and b.defined
    return Bounds(min(a.low, b.low), max(a.high, b.high), defined)


# A rule gives the exact bounds, which may lie outside 64 bits, and whether the operation is defined
# on all operands (but for a result that does not fit).
_Exact = tuple[int, int, bool]


def _corners(op: str, a: Bounds, b: Bounds) -> _Exact:
    """For an operation that is monotonic in each operand, the other one held."""
    values = [BINARY[op](x, y) for x in (a.low, a.high) for y in (b.low, b.high)]
    return min(values), max(values), True


def _sub(op: str, a: Bounds, b: Bounds) -> _Exact:
    return a.low - b.high, a.high - b.low, True


def _division(op: str, a: Bounds, b: Bounds) -> _Exact:
    if b.low > 0 or b.high < 0:  # monotonic, for the divisor keeps its sign
        return _corners(op, a, b)
    if b.low == 0 and b.high > 0:
        return *_corners(op, a, b._replace(low=1))[:2], False
    most = max(abs(a.low), abs(a.high))
    return -most, most, False


def _mod(op: str, a: Bounds, b: Bounds) -> _Exact:
    """Python's: the sign is the divisor's."""
    if b.low >= 0:
        most = b.high - 1 if a.low < 0 else min(a.high, b.high - 1)
        return (max(a.low, 0) if a.high < b.low else 0), most, b.low > 0
    return LOWEST, HIGHEST, b.high < 0


def _rem(op: str, a: Bounds, b: Bounds) -> _Exact:
    """C's: the sign is the dividend's, and it is never farther from zero than that."""
    return min(a.low, 0), max(a.high, 0), b.low > 0 or b.high < 0


def _bits(op: str, a: Bounds, b: Bounds) -> _Exact:
    if a.low < 0 or b.low < 0:
        return LOWEST, HIGHEST, True
    if op == "and":
        return 0, min(a.high, b.high), True
    return 0, (1 << max(a.high.bit_length(), b.high.bit_length())) - 1, True


def _shift(op: str, a: Bounds, b: Bounds) -> _Exact:
    if b.low >= 0 and b.high < 64:
        return _corners(op, a, b)
    return LOWEST, HIGHEST, False


def _comparison(op: str, a: Bounds, b: Bounds) -> _Exact:
    apart = a.high < b.low or b.high < a.low
    always, never = {
        "eq": (a.low == a.high == b.low == b.high, apart),
        "ne": (apart, a.low == a.high == b.low == b.high),
        "lt": (a.high < b.low, b.high <= a.low),
        "le": (a.high <= b.low, b.high < a.low),
    }[op]
    return int(always), int(not never), True


_RULES: dict[str, Callable[[str, Bounds, Bounds], _Exact]] = {
    **dict.fromkeys(("add", "mul", "min", "max"), _corners),
    **dict.fromkeys(("floordiv", "ceildiv", "truncdiv"), _division),
    **dict.fromkeys(("and", "or", "xor"), _bits),
    **dict.fromkeys(("shl", "shr"), _shift),
    **dict.fromkeys(("eq", "ne", "lt", "le"), _comparison),
    "sub": _sub,
    "mod": _mod,
    "rem": _rem,
}
