"""What clusters, multicasts and dependent launches become: PTX, and what images say of them."""

from __future__ import annotations

import re

import pytest
from fly_image.nvidia import cubin, entries, ptx_image
from fly_link.linker import link

import fly
import fly.expr as fx

TILE = fx.nvvm.tile_layout(fx.Float16, (16, 64))


@fly.kernel
def clustered_kernel(source, out: fx.Tensor):
    tiles = fx.nvvm.SharedTiles(fx.Float16, TILE, 1)
    bar = fx.SharedAllocator().allocate(fx.Array[fx.Int64, 1], 8).peek().ptr
    if fx.thread_idx.x == 0:
        fx.nvvm.mbarrier_init(bar, 1)
    fx.cluster.barrier()
    if fx.thread_idx.x == 0:
        fx.nvvm.mbarrier_expect(bar, source.nbytes)
        fx.nvvm.tma_load(source, (0, 0), tiles[0], bar, multicast=3)
        fx.nvvm.mbarrier_arrive(bar, 1 - fx.cluster.rank())
    fx.nvvm.mbarrier_wait(bar, 0)
    there = fx.cluster.remote(fx.shared_array(fx.Float32, 64), 1)
    there[fx.thread_idx.x] = fx.Float32(1)
    out[fx.thread_idx.x] = tiles[0][0, fx.thread_idx.x]
    fx.cluster.barrier()


@fly.kernel
def plain_kernel(out: fx.Tensor):
    fx.nvvm.griddepcontrol_launch_dependents()
    out[fx.thread_idx.x] = fx.Float16(1)


@fly.kernel
def dependent_kernel(out: fx.Tensor):
    fx.nvvm.griddepcontrol_wait()
    out[fx.thread_idx.x] = out[fx.thread_idx.x] + fx.Float16(1)


@fly.jit(target="sm_90a")
def program(A: fx.Tensor[fx.Float16, 64, 64], out: fx.Tensor[fx.Float16, 64]):
    clustered_kernel(fx.nvvm.tensor_map(A, TILE), out).launch(grid=2, block=64, cluster=(2, 1))
    plain_kernel(out).launch(grid=1, block=64)
    dependent_kernel(out).launch(grid=1, block=64)


@pytest.fixture(scope="module")
def text() -> str:
    made = program.compile().ir("ptx")
    assert isinstance(made, str)
    return made


def test_instructions(text: str):
    for wanted in (
        r"\.reqnctapercluster 2, 1, 1",
        r"barrier\.cluster\.arrive;\s+barrier\.cluster\.wait;",
        r"cp\.async\.bulk\.tensor\.2d\.shared::cluster\.global\.tile\.mbarrier::complete_tx::bytes"
        r"\.multicast::cluster ",
        r"mbarrier\.arrive\.release\.cluster\.shared::cluster\.b64 _, ",
        r"mbarrier\.try_wait\.parity\.acquire\.cluster",
        r"mapa\.shared::cluster\.u64",
        r"st\.shared::cluster\.b32",
        r"griddepcontrol\.wait;",
        r"griddepcontrol\.launch_dependents;",
    ):
        assert re.search(wanted, text), wanted


def said(kernels) -> dict[str, tuple[object, bool]]:
    return {name: (one.cluster, one.dependent) for name, one in kernels.items()}


EXPECTED = {
    "clustered_kernel": ((2, 1, 1), False),
    "plain_kernel": (None, False),
    "dependent_kernel": (None, True),
}


def test_what_ptx_says(text: str):
    found = ptx_image.read(text.encode())
    assert said(found.kernels) == EXPECTED
    rows = [dict(one.details()) for one in found.kernels.values()]
    assert rows[0]["block"] == "64×1×1 threads in warps of 32, in clusters of 2×1×1 blocks"
    assert rows[2]["launch"] == "dependent: before the launch in front of it has ended"
    # Declarations alone say the same.
    declared = "\n".join(one.text for one in entries.entries(found.code))
    assert said({one.name: one for one in entries.entries(declared)}) == EXPECTED


def test_what_a_cubin_says(text: str):
    assert said(cubin.read(link([text.encode()])).kernels) == EXPECTED
