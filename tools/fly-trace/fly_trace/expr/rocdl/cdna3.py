"""`fx.rocdl.cdna3`: gfx90a and gfx942."""

from __future__ import annotations

from fly_trace.scheduling import emit, number

__all__ = ["s_waitcnt"]


def s_waitcnt(vmcnt: int = 63, lgkmcnt: int = 15, expcnt: int = 7) -> None:
    """Waits until at most so many accesses are under way: of memory (vmcnt), of LDS and scalar
    memory (lgkmcnt), exports (expcnt). (CDNA3 ISA manual, S_WAITCNT: vmcnt in bits 15:14 and 3:0,
    lgkmcnt in 11:8, expcnt in 6:4.)"""
    vm, lgkm = number(vmcnt, "vmcnt", 63), number(lgkmcnt, "lgkmcnt", 15)
    field = (vm & 15) | (vm >> 4) << 14 | number(expcnt, "expcnt", 7) << 4 | lgkm << 8
    emit("s.waitcnt", "fx.rocdl.cdna3.s_waitcnt", bitfield=f"{field} : i32")
