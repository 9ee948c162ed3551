"""Waits for accesses that a wave has under way: `fx.rocdl.s_waitcnt`.

Before gfx12 one instruction holds all counters, in fields whose places differ between
generations; gfx12 has an instruction for each counter.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fly_trace.backends.amd.arch import chosen
from fly_trace.backends.amd.scheduling import emit
from fly_trace.core import tracing
from fly_trace.values.immediates import number

__all__ = ["s_waitcnt"]

# Counter → the (shift, width) pieces of its field in S_WAITCNT's immediate, the low piece first.
Fields = dict[str, tuple[tuple[int, int], ...]]
# CDNA3 ISA manual, S_WAITCNT; gfx90a and gfx950 have the same fields.
CDNA3: Fields = {"vmcnt": ((0, 4), (14, 2)), "lgkmcnt": ((8, 4),), "expcnt": ((4, 3),)}
# RDNA3 ISA manual, S_WAITCNT.
RDNA3: Fields = {"vmcnt": ((10, 6),), "lgkmcnt": ((4, 6),), "expcnt": ((0, 3),)}
# RDNA4 ISA manual, S_WAIT_*CNT: the greatest number of each, which waits for nothing.
RDNA4 = {"vmcnt": 63, "lgkmcnt": 63, "expcnt": 7}


def _in_fields(what: str, fields: Fields) -> Callable[..., None]:
    def wait(vmcnt: Any = None, lgkmcnt: Any = None, expcnt: Any = None) -> None:
        word = 0
        given = {"vmcnt": vmcnt, "lgkmcnt": lgkmcnt, "expcnt": expcnt}
        for name, pieces in fields.items():
            most = (1 << sum(width for _, width in pieces)) - 1
            value = _counter(given[name], name, most)
            for shift, width in pieces:
                word |= (value & (1 << width) - 1) << shift
                value >>= width
        emit("s.waitcnt", f"{what}.s_waitcnt", bitfield=f"{word} : i32")

    wait.__name__ = wait.__qualname__ = "s_waitcnt"
    wait.__doc__ = f"""Waits until at most so many accesses are under way: of memory (vmcnt), of LDS
    and scalar memory (lgkmcnt), exports (expcnt). None waits for none. {what}'s encoding."""
    return wait


def _counter(value: Any, name: str, most: int) -> int:
    return most if value is None else number(value, name, most)


cdna3_s_waitcnt = _in_fields("fx.rocdl.cdna3", CDNA3)
rdna3_s_waitcnt = _in_fields("fx.rocdl.rdna3", RDNA3)


def rdna4_s_waitcnt(vmcnt: Any = None, lgkmcnt: Any = None, expcnt: Any = None) -> None:
    """Waits until at most so many accesses are under way: loads (vmcnt: s_wait_loadcnt), of LDS and
    scalar memory (lgkmcnt: s_wait_dscnt, s_wait_kmcnt), exports (expcnt). None waits for none.

    LDS and scalar memory, which lgkmcnt counts together, have a counter each. Scalar loads are done
    in any order, so that only 0 says something of them: that is what they are waited for.
    """
    what = "fx.rocdl.rdna4.s_waitcnt"
    given = {"vmcnt": vmcnt, "lgkmcnt": lgkmcnt, "expcnt": expcnt}
    counts = {name: _counter(value, name, RDNA4[name]) for name, value in given.items()}
    if counts["vmcnt"] < RDNA4["vmcnt"]:
        emit("s.wait.loadcnt", what, count=f"{counts['vmcnt']} : i16")
    if counts["lgkmcnt"] < RDNA4["lgkmcnt"]:
        emit("s.wait.dscnt", what, count=f"{counts['lgkmcnt']} : i16")
        _wait_for_scalars(what)
    if counts["expcnt"] < RDNA4["expcnt"]:
        emit("s.wait.expcnt", what, count=f"{counts['expcnt']} : i16")


def _wait_for_scalars(what: str) -> None:
    """s_wait_kmcnt 0; rocdl has no op for it."""
    builder = tracing.kernel(what)
    nothing = builder.one("arith.constant", "i16", value=builder.integer(0, "i16"))
    attributes = {
        "intrin": builder.attribute('"llvm.amdgcn.s.wait.kmcnt"'),
        "op_bundle_sizes": builder.attribute("array<i32>"),
        "operandSegmentSizes": builder.attribute("array<i32: 1, 0>"),
    }
    builder.op("llvm.call_intrinsic", [], [nothing], attributes)


_BY_GENERATION = {"cdna3": cdna3_s_waitcnt, "rdna3": rdna3_s_waitcnt, "rdna4": rdna4_s_waitcnt}


def s_waitcnt(
    bitfield: Any = None, *, vmcnt: Any = None, lgkmcnt: Any = None, expcnt: Any = None
) -> None:
    """Waits until at most so many accesses are under way, as the trace's target encodes it: see
    `fx.rocdl.cdna3.s_waitcnt`, `rdna3`, `rdna4`. A `bitfield` is the immediate as it is."""
    what = "fx.rocdl.s_waitcnt"
    if bitfield is None:
        wait = chosen(what, _BY_GENERATION)
        wait(vmcnt, lgkmcnt, expcnt)
        return
    if (vmcnt, lgkmcnt, expcnt) != (None, None, None):
        tracing.refuse(
            f"{what} takes a bitfield or counters, not both",
            "the counters alone: fx.rocdl.s_waitcnt(vmcnt=0)",
        )
    emit("s.waitcnt", what, bitfield=f"{number(bitfield, what, 0xFFFF)} : i32")
