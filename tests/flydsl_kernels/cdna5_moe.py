"""Cases of gfx1250: experts' products of fp8 and fp4 with scales, for rows in groups."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from flydsl_kernels.case import Comparison, case
from flydsl_kernels.cdna5 import address, floats4, floats8, generator, in_tiles, in_words, scales
from flydsl_kernels.gemm import stream

FILE = "moe/moe_a8w4_mxscale_gfx1250.py"


@case("moe_a8w4 3 experts", FILE, target="gfx1250", rows=[40, 1, 64], tile=(64, 256, 128))
@case(
    "moe_a8w4 silu, one expert without rows",
    FILE,
    target="gfx1250",
    rows=[17, 0, 33],
    tile=(32, 256, 256),
    activation=1,
)
@case(
    "moe_a8w4 swiglu and bias",
    FILE,
    target="gfx1250",
    rows=[5, 16],
    tile=(16, 256, 256),
    activation=2,
    bias=True,
)
@case(
    "moe_a8w4 cluster",
    FILE,
    target="gfx1250",
    rows=[64, 20],
    tile=(64, 256, 128),
    n=512,
    cluster=2,
)
def experts(
    rows: list[int],
    tile: tuple[int, int, int],
    n: int = 256,
    k: int = 512,
    activation: int = 0,
    bias: bool = False,
    cluster: int = 1,
) -> Iterator[Comparison]:
    """Each expert's rows begin at a multiple of the tile's. With an activation columns are pairs of
    a gate and a value, which the limit clamps."""
    from kernels.moe.moe_a8w4_mxscale_gfx1250 import launch_moe_gemm_a8w4

    limit, tile_m = 3.0, tile[0]
    tiles = [-(-count // tile_m) for count in rows]
    ends = torch.tensor(tiles).cumsum(0).int() * tile_m
    m, owner = (
        int(ends[-1]),
        torch.arange(len(rows)).repeat_interleave(torch.tensor(tiles) * tile_m),
    )
    real = torch.cat(
        [torch.arange(held * tile_m) < count for held, count in zip(tiles, rows, strict=True)]
    )
    (a, left), (b, right) = floats8(m, k, 0), floats4(len(rows) * n, k, 1)
    (sa, sa_values), (sb, sb_values) = scales(m, k // 32, 2), scales(len(rows) * n, k // 32, 3)
    sa, sa_values = sa - 6, sa_values / 64  # so that an activation is not always at its limit
    left = left * sa_values.repeat_interleave(32, 1)
    right = (right * sb_values.repeat_interleave(32, 1)).view(len(rows), n, k)
    # A tile's scales: four of each of its 16-row groups in turn, for each row of a group.
    held = sa.view(m // tile_m, tile_m // 16, 16, k // 128, 4).permute(0, 2, 3, 1, 4).contiguous()
    added = torch.randn(len(rows), n, generator=generator(7)).bfloat16()
    wanted = torch.einsum("rk,rnk->rn", left, right[owner])
    if bias:
        wanted = wanted + added.double()[owner]
    if activation:
        gate, value = wanted[:, ::2].clamp(max=limit), wanted[:, 1::2].clamp(-limit, limit)
        if activation == 1:
            wanted = gate * torch.sigmoid(gate) * value
        else:
            wanted = gate * torch.sigmoid(1.702 * gate) * (value + 1)
    tiled = in_tiles(b)
    c = torch.full((1, m, wanted.shape[1]), -99.0, dtype=torch.bfloat16)
    launch_moe_gemm_a8w4(
        c, address(a), address(tiled), held.view(torch.int32).view(m // (tile_m // 16), -1),
        in_words(sb).view(torch.int32), m, stream(), n, k, *tile, 1, 4, 0, 2, 0, address(ends),
        len(rows), activation, int(bias), address(added), limit, 1, cluster,
    )  # fmt: skip
    limit_of = float(wanted.abs().mean()) * 1e-3 + 1e-3
    yield Comparison("c", c[0][real], wanted[real], limit_of, 2.0**-7)
