"""Arithmetic with f16 and f32 in one instruction, which AMD's GPUs have: a product and a sum of f32,
of operands of f16 or with a result of f16.

LLVM selects it for single elements. It makes vectors of two of them where it can, and then converts
all operands and results by instructions of their own.
"""

from __future__ import annotations

from typing import Any

from fly_target.registry import find

import fly.expr as fx


def rounds_elements(computed: Any, stored: Any) -> bool:
    """Whether the target rounds results to f16 as it computes them, if they are single elements."""
    on_amd = find(fx.rocdl.get_rocm_arch()).amd is not None
    return on_amd and computed is fx.Float32 and stored is fx.Float16


def apart(x: Any) -> Any:
    """A number that LLVM leaves out of vectors: the result of assembly of no instructions."""
    return fx.inline_asm("", "=v,0", x, results=x.dtype)
