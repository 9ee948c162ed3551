"""Intrinsics of the bindings' LLVM 24 whose form LLVM 22 reads otherwise, in LLVM IR text.

Matrix instructions of gfx1250 whose operands are f32, f16 and bf16 have lost their modifiers of A
and B in LLVM 24; LLVM 22 has them, as booleans before the operands. What is printed here uses none.
"""

from __future__ import annotations

import re

# A and B of v_wmma_f32_16x16x4_f32 and of those that are 16x16x32: two operands of one type, before
# C's modifier.
_UNMODIFIED = re.compile(
    r"(@llvm\.amdgcn\.wmma\.\w+\.16x16x(?:4\.f32|32\.b?f16)\.[\w.]+\()(<\d+ x \w+>)([^\n]*?, )(\2)"
    r"([^\n]*?, i16 )"
)


def bridge(text: str) -> str:
    """The text with the modifiers that LLVM 22 wants."""
    return _with_modifiers(text) if "@llvm.amdgcn.wmma." in text else text


def _with_modifiers(text: str) -> str:
    """A call's modifiers are `i1 false`; a declaration's have no value."""

    def rewrite(match: re.Match[str]) -> str:
        name, a, first, b, rest = match.groups()
        modifier = "i1, " if first == ", " else "i1 false, "
        return f"{name}{modifier}{a}{first}{modifier}{b}{rest}"

    return _UNMODIFIED.sub(rewrite, text)
