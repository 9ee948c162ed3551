"""Cases of kernels/mega_moe: what of it needs one GPU only."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from flydsl_kernels.case import Comparison, case, random

QUANT = "mega_moe/quant.py"
FP4 = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6], dtype=torch.double)


@case("mega_moe quant fp4 3x96", QUANT, target="gfx950", mode="fp4", rows=3, width=96)
@case("mega_moe quant fp8 70x256", QUANT, target="gfx950", mode="fp8", rows=70, width=256)
def quantized(mode: str, rows: int, width: int) -> Iterator[Comparison]:
    """Blocks of 32 share a power of two: the least for which the largest value fits."""
    from kernels.mega_moe.quant import per_1x32_mx_quant

    x = random(rows, width, dtype=torch.bfloat16) * torch.logspace(-3, 3, rows)[:, None].bfloat16()
    found, scale = per_1x32_mx_quant(x, mode)
    most = 6.0 if mode == "fp4" else 448.0
    largest = x.double().abs().view(rows, -1, 32).amax(2)
    exponents = torch.ceil(torch.log2(largest / most))
    yield Comparison("scale", scale, exponents + 127)
    if mode == "fp4":
        codes = torch.stack([found.view(torch.uint8) & 15, found.view(torch.uint8) >> 4], 2)
        codes = codes.flatten(1).long()
        values = FP4[codes & 7] * (1 - 2.0 * (codes >> 3))
    else:
        values = found.double()
    whole = values.view(rows, -1, 32) * torch.exp2(exponents)[..., None]
    # Half the distance of neighbours: of fp4 up to 1 in a block's units, of fp8 a sixteenth.
    near = torch.exp2(exponents)[..., None] * (values.view(rows, -1, 32).abs() * 0 + 1.0)
    away = (whole - x.double().view(rows, -1, 32)).abs()
    limit = near if mode == "fp4" else x.double().view(rows, -1, 32).abs() / 16 + near / 512
    yield Comparison("too far", (away > limit).sum()[None], torch.zeros(1))


@case("mega_moe scale sort 64", QUANT, target="gfx950", tokens=11, columns=512, rows=64)
def sorted_scales(tokens: int, columns: int, rows: int) -> Iterator[Comparison]:
    from kernels.mega_moe.quant import mxfp4_moe_scale_sort

    generator = torch.Generator().manual_seed(1)
    scales = torch.randint(1, 255, (tokens, columns // 32), generator=generator, dtype=torch.uint8)
    ids = torch.randint(0, tokens + 2, (rows,), generator=generator, dtype=torch.int32)
    out = torch.zeros(rows, columns // 32, dtype=torch.uint8)
    valid = torch.tensor([rows], dtype=torch.int32)
    mxfp4_moe_scale_sort(out, scales, ids, valid, tokens, columns)
    # 32 rows and 8 columns are 64 words: rows r and r + 16, columns c and c + 4.
    given = scales[ids.long().clamp(max=tokens - 1)].view(rows // 32, 2, 16, columns // 256, 2, 4)
    wanted = given.permute(0, 3, 5, 2, 4, 1)
    yield Comparison("out", out.flatten(), wanted.flatten())
