"""What AMD's targets have for `fx.pipeline`: on gfx1250, asynchronous copies to LDS.

CDNA's direct loads to LDS are no use for rings yet: LLVM 22 waits for all of them before any read
of LDS, those that are ahead included. So their copies go through registers, as on RDNA.
"""

from __future__ import annotations

from typing import Any, NoReturn

from fly_trace.backends.amd.rocdl.cdna5 import s_wait_asynccnt
from fly_trace.core import tracing
from fly_trace.core.target import chip
from fly_trace.memory.view_construction import get_iter
from fly_trace.pipelines.mechanisms import Direct, Guards
from fly_trace.values.dtypes import I32
from fly_trace.values.scalars import Scalar

WHAT = "fx.pipeline"
MOST_COPIES = 63  # that s_wait_asynccnt can leave


def _intrinsic(name: str, operands: list[Any], result: str | None = None) -> Any:
    builder = tracing.kernel(WHAT)
    attributes = {
        "intrin": builder.attribute(f'"llvm.amdgcn.{name}"'),
        "op_bundle_sizes": builder.attribute("array<i32>"),
        "operandSegmentSizes": builder.attribute(f"array<i32: {len(operands)}, 0>"),
    }
    results = [] if result is None else [builder.type(result)]
    made = builder.op("llvm.call_intrinsic", results, operands, attributes).results
    return None if result is None else made[0]


def _copy(source: Any, target: Any, dtype: Any) -> None:
    builder = tracing.kernel(WHAT)
    ends = [
        builder.fly_op("to_llvm_ptr", [get_iter(one).value(builder)], {})
        for one in (source, target)
    ]
    nothing = [builder.constant(0, I32), builder.constant(0, I32)]  # offset, cache policy
    _intrinsic("global.load.async.to.lds.b128", [*ends, *nothing])


class AmdRings:
    """See `fly_trace.pipelines.mechanisms.Rings`."""

    def is_specialised(self, target: str) -> bool:
        return False

    def direct(self, target: str) -> Direct | None:
        if target != "gfx1250":
            return None
        return Direct(_copy, lambda: None, s_wait_asynccnt, groups=False, most=MOST_COPIES)

    def guards(self, stages: int, consumers: int) -> Guards:
        _refuse("warp group that copies for others")

    def source(self, tensor: Any, layout: Any) -> Any:
        return tensor

    def is_source(self, value: Any) -> bool:
        return False

    def uniform(self, value: Any) -> Any:
        builder = tracing.kernel(WHAT)
        return Scalar(I32, _intrinsic("readfirstlane.i32", [builder.ssa(value)], "i32"))

    def set_registers(self, count: int, threads: int) -> None:
        """Waves have as many registers as their kernel, for good."""

    def barrier(self, number: int, threads: int) -> None:
        _refuse("barrier for a part of a block here")


def _refuse(what: str) -> NoReturn:
    tracing.refuse(
        f"{chip(WHAT)} has no {what}",
        "launch with block=fx.pipeline_threads(…), and use fx.barrier",
    )


RINGS = AmdRings()
