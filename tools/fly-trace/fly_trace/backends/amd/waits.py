"""Waits for a wave's pending memory accesses: `fx.rocdl.s_waitcnt`.

Before gfx12, one instruction waits for all counters, in fields whose positions differ between
generations. gfx12 has an instruction for each counter.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fly_target.amd.waits import GFX9, GFX11, GFX12, Waits

from fly_trace.backends.amd.arch import chosen
from fly_trace.backends.amd.scheduling import emit
from fly_trace.core import tracing
from fly_trace.gpu.immediates import number

__all__ = ["s_waitcnt"]


def _in_fields(what: str, waits: Waits) -> Callable[..., None]:
    def wait(vmcnt: Any = None, lgkmcnt: Any = None, expcnt: Any = None) -> None:
        word = waits.word(
            _counter(vmcnt, "vmcnt", waits.vm.most),
            _counter(lgkmcnt, "lgkmcnt", waits.lgkm.most),
            _counter(expcnt, "expcnt", waits.exp.most),
        )
        emit("s.waitcnt", f"{what}.s_waitcnt", bitfield=f"{word} : i32")

    wait.__name__ = wait.__qualname__ = "s_waitcnt"
    wait.__doc__ = f"""Waits until at most so many accesses are under way: of memory (vmcnt), of LDS
    and scalar memory (lgkmcnt), exports (expcnt). None waits for none. {what}'s encoding."""
    return wait


def _counter(value: Any, name: str, most: int) -> int:
    return most if value is None else number(value, name, most)


cdna3_s_waitcnt = _in_fields("fx.rocdl.cdna3", GFX9)
rdna3_s_waitcnt = _in_fields("fx.rocdl.rdna3", GFX11)


def rdna4_s_waitcnt(vmcnt: Any = None, lgkmcnt: Any = None, expcnt: Any = None) -> None:
    """Waits until at most this many accesses are pending: loads (vmcnt: s_wait_loadcnt), LDS and
    scalar memory (lgkmcnt: s_wait_dscnt, s_wait_kmcnt), exports (expcnt). None means no wait.

    LDS and scalar memory, which lgkmcnt counts together, have separate counters. Scalar loads
    complete out of order, so only a wait for 0 is meaningful for them, and that is what is emitted.
    """
    what = "fx.rocdl.rdna4.s_waitcnt"
    vm = _counter(vmcnt, "vmcnt", GFX12.vm.most)
    lgkm = _counter(lgkmcnt, "lgkmcnt", GFX12.lgkm.most)
    exp = _counter(expcnt, "expcnt", GFX12.exp.most)
    if vm < GFX12.vm.most:
        emit("s.wait.loadcnt", what, count=f"{vm} : i16")
    if lgkm < GFX12.lgkm.most:
        emit("s.wait.dscnt", what, count=f"{lgkm} : i16")
        _wait_for_scalars(what)
    if exp < GFX12.exp.most:
        emit("s.wait.expcnt", what, count=f"{exp} : i16")


def _wait_for_scalars(what: str) -> None:
    """Emits s_wait_kmcnt 0, for which rocdl has no op."""
    builder = tracing.kernel(what)
    nothing = builder.one("arith.constant", "i16", value=builder.integer(0, "i16"))
    attributes = {
        "intrin": builder.attribute('"llvm.amdgcn.s.wait.kmcnt"'),
        "op_bundle_sizes": builder.attribute("array<i32>"),
        "operandSegmentSizes": builder.attribute("array<i32: 1, 0>"),
    }
    builder.op("llvm.call_intrinsic", [], [nothing], attributes)


_BY_GENERATION = {"gfx9": cdna3_s_waitcnt, "gfx11": rdna3_s_waitcnt, "gfx12": rdna4_s_waitcnt}


def s_waitcnt(
    bitfield: Any = None, *, vmcnt: Any = None, lgkmcnt: Any = None, expcnt: Any = None
) -> None:
    """Waits until at most this many accesses are pending, encoded for the trace's target. See
    `fx.rocdl.cdna3.s_waitcnt`, `rdna3`, `rdna4`. A `bitfield` is used as the immediate."""
    what = "fx.rocdl.s_waitcnt"
    if bitfield is None:
        wait = chosen(what, _BY_GENERATION)
        wait(vmcnt, lgkmcnt, expcnt)
        return
    if (vmcnt, lgkmcnt, expcnt) != (None, None, None):
        tracing.refuse(
            f"{what} takes a bitfield or counters, not both",
            "use the counters only: fx.rocdl.s_waitcnt(vmcnt=0)",
        )
    emit("s.waitcnt", what, bitfield=f"{number(bitfield, what, 0xFFFF)} : i32")
