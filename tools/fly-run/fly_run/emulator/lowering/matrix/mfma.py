"""Lowers matrix instructions: unpacks operands into a thread's workspace, then computes D by tiles.

`semantics.matrix.instructions` describes the steps and the workspace, `isa.matrix` the
instructions.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable
from typing import NamedTuple

from fly_run.emulator import state
from fly_run.emulator.isa.instruction import Immediate, Operand, Register
from fly_run.emulator.isa.matrix import LANES, NARROW, Shape, index_sets, input_at, output_at
from fly_run.emulator.lowering.registers import MASK_32, MASK_64, Unsupported, constant_bits
from fly_run.emulator.lowering.steps import Lowering, modifiers
from fly_run.emulator.semantics.base.operation import Operation
from fly_run.emulator.semantics.matrix.formats import CHUNK, FORMATS
from fly_run.emulator.semantics.matrix.instructions import BLOCKS
from fly_run.emulator.semantics.matrix.operands import SCALE_BLOCK
from fly_run.emulator.state import ROW

IEEE_CONTROL = 0x1F80  # the host's control word: round to nearest, subnormals kept
BYTE_RUN = 16  # 8-bit elements of an f8f6f4 operand come in runs of this length
FLUSHED = ("ftz2", "ftz4")


class Matrix(NamedTuple):
    """The place of a matrix in registers: the offset of its first register, the number of
    registers, and the length of runs of its elements along k (`matrix.input_at`)."""

    row: int
    registers: int
    form: str
    split: int = 0
    flip: int = 0  # bits to invert in each register


def lower_matrix(lowering: Lowering, operation: Operation, encoding: str) -> None:
    shape: Shape = operation.detail
    if operation.mnemonic.startswith("v_mfma_scale"):
        _lower_scaled(lowering, shape)
    elif shape.a == "narrow":
        _lower_narrow(lowering, shape)
    elif shape.sparse:
        _lower_sparse(lowering, shape)
    else:
        _lower_dense(lowering, shape)


def _lower_dense(lowering: Lowering, shape: Shape) -> None:
    found = modifiers(lowering, "cbsz", "abid", "blgp", "neg")
    target, first, second, addend = lowering.operands(4)
    a, b = (
        matrix_of(lowering, shape, operand, form) for operand, form in _forms(shape, first, second)
    )
    if shape.result == "double":
        if found.get("cbsz") or found.get("blgp"):
            raise Unsupported("cbsz or blgp on f64 matrices")
        negated = found.get("neg", (0, 0, 0))
        assert isinstance(negated, tuple)
        a, b = (
            _negated(lowering, matrix) if negate else matrix
            for matrix, negate in zip((a, b), negated, strict=False)
        )
        _multiply(lowering, shape, target, a, b, addend, negate=bool(negated[2]))
    else:
        a = _broadcast_blocks(lowering, shape, a, _number(found, "cbsz"), _number(found, "abid"))
        b = _broadcast_lanes(lowering, shape, b, _number(found, "blgp"))
        _multiply(lowering, shape, target, a, b, addend)


def _lower_sparse(lowering: Lowering, shape: Shape) -> None:
    found = modifiers(lowering, "cbsz", "abid")
    target, first, second, index = lowering.operands(4)
    form = FORMATS[shape.a]
    count = shape.elements // 2 * form.bits // 32
    source = lowering.row_source(first, count)
    bits, sets = index_sets(shape)
    # With cbsz the first set of indices is used, otherwise the one that abid selects.
    chosen = 0 if _number(found, "cbsz") else _number(found, "abid") % sets
    dense = lowering.temporary(2 * count)
    lowering.add(
        f"fly_matrix_dense_{form.bits}",
        dense,
        source,
        lowering.row_source(index, 1),
        immediate=chosen * bits,
        extra=count,
    )
    a = Matrix(dense, 2 * count, shape.a)
    b = matrix_of(lowering, shape, second, shape.b)
    _multiply(lowering, shape, target, a, b, target)


def _narrow(
    lowering: Lowering, shape: Shape, first: Operand, second: Operand, found
) -> list[Matrix]:
    """Returns the operands of an f8f6f4 instruction: cbsz and blgp name their formats."""
    forms = [NARROW[_number(found, "cbsz")], NARROW[_number(found, "blgp")]]
    return [
        matrix_of(lowering, shape, operand, form)._replace(
            split=BYTE_RUN if FORMATS[form].bits == 8 else 0
        )
        for operand, form in zip((first, second), forms, strict=True)
    ]


def _lower_narrow(lowering: Lowering, shape: Shape) -> None:
    found = modifiers(lowering, "cbsz", "blgp")
    target, first, second, addend = lowering.operands(4)
    a, b = _narrow(lowering, shape, first, second, found)
    _multiply(lowering, shape, target, a, b, addend)


def _lower_scaled(lowering: Lowering, shape: Shape) -> None:
    found = modifiers(lowering, "cbsz", "blgp", "op_sel", "op_sel_hi")
    target, first, second, addend, *scales = lowering.operands(6)
    a, b = _narrow(lowering, shape, first, second, found)
    flavour = "value" if lowering.mfma == "fast" else "parts"
    low, high = found.get("op_sel", (0, 0, 0)), found.get("op_sel_hi", (1, 1, 1))
    assert isinstance(low, tuple)
    assert isinstance(high, tuple)

    def apply() -> None:
        for number, (operand, place) in enumerate(zip(scales, PLACES, strict=True)):
            byte = low[number] + 2 * high[number]
            lowering.add(
                f"fly_matrix_scale.{flavour}",
                lowering.row_source(operand, 1) + byte,
                place,
                lowering.word(step_of(shape)).offset,
                immediate=SCALE_BLOCK,
            )

    _multiply(lowering, shape, target, a, b, addend, apply)


PLACES = (0, state.MATRIX_B)


def _number(found, name: str) -> int:
    value = found.get(name, 0)
    assert isinstance(value, int)
    return value


def _forms(shape: Shape, first: Operand, second: Operand) -> tuple[tuple[Operand, str], ...]:
    return (first, shape.a), (second, shape.b)


def matrix_of(lowering: Lowering, shape: Shape, operand: Operand, form: str) -> Matrix:
    count = shape.elements * FORMATS[form].bits // 32
    return Matrix(lowering.row_source(operand, count), count, form, shape.split)


def _negated(lowering: Lowering, matrix: Matrix) -> Matrix:
    """Negates an f64 matrix, in temporaries."""
    target = lowering.temporary(matrix.registers)
    _copy(lowering, target, matrix.row, matrix.registers, negate=True)
    return matrix._replace(row=target)


def _copy(lowering: Lowering, target: int, row: int, registers: int, negate: bool) -> None:
    """Copies registers regardless of EXEC, even if they overlap; `negate` changes the signs of f64
    pairs."""
    for number in range(registers) if target <= row else reversed(range(registers)):
        flip = 1 << 31 if negate and number % 2 else 0
        at = number * ROW
        change_bits(lowering, target + at, row + at, flip)


def change_bits(
    lowering: Lowering, target: int, source: int, flip: int, keep: int = MASK_32
) -> None:
    """Copies a register with some bits cleared and others inverted, regardless of EXEC."""
    lowering.add("fly_matrix_flip", target, source, immediate=keep << 32 | flip)


# -- lanes -------------------------------------------------------------------------------------


def _broadcast_blocks(
    lowering: Lowering, shape: Shape, matrix: Matrix, size: int, block: int
) -> Matrix:
    """cbsz and abid: each group of 2^cbsz blocks uses block `abid` of A."""
    if size == 0:
        return matrix
    if 1 << size > shape.blocks or block >= 1 << size:
        raise Unsupported(f"cbsz:{size} abid:{block} on {shape.blocks} blocks")
    sources = []
    for lane in range(LANES):
        row, _, own = input_at(shape, lane, 0)
        sources.append(((own >> size << size) + block) * shape.m + row)
    return _moved(lowering, matrix, sources)


def _broadcast_lanes(lowering: Lowering, shape: Shape, matrix: Matrix, pattern: int) -> Matrix:
    """blgp ("B-matrix lane group pattern"): 1 and 2 use the lower or the upper half of the lanes
    for both, 3 shifts all lanes down by 16, 4 to 7 use one group of 16 for all."""
    if pattern == 0:
        return matrix
    if pattern >= 4:
        groups = [pattern - 4] * 4
    else:
        groups = {1: [0, 1, 0, 1], 2: [2, 3, 2, 3], 3: [1, 2, 3, 0]}[pattern]
    return _moved(lowering, matrix, [16 * groups[lane // 16] + lane % 16 for lane in range(LANES)])


def _moved(lowering: Lowering, matrix: Matrix, sources: list[int], aside: int = 0) -> Matrix:
    """Copies the matrix to temporaries (or those at `aside`) such that lane l holds the data of
    lane `sources[l]`."""
    target = aside or lowering.temporary(matrix.registers)
    places = lowering.registers.constants.row([4 * source for source in sources])
    for number in range(matrix.registers):
        at = number * ROW
        lowering.add("fly_matrix_lanes", target + at, matrix.row + at, places)
    return matrix._replace(row=target)


# -- steps -------------------------------------------------------------------------------------


def _width(shape: Shape) -> int:
    """Returns the size in bytes of a number in the workspace."""
    return 8 if shape.result == "double" else 4


def step_of(shape: Shape) -> int:
    """Returns the stride in bytes along k in the workspace."""
    return shape.m * shape.blocks * _width(shape)


def _unpack(lowering: Lowering, shape: Shape, matrix: Matrix, place: int, flavour: str) -> None:
    form = FORMATS[matrix.form]
    run = matrix.split or shape.elements
    # Signs are changed in place and restored: temporaries are scarce.
    rows = range(matrix.row, matrix.row + matrix.registers * ROW, ROW) if matrix.flip else ()
    for row in rows:
        change_bits(lowering, row, row, matrix.flip)
    for first in range(0, shape.elements, run):
        places = []
        for chunk in range(shape.distinct_lanes // CHUNK):
            row, k, block = input_at(shape, CHUNK * chunk, first, matrix.split)
            places.append(k * step_of(shape) + (block * shape.m + row) * _width(shape))
        words = struct.pack(f"<{2 + len(places)}q", step_of(shape), run // form.elements, *places)
        lowering.add(
            f"fly_unpack_{matrix.form}.{flavour}",
            matrix.row + first * form.bits // 32 * ROW,
            place,
            lowering.registers.constants.place(words),
            extra=4 * shape.distinct_lanes,
        )
    for row in rows:
        change_bits(lowering, row, row, matrix.flip)


def _multiply(
    lowering: Lowering,
    shape: Shape,
    target: Operand,
    a: Matrix,
    b: Matrix,
    addend: Operand,
    between: Callable[[], None] = lambda: None,
    negate: bool = False,
) -> None:
    """Unpacks A and B, runs `between`, and multiplies; `negate` negates C."""
    registers = shape.results * (_width(shape) // 4)
    d = lowering.row_source(target, registers)
    c, constant = addend_of(lowering, shape, addend, registers, negate)
    with_own_control(lowering)
    unpack_both(lowering, shape, a, b)
    between()
    if not constant and (negate or (c != d and abs(c - d) < registers * ROW)):
        # Results are written before all of C has been read, so C is copied to D's place.
        _copy(lowering, d, c, registers, negate)
        c = d
    multiply_add(lowering, shape, d, c, constant)
    with_own_control(lowering, ends=True)


def with_own_control(lowering: Lowering, ends: bool = False) -> None:
    """Sets a control word of their own for matrix instructions, which ignore MODE."""
    if lowering.modes_vary:
        if ends:
            lowering.add("fly_mode_single")
        else:
            lowering.add("fly_use_control", lowering.word(IEEE_CONTROL).offset)


def unpack_both(lowering: Lowering, shape: Shape, a: Matrix, b: Matrix) -> None:
    _, flavour = _model(lowering, shape)
    if shape.m == 4:
        # Unpack A's rows one at a time, each for all columns of its block.
        aside = lowering.temporary(a.registers)
        for row in range(shape.m):
            sources = [lane // shape.m * shape.m + row for lane in range(LANES)]
            moved = _moved(lowering, a, sources, aside)
            _unpack(lowering, shape, moved, row * state.MATRIX_ROW, flavour)
    else:
        _unpack(lowering, shape, a, 0, flavour)
    _unpack(lowering, shape, b, state.MATRIX_B, flavour)


def multiply_add(lowering: Lowering, shape: Shape, d: int, c: int, constant: bool) -> None:
    """Computes D from the unpacked operands and C."""
    model, _ = _model(lowering, shape)
    kind = "quad" if shape.m == 4 else "wide"
    length = BLOCKS[model].length if model in BLOCKS else 1
    words = lowering.registers.constants.place(_descriptor(shape, constant, length))
    lowering.add(f"fly_matrix_{model}.{kind}", d, c, words)


def _model(lowering: Lowering, shape: Shape) -> tuple[str, str]:
    """Returns the summation model, and the number format that it needs."""
    if shape.result != "float":
        return {"double": "fma_f64", "i32": "mul_i32"}[shape.result], "value"
    if shape.model == "fma" or lowering.mfma == "fast":
        return "fma_f32", "value"
    if shape.model in FLUSHED:
        return shape.model, "flushed"
    flushes = shape.model.startswith("complements") and shape.a == "bf16"
    return shape.model, "flushed_parts" if flushes else "parts"


def addend_of(
    lowering: Lowering, shape: Shape, operand: Operand, registers: int, negate: bool
) -> tuple[int, bool]:
    """Returns the place of C, and whether it is a constant: one row (two for f64) for all."""
    if isinstance(operand, Immediate):
        bits = (constant_bits(operand, shape.result) & MASK_64) ^ (negate << 63)
        words = [bits & 0xFFFF_FFFF, bits >> 32][: _width(shape) // 4]
        data = b"".join(struct.pack("<I", word) * LANES for word in words)
        return lowering.registers.constants.place(data), True
    if not isinstance(operand, Register):
        raise Unsupported("an addend that is neither a register nor a constant")
    c = lowering.row_source(operand, registers)
    return c, False


@functools.cache
def _descriptor(shape: Shape, constant: bool, length: int) -> bytes:
    """Returns the words that describe the tiles to a multiply handler (`instructions`), which
    processes `length` k at a time."""
    width = _width(shape)

    def place(row: int, column: int, block: int) -> int:
        register, lane = output_at(shape, row, column, block)
        return register * ROW + lane * 4

    quad = shape.m == 4
    side = 4 if quad else CHUNK
    tiles = []
    if quad:
        for block in range(0, shape.blocks, CHUNK // 4):
            tiles.append((block * 4 * width, block * 4 * width, 0, 0, block))
    else:
        for block in range(shape.blocks):
            for row in range(0, shape.m, side):
                for column in range(0, shape.n, side):
                    start = block * shape.m
                    tiles.append(
                        ((start + row) * width, (start + column) * width, row, column, block)
                    )
    rows = [place(row, 0, 0) if row < side else 0 for row in range(CHUNK)]
    words = [shape.k // length, step_of(shape), len(tiles), *rows]
    words += [0] * CHUNK if constant else rows
    for a, b, row, column, block in tiles:
        d = place(row, column, block)
        words += [a, b, d, 0 if constant else d]
    return struct.pack(f"<{len(words)}q", *words)
