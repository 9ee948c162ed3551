"""Lowers gfx1250's WMMA on elements of 8, 6 and 4 bits whose formats are modifiers, with or without
block scales.

Two instructions in one encoding: the first half loads the scales. A lane of A's scales has those of
a row: a byte for each 32 k, four in a register (`scale16`: for each 16 k, eight in two). The rows
are in lanes 0 to 15, or in lanes 16 to 31 (MATRIX_SCALE_ROW1); those of 32 rows in all lanes. B's
are alike. The constant 0 in place of scales stands for ones: so Triton's examples and tests
multiply matrices of which one has no scales, but no other source says so (`strict.unspecified`). A
product of 32 rows is one of its first 16 rows, in the lower halves of A's and D's registers, and
one of the others.

Sources: LLVM's definitions; FlyDSL's atoms for gfx1250 and its tests, rocjitsu's mma/layout.h for
the layouts. Without scales, matrices whose formats differ in width have the layout of those with
scales, which no public source confirms.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from fly_run.emulator.isa.instruction import Immediate, Operand, Register
from fly_run.emulator.isa.matrix import LANES, NARROW, SCALED, Shape
from fly_run.emulator.lowering.matrix import mfma
from fly_run.emulator.lowering.matrix.mfma import Matrix
from fly_run.emulator.lowering.registers import Unsupported
from fly_run.emulator.lowering.steps import Lowering, modifiers
from fly_run.emulator.semantics.base.operation import Operation
from fly_run.emulator.semantics.matrix.formats import FORMATS
from fly_run.emulator.semantics.matrix.operands import SCALE_FORMATS
from fly_run.emulator.state import ROW

FORMAT_NAMES = {f"MATRIX_FMT_{name.upper()}": name for name in NARROW}
BYTE_RUN, NARROW_RUN = 16, 32  # elements along k in a run of a lane
ROWS = 16  # of a product
BLOCKS = 4  # scales in a register
KNOWN = (
    *("neg_lo", "neg_hi", "matrix_a_reuse", "matrix_b_reuse"),
    *(f"matrix_{which}_{what}" for which in "ab" for what in ("fmt", "scale", "scale_fmt")),
)


class Scales(NamedTuple):
    """Scales of a matrix: their first register, the first lane of its rows, their format by number,
    and the elements along k that share one."""

    row: int
    lane: int
    form: int
    block: int


def lower_narrow(lowering: Lowering, operation: Operation) -> None:
    shape: Shape = operation.detail
    found = modifiers(lowering, *KNOWN)
    name = operation.mnemonic
    tall = "_32x16x" in name
    scaled = name.startswith(SCALED)
    target, first, second, last, *scales = lowering.operands(6 if scaled else 4)
    forms = ["fp4", "fp4"] if shape.a == "fp4" else [_format(found, which) for which in "ab"]
    signs = _signs(found)
    flavour = "value" if lowering.mfma == "fast" else "parts"
    parts = 2 if tall else 1
    operands = [_matrix(lowering, shape, first, forms[0], parts)]
    operands.append(_matrix(lowering, shape, second, forms[1], 1))
    given: list[Scales | None] = []
    if scaled:
        block = 16 if "scale16" in name else 32
        given = [
            _scales(lowering, found, which, operand, block, tall and which == "a")
            for which, operand in zip("ab", scales, strict=True)
        ]
    d = lowering.row_source(target, parts * shape.results)
    results = parts * shape.results
    c, constant = mfma.addend_of(lowering, shape, last, results, False)
    if constant and any(signs):
        raise Unsupported("a constant C with a sign modifier")
    aside = lowering.temporary(results)
    moved = lowering.temporary()
    mfma.with_own_control(lowering)
    if not constant:
        negate, absolute = signs
        for number in range(results):
            at = number * ROW
            keep = 0x7FFF_FFFF if absolute else 0xFFFF_FFFF
            mfma.change_bits(lowering, aside + at, c + at, (1 << 31) if negate else 0, keep)
    for half in range(parts):
        a, b = operands
        a = a._replace(row=a.row + half * a.registers * ROW)
        mfma.unpack_both(lowering, shape, a, b)
        for number, one in enumerate(given):
            if one is None:
                continue
            # Of 32 rows of A, the second 16 have their scales in the upper lanes.
            lane = one.lane + ROWS * half if number == 0 and tall else one.lane
            _apply(lowering, shape, one._replace(lane=lane), number, flavour, moved)
        own = half * shape.results * ROW
        mfma.multiply_add(lowering, shape, aside + own, c if constant else aside + own, constant)
    for number in range(results):
        at = number * ROW
        mfma.change_bits(lowering, d + at, aside + at, 0)
    mfma.with_own_control(lowering, ends=True)


def _format(found: Mapping[str, object], which: str) -> str:
    return FORMAT_NAMES[str(found.get(f"matrix_{which}_fmt", "MATRIX_FMT_FP8"))]


def _signs(found: Mapping[str, object]) -> tuple[int, int]:
    """Returns whether C is negated and whether its absolute value is taken."""
    values = []
    for name in ("neg_lo", "neg_hi"):
        given = found.get(name, (0, 0, 0))
        assert isinstance(given, tuple)
        first, second, third = (*given, 0, 0)[:3]
        if first or second:
            raise Unsupported(f"{name} on elements of 8 bits")
        values.append(third)
    return values[0], values[1]


def _matrix(lowering: Lowering, shape: Shape, operand: Operand, form: str, parts: int) -> Matrix:
    bits = FORMATS[form].bits
    count = shape.elements * bits // 32
    row = lowering.row_source(operand, parts * count)
    return Matrix(row, count, form, BYTE_RUN if bits == 8 else NARROW_RUN)


def _scales(
    lowering: Lowering,
    found: Mapping[str, object],
    which: str,
    operand: Operand,
    block: int,
    all_lanes: bool,
) -> Scales | None:
    """None if there are none."""
    if isinstance(operand, Immediate) and operand.value == 0:
        return None
    words = 2 if block == 16 else 1
    row = _rows(lowering, operand, words)
    upper = str(found.get(f"matrix_{which}_scale", "MATRIX_SCALE_ROW0")) == "MATRIX_SCALE_ROW1"
    if upper and all_lanes:
        raise Unsupported("MATRIX_SCALE_ROW1 for a matrix of 32 rows")
    name = str(found.get(f"matrix_{which}_scale_fmt", "MATRIX_SCALE_FMT_E8"))
    form = name.removeprefix("MATRIX_SCALE_FMT_")
    if form not in SCALE_FORMATS:
        raise Unsupported(f"the scale format {form}")
    return Scales(row, ROWS if upper else 0, SCALE_FORMATS.index(form), block)


def _rows(lowering: Lowering, operand: Operand, words: int) -> int:
    """Returns the first register of the scales; a constant or scalar is copied to all lanes."""
    if isinstance(operand, Register) and operand.bank == "v":
        return lowering.row_source(operand, words)
    raise Unsupported(
        "scales in a constant" if isinstance(operand, Immediate) else "scales in scalar registers"
    )


def _apply(
    lowering: Lowering, shape: Shape, scales: Scales, number: int, flavour: str, moved: int
) -> None:
    """Multiplies an unpacked matrix by its scales: a row of 16 rows' scales for each of four blocks
    along k is what `fly_matrix_scale` wants."""
    words = shape.k // scales.block // BLOCKS
    for word in range(words):
        places = [4 * (scales.lane + lane % ROWS) + lane // ROWS for lane in range(LANES)]
        lowering.add(
            "fly_matrix_lanes",
            moved,
            scales.row + word * ROW,
            lowering.registers.constants.row(places),
        )
        start = word * BLOCKS * scales.block * mfma.step_of(shape)
        lowering.add(
            f"fly_matrix_scale.{flavour}",
            moved,
            mfma.PLACES[number] + start,
            lowering.word(mfma.step_of(shape)).offset,
            immediate=scales.block,
            extra=scales.form,
        )
