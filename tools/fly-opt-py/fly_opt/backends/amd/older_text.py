"""Rewrites LLVM IR text for intrinsics whose signature differs between LLVM 24 and LLVM 22.

LLVM 24 dropped the modifiers of A and B from gfx1250 matrix instructions with f32, f16 and bf16
operands; LLVM 22 has them as booleans before the operands. The code emitted here uses none.
"""

from __future__ import annotations

import re

# v_wmma_f32_16x16x4_f32 and the 16x16x32 instructions: A and B are two operands of one type, before
# C's modifier.
_UNMODIFIED = re.compile(
    r"(@llvm\.amdgcn\.wmma\.\w+\.16x16x(?:4\.f32|32\.b?f16)\.[\w.]+\()(<\d+ x \w+>)([^\n]*?, )(\2)"
    r"([^\n]*?, i16 )"
)


def bridge(text: str) -> str:
    """Adds the modifiers that LLVM 22 expects."""
    return _with_modifiers(text) if "@llvm.amdgcn.wmma." in text else text


def _with_modifiers(text: str) -> str:
    """In a call the modifiers are `i1 false`; in a declaration they are types only."""

    def rewrite(match: re.Match[str]) -> str:
        name, a, first, b, rest = match.groups()
        modifier = "i1, " if first == ", " else "i1 false, "
        return f"{name}{modifier}{a}{first}{modifier}{b}{rest}"

    return _UNMODIFIED.sub(rewrite, text)
