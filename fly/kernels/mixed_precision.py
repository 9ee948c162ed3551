"""Arithmetic with f16 and f32 in one instruction, which AMD's GPUs have: a product and a sum of
f32, of operands of f16 or with a result of f16 (v_fma_mix_f32, v_fma_mixlo_f16, v_fma_mixhi_f16).

LLVM selects it for single elements. It makes vectors of two of them where it can, and then converts
all operands and results by instructions of their own.
"""

from __future__ import annotations

from typing import Any

from fly_target.registry import find

import fly.expr as fx

# The matrix instructions of chips that convert two numbers to f16 at once, by v_cvt_pk_f16_f32.
CONVERTS_TWO = ("CDNA4",)


def rounds_elements(stored: Any, computed: Any, operands: list[Any]) -> bool:
    """Whether a last operation takes fewer instructions of single elements than of vectors: on the
    target, for a type that results are stored as and one that they are computed in."""
    chip = find(fx.rocdl.get_rocm_arch())
    if chip.amd is None or (stored, computed) != (fx.Float16, fx.Float32):
        return False
    return fx.Float16 in operands or chip.matrix not in CONVERTS_TWO


def rounded(elements: list[Any]) -> Any:
    """A vector of f16, of numbers of f32 that are rounded one by one. Those at odd places are
    rounded to the upper half of a register that has the number before."""
    held = fx.make_rmem_tensor(len(elements), fx.Float16)
    for i, element in enumerate(elements):
        number = element.to(fx.Float16)
        held[i] = number if i % 2 else _apart(number)
    return held.load()


def _apart(x: Any) -> Any:
    """A number that LLVM leaves out of vectors: the result of assembly of no instructions."""
    return fx.inline_asm("", "=v,0", x, results=x.dtype)
