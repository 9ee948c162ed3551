"""Atomics that only gfx11 and gfx12 have (RDNA3 and RDNA4 ISA manuals)."""

from __future__ import annotations

from collections.abc import Iterator

from fly_run.emulator.irgen import Value
from fly_run.emulator.semantics.base.access import Atomic
from fly_run.emulator.semantics.base.emit import Handler
from fly_run.emulator.semantics.base.operation import Operation
from fly_run.emulator.semantics.memory.accesses import Combine, float_pick, keep


def _subtract_clamped(h: Handler, old: Value, data: Value) -> Value:
    """Saturates at 0."""
    return h.intrinsic("llvm.usub.sat", old, data)


def _subtract_if_enough(h: Handler, old: Value, data: Value) -> Value:
    return old.compare("uge", data).select(old - data, old)


# The kinds of VARIANTS of targets whose offsets are unsigned.
UNSIGNED = {"global": ("v", "s"), "flat": ("v",), "buffer": ()}
COMBINE: dict[str, tuple[str, Combine]] = {
    "csub_u32": ("i32", _subtract_clamped),  # gfx12 calls it sub_clamp_u32
    "cond_sub_u32": ("i32", _subtract_if_enough),
    "min_f32": ("float", float_pick("min")),
    "max_f32": ("float", float_pick("max")),
}


def operations() -> Iterator[Operation]:
    for space in ("global", "flat", "buffer"):
        for returns, ending in ((False, ""), (True, ".rtn")):
            for name, (element, combine) in COMBINE.items():
                detail = Atomic(element, combine, returns)
                yield Operation(f"{space}_atomic_{name}{ending}", space, detail=detail)
            # Only gfx11 has these, where a scalar base has no signed offset.
            name, detail = "cmpswap_f32", Atomic("float", keep, returns, compares=True)
            kinds = UNSIGNED[space]
            yield Operation(f"{space}_atomic_{name}{ending}", space, detail=detail, kinds=kinds)
    for returns, middle in ((False, ""), (True, "rtn_")):
        for name, key in (("sub_clamp", "csub_u32"), ("cond_sub", "cond_sub_u32")):
            detail = Atomic("i32", COMBINE[key][1], returns)
            yield Operation(f"ds_{name}_{middle}u32", "lds", detail=detail)
