"""Copy and matrix instructions of NVIDIA's targets."""

from __future__ import annotations

from fly_dialect.atoms import CopyOp, MmaOp
from fly_dialect.atoms.nvidia import async_copy, matrix_copy, mma, wgmma

from fly_trace.atoms.atom import element, made
from fly_trace.backends.nvidia.intrinsics import intrinsic
from fly_trace.core import tracing
from fly_trace.gpu.immediates import number
from fly_trace.values.dtypes import F32, I32, DType

__all__ = [
    "MMA",
    "WGMMA",
    "CpAsync",
    "LoadMatrix",
    "StoreMatrix",
    "cp_async_commit",
    "cp_async_wait",
]

MOST_GROUPS = 63


def MMA(m: int, n: int, k: int, elem_ty_ab: DType, elem_ty_acc: DType = F32) -> MmaOp:
    """mma.sync: a warp multiplies m × n × k matrices in registers. f32 is multiplied as TF32."""
    what = "fx.nvvm.MMA"
    ab, acc = element(elem_ty_ab, what), element(elem_ty_acc, what)
    return made(mma.MmaSync, what, m, n, k, ab, ab, acc)


def WGMMA(
    n: int,
    elem_ty_ab: DType,
    elem_ty_acc: DType = F32,
    elem_ty_b: DType | None = None,
    a_in_registers: bool = False,
) -> MmaOp:
    """wgmma.mma_async of Hopper: four warps multiply 64 rows by `n` columns, 32 bytes along K. B is
    in shared memory; so is A unless `a_in_registers`. f32 is multiplied as TF32."""
    what = "fx.nvvm.WGMMA"
    a, acc = element(elem_ty_ab, what), element(elem_ty_acc, what)
    b = a if elem_ty_b is None else element(elem_ty_b, what)
    k = wgmma.STEP_BYTES * 8 // elem_ty_ab.bits
    family = wgmma.WgmmaRegisters if a_in_registers else wgmma.Wgmma
    return made(family, what, wgmma.ROWS, n, k, a, b, acc)


def CpAsync(bit_size: int) -> CopyOp:
    """cp.async: a thread copies 32, 64 or 128 bits from global to shared memory, asynchronously;
    `cp_async_commit` and `cp_async_wait` tell when they have arrived."""
    return made(async_copy.AsyncCopy, "fx.nvvm.CpAsync", bit_size)


def cp_async_commit() -> None:
    """Makes a group of this thread's copies by cp.async since the last one."""
    intrinsic("fx.nvvm.cp_async_commit", "cp.async.commit.group", [])


def cp_async_wait(groups: int) -> None:
    """Waits until at most `groups` of this thread's groups of copies by cp.async are running. What
    other threads copied can be read behind a barrier."""
    what = "fx.nvvm.cp_async_wait"
    count = number(groups, f"the groups of {what}", MOST_GROUPS)
    intrinsic(what, "cp.async.wait.group", [tracing.kernel(what).constant(count, I32)])


def LoadMatrix(count: int, trans: bool = False) -> CopyOp:
    """ldmatrix: a warp loads `count` matrices of 8 × 8 elements of 16 bits from shared memory."""
    return made(matrix_copy.LoadMatrix, "fx.nvvm.LoadMatrix", count, trans)


def StoreMatrix(count: int, trans: bool = False) -> CopyOp:
    """stmatrix: a warp stores `count` matrices of 8 × 8 elements of 16 bits to shared memory."""
    return made(matrix_copy.StoreMatrix, "fx.nvvm.StoreMatrix", count, trans)
