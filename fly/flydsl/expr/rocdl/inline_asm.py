"""`flydsl.expr.rocdl.inline_asm`: instructions that neither MLIR nor LLVM has an operation for."""

from __future__ import annotations

from typing import Any

from fly.flydsl._mlir.dialects import llvm
from fly.flydsl.expr.typing import T

__all__ = ["cvt_off_f32_i4", "cvt_pk_bf16_f32"]


def cvt_off_f32_i4(src_i32: Any, byte_sel: int | None = None) -> Any:
    """The lowest four bits as a float, less 8 and divided by 16 as the instruction does it; with
    `byte_sel`, those of another byte."""
    text = "v_cvt_off_f32_i4 $0, $1"
    if byte_sel is not None:
        text = (
            "v_cvt_off_f32_i4_sdwa $0, $1 dst_sel:DWORD dst_unused:UNUSED_PAD"
            f" src0_sel:BYTE_{int(byte_sel)}"
        )
    return llvm.inline_asm(T.f32, [src_i32], text, "=v,v", has_side_effects=False)


def cvt_pk_bf16_f32(src_a_f32: Any, src_b_f32: Any) -> Any:
    """Two floats as two BFloat16 in an i32 (gfx950)."""
    operands = [src_a_f32, src_b_f32]
    text = "v_cvt_pk_bf16_f32 $0, $1, $2"
    return llvm.inline_asm(T.i32, operands, text, "=v,v,v", has_side_effects=False)
