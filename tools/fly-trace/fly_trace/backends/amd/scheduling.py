"""Hints to the instruction scheduler, and asynchronous copy groups: `fx.rocdl.sched_…`."""

from __future__ import annotations

from typing import Any

from fly_trace.core import tracing
from fly_trace.gpu.immediates import number

__all__ = [
    "asyncmark",
    "iglp_opt",
    "s_setprio",
    "s_sleep",
    "sched_barrier",
    "sched_dsrd",
    "sched_dswr",
    "sched_group_barrier",
    "sched_mfma",
    "sched_vmem",
    "wait_asyncmark",
]

# Bits of a scheduling mask and MLIR's names (AMDGPUUsage, llvm.amdgcn.sched.barrier).
MASKS = {
    0x001: "non_mem_non_sideeffect",
    0x002: "valu",
    0x004: "salu",
    0x008: "mfma_wmma",
    0x010: "all_vmem",
    0x020: "vmem_read",
    0x040: "vmem_write",
    0x080: "all_ds",
    0x100: "ds_read",
    0x200: "ds_write",
    0x400: "transcendental",
}


def emit(name: str, what: str, **attributes: str) -> None:
    """Builds an op of the rocdl dialect. Attributes are given as text."""
    builder = tracing.kernel(what)
    made = {key: builder.attribute(text) for key, text in attributes.items()}
    builder.op(f"rocdl.{name}", [], [], made)


def _mask(mask: Any, what: str) -> str:
    bits = number(mask, f"the mask of {what}", 0x7FF)
    words = [word for bit, word in MASKS.items() if bits & bit]
    return f"#rocdl<sched_group_mask {'|'.join(words) or 'none'}>"


def sched_barrier(mask: int) -> None:
    """Prevents instructions from moving across, except those in `mask`: 1 no memory access, 2 VALU,
    4 SALU, 8 MFMA, 0x10 VMEM, 0x20 VMEM reads, 0x40 VMEM writes, 0x80 LDS, 0x100 LDS reads, 0x200
    LDS writes, 0x400 transcendental."""
    emit("sched.barrier", "fx.rocdl.sched_barrier", mask=_mask(mask, "sched_barrier"))


def sched_group_barrier(mask: int, size: int, group_id: int) -> None:
    """Makes the next `size` instructions in `mask` a group. Groups with the same `group_id` are
    scheduled in order."""
    what = "fx.rocdl.sched_group_barrier"
    emit(
        "sched.group.barrier",
        what,
        mask=_mask(mask, "sched_group_barrier"),
        size=f"{number(size, f'the size of {what}', 2**31 - 1)} : i32",
        groupId=f"{number(group_id, f'the group of {what}', 2**31 - 1)} : i32",
    )


def sched_mfma(cnt: int) -> None:
    """A group of `cnt` matrix instructions."""
    sched_group_barrier(0x008, cnt, 0)


def sched_vmem(cnt: int) -> None:
    """A group of `cnt` loads from memory."""
    sched_group_barrier(0x020, cnt, 0)


def sched_dsrd(cnt: int) -> None:
    """A group of `cnt` reads of LDS."""
    sched_group_barrier(0x100, cnt, 0)


def sched_dswr(cnt: int) -> None:
    """A group of `cnt` writes to LDS."""
    sched_group_barrier(0x200, cnt, 0)


def iglp_opt(variant: int) -> None:
    """Selects one of LLVM's schedules for a whole block: 0 for small GEMMs, 1 for single waves."""
    what = "fx.rocdl.iglp_opt"
    emit("iglp.opt", what, variant=f"{number(variant, what, 3)} : i32")


def s_setprio(priority: int) -> None:
    """Sets the wave's priority, 0 to 3."""
    what = "fx.rocdl.s_setprio"
    emit("s.setprio", what, priority=f"{number(priority, what, 3)} : i16")


def s_sleep(count: int) -> None:
    """Sleeps for about 64 clocks times `count`."""
    what = "fx.rocdl.s_sleep"
    emit("s.sleep", what, count=f"{number(count, what, 127)} : i32")


def asyncmark() -> None:
    """Ends a group of asynchronous copies."""
    emit("asyncmark", "fx.rocdl.asyncmark")


def wait_asyncmark(count: int = 0) -> None:
    """Waits until at most `count` groups of asynchronous copies are pending."""
    what = "fx.rocdl.wait_asyncmark"
    emit("wait.asyncmark", what, count=f"{number(count, what, 0xFFFF)} : i16")
