"""Options of the product of warp groups: blocks of a cluster that share a tile of B, the last tiles
divided among all blocks. On the device cpu, judged by torch in f64."""

from __future__ import annotations

import pytest
import torch

from fly.kernels.gemm.epilogue import Epilogue
from fly.kernels.gemm.warpgroups.warpgroup_choices import warpgroup_plan
from fly.kernels.gemm.warpgroups.warpgroup_gemm import warpgroup_gemm
from fly.kernels.gemm.warpgroups.warpgroup_plans import WarpgroupPlan

OUT = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}


@pytest.fixture(autouse=True)
def hopper(monkeypatch):
    monkeypatch.setenv("FLY_TARGET", "sm_90a")
    monkeypatch.setenv("FLY_DEVICE", "cpu")
    torch.manual_seed(0)


def check(plan: WarpgroupPlan, batches: int, m: int, n: int, k: int, out: str = "bf16") -> None:
    dtype = OUT[plan.element]
    a = torch.randn(batches, *((m, k) if plan.a_along_k else (k, m))).to(dtype)
    b = torch.randn(batches, *((n, k) if plan.b_along_k else (k, n))).to(dtype)
    a = a if plan.a_along_k else a.mT
    b = b.mT if plan.b_along_k else b
    found = warpgroup_gemm(a, b, a, a, 1.0, 1.0, plan, Epilogue(out, 1))
    exact = a.double() @ b.double()
    error = (torch.as_tensor(found).double() - exact).abs()
    assert (error <= 2**-8 * exact.abs() + 1e-5 * (a.double().abs() @ b.double().abs())).all()


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("fields", "extents"),
    [
        ({"cluster": 2}, (1, 200, 264, 200)),  # the second row of tiles is the last cluster's
        ({"cluster": 4, "columns": 256}, (1, 390, 72, 72)),
        ({"cluster": 2, "rows": 64, "columns": 128}, (2, 130, 136, 72)),
        ({"cluster": 2, "b_along_k": False, "a_along_k": False}, (1, 136, 264, 72)),
        ({"cluster": 2, "blocks": 2}, (1, 520, 264, 72)),  # tiles in turn
        ({"cluster": 2, "out": "f32", "splits": 2}, (1, 130, 72, 256)),
        ({"cluster": 2, "pad_a": True, "pad_b": True, "tma_store": False}, (1, 131, 71, 73)),
    ],
)
def test_blocks_of_a_cluster_share_a_tile(fields, extents):
    check(WarpgroupPlan("bf16", **{"out": "bf16", **fields}), *extents)


@pytest.mark.heavy
@pytest.mark.parametrize("cluster", [2, 4])
def test_blocks_of_a_cluster_have_no_race(monkeypatch, cluster):
    """More steps than the ring has buffers."""
    monkeypatch.setenv("FLY_STRICT", "1")
    check(WarpgroupPlan("bf16", "bf16", 64, 128, cluster=cluster), 1, 64 * cluster, 128, 1032)


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("fields", "extents"),
    [
        ({"blocks": 4, "columns": 128}, (1, 260, 264, 1600)),  # one wave, and two tiles left
        ({"blocks": 4, "rows": 64, "columns": 128}, (2, 130, 264, 1000)),
        ({"blocks": 6}, (1, 64, 64, 4096)),  # a tile of which six blocks have parts
        ({"blocks": 3, "columns": 128}, (1, 384, 128, 64)),  # no tile is left
        ({"blocks": 7}, (1, 128, 256, 8)),  # most blocks have nothing to do
        ({"blocks": 4, "cluster": 2}, (1, 500, 264, 1032)),
        ({"blocks": 4, "columns": 128}, (1, 700, 128, 328)),  # parts of more than a tile
        ({"blocks": 5, "rows": 64, "columns": 128}, (3, 100, 400, 328)),  # of three tiles
    ],
)
def test_the_last_tiles_are_divided(fields, extents):
    check(WarpgroupPlan("bf16", "bf16", stream=True, **fields), *extents)


def test_sums_are_added_in_the_same_order_each_time():
    plan = WarpgroupPlan("f16", "f32", 64, 128, blocks=4, stream=True)
    a, b = torch.randn(1, 64, 1024).half(), torch.randn(1, 128, 1024).half().mT
    first, second = (
        torch.as_tensor(warpgroup_gemm(a, b, a, a, 1.0, 1.0, plan, Epilogue("f32", 1)))
        for _ in range(2)
    )
    assert torch.equal(first, second)


def test_parts_without_steps():
    """A part of a divided sum that has no steps frees no buffer of the ring: the ring is gone
    through three times."""
    plan = WarpgroupPlan("bf16", "f32", 64, 128, blocks=1, splits=2)
    check(plan, 24, 64, 128, 64)


@pytest.mark.parametrize(
    ("extents", "divided"),
    [
        ((2560, 2560, 8192), True),  # 200 tiles for 132 blocks
        ((4096, 4096, 4096), False),  # 512: nearly four turns
        ((512, 512, 65536), False),  # 8: all of them are divided, and added by a second kernel
        ((8192, 8192, 8192), False),  # 2048: what it would gain is less than 3 %
    ],
)
def test_which_products_have_divided_tiles(extents, divided):
    m, n, k = extents
    a, b = (torch.empty(1, x, k, dtype=torch.bfloat16) for x in (m, n))
    assert warpgroup_plan(a, b.mT, Epilogue("bf16", 1)).stream == divided
