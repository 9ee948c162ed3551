"""Clusters of blocks on the device cpu: what the PTX ISA says of them, and what is found of wrong
programs."""

from __future__ import annotations

import numpy as np
import pytest
from fly_common.errors import Fault, InputError

import fly
import fly.expr as fx

WIDTH = 64


def jit(function):
    return fly.jit(target="sm_90a", device="cpu")(function)


# -- special registers, against what grids of clusters are
SHAPE, GRID = (2, 1, 3), (4, 5, 6)


@fly.kernel
def places_kernel(out: fx.Tensor):
    x, y, z = fx.block_idx
    width, height, _ = fx.grid_dim
    row = x + width * (y + height * z)
    values = (*fx.cluster.block_idx, *fx.cluster.idx, fx.cluster.rank(), fx.cluster.size())
    for column in fx.range_constexpr(8):
        out[row, column] = values[column]


@jit
def places(out: fx.Tensor):
    places_kernel(out).launch(grid=GRID, block=1, cluster=SHAPE)


def test_places_in_a_grid_of_clusters():
    out = np.full((np.prod(GRID), 8), -1, np.int32)
    places(out)
    for row, found in enumerate(out):
        z, y, x = (int(n) for n in np.unravel_index(row, GRID[::-1]))
        block = [x, y, z]
        inside = [n % size for n, size in zip(block, SHAPE, strict=True)]
        number = [n // size for n, size in zip(block, SHAPE, strict=True)]
        rank = int(np.ravel_multi_index(inside[::-1], SHAPE[::-1]))
        assert found.tolist() == [*inside, *number, rank, 6], row


def test_a_kernel_without_clusters_is_its_own():
    @fly.kernel
    def kernel(out: fx.Tensor):
        assert fx.cluster.size() == 1
        assert fx.cluster.shape() == (1, 1, 1)
        fx.cluster.arrive()
        fx.cluster.wait()
        fx.cluster.barrier()
        out[fx.block_idx.x] = fx.Int32(fx.cluster.rank() + 7)

    @jit
    def run(out: fx.Tensor):
        kernel(out).launch(grid=3, block=1)

    out = np.zeros(3, np.int32)
    run(out)
    assert (out == 7).all()


# -- other blocks' shared memory
@fly.kernel
def rotate_kernel(A: fx.Tensor, B: fx.Tensor, wrong: fx.Constexpr[str]):
    """Block r of a cluster reads the row of block r + 1, and adds its rank to that of r - 1."""
    row, i, size = fx.block_idx.x, fx.thread_idx.x, fx.cluster.size()
    held = fx.shared_array(fx.Float32, WIDTH)
    sums = fx.shared_array(fx.Float32, WIDTH)
    held[i], sums[i] = A[row, i], fx.Float32(0)
    if wrong != "first":
        fx.cluster.barrier()
    rank = fx.cluster.rank()
    other = fx.cluster.remote(held, (rank + 1) % size)
    there = fx.cluster.remote(sums, (rank + size - 1) % size)
    there[WIDTH - 1 - i] = fx.Float32(rank)
    value = other[i]
    if wrong == "twice":
        fx.cluster.arrive()
        fx.cluster.arrive()
    if wrong == "wait":
        fx.cluster.wait()
    if wrong != "last":
        fx.cluster.barrier()
    B[row, i] = value + sums[i]


@jit
def rotate(A: fx.Tensor, B: fx.Tensor, cluster: fx.Constexpr[int], wrong: fx.Constexpr[str]):
    rotate_kernel(A, B, wrong).launch(grid=A.shape[0], block=WIDTH, cluster=cluster)


def rows(count: int) -> np.ndarray:
    return np.random.default_rng(count).standard_normal((count, WIDTH)).astype(np.float32)


@pytest.mark.parametrize("size", [2, 3, 4, 8])
def test_remote_shared_memory(size: int):
    a = rows(24)
    b = np.zeros_like(a)
    rotate(a, b, size, "")
    parts = a.reshape(-1, size, WIDTH)
    added = (np.arange(size, dtype=np.float32) + 1) % size
    np.testing.assert_array_equal(
        b.reshape(parts.shape), np.roll(parts, -1, axis=1) + added[None, :, None]
    )


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("first", "in the shared memory of block 1 of the cluster, which may not have begun"),
        ("last", "in the shared memory of block 0 of the cluster, which has ended"),
        ("twice", "has arrived at the cluster's barrier before, and has not waited"),
        ("wait", "waits at the cluster's barrier, and has not arrived there"),
    ],
)
def test_a_missing_barrier_is_a_fault(wrong: str, message: str):
    a = rows(4)
    with pytest.raises(Fault, match=message):
        rotate(a, np.zeros_like(a), 2, wrong)
    b = np.zeros_like(a)
    rotate(a, b, 2, "")  # the next launch works
    assert b.any()


@fly.kernel
def stuck_kernel(out: fx.Tensor, how: fx.Constexpr[str]):
    bar = fx.SharedAllocator().allocate(fx.Array[fx.Int64, 1], 8).peek().ptr
    if fx.thread_idx.x == 0:
        fx.nvvm.mbarrier_init(bar, 2)
    fx.cluster.barrier()
    if how == "barrier":
        if fx.cluster.rank() == 0:
            fx.cluster.barrier()
        else:
            fx.nvvm.mbarrier_wait(bar, 0)
    else:
        if fx.thread_idx.x == 0 and (fx.cluster.rank() == 0 or how == "good"):
            for rank in fx.range_constexpr(2):
                fx.nvvm.mbarrier_arrive(bar, rank)
        fx.nvvm.mbarrier_wait(bar, 0)
    out[fx.block_idx.x] = fx.Int32(5)
    fx.cluster.barrier()


@jit
def stuck(out: fx.Tensor, how: fx.Constexpr[str]):
    stuck_kernel(out, how).launch(grid=4, block=32, cluster=2)


def test_arrivals_at_other_blocks():
    out = np.zeros(4, np.int32)
    stuck(out, "good")
    assert (out == 5).all()


@pytest.mark.parametrize("how", ["one", "barrier"])
def test_a_missing_arrival_is_a_deadlock(how: str):
    """The fault names who waits for the mbarrier, not who waits for those at the cluster's."""
    with pytest.raises(Fault, match="nothing can end the phase of parity 0 of this mbarrier"):
        stuck(np.zeros(4, np.int32), how)


# -- copies to several blocks
TILE = fx.nvvm.tile_layout(fx.Float16, (16, 64))


@fly.kernel
def multicast_kernel(source, out: fx.Tensor, mask: fx.Constexpr[int], expects: fx.Constexpr[int]):
    """Each block copies its tile to the blocks of `mask`; tile n of a block is from block n."""
    size = fx.cluster.size()
    tiles = fx.nvvm.SharedTiles(fx.Float16, TILE, size)
    bar = fx.SharedAllocator().allocate(fx.Array[fx.Int64, 1], 8).peek().ptr
    i, rank = fx.thread_idx.x, fx.cluster.rank()
    for n in fx.range_constexpr(size):
        for k in fx.range_constexpr(16):
            tiles[n][k, i] = fx.Float16(0)
    fx.nvvm.fence_async()
    if i == 0:
        fx.nvvm.mbarrier_init(bar, 1)
    fx.cluster.barrier()
    if i == 0:
        fx.nvvm.mbarrier_expect(bar, expects * source.nbytes)
        at = fx.block_idx.x * 16, 0
        fx.nvvm.tma_load(source, at, tiles[rank], bar, multicast=mask)
    if expects:
        fx.nvvm.mbarrier_wait(bar, 0)
    for n in fx.range_constexpr(size):
        for k in fx.range_constexpr(16):
            out[fx.block_idx.x, n, k, i] = tiles[n][k, i]
    fx.cluster.barrier()


@jit
def multicast(A: fx.Tensor, out: fx.Tensor, mask: fx.Constexpr[int], expects: fx.Constexpr[int]):
    source = fx.nvvm.tensor_map(A, TILE)
    multicast_kernel(source, out, mask, expects).launch(grid=A.shape[0] // 16, block=64, cluster=2)


@pytest.mark.parametrize(("mask", "expects"), [(0b11, 2), (0b01, 2), (0b10, 2)])
def test_multicasts(mask: int, expects: int):
    a = np.random.default_rng(3).standard_normal((64, 64)).astype(np.float16)
    out = np.zeros((4, 2, 16, 64), np.float16)
    if mask != 0b11:  # the other block waits for bytes that nobody brings
        with pytest.raises(Fault, match="nothing can end the phase of parity 0 of this mbarrier"):
            multicast(a, out, mask, expects)
        return
    multicast(a, out, mask, expects)
    pairs = a.reshape(2, 2, 16, 64)
    np.testing.assert_array_equal(out.reshape(2, 2, 2, 16, 64), np.stack([pairs, pairs], 1))


@pytest.mark.parametrize("mask", [0, 0b100, 0b111])
def test_a_mask_of_blocks_that_are_not_there(mask: int):
    a, out = np.zeros((32, 64), np.float16), np.zeros((2, 2, 16, 64), np.float16)
    with pytest.raises(InputError, match="does not name blocks of a cluster of 2"):
        multicast(a, out, mask, 2)


def test_grids_of_parts_of_clusters():
    a = rows(3)
    with pytest.raises(InputError, match="a grid of 3 workgroups is not made of whole clusters"):
        rotate(a, np.zeros_like(a), 2, "")
