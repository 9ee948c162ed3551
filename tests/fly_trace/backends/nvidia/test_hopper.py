"""`fx.nvvm` on Hopper: what is refused, and why."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))
from trace_helpers import kernel_source, refusal

HOST = """\
import fly
import fly.expr as fx

@fly.kernel
def kernel(map, n: fx.Int32):
    {body}

@fly.jit
def entry(A: fx.Tensor[fx.BFloat16, "m", "n"], n: fx.Int32):
    tile = fx.nvvm.tile_layout(fx.BFloat16, (64, 64))
    map = {map}
    kernel(map, n).launch(grid=1, block=32)
"""
MAP = "fx.nvvm.tensor_map(A, tile)"


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("fx.nvvm.tensor_map(3, tile)", "fx.nvvm.tensor_map takes a tensor"),
        ("fx.nvvm.tensor_map(A, tile, tf32=True)", "tf32=True rounds elements of f32, not of bf16"),
        ("fx.nvvm.tensor_map(A, 64)", "fx.nvvm.tensor_map takes the layout of a tile, not"),
        ("fx.nvvm.tensor_map(A, fx.make_layout((64, 64), (1, 65)))", "fx.nvvm.tensor_map: "),
        ("fx.nvvm.tensor_map(A, fx.make_layout((64, 512), (512, 1)))", "256"),
        ("fx.nvvm.tile_layout(fx.BFloat16, (64, 65))", "65 elements of bf16 are no whole rows of"),
        ("fx.nvvm.tile_layout(fx.BFloat16, (64, 64), row=48)", "rows of 32, 64 or 128 bytes"),
        ("fx.nvvm.tile_layout(fx.BFloat16, 64)", "takes the rows and columns of a tile"),
        ("fx.nvvm.tile_layout(fx.BFloat16, (64, 64), 2)", "the mode 0 or 1 that is contiguous"),
    ],
)
def test_maps_that_are_refused(expression, message, tmp_path):
    source = HOST.format(body="pass", map=expression)
    assert message in refusal(source, tmp_path, on="sm_90a")


TILES = "tiles = fx.nvvm.SharedTiles(fx.BFloat16, fx.nvvm.tile_layout(fx.BFloat16, {shape}), 2)"
WHOLE = TILES.format(shape="(64, 64)")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (f"{WHOLE}; fx.nvvm.tma_load(map, (n, n), tiles[0], n)", "a pointer to an i64 in shared"),
        (
            f"{WHOLE}; ring = fx.nvvm.Pipeline(2, 1); slot = ring.fill(n, map.nbytes);"
            " fx.nvvm.tma_load(map, (n,), tiles[0], slot.barrier)",
            "takes a coordinate of 2 numbers, not 1",
        ),
        (f"{WHOLE}; fx.nvvm.tma_store(tiles[0], n, (n, n))", "takes a tensor map, not"),
        (
            TILES.format(shape="(64, 128)") + "; fx.nvvm.tma_store(tiles[0], map, (n, n))",
            "is no tile with the map's layout",
        ),
        ("fx.nvvm.tensor_map(map, 3)", "fx.nvvm.tensor_map is for host functions"),
        ("fx.nvvm.Pipeline(65, 1)", "the stages of fx.nvvm.Pipeline"),
        ("fx.nvvm.mbarrier_wait(n, 0)", "fx.nvvm.mbarrier_wait takes a pointer to an i64"),
        ("fx.nvvm.set_registers(100, True)", "takes a multiple of 8 from 24 to 256"),
        ("fx.nvvm.wgmma_wait(0)", "takes the fragments that the products write to"),
        ("fx.nvvm.accumulators(n)", "takes a tiled mma, not"),
        ("fx.nvvm.WGMMA(7, fx.BFloat16)", "64x7x16"),
    ],
)
def test_what_a_kernel_can_not_do(body, message, tmp_path):
    source = HOST.format(body=body, map=MAP)
    assert message in refusal(source, tmp_path, on="sm_90a")


@pytest.mark.parametrize("call", ["Pipeline(2, 1)", "set_registers(40, False)"])
def test_targets_that_lack_it(call, tmp_path):
    found = refusal(kernel_source(f"fx.nvvm.{call}"), tmp_path, on="sm_80")
    assert f"sm_80 has no fx.nvvm.{call.partition('(')[0]}" in found
