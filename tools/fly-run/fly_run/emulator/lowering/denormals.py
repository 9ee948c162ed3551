"""Flushes f16 denormals where MODE asks for it, with steps around f16 arithmetic.

The host's control word flushes f32 and f64 natively; f16 is computed in f32, where its denormals
are normal numbers. So kernels that flush them, or change MODE, get extra steps that flush copies of
the sources and the result; other kernels have none.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from fly_run.emulator.lowering.steps import Step
from fly_run.emulator.semantics.base.operation import Operation

HOST_FLUSHES = 1 << 15 | 1 << 6  # MXCSR: results, inputs
PACKED = re.compile(r"v_pk_\w+_f16")
# These keep f16 denormals in any MODE: conversions, field extractions, and table lookups.
KEEPS = re.compile(
    r"v_(?:cvt|frexp|ldexp|rcp|rsq|sqrt|exp|log|sin|cos|s_|div_fixup|cmpx?_class)_?\w*|fly_clamp_\w+"
)


def flushes(control: int) -> bool:
    """Whether a host control word flushes any denormals."""
    return bool(control & HOST_FLUSHES)


def is_half(operation: Operation) -> bool:
    """Whether an operation computes in f16, in its lanes or packed."""
    elements = {*operation.outputs, *operation.inputs}
    return operation.form == "valu" and (
        "half" in elements or PACKED.fullmatch(operation.mnemonic) is not None
    )


def around(
    step: Step, operation: Operation, temporary: Callable[[], int]
) -> tuple[list[Step], Step, list[Step]]:
    """Returns the steps before, the step itself on flushed copies of its sources, and the steps
    after it. An accumulator is flushed in place, because the result replaces it."""
    if not is_half(operation) or KEEPS.fullmatch(operation.mnemonic):
        return [], step, []
    packed = PACKED.fullmatch(operation.mnemonic) is not None
    element, short = ("i32", "pk_f16") if packed else ("half", "f16")
    count = len(operation.outputs)
    name, _, kinds = step.handler.rpartition(".")
    operands, new_kinds = list(step.operands), list(kinds)
    before: list[Step] = []
    for number, (wanted, kind) in enumerate(zip(operation.inputs, kinds, strict=True)):
        if wanted == element:
            place = temporary()
            source = operands[count + number]
            if kind == "s":
                before.append(Step("v_mov_b32.s", (place, source)))
                source = place
            before.append(Step(f"fly_flush_inputs_{short}.v", (place, source)))
            operands[count + number], new_kinds[number] = place, "v"
    if operation.accumulate and operation.outputs[0] == element:
        row = operands[0]
        before.append(Step(f"fly_flush_inputs_{short}.v", (row, row)))
    behind = [
        Step(f"fly_flush_results_{short}.v", (row, row))
        for row, wanted in zip(operands, operation.outputs, strict=False)
        if wanted == element
    ]
    middle = Step(
        f"{name}.{''.join(new_kinds)}", tuple(operands), step.immediate, step.extra, step.link
    )
    return before, middle, behind
