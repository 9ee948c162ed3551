"""Functions of the language at an insertion point of MLIR that the program has entered itself.

    with ir.Context(), ir.Location.unknown():
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            …

FlyDSL's functions build wherever MLIR's bindings do. Here a builder stands for the insertion point,
as long as no function of `@flyc.jit` is traced.
"""

from __future__ import annotations

import threading
from typing import Any

from fly_trace.core import tracing

# The dialects of MLIR that the language's functions build.
BUILT = ("arith", "cf", "func", "gpu", "llvm", "math", "memref", "scf", "ub", "vector")


class _Last(threading.local):
    """The builder that was used last."""

    builder: Any = None
    function: Any = None  # the operation that it builds in
    is_made: bool = False  # now: making one asks for the builder around it


_last = _Last()


def builder() -> Any:
    """The builder for the current insertion point; None if there is none."""
    from fly_dialect import bindings

    ir: Any = bindings.ir
    if _last.is_made:
        return None
    try:
        place = ir.InsertionPoint.current
    except ValueError:
        return None
    context, function = ir.Context.current, _function_of(place.block)
    held = _last.builder
    if held is None or held.context is not context or _last.function != function:
        _last.is_made = True
        try:
            held = _last.builder = _made(context, function.regions[0].blocks[0])
        finally:
            _last.is_made = False
        _last.function = function
    held.ip = place
    return held


def _function_of(block: Any) -> Any:
    """The function around a block; without one, the outermost operation."""
    op = block.owner.operation
    while op.name not in ("func.func", "gpu.func") and op.parent is not None:
        op = op.parent.operation
    return op


def _made(context: Any, block: Any) -> Any:
    from fly_dialect import dialect as fly
    from fly_trace.core.target import Target
    from fly_trace.effects.snapshots import Origin, Snapshot
    from fly_trace.session.builder import Builder
    from fly_trace.session.op_locations import Locations

    from fly.flydsl.numbers.operators import FlyDSLNumbers

    fly.load_upstream(context, BUILT)
    fly.load(context)
    return Builder(
        context,
        block,
        host=False,
        locations=Locations(context),
        target=Target(None),
        frozen=Snapshot(Origin.OUTSIDE),
        rules=FlyDSLNumbers(is_free=True),  # type: ignore[arg-type]
    )


def install() -> None:
    tracing.AMBIENT.append(builder)
