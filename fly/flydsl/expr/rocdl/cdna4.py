"""`flydsl.expr.rocdl.cdna4`: gfx950."""

from __future__ import annotations

from typing import Any

from fly_trace.backends.amd.rocdl import cdna4 as _language
from fly_trace.backends.amd.rocdl.cdna4 import *  # noqa: F403
from fly_trace.expr.types import BFloat16, Boolean, Float32, Uint32

from fly.flydsl._mlir.dialects import llvm
from fly.flydsl.expr.rocdl.cdna3 import s_waitcnt as s_waitcnt

__all__ = [*_language.__all__, "cvt_sr_f32_to_bf16"]


def cvt_sr_f32_to_bf16(x: Any, rand: Any) -> Any:
    """A float as BFloat16, rounded up as often as 32 random bits say."""
    from fly_trace.values.vector.vectors import VectorType

    pair = VectorType(BFloat16, 2)
    operands = [llvm.mlir_undef(pair), Float32(x), Uint32(rand), Boolean(False)]
    made = llvm.call_intrinsic(pair, "llvm.amdgcn.cvt.sr.bf16.f32", operands, [], [])
    return BFloat16(made[0])
