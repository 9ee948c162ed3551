"""Cases of kernels/moe/moe_2stage_a16wmix: 16-bit activations, weights of 4 or 16 bits."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch

from flydsl_kernels.case import Comparison, case, random
from flydsl_kernels.gemm import stream
from flydsl_kernels.gemm_cdna4 import blocks_of_16, microscaled, scale_blocks
from flydsl_kernels.moe import blocked_rows, routed, sorted_by_expert

GEMM1 = "moe/moe_2stage_a16wmix/gemm1.py"
GEMM2 = "moe/moe_2stage_a16wmix/gemm2.py"
BF16 = torch.bfloat16


def held(
    kind: str, rows: int, columns: int, grouped: bool = True
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Random weights as the kernels take them, with their scales, and the numbers meant. Without
    `grouped` the scales of a row of integers are equal."""
    if kind == "bf16":
        w = (random(rows, columns, seed=5) / math.sqrt(columns)).to(BF16)
        return blocked_rows(w), torch.zeros(1, dtype=torch.uint8), w.float()
    if kind == "mxfp4":
        codes, scales, meant = microscaled(rows, columns, 5)
        return blocks_of_16(codes), scale_blocks(scales - 6), meant / 64
    generator = torch.Generator().manual_seed(5)
    values = torch.randint(-8, 8, (rows, columns), generator=generator)
    shape = (rows, columns // 32) if grouped else (rows, 1)
    scales = (0.5 + torch.rand(shape, generator=generator)) / 4 / math.sqrt(columns)
    scales = scales.to(BF16).expand(rows, columns // 32).contiguous()
    codes = (values & 15).to(torch.uint8)
    packed = codes[:, 0::2] | codes[:, 1::2] << 4
    return blocks_of_16(packed), scales, values * scales.float().repeat_interleave(32, 1)


@case("a16wmix gemm1 bf16 9x256x128", GEMM1, target="gfx950", kind="bf16", tokens=9, rows=16)
@case(
    "a16wmix gemm1 mxfp4 70x256x256", GEMM1, target="gfx950", kind="mxfp4", tokens=70, rows=32,
    inner=256, tile_k=128, options={"k_wave": 2, "xcd_swizzle": 1},
)  # fmt: skip
@case(
    "a16wmix gemm1 mxfp4 situ", GEMM1, target="gfx950", kind="mxfp4", tokens=21, rows=16,
    options={"act": "situv2"},
)  # fmt: skip
@case("a16wmix gemm1 int4 gfx942 19x512x128", GEMM1, kind="int4", tokens=19, rows=16, width=512)
@case(
    "a16wmix gemm1 int4 groups",
    GEMM1,
    target="gfx950",
    defect="with 16 rows it multiplies a sum over four groups by the scale of one of them",
    kind="int4",
    tokens=19,
    rows=16,
    grouped=True,
)
@case("a16wmix gemm1 int4 gfx950", GEMM1, target="gfx950", kind="int4", tokens=40, rows=64)
def gemm1(
    kind: str,
    tokens: int,
    rows: int,
    width: int = 256,
    inner: int = 128,
    tile_k: int = 256,
    options: dict[str, object] | None = None,
    grouped: bool = False,
) -> Iterator[Comparison]:
    from kernels.common.tensor_shim import _run_compiled
    from kernels.moe.moe_2stage_a16wmix import gemm1 as module

    experts, top, tile_n = 3, 2, 64
    ids, weights = routed(tokens, experts, top)
    places, _, owners, count = sorted_by_expert(ids, weights, experts, rows)
    x = random(tokens, width, dtype=BF16)
    w, scales, meant = held(kind, experts * 2 * inner, width, grouped=grouped or rows > 16)
    out = torch.zeros(len(owners) * rows, inner, dtype=BF16)
    launch = module.compile_gemm1_a16w4_port(
        BM=rows, D_HIDDEN=width, D_INTER=inner, NE=experts, TOPK=top, TILE_N=tile_n, TILE_K=tile_k,
        w_dtype=kind, **(options or {}),
    )  # fmt: skip
    grid = module.gemm1_a16w4_grid(rows, INTER=inner, TILE_N=tile_n, max_m_blocks=len(owners))
    beta, linear, limit = 1.5, 2.0, 0.7
    given = [one.data_ptr() for one in (x, w, scales, owners, count, places)]
    parameters = (beta, 1 / beta, linear, 1 / linear, limit)
    _run_compiled(launch, *given, tokens, grid, *parameters, out.data_ptr(), stream())
    meant = meant.double().reshape(experts, 2 * inner, width)
    end = int(count[0])
    wanted = torch.zeros(end, inner, dtype=torch.double)
    token = places[:end].long() & 0xFFFFFF
    for start in range(0, end, rows):
        part = token[start : start + rows]
        real = part < tokens
        both = x.double()[part.clamp(max=tokens - 1)] @ meant[owners[start // rows]].T
        gate, up = both[:, :inner], both[:, inner:]
        if options and "act" in options:
            gate, up = gate.clamp(max=limit), up.clamp(-limit, limit)
            gate = beta * torch.tanh(gate / beta) * torch.sigmoid(gate)
            made = gate * linear * torch.tanh(up / linear)
        else:
            made = torch.nn.functional.silu(gate) * up
        wanted[start : start + rows] = made * real[:, None]
    yield Comparison("out", out[:end].double() * (token < tokens)[:, None], wanted, 0.02, 0.02)


@case("a16wmix gemm2 bf16 9x256x256", GEMM2, target="gfx950", kind="bf16", tokens=9, rows=16)
@case("a16wmix gemm2 mxfp4 40x512x256", GEMM2, target="gfx950", kind="mxfp4", tokens=40, rows=32,
      width=512)  # fmt: skip
@case("a16wmix gemm2 int4 gfx942 21", GEMM2, kind="int4", tokens=21, rows=16)
@case("a16wmix gemm2 mxfp4 persistent", GEMM2, target="gfx950", kind="mxfp4", tokens=33, rows=16,
      persist=True)  # fmt: skip
def gemm2(
    kind: str, tokens: int, rows: int, width: int = 256, persist: bool = False
) -> Iterator[Comparison]:
    from kernels.common.tensor_shim import _run_compiled
    from kernels.moe.moe_2stage_a16wmix import gemm2 as module

    experts, top, inner, tile_n = 3, 2, 256, 128
    ids, weights = routed(tokens, experts, top)
    places, factors, owners, count = sorted_by_expert(ids, weights, experts, rows)
    end = int(count[0])
    a = random(len(owners) * rows, inner, dtype=BF16)
    w, scales, meant = held(kind, experts * width, inner)
    out = torch.zeros(tokens, width, dtype=BF16)
    launch = module.compile_gemm2_a16w4_port(
        BM=rows, NE=experts, N_OUT=width, D_INTER=inner, TILE_N=tile_n, w_dtype=kind,
        persist=persist,
    )  # fmt: skip
    blocks = len(owners)
    grid = 3 if persist else blocks * (width // tile_n)
    given = [one.data_ptr() for one in (a, w, scales, owners, count, places, factors)]
    _run_compiled(launch, *given, tokens, blocks, grid, out.data_ptr(), stream())
    meant = meant.double().reshape(experts, width, inner)
    wanted = torch.zeros(tokens, width, dtype=torch.double)
    for place in range(end):
        token = int(places[place]) & 0xFFFFFF
        if token < tokens:
            made = meant[owners[place // rows]] @ a[place].double()
            wanted[token] += float(factors[place]) * made
    yield Comparison("out", out, wanted, 0.03, 0.02)
