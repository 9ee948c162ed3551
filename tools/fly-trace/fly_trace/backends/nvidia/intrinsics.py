"""Calls of LLVM's intrinsics for NVIDIA."""

from __future__ import annotations

from typing import Any

from fly_target import registry

from fly_trace.core import tracing
from fly_trace.core.target import chip


def intrinsic(what: str, name: str, operands: list[Any], result: str | None = None) -> Any:
    """Calls an LLVM intrinsic; returns its result, if it has one."""
    builder = tracing.kernel(what)
    attributes = {
        "intrin": builder.attribute(f'"llvm.nvvm.{name}"'),
        "op_bundle_sizes": builder.attribute("array<i32>"),
        "operandSegmentSizes": builder.attribute(f"array<i32: {len(operands)}, 0>"),
    }
    results = [] if result is None else [builder.type(result)]
    made = builder.op("llvm.call_intrinsic", results, operands, attributes).results
    return None if result is None else made[0]


def require(what: str, trait: str) -> None:
    """Refuses a target without a trait. The trace is then specific to its target."""
    row = registry.find(chip(what))
    if trait not in row.traits:
        known = ", ".join(registry.with_trait(trait))
        tracing.refuse(f"{row.name} has no {what}", f"the targets that have it: {known}")
