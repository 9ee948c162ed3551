"""The floating-point operations of instructions, by mnemonic.

They are those of AMD's performance counters for vector instructions (SQ_INSTS_VALU_ADD_F32, MUL,
FMA, TRANS, the same for F16 and F64) and matrix instructions (SQ_INSTS_VALU_MFMA_MOPS); source:
ROCm's documentation, "MI300 and MI200 performance counters". In each active lane, an addition,
subtraction or multiplication counts 1, a fused multiply-add 2, a reciprocal, root, exponential,
logarithm, sine or cosine 1; a packed instruction counts that for each of its two parts; a dot
product of two pairs 4. A product of M×K and K×N matrices counts 2·M·N·K for each block.
`v_div_fmas` is a fused multiply-add. Everything else is none: minima, comparisons, conversions,
rounding, scaling by powers of two, atomics.

Unlike the counters, which count whole waves, these count lanes that are active.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from fly_run.emulator.isa import matrix
from fly_run.emulator.isa.instruction import split_mnemonic

if TYPE_CHECKING:
    from fly_run.emulator.isa.instruction import Instruction
    from fly_run.emulator.watch.observe import Count

_FLOAT = r"_(?:f16|bf16|f32|f64)"
_ONE = re.compile(
    rf"(?:add|sub|subrev|mul|rcp|rcp_iflag|rsq|sqrt|exp|log|sin|cos){_FLOAT}"
    r"|mul_(?:legacy|dx9_zero)_f32|(?:rcp|rsq|exp|log)_legacy_f32"
)
_TWO = re.compile(
    rf"(?:fma|fmac|fmaak|fmamk|mad|mac|madak|madmk|div_fmas){_FLOAT}"
    r"|(?:fma|fmac|mad|mac)_(?:legacy|dx9_zero)_f32|(?:fma|mad)_mix(?:lo|hi)?_\w+"
)
_FOUR = re.compile(r"dot2(?:acc|c)?_f32_b?f16|dot2_b?f16_b?f16")


@functools.cache
def of_operation(name: str) -> int:
    """Returns the FLOPs of one lane, by the mnemonic without `v_` or `s_` and without its
    encoding."""
    if name.startswith("pk_"):
        return 2 * of_operation(name.removeprefix("pk_"))
    for count, pattern in (1, _ONE), (2, _TWO), (4, _FOUR):
        if pattern.fullmatch(name):
            return count
    return 0


@functools.cache
def _shapes() -> dict[str, matrix.Shape]:
    return {mnemonic: shape for mnemonic, shape, _ in matrix.instructions()}


def shape_of(instruction: Instruction) -> matrix.Shape | None:
    """Returns the shape of a matrix instruction, None for any other."""
    return _shapes().get(split_mnemonic(instruction.mnemonic)[0])


def of_count(count: Count) -> tuple[int, int]:
    """Returns the FLOPs of an instruction's executions: those of lanes, and those of matrices."""
    found = _of_lanes(count.instruction, count.times, count.lanes)
    if count.instruction.second is not None:
        found += _of_lanes(count.instruction.second, count.times, count.lanes)
    shape = shape_of(count.instruction)
    if shape is None or shape.result == "i32":
        return found, 0
    return found, of_matrices(count, shape)


def of_matrices(count: Count, shape: matrix.Shape) -> int:
    """Returns the operations of a matrix instruction's executions, also of integers."""
    each = 2 * shape.m * shape.n * shape.k * shape.blocks
    return count.times * matrix.results(count.instruction.mnemonic) * each


def _of_lanes(instruction: Instruction, times: int, lanes: int) -> int:
    name = split_mnemonic(instruction.mnemonic)[0]
    if name.startswith("v_s_"):  # gfx12: the result is a scalar
        return times * of_operation(name.removeprefix("v_s_"))
    if name.startswith("v_"):
        return lanes * of_operation(name.removeprefix("v_").removeprefix("dual_"))
    return times * of_operation(name.removeprefix("s_")) if name.startswith("s_") else 0


def total(counts: Sequence[Count]) -> dict[str, int]:
    """Returns the FLOPs of a launch: of vector and scalar instructions, and of matrices."""
    found = [of_count(count) for count in counts]
    return {"vector": sum(one for one, _ in found), "matrix": sum(one for _, one in found)}
