"""The leaves of integer tuples: integers and their types, and basis strides.

    Int(4)                       printed 4            static
    Int(None)                    printed ?            dynamic, 32 bits
    Int(None, 64, 16)            printed ?{i64 div=16}
    Basis(Int(48), (1,))         printed 48E1         48 steps along coordinate 1

Integers are Python's, so they never overflow: the size of (65536,65536) is 4294967296.

`Integer` is the interface that the algebra requires of a leaf. `Int` implements it by computing
what is known of a result, which is the result's *type*. A pass implements it with leaves that carry
an SSA value and build code.
"""

from __future__ import annotations

from math import gcd
from typing import Any, Protocol

from fly_common.record import record

from fly_dialect.layouts.swizzle import CoordSwizzle, Swizzle

INT32_MAX = 2**31 - 1


class Integer(Protocol):
    """A leaf that is an integer. Both operands of a method are leaves of the same class."""

    @property
    def type(self) -> Int:
        """What is known of its value."""
        ...

    def constant(self, value: Int) -> Any:
        """A leaf of this class with the static value `value`."""
        ...

    def __add__(self, other: Any) -> Any: ...
    def __sub__(self, other: Any) -> Any: ...
    def __mul__(self, other: Any) -> Any: ...
    def __floordiv__(self, other: Any) -> Any: ...
    def __mod__(self, other: Any) -> Any: ...
    def ceildiv(self, other: Any) -> Any: ...
    def minimum(self, other: Any) -> Any: ...
    def widened(self) -> Any: ...

    def swizzled(self, swizzle: Swizzle) -> Any:
        """This offset, permuted."""
        ...

    def coord_swizzled(self, row: Any, swizzle: CoordSwizzle) -> Any:
        """This column, permuted with `row`."""
        ...

    # Booleans are integers: 1 or 0.
    def less(self, other: Any) -> Any: ...
    def equals(self, other: Any) -> Any: ...
    def both(self, other: Any) -> Any: ...


@record
class Int:
    """An integer of a shape, stride or coordinate: its value, or what is known of it.

    `value` is None if it is dynamic. `width` is 32 or 64 bits; a static value has the narrower one
    that fits. A dynamic value is a multiple of `divisibility`.
    """

    value: int | None
    width: int = 32
    divisibility: int = 1

    # Written out, because the algebra makes more of these than of all other records together.
    def __init__(self, value: int | None, width: int = 32, divisibility: int = 1) -> None:
        if value is not None:
            width = 32 if -INT32_MAX - 1 <= value <= INT32_MAX else 64
            divisibility = 1
        elif width not in (32, 64):
            raise ValueError(f"an integer of a layout must have 32 or 64 bits, not {width}")
        elif divisibility < 1:
            raise ValueError(f"divisibility must be at least 1, not {divisibility}")
        fields = self.__dict__
        fields["value"], fields["width"], fields["divisibility"] = value, width, divisibility

    @property
    def type(self) -> Int:
        return self

    def constant(self, value: Int) -> Int:
        return value

    @property
    def is_static(self) -> bool:
        return self.value is not None

    @property
    def factor(self) -> int:
        """A number that divides every possible value (0 only for the static 0)."""
        return self.divisibility if self.value is None else abs(self.value)

    def __str__(self) -> str:
        if self.value is not None:
            return str(self.value)
        notes = ["i64"] if self.width == 64 else []
        if self.divisibility != 1:
            notes.append(f"div={self.divisibility}")
        return f"?{{{' '.join(notes)}}}" if notes else "?"

    # The type of results of arithmetic. The rules for divisibility are FlyDSL's (IntUtils): sums,
    # remainders and minima use the greatest common divisor, products multiply.

    def __add__(self, other: Int) -> Int:
        if self.value == 0:
            return other
        if other.value == 0:
            return self
        if self.value is not None and other.value is not None:
            return Int(self.value + other.value)
        return _dynamic(self, other, gcd(self.factor, other.factor))

    def __sub__(self, other: Int) -> Int:
        if other.value == 0:
            return self
        if self.value is not None and other.value is not None:
            return Int(self.value - other.value)
        return _dynamic(self, other, gcd(self.factor, other.factor))

    def __mul__(self, other: Int) -> Int:
        if self.value == 0 or other.value == 0:
            return Int(0)
        if self.value is not None and other.value is not None:
            return Int(self.value * other.value)
        return _dynamic(self, other, self.factor * other.factor)

    def __floordiv__(self, other: Int) -> Int:
        """Truncating division, as in `arith.divsi`."""
        if other.value == 0:
            raise ValueError(f"{self} is divided by 0")
        if self.value == 0:
            return self
        if self.value is not None and other.value is not None:
            return Int(_truncated(self.value, other.value))
        return _dynamic(self, other, 1)

    def __mod__(self, other: Int) -> Int:
        """The remainder of truncating division, as in `arith.remsi`."""
        if other.value == 0:
            raise ValueError(f"{self} is divided by 0")
        if self.value == 0 or other.value == 1:
            return Int(0)
        if self.value is not None and other.value is not None:
            return Int(self.value - other.value * _truncated(self.value, other.value))
        return _dynamic(self, other, gcd(self.factor, other.factor))

    def ceildiv(self, other: Int) -> Int:
        if other.value == 0:
            raise ValueError(f"{self} is divided by 0")
        if self.value in (0, 1):
            return self
        if self.value is not None and other.value is not None:
            return Int(_truncated(self.value + other.value - 1, other.value))
        return _dynamic(self, other, 1)

    def minimum(self, other: Int) -> Int:
        if self.value is not None and other.value is not None:
            return Int(min(self.value, other.value))
        return _dynamic(self, other, gcd(self.factor, other.factor))

    def widened(self) -> Int:
        """The same integer with 64 bits."""
        if self.value is not None or self.width == 64:
            return self
        return Int(None, 64, self.divisibility)

    def swizzled(self, swizzle: Swizzle) -> Int:
        if swizzle.is_trivial:
            return self
        if self.value is not None:
            return Int(swizzle.apply(self.value))
        return Int(None, self.width, gcd(self.divisibility, 1 << swizzle.base))

    def coord_swizzled(self, row: Int, swizzle: CoordSwizzle) -> Int:
        if swizzle.is_trivial:
            return self
        if self.value is not None and row.value is not None:
            return Int(swizzle.apply(row.value, self.value))
        return _dynamic(self, row, gcd(self.factor, 1 << swizzle.base_col))

    def less(self, other: Int) -> Int:
        if self.value is not None and other.value is not None:
            return Int(int(self.value < other.value))
        return Int(None)

    def equals(self, other: Int) -> Int:
        if self.value is not None and other.value is not None:
            return Int(int(self.value == other.value))
        return Int(None)

    def both(self, other: Int) -> Int:
        """1 if neither this nor `other` is 0."""
        if self.value == 0 or other.value == 0:
            return Int(0)
        if self.value is not None and other.value is not None:
            return Int(1)
        return Int(None)


def _dynamic(lhs: Int, rhs: Int, divisibility: int) -> Int:
    return Int(None, max(lhs.width, rhs.width), max(1, divisibility))


def _truncated(dividend: int, divisor: int) -> int:
    quotient = abs(dividend) // abs(divisor)
    return quotient if (dividend < 0) == (divisor < 0) else -quotient


@record
class Basis:
    """A stride along a coordinate instead of memory: `scale` (an Integer) steps along the mode at
    the path `modes`."""

    scale: Any
    modes: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.modes:
            raise ValueError(f"a basis of {self.scale} needs a mode")

    def __str__(self) -> str:
        return f"{self.scale}{''.join(f'E{mode}' for mode in self.modes)}"
