"""Launches in clusters of workgroups: `launch(cluster=)`, `fx.cluster` and FlyDSL's cluster barrier
on gfx1250, and what is refused. `tests/fly_run/cpu/test_clusters.py` has those of NVIDIA."""

from __future__ import annotations

import numpy as np
import pytest
from fly_common.errors import InputError

import fly
import fly.expr as fx
import fly.flydsl.compiler as flyc
import fly.flydsl.expr as flx

BLOCK = 64


@fly.kernel
def ids_kernel(A: fx.Tensor, B: fx.Tensor):
    i = fx.block_idx.x * BLOCK + fx.thread_idx.x
    B[i] = A[i] + fx.Float32(fx.block_idx.x)


def launcher(target: str, cluster: object):
    @fly.jit(target=target)
    def run(A: fx.Tensor, B: fx.Tensor, blocks: fx.Constexpr[int]):
        ids_kernel(A, B).launch(grid=blocks, block=BLOCK, cluster=cluster)

    return run


@pytest.mark.parametrize("cluster", [1, 2, (4, 1, 1)])
def test_the_grid_is_the_same_as_without_clusters(cluster) -> None:
    a = np.random.default_rng(0).standard_normal(8 * BLOCK, np.float32)
    b = np.zeros_like(a)
    launcher("gfx1250", cluster)(a, b, 8)
    np.testing.assert_array_equal(b, a + np.arange(8, dtype=np.float32).repeat(BLOCK))


def test_grids_of_parts_of_clusters_are_refused() -> None:
    a = np.zeros(3 * BLOCK, np.float32)
    with pytest.raises(InputError, match="a grid of 3 workgroups is not made of whole clusters"):
        launcher("gfx1250", 2)(a, a.copy(), 3)


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("gfx942", "gfx942 has no clusters of workgroups"),
        ("sm_80", "sm_80 has no clusters of blocks"),
        ("sm_89", "sm_89 has no clusters of blocks"),
    ],
)
def test_other_targets_are_refused(target: str, message: str) -> None:
    a = np.zeros(2 * BLOCK, np.float32)
    with pytest.raises(InputError, match=message):
        launcher(target, 2)(a, a.copy(), 2)


def test_clusters_of_too_many_blocks() -> None:
    a = np.zeros(16 * BLOCK, np.float32)
    with pytest.raises(InputError, match="a cluster of 4×4×1 blocks: sm_90a has at most 8 in one"):
        launcher("sm_90a", (4, 4))(a, a.copy(), 16)


@pytest.mark.parametrize(
    ("cluster", "message"),
    [
        (0, "a size of cluster is 0"),
        ((1, 1, 1, 1), "cluster must have 1 to 3 sizes"),
        (2.5, "a size of cluster must be an integer"),
    ],
)
def test_sizes_that_are_none(cluster: object, message: str) -> None:
    a = np.zeros(2 * BLOCK, np.float32)
    with pytest.raises(InputError, match=message):
        launcher("gfx1250", cluster)(a, a.copy(), 2)


@fly.kernel
def between_kernel(A: fx.Tensor, B: fx.Tensor):
    """What the workgroups beside it in the cluster have stored before its barrier."""
    item, size = fx.thread_idx.x, fx.cluster.size()
    place = (fx.cluster.idx.x * size + fx.cluster.rank()) * BLOCK + item
    A[place] = A[place] * 2
    fx.memory_fence()
    fx.cluster.arrive()
    fx.cluster.wait()
    other = fx.cluster.idx.x * size + (fx.cluster.block_idx.x + 1) % size
    B[fx.block_idx.x * BLOCK + item] = A[other * BLOCK + item]


@fly.jit(target="gfx1250")
def between(A: fx.Tensor, B: fx.Tensor, cluster: fx.Constexpr[int]):
    between_kernel(A, B).launch(grid=8, block=BLOCK, cluster=cluster)


@pytest.mark.parametrize("size", [1, 2, 4])
def test_the_barrier_of_a_cluster(size: int) -> None:
    a = np.random.default_rng(2).standard_normal(8 * BLOCK, np.float32)
    held, b = a.copy(), np.zeros_like(a)
    between(held, b, size)
    expected = np.roll(2 * a.reshape(-1, size, BLOCK), -1, axis=1)
    np.testing.assert_array_equal(b, expected.reshape(-1))


def test_shared_memory_of_other_blocks_is_refused() -> None:
    @fly.kernel
    def kernel(A: fx.Tensor):
        A[0] = fx.cluster.remote(fx.shared_array(fx.Float32, 4), 1)[0]

    @fly.jit(target="gfx1250")
    def run(A: fx.Tensor):
        kernel(A).launch(grid=2, block=1, cluster=2)

    with pytest.raises(InputError, match=r"gfx1250 has no fx\.cluster\.remote"):
        run(np.zeros(4, np.float32))


@pytest.mark.parametrize(
    ("rank", "cluster", "message"),
    [(2, 2, "the cluster has no block 2, but 2"), (1, None, "the cluster has no block 1, but 1")],
)
def test_ranks_that_there_are_not(rank: int, cluster: object, message: str) -> None:
    @fly.kernel
    def kernel(A: fx.Tensor):
        A[0] = fx.cluster.remote(fx.shared_array(fx.Float32, 4), rank)[0]

    @fly.jit(target="sm_90a", device="cpu")
    def run(A: fx.Tensor):
        kernel(A).launch(grid=2, block=1, cluster=cluster)

    with pytest.raises(InputError, match=message):
        run(np.zeros(4, np.float32))


@flyc.kernel
def neighbour_kernel(A: flx.Tensor, B: flx.Tensor):
    """What the workgroup beside it in the cluster has stored before the barrier."""
    block, item = flx.block_idx.x, flx.thread_idx.x
    A = flx.rocdl.make_buffer_tensor(A)
    B = flx.rocdl.make_buffer_tensor(B)
    rows_of_a = flx.logical_divide(A, flx.make_layout(BLOCK, 1))
    rows_of_b = flx.logical_divide(B, flx.make_layout(BLOCK, 1))
    atom = flx.make_copy_atom(flx.rocdl.BufferCopy(32), flx.Float32)
    held = flx.make_rmem_tensor(1, flx.Float32)

    def lane(rows, number):
        own = flx.logical_divide(flx.slice(rows, (None, number)), flx.make_layout(1, 1))
        return flx.slice(own, (None, item))

    flx.copy_atom_call(atom, lane(rows_of_a, block), held)
    flx.memref_store_vec(flx.arith.addf(flx.memref_load_vec(held), flx.memref_load_vec(held)), held)
    flx.copy_atom_call(atom, held, lane(rows_of_a, block))
    flx.rocdl.s_wait_storecnt(0)
    flx.rocdl.cluster.cluster_barrier()
    flx.copy_atom_call(atom, lane(rows_of_a, block ^ 1), held)
    flx.copy_atom_call(atom, held, lane(rows_of_b, block))


@flyc.jit
def neighbours(A: flx.Tensor, B: flx.Tensor, stream: flx.Stream = flx.Stream(None)):
    neighbour_kernel(A, B).launch(
        grid=(6, 1, 1), block=(BLOCK, 1, 1), cluster=(2, 1, 1), stream=stream
    )


def test_a_cluster_barrier_of_flydsl(monkeypatch) -> None:
    monkeypatch.setenv("FLYDSL_GPU_ARCH", "gfx1250")
    a = np.random.default_rng(1).standard_normal(6 * BLOCK, np.float32)
    held, b = a.copy(), np.zeros_like(a)
    neighbours(held, b)
    np.testing.assert_array_equal(b.reshape(3, 2, BLOCK), 2 * a.reshape(3, 2, BLOCK)[:, ::-1])
