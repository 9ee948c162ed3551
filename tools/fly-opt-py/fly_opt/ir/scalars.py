"""Integers of a layout as code: leaves for `fly_dialect.algebra` that build arith ops.

A `Scalar` has the type that the verifier infers (`layout.Int`) and, if that is dynamic, the SSA
value. Its operators build the op at the builder's insertion point and return the type that `Int`'s
operators return, so lowering an op gives the value its inferred type promises. Static parts fold.
"""

from __future__ import annotations

from typing import Any

from fly_common.record import record
from fly_dialect.bindings import ir
from fly_dialect.layouts.int_tuple import IntTuple, Tree, dynamic_leaves
from fly_dialect.layouts.integers import Basis, Int
from fly_dialect.layouts.swizzle import CoordSwizzle, Swizzle

from fly_opt.ir.builder import Builder

_COMMUTATIVE = frozenset(("arith.addi", "arith.muli", "arith.minsi"))
# arith.cmpi's predicates (ArithBase.td, CmpIPredicate).
_EQUAL, _SIGNED_LESS = 0, 2


@record
class Scalar:
    """A leaf; `value` is None if the type is static. A truth value (`less`, `equals`, `both`) is an
    i1, although its type has the 32 bits of any integer."""

    builder: Builder
    type: Int
    value: ir.Value | None

    def __str__(self) -> str:
        return str(self.type)

    def read(self, width: int | None = None) -> ir.Value:
        """Returns the SSA value, sign-extended to `width` bits if that is wider."""
        width = max(width or 0, self.type.width)
        if self.type.value is not None:
            return self.builder.constant(self.type.value, width)
        assert self.value is not None, "its type would say it all"
        if width == self.type.width:
            return self.value
        return self.builder.pure("arith.extsi", _integer(width), [self.value])

    def read_truth(self) -> ir.Value:
        """Returns the i1 of a truth value."""
        if self.type.value is not None:
            return self.builder.constant(bool(self.type.value), 1)
        assert self.value is not None, "its type would say it all"
        return self.value

    def constant(self, value: Int) -> Scalar:
        """Returns a static leaf with the same builder."""
        return Scalar(self.builder, value, None)

    def widened(self) -> Scalar:
        type_ = self.type.widened()
        if type_ == self.type:
            return self
        return Scalar(self.builder, type_, self.read(64))

    def __add__(self, other: Scalar | Int) -> Scalar:
        other = self._lift(other)
        if self.type.value == 0:
            return other
        if other.type.value == 0:
            return self
        return self._build("arith.addi", other, self.type + other.type)

    def __sub__(self, other: Scalar | Int) -> Scalar:
        other = self._lift(other)
        if other.type.value == 0:
            return self
        return self._build("arith.subi", other, self.type - other.type)

    def __mul__(self, other: Scalar | Int) -> Scalar:
        other = self._lift(other)
        type_ = self.type * other.type
        if other.type.value == 1:
            return self._as(type_)
        if self.type.value == 1:
            return other._as(type_)
        return self._build("arith.muli", other, type_)

    def __floordiv__(self, other: Scalar | Int) -> Scalar:
        other = self._lift(other)
        type_ = self.type // other.type
        if other.type.value == 1:
            return self._as(type_)
        return self._build("arith.divsi", other, type_)

    def __mod__(self, other: Scalar | Int) -> Scalar:
        other = self._lift(other)
        return self._build("arith.remsi", other, self.type % other.type)

    def ceildiv(self, other: Scalar | Int) -> Scalar:
        other = self._lift(other)
        type_ = self.type.ceildiv(other.type)
        if other.type.value == 1:
            return self._as(type_)
        return self._build("arith.ceildivsi", other, type_)

    def minimum(self, other: Scalar | Int) -> Scalar:
        other = self._lift(other)
        return self._build("arith.minsi", other, self.type.minimum(other.type))

    # -- permutations

    def swizzled(self, swizzle: Swizzle) -> Scalar:
        """Computes x ^ ((x & mask) >> shift), the sequence that fly-int-swizzle-simplify
        matches."""
        type_ = self.type.swizzled(swizzle)
        if type_.is_static or swizzle.is_trivial:
            return self._as(type_)
        b, width = self.builder, type_.width
        value = self.read(width)
        mask, shift = b.constant(swizzle.source_bits, width), b.constant(swizzle.shift, width)
        picked = b.pure("arith.andi", _integer(width), [value, mask])
        moved = b.pure("arith.shrui", _integer(width), [picked, shift])
        return Scalar(b, type_, b.pure("arith.xori", _integer(width), [value, moved]))

    def coord_swizzled(self, row: Scalar | Int, swizzle: CoordSwizzle) -> Scalar:
        """Computes col ^ (((row >> base_row) & mask) << base_col)."""
        row = self._lift(row)
        type_ = self.type.coord_swizzled(row.type, swizzle)
        if type_.is_static or swizzle.is_trivial:
            return self._as(type_)
        b, width = self.builder, type_.width
        bits = ((1 << swizzle.mask) - 1) << swizzle.base_row
        picked = b.pure("arith.andi", _integer(width), [row.read(width), b.constant(bits, width)])
        distance = swizzle.base_row - swizzle.base_col
        if distance:
            name = "arith.shrui" if distance > 0 else "arith.shli"
            amount = b.constant(abs(distance), width)
            picked = b.pure(name, _integer(width), [picked, amount])
        return Scalar(b, type_, b.pure("arith.xori", _integer(width), [self.read(width), picked]))

    # -- truth

    def less(self, other: Scalar | Int) -> Scalar:
        other = self._lift(other)
        return self._compare(_SIGNED_LESS, other, self.type.less(other.type))

    def equals(self, other: Scalar | Int) -> Scalar:
        other = self._lift(other)
        return self._compare(_EQUAL, other, self.type.equals(other.type))

    def both(self, other: Scalar | Int) -> Scalar:
        other = self._lift(other)
        type_ = self.type.both(other.type)
        if type_.is_static:
            return Scalar(self.builder, type_, None)
        operands = [self.read_truth(), other.read_truth()]
        return Scalar(self.builder, type_, self.builder.pure("arith.andi", _integer(1), operands))

    # -- helpers of the operators

    def _lift(self, other: Scalar | Int) -> Scalar:
        return other if isinstance(other, Scalar) else Scalar(self.builder, other, None)

    def _as(self, type_: Int) -> Scalar:
        """Returns the same number with the type `type_`."""
        if type_.value is not None:
            return Scalar(self.builder, type_, None)
        return Scalar(self.builder, type_, self.read(type_.width))

    def _build(self, name: str, other: Scalar, type_: Int) -> Scalar:
        if type_.value is not None:
            return Scalar(self.builder, type_, None)
        operands = [self.read(type_.width), other.read(type_.width)]
        if name in _COMMUTATIVE and self.type.is_static:
            operands.reverse()  # constants go on the right, as in MLIR's canonical form
        value = self.builder.pure(name, _integer(type_.width), operands)
        return Scalar(self.builder, type_, value)

    def _compare(self, predicate: int, other: Scalar, type_: Int) -> Scalar:
        if type_.is_static:
            return Scalar(self.builder, type_, None)
        width = max(self.type.width, other.type.width)
        operands = [self.read(width), other.read(width)]
        attributes = {"predicate": ir.IntegerAttr.get(_integer(64), predicate)}
        value = self.builder.pure("arith.cmpi", _integer(1), operands, attributes)
        return Scalar(self.builder, type_, value)


def _integer(width: int) -> ir.IntegerType:
    return ir.IntegerType.get_signless(width)


def tree_of(builder: Builder, value: IntTuple, dynamic: list[ir.Value]) -> Tree:
    """Returns the tree of the int_tuple type `value` with Scalars as its dynamic leaves. Their
    values are taken from `dynamic`, from left to right, and truncated or sign-extended if their
    width differs from the type's."""
    if isinstance(value, tuple):
        return tuple(tree_of(builder, part, dynamic) for part in value)
    if isinstance(value, Basis):
        return Basis(tree_of(builder, value.scale, dynamic), value.modes)
    if value is None or value.is_static:
        return value
    return Scalar(builder, value, _resized(builder, dynamic.pop(0), value.width))


def _resized(builder: Builder, value: ir.Value, width: int) -> ir.Value:
    held = ir.IntegerType(value.type).width
    if held == width:
        return value
    name = "arith.trunci" if width < held else "arith.extsi"
    return builder.pure(name, _integer(width), [value])


def read(builder: Builder, leaf: Any) -> ir.Value:
    """Returns the SSA value of an integer leaf."""
    return leaf.read() if isinstance(leaf, Scalar) else builder.constant(leaf.value, leaf.width)


def read_truth(builder: Builder, leaf: Any) -> ir.Value:
    """Returns the i1 of a truth value."""
    return leaf.read_truth() if isinstance(leaf, Scalar) else builder.constant(leaf.value, 1)


def values_of(tree: Any) -> list[ir.Value]:
    """Returns the SSA values of the dynamic leaves, from left to right."""
    return [leaf.value for leaf in dynamic_leaves(tree)]
