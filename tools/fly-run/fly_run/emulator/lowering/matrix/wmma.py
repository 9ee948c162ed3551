"""Lowers WMMA and SWMMAC, the matrix instructions of waves of 32.

They have features that MFMA lacks: signs of A, B and C as modifiers, C and D of 16 bits, integers
of selectable signedness, and sums that saturate to i32. Sources: RDNA3 and RDNA4 ISA manuals, "Wave
Matrix Multiply Accumulate".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from fly_run.emulator.isa.instruction import Immediate, Operand
from fly_run.emulator.isa.matrix import LANES, Shape
from fly_run.emulator.lowering.matrix import mfma, wmma_scaled
from fly_run.emulator.lowering.matrix.mfma import Matrix
from fly_run.emulator.lowering.registers import MASK_32, Unsupported, short_constant_bits
from fly_run.emulator.lowering.steps import Lowering, modifiers
from fly_run.emulator.semantics.base.operation import Operation
from fly_run.emulator.semantics.matrix.formats import FORMATS
from fly_run.emulator.state import ROW

SIGN = 1 << 31
INDEX_BITS = 32  # of a register of indices
# gfx1250: hints that the next instruction has the same matrix.
REUSE = ("matrix_a_reuse", "matrix_b_reuse")


def lower_wmma(lowering: Lowering, operation: Operation, encoding: str) -> None:
    if lowering.registers.wave_size != 32:
        raise Unsupported("waves of 64 lanes")
    shape: Shape = operation.detail
    if operation.mnemonic.endswith(("_f8f6f4", "_f4")):
        wmma_scaled.lower_narrow(lowering, operation)
        return
    known = ("op_sel", "op_sel_hi", "neg_lo", "neg_hi", "clamp", "index_key", *REUSE)
    found = modifiers(lowering, *known)
    target, first, second, last = lowering.operands(4)
    low, high = (_three(found, name) for name in ("neg_lo", "neg_hi"))
    whole = shape.result == "i32"
    forms = [
        f"{'i' if low[number] else 'u'}{form.removeprefix('iu')}" if whole else form
        for number, form in enumerate((shape.a, shape.b))
    ]
    flips = [0 if whole else low[n] << 15 | high[n] << 31 for n in (0, 1)]
    if shape.a == "f32":
        if high[0] or high[1]:
            raise Unsupported("neg_hi on elements of 32 bits")
        flips = [low[n] << 31 for n in (0, 1)]
    elif any(flips) and shape.a not in ("f16", "bf16"):
        raise Unsupported("neg_lo or neg_hi on elements of 8 bits")
    # For a sparse A, and then for D.
    dense = shape.elements * FORMATS[forms[0]].bits // 32 if shape.sparse else 0
    aside = lowering.temporary(max(shape.results, dense))
    summed = shape if whole else replace(shape, result="float")
    if shape.sparse:
        a = _dense(lowering, summed, first, forms[0], last, found, aside)
    else:
        a = mfma.matrix_of(lowering, summed, first, forms[0])
    b = mfma.matrix_of(lowering, summed, second, forms[1])
    addend = target if shape.sparse else last
    mfma.with_own_control(lowering)
    mfma.unpack_both(lowering, summed, a._replace(flip=flips[0]), b._replace(flip=flips[1]))
    signs = (low[2], high[2])
    if shape.result in ("f16", "bf16"):
        upper = _three(found, "op_sel")[2]
        _sum_short(lowering, shape, summed, target, addend, signs, upper, aside)
    elif whole and found.get("clamp"):
        _sum_saturating(lowering, summed, target, addend, aside)
    else:
        _sum(lowering, summed, target, addend, signs if not whole else (0, 0))
    mfma.with_own_control(lowering, ends=True)


def _three(found: Mapping[str, object], name: str) -> tuple[int, int, int]:
    """Returns a modifier with a value for each source; 0 if absent."""
    values = found.get(name, (0, 0, 0))
    assert isinstance(values, tuple)
    first, second, third = (*values, 0)[:3]
    return first, second, third


def _dense(
    lowering: Lowering,
    shape: Shape,
    operand: Operand,
    form: str,
    index: Operand,
    found: Mapping[str, object],
    aside: int,
) -> Matrix:
    """Expands a sparse A with zeros, in the temporaries at `aside`. `index_key` selects the half of
    the index register if one half is enough."""
    bits = FORMATS[form].bits
    count = shape.elements // 2 * bits // 32
    source = lowering.row_source(operand, count)
    key = found.get("index_key", 0)
    assert isinstance(key, int)
    # Two bits for each element of A in the lane.
    registers = -(-shape.elements // INDEX_BITS)
    if key and shape.elements * (key + 1) > INDEX_BITS:
        raise Unsupported(f"index_key:{key}")
    indices, each = lowering.row_source(index, registers), count // registers
    if shape.wave == "gfx1250":
        own = lowering.temporary(registers)
        lowering.add(f"fly_matrix_indices_{registers}", own, indices)
        indices = own
    for number in range(registers):
        lowering.add(
            f"fly_matrix_dense_{bits}",
            aside + 2 * number * each * ROW,
            source + number * each * ROW,
            indices + number * ROW,
            immediate=key * shape.elements,
            extra=each,
        )
    return Matrix(aside, 2 * count, form, shape.split)


def _sum(
    lowering: Lowering, shape: Shape, target: Operand, addend: Operand, signs: tuple[int, int]
) -> None:
    """Adds C with its `signs`: (negated, absolute)."""
    d = lowering.row_source(target, shape.results)
    c, constant = mfma.addend_of(lowering, shape, addend, shape.results, False)
    overlaps = c != d and abs(c - d) < shape.results * ROW
    if constant and any(signs):
        raise Unsupported("a constant C with a sign modifier")
    if any(signs) or (overlaps and not constant):
        rows = range(shape.results)
        for number in rows if d <= c else reversed(rows):
            at = number * ROW
            _with_sign(lowering, d + at, c + at, signs)
        c = d
    mfma.multiply_add(lowering, shape, d, c, constant)


def _with_sign(lowering: Lowering, target: int, source: int, signs: tuple[int, int]) -> None:
    negate, absolute = signs
    keep = MASK_32 ^ SIGN if absolute else MASK_32
    mfma.change_bits(lowering, target, source, SIGN if negate else 0, keep)


def _sum_short(
    lowering: Lowering,
    shape: Shape,
    summed: Shape,
    target: Operand,
    addend: Operand,
    signs: tuple[int, int],
    upper: int,
    aside: int,
) -> None:
    """Handles C and D of 16 bits: gfx11 has one per register, in its lower or upper half, gfx12
    two. The sum is f32; `matrix.measured` limits it to 16-bit numbers, others are rounded at the
    end."""
    packed = shape.wave != "gfx11"
    registers = shape.results // (2 if packed else 1)
    d = lowering.row_source(target, registers)
    places = [
        (number // 2 * ROW, number % 2 * 16) if packed else (number * ROW, upper * 16)
        for number in range(shape.results)
    ]
    if shape.addend:
        _sum_float_to_short(lowering, shape, summed, d, places, addend, signs, aside)
        return
    if isinstance(addend, Immediate):
        short = short_constant_bits(addend, shape.result)
        source = lowering.registers.constants.row([short] * LANES)
        sources = [(0, 0)] * shape.results
    else:
        source, sources = lowering.row_source(addend, registers), places
    for number, (at, shift) in enumerate(sources):
        row = aside + number * ROW
        lowering.add(f"fly_matrix_widen_{shape.result}", row, source + at + shift // 8)
        if any(signs):
            _with_sign(lowering, row, row, signs)
    mfma.multiply_add(lowering, summed, aside, aside, False)
    for number, (at, shift) in enumerate(places):
        name = f"fly_matrix_narrow_{shape.result}"
        lowering.add(name, d + at, aside + number * ROW, immediate=shift)


def _sum_float_to_short(
    lowering: Lowering,
    shape: Shape,
    summed: Shape,
    d: int,
    places: list[tuple[int, int]],
    addend: Operand,
    signs: tuple[int, int],
    aside: int,
) -> None:
    """Handles C of f32 and D of bf16 (gfx1250): the f32 sum is rounded at the end."""
    c, constant = mfma.addend_of(lowering, summed, addend, shape.results, False)
    if constant and any(signs):
        raise Unsupported("a constant C with a sign modifier")
    if not constant:
        for number in range(shape.results):
            at = number * ROW
            _with_sign(lowering, aside + at, c + at, signs)
        c = aside
    mfma.multiply_add(lowering, summed, aside, c, constant)
    for number, (at, shift) in enumerate(places):
        name = f"fly_matrix_narrow_{shape.result}"
        lowering.add(name, d + at, aside + number * ROW, immediate=shift)


def _sum_saturating(
    lowering: Lowering, shape: Shape, target: Operand, addend: Operand, aside: int
) -> None:
    """The sum of the products never overflows i32; C is added, saturating, at the end."""
    d = lowering.row_source(target, shape.results)
    c, constant = mfma.addend_of(lowering, shape, addend, shape.results, False)
    zero, _ = mfma.addend_of(lowering, shape, Immediate(0), shape.results, False)
    mfma.multiply_add(lowering, shape, aside, zero, True)
    for number in range(shape.results):
        at = number * ROW
        addend_row = c if constant else c + at
        lowering.add("fly_matrix_add_saturating", aside + at, addend_row)
    for number in range(shape.results):
        at = number * ROW
        mfma.change_bits(lowering, d + at, aside + at, 0)
