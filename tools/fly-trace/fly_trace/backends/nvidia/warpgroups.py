"""Warp groups of Hopper: their number, registers, and wgmma's order."""

from __future__ import annotations

from typing import Any

from fly_dialect import tiled as data
from fly_dialect.layouts.layout import Layout as LayoutData
from fly_dialect.types import bits

from fly_trace.atoms.tiled import TiledMma
from fly_trace.backends.nvidia.intrinsics import intrinsic, require
from fly_trace.backends.nvidia.pipelines import only_if
from fly_trace.core import tracing
from fly_trace.core.tracing import describe
from fly_trace.gpu.device import thread_idx
from fly_trace.gpu.immediates import number
from fly_trace.layouts.layouts import Layout
from fly_trace.memory.view_construction import static_layout, tensor_of
from fly_trace.values.conversion import scalar
from fly_trace.values.dtypes import F32, I32
from fly_trace.values.scalars import Scalar

__all__ = [
    "accumulators",
    "operand_a",
    "set_registers",
    "wait_after",
    "warp_group_index",
    "wgmma_commit",
    "wgmma_fence",
    "wgmma_wait",
]

THREADS = 128
ALL_LANES = -1
MOST_PENDING = 7
_NO_NUMBER = 0x7FBADBAD
LEAST_REGISTERS, MOST_REGISTERS = 24, 256


def warp_group_index() -> Scalar:
    """The number of the thread's warp group, of 128 threads. It is known to be the same in a warp,
    so that a branch on it is one of the whole warp."""
    what = "fx.nvvm.warp_group_index"
    builder = tracing.kernel(what)
    index = builder.ssa(thread_idx.x // THREADS)
    operands = [builder.constant(value, I32) for value in (ALL_LANES, 0, 31)]
    given = [operands[0], index, operands[1], operands[2]]
    return Scalar(I32, intrinsic(what, "shfl.sync.idx.i32", given, "i32"))


def set_registers(count: int, more: bool) -> None:
    """Changes the registers of this warp group's threads to `count`, a multiple of 8 from 24 to
    256: to `more` or to fewer than the kernel was launched with. All of its warps execute it. The
    kernel is marked with one block for a multiprocessor (`.minnctapersm 1`)."""
    what = "fx.nvvm.set_registers"
    require(what, "Hopper")
    found = number(count, f"the registers of {what}", MOST_REGISTERS)
    if found < LEAST_REGISTERS or found % 8:
        tracing.refuse(f"{what} takes a multiple of 8 from {LEAST_REGISTERS} to {MOST_REGISTERS}")
    form = "inc" if more else "dec"
    builder = tracing.kernel(what)
    intrinsic(what, f"setmaxnreg.{form}.sync.aligned.u32", [builder.constant(found, I32)])
    # Without it ptxas does not know how many registers a kernel begins with that needs fewer than
    # the block may have, and ignores the instruction (C7508).
    kernel = builder.block.owner.operation
    kernel.attributes["nvvm.minctasm"] = builder.integer(1, "i32")


def accumulators(product: Any) -> Layout:
    """The layout of the registers that hold a thread's sums of one tile of a tiled product."""
    if not isinstance(product, TiledMma):
        tracing.refuse(f"fx.nvvm.accumulators takes a tiled mma, not {describe(product)}")
    m, n, _ = data.tile_size(product.spec)
    return static_layout(data.mma_fragment(product.spec, "c", LayoutData((m, n), (n, 1))))


def operand_a(product: Any, k: int) -> Layout:
    """The layout of the registers that hold a thread's part of A, of `k` columns, of a tiled
    product whose instruction has A in registers. Sums of `k` columns lie in the same order."""
    if not isinstance(product, TiledMma):
        tracing.refuse(f"fx.nvvm.operand_a takes a tiled mma, not {describe(product)}")
    m, _, _ = data.tile_size(product.spec)
    return static_layout(data.mma_fragment(product.spec, "a", LayoutData((m, k), (k, 1))))


def wgmma_fence() -> None:
    """Orders accesses to accumulators and shared memory before products that follow."""
    intrinsic("fx.nvvm.wgmma_fence", "wgmma.fence.sync.aligned", [])


def wgmma_commit() -> None:
    """Makes a group of this warp group's products since the last one."""
    intrinsic("fx.nvvm.wgmma_commit", "wgmma.commit_group.sync.aligned", [])


def wait_after(value: Any) -> None:
    """Has ptxas wait for products only once the f32 `value` has been computed. It would move a wait
    in front of computations that do not depend on it, which then do not overlap with products."""
    what = "fx.nvvm.wait_after"
    builder = tracing.kernel(what)
    given = scalar(value, f"the value of {what}")
    if given.dtype is not F32:
        tracing.refuse(f"{what} takes an f32, not {describe(value)}")
    # A branch that is never taken: no computation gives this NaN.
    bits = builder.one("arith.bitcast", "i32", builder.ssa(given))
    never = builder.constant(_NO_NUMBER, I32)
    equal = builder.one("arith.cmpi", "i1", bits, never, predicate=builder.integer(0, "i64"))
    with only_if(builder, equal):
        intrinsic(what, "nanosleep", [builder.constant(1, I32)])


def wgmma_wait(groups: int, *accumulators: Any) -> None:
    """Waits until at most `groups` groups of products are running. `accumulators` are the fragments
    that products write to: what is read of them behind it is read after the wait."""
    what = "fx.nvvm.wgmma_wait"
    require(what, "Hopper")
    pending = number(groups, f"the groups of {what}", MOST_PENDING)
    builder = tracing.kernel(what)
    if not accumulators:
        tracing.refuse(f"{what} takes the fragments that the products write to")
    for one in accumulators:
        fragment = tensor_of(one, what)
        if fragment.space != "register" or bits(fragment.spec.element) not in (16, 32):
            tracing.refuse(f"{what} takes fragments of sums, not {fragment.describe()}")
        vector = builder.fly_op("memref.load_vec", [fragment.value(builder)], {})
        done = builder.fly_op("fly_nvvm.wgmma_wait", [vector], {"pending": pending})
        builder.fly_op("memref.store_vec", [done, fragment.value(builder)], {})
