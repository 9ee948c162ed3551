"""`fly-int-swizzle-simplify`: moves constants and strides out of swizzled offsets."""

from __future__ import annotations

from typing import ClassVar

from fly_common.record import record
from fly_dialect.bindings import ir

from fly_opt.ir.builder import Builder, operations, unused
from fly_opt.ir.divisibility import Divisibility, constant, factors_of_two, width_of
from fly_opt.passes.base import Pass


@record
class IntSwizzleSimplify(Pass):
    """Moves summands that a swizzle can't change out of it: swizzle(x + c) = swizzle(x) + c.

    A swizzle is `x ^ ((x & mask) >> shift)` in arith, where the mask is a run of ones. It reads and
    writes only bits below the mask's end, so multiples of the period, the power of two there, pass
    unchanged. Summands that are known to be multiples (`ir.divisibility`) become plain arith.addi
    after the swizzle, where constants fold and equal swizzles are shared; a swizzle of nothing else
    is 0.
    """

    name: ClassVar[str] = "fly-int-swizzle-simplify"
    only_with: ClassVar[tuple[str, ...]] = ("xor", "S<", "swizzle")

    def run(self, op: ir.Operation) -> bool:
        divisibility, builder = Divisibility(), Builder()
        replaced: set[ir.Operation] = set()
        # In textual order: the input of a nested swizzle is rewritten first.
        for inner in operations(op):
            swizzle = _swizzle(inner)
            if swizzle is None:
                continue
            kept, offsets = _peel(swizzle, divisibility)
            if offsets:
                builder.at(inner)
                replaced.update(_rewrite(swizzle, kept, offsets, builder))
        # Erased at the end, uses first: until then the analysis may refer to their values.
        for inner in reversed(operations(op)) if replaced else ():
            if inner in replaced and all(map(unused, inner.results)):
                inner.erase()
        return bool(replaced)


@record
class _Swizzle:
    """`op` is the xori; `mask` and `shift` are the values of its constants, and 2^`period` is the
    `period` is the first number beyond the mask. `steps` are the ops before it, last first."""

    op: ir.Operation
    input: ir.Value
    mask: ir.Value
    shift: ir.Value
    period: int
    steps: tuple[ir.Operation, ir.Operation]


@record
class _Sum:
    """A term of the input: an existing value, or a sum that is yet to be built."""

    parts: tuple[ir.Value | _Sum, ir.Value | _Sum]


def _swizzle(op: ir.Operation) -> _Swizzle | None:
    """Returns the swizzle whose last op is `op`, if there is one."""
    if op.name != "arith.xori":
        return None
    value, moved = op.operands
    shift = moved.owner
    if isinstance(shift, ir.Block) or shift.name != "arith.shrui":
        return None
    picked = shift.operands[0].owner
    if isinstance(picked, ir.Block) or picked.name != "arith.andi" or picked.operands[0] != value:
        return None
    mask, amount = constant(picked.operands[1]), constant(shift.operands[1])
    if mask is None or amount is None:
        return None
    width = width_of(value)
    mask &= (1 << width) - 1
    start = factors_of_two(mask, width)
    run = (mask >> start) + 1
    # The mask must be a run of ones, none of which is shifted out below bit 0.
    if mask == 0 or run & (run - 1) or not 0 <= amount <= start:
        return None
    steps = shift.operation, picked.operation
    return _Swizzle(op, value, picked.operands[1], shift.operands[1], mask.bit_length(), steps)


def _peel(
    swizzle: _Swizzle, divisibility: Divisibility
) -> tuple[ir.Value | _Sum | None, list[ir.Value]]:
    """Splits the input into the rest (None if empty) and its multiples of the period."""

    def peel(value: ir.Value) -> tuple[ir.Value | _Sum | None, list[ir.Value]]:
        if divisibility.zeros(value) >= swizzle.period:
            return None, [value]
        owner = value.owner
        if isinstance(owner, ir.Block) or owner.name != "arith.addi":
            return value, []
        lhs, rhs = owner.operands
        (left, left_offsets), (right, right_offsets) = peel(lhs), peel(rhs)
        offsets = left_offsets + right_offsets
        if not offsets:
            return value, []
        if left is None or right is None:
            return (right if left is None else left), offsets
        return _Sum((left, right)), offsets

    if divisibility.zeros(swizzle.input) >= swizzle.period:
        return None, [swizzle.input]
    return peel(swizzle.input)


def _rewrite(
    swizzle: _Swizzle, kept: ir.Value | _Sum | None, offsets: list[ir.Value], builder: Builder
) -> list[ir.Operation]:
    """Builds the new sum and replaces the old one; returns the ops of the old one."""
    type_ = swizzle.op.results[0].type

    def built(part: ir.Value | _Sum) -> ir.Value:
        if isinstance(part, _Sum):
            return builder.value("arith.addi", type_, [built(inner) for inner in part.parts])
        return part

    if kept is None:
        attributes = {"value": ir.IntegerAttr.get(type_, 0)}
        total = builder.value("arith.constant", type_, [], attributes)
    else:
        base = built(kept)
        picked = builder.value("arith.andi", type_, [base, swizzle.mask])
        moved = builder.value("arith.shrui", type_, [picked, swizzle.shift])
        total = builder.value("arith.xori", type_, [base, moved])
    for offset in offsets:
        total = builder.value("arith.addi", type_, [total, offset])
    swizzle.op.results[0].replace_all_uses_with(total)
    return [swizzle.op, *swizzle.steps, *_sums(swizzle.input)]


def _sums(value: ir.Value) -> list[ir.Operation]:
    """Returns the additions that compute a value, down to the first terms that are not
    additions."""
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.name != "arith.addi":
        return []
    return [owner.operation, *(inner for operand in owner.operands for inner in _sums(operand))]
