"""Analysis of the power of two that divides an integer, from its definition and its uses.

Forward, from the arith op that defines a value: a sum is divisible by what divides both terms, a
product by the product of the powers that divide its factors. Backward, from the int_tuples that
hold a value: the type's `div` is a promise of the program. Both hold, so the greater is the result.

Only powers of two are tracked: arithmetic modulo 2ʷ preserves divisibility by those and no others,
so results hold even if a sum or product wraps.
"""

from __future__ import annotations

from fly_dialect.bindings import ir
from fly_dialect.dialect import PREFIX, int_tuple_of
from fly_dialect.layouts.layout import dynamic_leaves

MAKERS = frozenset(
    f"{PREFIX}{name}" for name in ("make_int_tuple", "make_shape", "make_stride", "make_coord")
)

# Ops whose result has the trailing zeros that both operands have.
_COMMON = frozenset(f"arith.{name}" for name in ("addi", "subi", "ori", "xori", "remsi", "remui"))
_SAME = frozenset(f"arith.{name}" for name in ("extsi", "extui", "index_cast", "index_castui"))


def constant(value: ir.Value) -> int | None:
    """Returns the value of an arith.constant; None for any other value."""
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.name != "arith.constant":
        return None
    attribute = owner.attributes["value"]
    return attribute.value if isinstance(attribute, ir.IntegerAttr) else None


def factors_of_two(number: int, width: int) -> int:
    """Returns the number of trailing zero bits; `width` for 0."""
    return (number & -number).bit_length() - 1 if number else width


def width_of(value: ir.Value) -> int:
    """Returns the width of an integer; 64 for an index, which is as wide as an address."""
    type_ = value.type
    return type_.width if isinstance(type_, ir.IntegerType) else 64


class Divisibility:
    """The analysis, computed on demand: value → its known trailing zeros."""

    def __init__(self) -> None:
        self._known: dict[ir.Value, int] = {}

    def zeros(self, value: ir.Value) -> int:
        """Returns n such that 2^n divides `value`; its width if it is 0."""
        if value not in self._known:
            # Operands of a definition precede it, so the only cycles go through block arguments, of
            # which nothing is known forward.
            self._known[value] = max(self._forward(value), _backward(value))
        return self._known[value]

    def _forward(self, value: ir.Value) -> int:
        owner, width = value.owner, width_of(value)
        if isinstance(owner, ir.Block):
            return 0
        name, operands = owner.name, list(owner.operands)
        if (number := constant(value)) is not None:
            return factors_of_two(number, width)
        if name in _COMMON:
            return min(map(self.zeros, operands))
        if name in _SAME:
            return self._resized(operands[0], width)
        if name == "arith.trunci":
            return min(width, self.zeros(operands[0]))
        if name == "arith.muli":
            return min(width, sum(map(self.zeros, operands)))
        if name == "arith.andi":
            return max(map(self.zeros, operands))
        if name == "arith.select":
            return min(map(self.zeros, operands[1:]))
        if name in ("arith.shli", "arith.shrui", "arith.shrsi"):
            return self._shifted(name, operands[0], operands[1], width)
        return 0

    def _resized(self, value: ir.Value, width: int) -> int:
        zeros = self.zeros(value)
        return width if zeros >= width_of(value) else min(width, zeros)

    def _shifted(self, name: str, value: ir.Value, amount: ir.Value, width: int) -> int:
        zeros, count = self.zeros(value), constant(amount)
        if name == "arith.shli":
            # A left shift by an unknown amount can only add zeros.
            return min(width, zeros + max(0, count or 0))
        if zeros >= width:
            return width
        return max(0, zeros - count) if count is not None and count >= 0 else 0


def _backward(value: ir.Value) -> int:
    """Returns what the int_tuples that hold the value promise."""
    best = 0
    for use in value.uses:
        user = use.owner
        if user.name in MAKERS:
            leaves = dynamic_leaves(int_tuple_of(user.results[0]).value)
            best = max(best, factors_of_two(leaves[use.operand_number].divisibility, 0))
    return best
