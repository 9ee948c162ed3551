"""Rewrites LLVM IR text for intrinsics whose signature differs between LLVM 24 and LLVM 22.

LLVM 24 dropped the modifiers of A and B from gfx1250 matrix instructions with f32, f16 and bf16
operands; LLVM 22 has them as booleans before the operands. The code emitted here uses none. LLVM 24
gave the tensor data mover's descriptor a fifth group, which is all zeros and which LLVM 22 lacks.
"""

from __future__ import annotations

import re

from fly_common.errors import InputError

# v_wmma_f32_16x16x4_f32 and the 16x16x32 instructions: A and B are two operands of one type, before
# C's modifier.
_UNMODIFIED = re.compile(
    r"(@llvm\.amdgcn\.wmma\.\w+\.16x16x(?:4\.f32|32\.b?f16)\.[\w.]+\()(<\d+ x \w+>)([^\n]*?, )(\2)"
    r"([^\n]*?, i16 )"
)
# The first four groups, the fifth, and the cache policy.
_TENSOR = re.compile(
    r"(@llvm\.amdgcn\.tensor\.(?:load\.to|store\.from)\.lds\([^\n]*), <8 x i32>"
    r"( [^\n]*?)?(, i32 [^\n]*)"
)


def bridge(text: str) -> str:
    """Adds the modifiers that LLVM 22 expects, and leaves out the group that it does not. Raises
    InputError if that group is not zero."""
    if "@llvm.amdgcn.tensor." in text:
        text = _TENSOR.sub(_without_fifth_group, text)
    return _with_modifiers(text) if "@llvm.amdgcn.wmma." in text else text


def _without_fifth_group(match: re.Match[str]) -> str:
    groups, fifth, rest = match.groups()
    if fifth not in (None, " zeroinitializer"):
        raise InputError(
            "the fifth group of a tensor data mover's descriptor must be constant zeros",
            hint="LLVM 22, which generates the machine code, has descriptors of four groups",
        )
    return groups + rest


def _with_modifiers(text: str) -> str:
    """In a call the modifiers are `i1 false`; in a declaration they are types only."""

    def rewrite(match: re.Match[str]) -> str:
        name, a, first, b, rest = match.groups()
        modifier = "i1, " if first == ", " else "i1 false, "
        return f"{name}{modifier}{a}{first}{modifier}{b}{rest}"

    return _UNMODIFIED.sub(rewrite, text)
