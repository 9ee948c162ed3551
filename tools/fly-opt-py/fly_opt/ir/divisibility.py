"""Which power of two divides an integer: what its definition and its uses say.

Forward, from the arith op that defines a value: a sum is divisible by what divides both terms, a
product by both factors' powers together. Backward, from the int_tuples a value is put into: the
type's `div` is the program's word. Whichever says more is right, as both hold.

Only powers of two are followed: arithmetic modulo 2ʷ keeps those and no others, so what is said
here holds where a sum or product wraps around, too.
"""

from __future__ import annotations

from fly_dialect.bindings import ir
from fly_dialect.dialect import PREFIX, int_tuple_of
from fly_dialect.layouts.layout import dynamic_leaves

MAKERS = frozenset(
    f"{PREFIX}{name}" for name in ("make_int_tuple", "make_shape", "make_stride", "make_coord")
)

# Ops whose result keeps the zeros that both operands end in.
_COMMON = frozenset(f"arith.{name}" for name in ("addi", "subi", "ori", "xori", "remsi", "remui"))
_SAME = frozenset(f"arith.{name}" for name in ("extsi", "extui", "index_cast", "index_castui"))


def constant(value: ir.Value) -> int | None:
    """The number that an arith.constant gives; None for any other value."""
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.name != "arith.constant":
        return None
    attribute = owner.attributes["value"]
    return attribute.value if isinstance(attribute, ir.IntegerAttr) else None


def factors_of_two(number: int, width: int) -> int:
    """The zeros that `number` ends in, in binary; `width`, all of them, for 0."""
    return (number & -number).bit_length() - 1 if number else width


def width_of(value: ir.Value) -> int:
    """The bits of an integer; 64 for an index, which is as wide as an address."""
    type_ = value.type
    return type_.width if isinstance(type_, ir.IntegerType) else 64


class Divisibility:
    """The lattice, filled as it is asked: value → the zeros it is known to end in."""

    def __init__(self) -> None:
        self._known: dict[ir.Value, int] = {}

    def zeros(self, value: ir.Value) -> int:
        """2 to this power divides `value`; its width if it is 0."""
        if value not in self._known:
            # Operands of a definition come before it, so there is no cycle but through a block's
            # arguments, of which nothing is known forward.
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
            # A shift by an unknown number only adds zeros.
            return min(width, zeros + max(0, count or 0))
        if zeros >= width:
            return width
        return max(0, zeros - count) if count is not None and count >= 0 else 0


def _backward(value: ir.Value) -> int:
    """What the int_tuples that hold the value say of it."""
    best = 0
    for use in value.uses:
        user = use.owner
        if user.name in MAKERS:
            leaves = dynamic_leaves(int_tuple_of(user.results[0]).value)
            best = max(best, factors_of_two(leaves[use.operand_number].divisibility, 0))
    return best
