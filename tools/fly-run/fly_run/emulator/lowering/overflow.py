"""Keeps f16 results finite where MODE.FP16_OVFL asks for it, with steps around operations.

The mode clamps an overflowed result to the largest number, in every rounding mode, and leaves true
infinities (ISA manuals, MODE): those come from an infinite source or from a division by zero (LLVM,
"Kernel Descriptor", FP16_OVFL), the poles of v_rcp, v_rsq and v_log. RDNA4 clamps at the poles
too (`AmdFacts.clamps_poles`): AMD measured gfx1201 for its emulator rocjitsu
(shared/transcendental.h).

Only kernels that start in that mode, or write its bit of MODE, have these steps.
"""

from __future__ import annotations

import re

from fly_run.emulator.lowering.steps import Lowering, Source, Step
from fly_run.emulator.semantics.base.operation import Operation

PACKED = re.compile(r"v_pk_\w+_f16")
# Narrows two values into halves of a register.
PAIR = "v_cvt_pk_f16_f32"
# A sum in f32 that a separate step narrows: its infinities are legitimate for the same reasons.
SUM = "v_fma_f32"
MIXED = re.compile(r"v_(?:fma|mad)_mix(?:lo|hi)_f16")
# A zero source makes these infinite.
POLES = re.compile(r"v_(?:rcp|rsq|log)_f16")
# Infinities of these always come from a source or represent a division by zero.
NEVER = re.compile(r"v_div_fixup(?:_legacy)?_f16")
TYPES = {"half": "f16", "float": "f32"}
MOST_SOURCES = 3


def around(step: Step, operation: Operation, lowering: Lowering) -> tuple[list[Step], list[Step]]:
    """Returns the steps before, which record where all sources are finite, and those after, which
    replace infinities there by the largest number."""
    formats = _formats(operation, lowering)
    if formats is None:
        return [], []
    sources, result = formats
    row = step.operands[0]
    finite, before = lowering.word(-1), []  # integers always are
    if places := _places(step, operation):
        if sources != "pair":
            places += places[:1] * (MOST_SOURCES - len(places))
        finite = Source("v", lowering.temporary())
        name = operation.mnemonic
        pole = POLES.fullmatch(name) and not lowering.registers.facts.clamps_poles
        name = f"fly_finite_{sources}"
        before = lowering.aside(name, (finite.offset,), *places, immediate=int(bool(pole)))
    return before, lowering.aside(f"fly_hold_{result}", (row,), finite)


def _formats(operation: Operation, lowering: Lowering) -> tuple[str, str] | None:
    """Returns the formats of an operation's sources and result if it may overflow in f16."""
    name = operation.mnemonic
    if name == PAIR:
        return "pair", "pk_f16"
    if PACKED.fullmatch(name):
        return "pk_f16", "pk_f16"
    if name == SUM and MIXED.fullmatch(lowering.instruction.mnemonic):
        return "f32", "f32"
    if operation.outputs != ("half",) or NEVER.fullmatch(name):
        return None
    return next((TYPES[kind] for kind in operation.inputs if kind in TYPES), ""), "f16"


def _places(step: Step, operation: Operation) -> list[Source]:
    """Returns the float sources, including packed ones and an accumulator."""
    wanted = ("i32",) if PACKED.fullmatch(operation.mnemonic) else TYPES
    kinds = step.handler.rpartition(".")[2]
    offsets = step.operands[1:]
    found = [
        Source(kind, offset)
        for element, kind, offset in zip(operation.inputs, kinds, offsets, strict=False)
        if element in wanted
    ]
    return [*found, Source("v", step.operands[0])] if operation.accumulate else found
