"""`fx.rocdl.rdna3`: gfx11."""

from __future__ import annotations

from fly_dialect.atoms import MmaOp
from fly_dialect.atoms.wmma import Gfx11Wmma

from fly_trace.amd_atoms import wmma
from fly_trace.dtypes import F32, DType
from fly_trace.scheduling import emit, number

__all__ = ["WMMA", "s_waitcnt"]


def WMMA(
    m: int,
    n: int,
    k: int,
    elem_ty_ab: DType,
    elem_ty_acc: DType = F32,
    *,
    sign_a: bool = False,
    sign_b: bool = False,
    clamp: bool = False,
) -> MmaOp:
    """The matrix instruction of gfx11. Of integers, `sign_a` and `sign_b` say which are signed, and
    `clamp` saturates the sum."""
    signs = {"sign_a": sign_a, "sign_b": sign_b, "clamp": clamp}
    return wmma(Gfx11Wmma, "fx.rocdl.rdna3.WMMA", m, n, k, elem_ty_ab, elem_ty_acc, **signs)


def s_waitcnt(vmcnt: int = 63, lgkmcnt: int = 63, expcnt: int = 7) -> None:
    """Waits until at most so many accesses are under way: of memory (vmcnt), of LDS and scalar
    memory (lgkmcnt), exports (expcnt). (RDNA3 ISA manual, S_WAITCNT: vmcnt in bits 15:10, lgkmcnt
    in 9:4, expcnt in 2:0.)"""
    vm, lgkm = number(vmcnt, "vmcnt", 63), number(lgkmcnt, "lgkmcnt", 63)
    field = vm << 10 | lgkm << 4 | number(expcnt, "expcnt", 7)
    emit("s.waitcnt", "fx.rocdl.rdna3.s_waitcnt", bitfield=f"{field} : i32")
