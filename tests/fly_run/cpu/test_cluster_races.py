"""`--strict` of the device `cpu` in clusters: races among their blocks, each planted in a kernel
that is right without it, and what looks like one and is none."""

from __future__ import annotations

import re

import numpy as np
import pytest
from fly_common.errors import Fault
from fly_run.devices.options import STRICT

import fly
import fly.expr as fx

RANDOM = np.random.default_rng(0)
STAGES, STEPS, COLUMNS = 2, 6, 64


@pytest.fixture(autouse=True)
def strict(monkeypatch):
    monkeypatch.setenv(STRICT, "1")


def jit(function):
    return fly.jit(target="sm_90a", device="cpu")(function)


# -- rings whose buffers the blocks fill for each other
PART = fx.nvvm.tile_layout(fx.Float16, (32, COLUMNS))  # what a block copies to all


@fly.kernel
def ring_kernel(source, Y: fx.Tensor, misuse: fx.Constexpr[str]):
    """Threads 0 to 63 of a block each add the elements of a row, of which the block copied half."""
    blocks, rank = fx.cluster.size(), fx.cluster.rank()
    tiles = fx.nvvm.SharedTiles(fx.Float16, PART, STAGES * 2)
    full = fx.SharedAllocator().allocate(fx.Array[fx.Int64, STAGES], 8).peek().ptr
    empty = fx.SharedAllocator().allocate(fx.Array[fx.Int64, STAGES], 8).peek().ptr
    thread = fx.thread_idx.x
    if thread == 0:
        for stage in fx.range_constexpr(STAGES):
            fx.nvvm.mbarrier_init(full + stage, 1)
            fx.nvvm.mbarrier_init(empty + stage, 2 * blocks)
    fx.cluster.barrier()
    if thread == 64:
        for step in range(STEPS):
            stage, parity = step % STAGES, step // STAGES % 2
            fx.nvvm.mbarrier_wait(empty + stage, 1 - parity)
            fx.nvvm.mbarrier_expect(full + stage, blocks * source.nbytes)
            own, at = tiles[stage * 2 + rank], (rank * 32, step * COLUMNS)
            fx.nvvm.tma_load(source, at, own, full + stage, multicast=0b11)
    if thread < 64:
        total = fx.Float32(0)
        for step in range(STEPS):
            stage, parity = step % STAGES, step // STAGES % 2
            if misuse != "no wait for the bytes":
                fx.nvvm.mbarrier_wait(full + stage, parity)
            if misuse == "release too early":
                fx.nvvm.syncwarp()
                if thread % 32 == 0:
                    for other in fx.range_constexpr(2):
                        fx.nvvm.mbarrier_arrive(empty + stage, other)
            tile = tiles[stage * 2 + thread // 32]
            for column in range(COLUMNS, unroll=1):
                total += tile[thread % 32, column].to(fx.Float32)
            fx.nvvm.syncwarp()
            if misuse != "release too early" and thread % 32 == 0:
                for other in fx.range_constexpr(2):
                    if misuse == "release to oneself twice":
                        fx.nvvm.mbarrier_arrive(empty + stage, rank)
                    elif misuse != "release to oneself" or other == rank:
                        fx.nvvm.mbarrier_arrive(empty + stage, other)
        Y[fx.block_idx.x, thread] = total
    fx.cluster.barrier()


@jit
def ring(X: fx.Tensor, Y: fx.Tensor, misuse: fx.Constexpr[str]):
    source = fx.nvvm.tensor_map(X, PART)
    ring_kernel(source, Y, misuse).launch(grid=4, block=96, cluster=2)


def ring_of(misuse: str) -> tuple[np.ndarray, np.ndarray]:
    x = RANDOM.integers(-4, 4, (64, STEPS * COLUMNS)).astype("f2")
    y = np.zeros((4, 64), "f4")
    ring(x, y, misuse)
    return x, y


def test_a_ring_that_is_used_well():
    x, y = ring_of("")
    np.testing.assert_array_equal(y, np.tile(x.sum(axis=1, dtype="f4"), (4, 1)))


@pytest.mark.parametrize(
    "misuse", ["release to oneself twice", "release too early", "no wait for the bytes"]
)
def test_a_ring_that_is_used_badly(misuse: str):
    with pytest.raises(Fault, match=r"race: this (read|write) of byte .* have no order"):
        ring_of(misuse)


def test_a_release_that_another_block_does_not_get():
    with pytest.raises(Fault, match="nothing can end the phase of parity"):
        ring_of("release to oneself")


# -- products whose ring is `Pipeline`, which the blocks share or wrongly have each for itself
TILE = fx.nvvm.tile_layout(fx.Float16, (64, 64))


@fly.kernel
def products_kernel(a, b, C: fx.Tensor, steps: fx.Int32, shared: fx.Constexpr[bool]):
    tiles_a, tiles_b = (fx.nvvm.SharedTiles(fx.Float16, TILE, STAGES) for _ in range(2))
    halves = tiles_b.divided(PART)
    ring = fx.nvvm.Pipeline(STAGES, consumers=1, shared=shared)
    rank = fx.cluster.rank()
    if not shared:
        fx.cluster.barrier()
    if fx.nvvm.warp_group_index() == 1:
        if fx.thread_idx.x == 128:
            for step in range(steps):
                slot = ring.fill(step, a.nbytes + 2 * b.nbytes)
                own = halves[slot.stage * 2 + rank]
                at = fx.block_idx.x * 64, step * 64
                fx.nvvm.tma_load(a, at, tiles_a[slot.stage], slot.barrier)
                fx.nvvm.tma_load(b, (rank * 32, step * 64), own, slot.barrier, multicast=0b11)
    else:
        atom = fx.make_mma_atom(fx.nvvm.WGMMA(64, fx.Float16))
        product = fx.make_tiled_mma(atom, fx.make_layout((1, 1, 1), (0, 0, 0)))
        group = product.get_slice(0)
        sums = fx.make_rmem_tensor(fx.nvvm.accumulators(product), fx.Float32)
        sums.fill(0)
        for step in range(steps):
            slot = ring.wait(step)
            fx.nvvm.wgmma_fence()
            own = group.partition_A(tiles_a[slot.stage])
            fx.gemm(product, sums, own, group.partition_B(tiles_b[slot.stage]), sums)
            fx.nvvm.wgmma_commit()
            fx.nvvm.wgmma_wait(0, sums)
            if fx.thread_idx.x == 0:
                ring.release(step)
        start = fx.get_iter(C) + fx.block_idx.x * 64 * 64
        tile = fx.make_view(start, fx.make_layout((64, 64), (64, 1)))
        mine = product.get_slice(fx.thread_idx.x).partition_C(tile)
        fx.copy(fx.make_copy_atom(fx.UniversalCopy64b(), fx.Float32), sums, mine)
    fx.cluster.barrier()


@jit
def products(X: fx.Tensor, Y: fx.Tensor, C: fx.Tensor, shared: fx.Constexpr[bool]):
    a, b = fx.nvvm.tensor_map(X, TILE), fx.nvvm.tensor_map(Y, PART)
    steps = fx.ceildiv(X.shape[1], 64)
    products_kernel(a, b, C, steps, shared).launch(grid=2, block=256, cluster=2)


def test_a_pipeline_that_blocks_share():
    x, y = (RANDOM.standard_normal((rows, 384)).astype("f2") for rows in (128, 64))
    c = np.zeros((128, 64), "f4")
    products(x, y, c, True)
    np.testing.assert_allclose(c, x.astype("f8") @ y.astype("f8").T, atol=1e-3)


def test_a_pipeline_that_each_block_has_for_itself():
    x, y = (RANDOM.standard_normal((rows, 384)).astype("f2") for rows in (128, 64))
    with pytest.raises(Fault, match=r"race: this write .* 'cp\.async\.bulk\.tensor"):
        products(x, y, np.zeros((128, 64), "f4"), False)


# -- other blocks' shared memory
@fly.kernel
def pass_on_kernel(A: fx.Tensor, B: fx.Tensor, form: fx.Constexpr[str]):
    """Each block gets what the next one, or one before, holds, by reading or by being written."""
    row, i, size, rank = fx.block_idx.x, fx.thread_idx.x, fx.cluster.size(), fx.cluster.rank()
    held = fx.shared_array(fx.Float32, 64)
    got = fx.SharedAllocator().allocate(fx.Array[fx.Int64, 1], 8).peek().ptr
    following = (rank + 1) % size
    if i == 0:
        fx.nvvm.mbarrier_init(got, 64)
    fx.cluster.barrier()
    if form in ("read", "no cluster barrier", "block barrier"):
        held[i] = A[row, i]
        if form == "read":
            fx.cluster.barrier()
        elif form == "block barrier":
            fx.barrier()
        B[row, i] = fx.cluster.remote(held, following)[63 - i]
        fx.cluster.barrier()
        B[row, i] += held[63 - i]
    else:
        fx.cluster.remote(held, following)[i] = A[row, i]
        fx.nvvm.mbarrier_arrive(got, rank if form == "arrive at home" else following)
        if form != "no wait":
            fx.nvvm.mbarrier_wait(got, 0)
        B[row, i] = held[63 - i]
    fx.cluster.barrier()


@jit
def pass_on(A: fx.Tensor, B: fx.Tensor, form: fx.Constexpr[str], size: fx.Constexpr[int]):
    pass_on_kernel(A, B, form).launch(grid=A.shape[0], block=64, cluster=size)


@pytest.mark.parametrize(("form", "size"), [("read", 2), ("read", 8), ("write", 2), ("write", 3)])
def test_values_that_are_passed_on(form: str, size: int):
    a = RANDOM.standard_normal((24, 64)).astype("f4")
    b = np.zeros_like(a)
    pass_on(a, b, form, size)
    parts = a.reshape(-1, size, 64)[..., ::-1]
    there = np.roll(parts, -1 if form == "read" else 1, axis=1)
    expected = there + parts if form == "read" else there
    np.testing.assert_array_equal(b.reshape(parts.shape), expected)


@pytest.mark.parametrize(
    "form", ["no cluster barrier", "block barrier", "no wait", "arrive at home"]
)
def test_values_that_are_passed_on_without_order(form: str):
    a = np.zeros((4, 64), "f4")
    with pytest.raises(Fault, match=r"race: this (read|write) of byte .* have no order") as found:
        pass_on(a, np.zeros_like(a), form, 2)
    assert re.search(r"of block [01] of the cluster", str(found.value))
