"""Cases of kernels/moe."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch

from flydsl_kernels.case import DTYPES, Comparison, case, pointer, random
from flydsl_kernels.gemm import FP8, quantized, stream


@case(
    "moe_reduce f16 5x3x512",
    "moe/moe_gemm_2stage/moe_reduce.py",
    kind="f16",
    tokens=5,
    top=3,
    width=512,
)
@case(
    "moe_reduce bf16 masked",
    "moe/moe_gemm_2stage/moe_reduce.py",
    kind="bf16",
    tokens=7,
    top=8,
    width=1000,
    masked=True,
)
@case(
    "moe_reduce f32 2x2x130",
    "moe/moe_gemm_2stage/moe_reduce.py",
    kind="f32",
    tokens=2,
    top=2,
    width=132,
)
def reduce(
    kind: str, tokens: int, top: int, width: int, masked: bool = False
) -> Iterator[Comparison]:
    from kernels.common.tensor_shim import _run_compiled
    from kernels.moe.moe_gemm_2stage import compile_moe_reduction

    run = compile_moe_reduction(
        topk=top, model_dim=width, dtype_str=kind, use_mask=masked, num_experts=6 if masked else 0
    )
    x = random(tokens, top, width, dtype=DTYPES[kind])
    y = torch.zeros(tokens, width, dtype=DTYPES[kind])
    generator = torch.Generator().manual_seed(3)
    ids = torch.randint(0, 6, (tokens, top), generator=generator, dtype=torch.int32)
    mask = torch.tensor([1, 0, 1, 1, 0, 1], dtype=torch.int32)
    given = [one.view(torch.uint8) for one in (x, y, mask, ids)]
    _run_compiled(run, *map(pointer, given), tokens, stream())
    kept = (mask[ids.long()] != 0)[..., None] if masked else 1.0
    yield Comparison("y", y, (x.float() * kept).sum(1), 0.02, 0.01)


@case(
    "topk_gating_softmax f32 37x64x6",
    "moe/topk_gating_softmax_kernel.py",
    kind="f32",
    tokens=37,
    experts=64,
    top=6,
)
@case(
    "topk_gating_softmax bf16 9x128x8",
    "moe/topk_gating_softmax_kernel.py",
    kind="bf16",
    tokens=9,
    experts=128,
    top=8,
)
def gating(kind: str, tokens: int, experts: int, top: int) -> Iterator[Comparison]:
    from kernels.moe.topk_gating_softmax_kernel import build_topk_gating_softmax_module

    launch = build_topk_gating_softmax_module(num_experts=experts, topk=top, dtype_str=kind)
    # Each logit of a row is another multiple of 1/16, so that no two are equal.
    order = random(tokens, experts).argsort(1).float()
    logits = ((order - experts / 2) / 16).to(DTYPES[kind])
    weights = torch.zeros(tokens, top)
    indices = torch.zeros(tokens, top, dtype=torch.int32)
    source = torch.zeros(tokens, top, dtype=torch.int32)
    launch(logits, weights, indices, source, tokens, stream=stream())
    chance, place = torch.softmax(logits.float(), 1).topk(top, 1)
    yield Comparison("indices", indices, place)
    yield Comparison("weights", weights, chance / chance.sum(1, keepdim=True), 1e-5, 1e-4)
    wanted = torch.arange(top)[None] * tokens + torch.arange(tokens)[:, None]
    yield Comparison("token_expert_indices", source, wanted)


def routed(tokens: int, experts: int, top: int, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Each token's experts and their weights."""
    ids = random(tokens, experts, seed=seed).topk(top, 1).indices.to(torch.int32)
    return ids, torch.softmax(random(tokens, top, seed=seed + 1), 1)


def sorted_by_expert(
    ids: torch.Tensor, weights: torch.Tensor, experts: int, unit: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """The places (k << 24 | token) in groups by expert, each filled up to a multiple of `unit`;
    their weights; the expert of each unit; and how many places there are, and tokens."""
    tokens, top = ids.shape
    most = ids.numel() + experts * unit - top
    places = torch.full((most,), top << 24 | tokens, dtype=torch.int32)
    held, owners, at = torch.zeros(most), [], 0
    for expert in range(experts):
        token, k = torch.where(ids == expert)
        places[at : at + len(token)] = (k << 24 | token).to(torch.int32)
        held[at : at + len(token)] = weights[token, k]
        units = -(-len(token) // unit)
        owners += [expert] * units
        at += units * unit
    filled = torch.full((-(-most // unit),), -1, dtype=torch.int32)
    filled[: len(owners)] = torch.tensor(owners, dtype=torch.int32)
    return places, held, filled, torch.tensor([at, tokens], dtype=torch.int32)


SUMS = "it overwrites the prefix sums before all waves have read them, and reads beyond its LDS"


@case("moe_sorting 5 tokens", "moe/moe_sorting_kernel.py", race=SUMS, tokens=5, experts=8, top=2)
@case("moe_sorting 67 tokens", "moe/moe_sorting_kernel.py", race=SUMS, tokens=67, experts=32, top=5)
@case(
    "moe_sorting 400 tokens", "moe/moe_sorting_kernel.py", race=SUMS, tokens=400, experts=16, top=4
)
def sorting(tokens: int, experts: int, top: int) -> Iterator[Comparison]:
    from kernels.moe.moe_sorting_kernel import UNIT_SIZE, moe_sorting_flydsl

    ids, weights = routed(tokens, experts, top)
    wanted = sorted_by_expert(ids, weights, experts, UNIT_SIZE)
    places, held, owners, count = (torch.zeros_like(one) for one in wanted)
    buffer = torch.ones(tokens, 64, dtype=torch.bfloat16)
    moe_sorting_flydsl(ids, weights, places, held, owners, count, buffer, experts)
    end = int(wanted[3][0])
    yield Comparison("count", count, wanted[3])
    yield Comparison("experts", owners[: end // UNIT_SIZE], wanted[2][: end // UNIT_SIZE])
    # Within an expert the order is open.
    for start in range(0, end, UNIT_SIZE):
        part = slice(start, start + UNIT_SIZE)
        yield Comparison("places", places[part].sort().values, wanted[0][part].sort().values)
    yield Comparison("weights", held[:end].sum(), wanted[1][:end].sum(), 1e-4)
    yield Comparison("buffer", buffer, torch.zeros_like(buffer))


@case("moe_gemm1 fp8 70x256x128", "moe/moe_gemm_2stage/gemm1.py", kind="fp8")
@case("moe_gemm1 int8 70x256x128", "moe/moe_gemm_2stage/gemm1.py", kind="int8")
@case("moe_gemm1 fp8 gfx950", "moe/moe_gemm_2stage/gemm1.py", target="gfx950", kind="fp8")
def gemm1(
    kind: str,
    tokens: int = 70,
    size: tuple[int, int] = (256, 128),
    tile: tuple[int, int, int] = (64, 64, 128),
    out_type: str = "f16",
    doweight: bool = False,
) -> Iterator[Comparison]:
    import flydsl.compiler as flyc
    from flydsl.runtime.device import get_rocm_arch
    from kernels.moe.moe_gemm_2stage import compile_moe_gemm1

    (width, inner), experts, top = size, 4, 2
    dtype = torch.int8 if kind == "int8" else FP8[get_rocm_arch()]
    ids, weights = routed(tokens, experts, top)
    x, scale_x = quantized(random(tokens, width), dtype)
    w, scale_w = quantized(random(experts * 2 * inner, width, seed=5) / math.sqrt(width), dtype)
    shuffled = torch.stack([blocked_rows(part) for part in w.reshape(experts, 2 * inner, width)])
    places, held, owners, count = sorted_by_expert(ids, weights, experts, tile[0])
    out = torch.zeros(tokens, top, inner, dtype=DTYPES[out_type])
    run = compile_moe_gemm1(
        model_dim=width,
        inter_dim=inner,
        experts=experts,
        topk=top,
        tile_m=tile[0],
        tile_n=tile[1],
        tile_k=tile[2],
        doweight_stage1=doweight,
        out_dtype=out_type,
        in_dtype=kind,
    )
    flat = (x, shuffled, scale_x.contiguous(), scale_w.contiguous())
    given = (out, *(one.reshape(-1) for one in flat), places, owners, held, count[:1])
    flyc.compile(run, *given, tokens, inner, width, len(owners), stream())
    full = (w.float() * scale_w).reshape(experts, 2 * inner, width)
    both = torch.einsum("td,tkod->tko", x.float() * scale_x, full[ids.long()])
    if doweight:  # the kernel weighs the gate, before the activation
        both[..., :inner] *= weights[..., None]
    wanted = torch.nn.functional.silu(both[..., :inner]) * both[..., inner:]
    yield Comparison("out", out, wanted, 0.03, 0.02)


def blocked_rows(w: torch.Tensor) -> torch.Tensor:
    """Rows in groups of 16, 32 bytes of their columns at a time: 16 bytes of each row in turn."""
    rows, columns = w.shape
    size = 16 // w.element_size()
    bits = w.view(torch.int8) if w.element_size() == 1 else w
    parts = bits.reshape(rows // 16, 16, columns // (2 * size), 2, size).permute(0, 2, 3, 1, 4)
    return parts.contiguous().view(w.dtype).reshape(rows, columns)


@case("moe_gemm2 fp8 9x128x256", "moe/moe_gemm_2stage/gemm2.py", kind="fp8")
@case("moe_gemm2 int8 accumulated", "moe/moe_gemm_2stage/gemm2.py", kind="int8", accumulate=True)
def gemm2(
    kind: str,
    accumulate: bool = False,
    tokens: int = 9,
    size: tuple[int, int] = (256, 128),
    tile: tuple[int, int, int] = (16, 128, 128),
    out_type: str = "f16",
    doweight: bool = True,
) -> Iterator[Comparison]:
    import flydsl.compiler as flyc
    from flydsl.runtime.device import get_rocm_arch
    from kernels.moe.moe_gemm_2stage import compile_moe_gemm2

    (width, inner), experts, top = size, 4, 2
    dtype = torch.int8 if kind == "int8" else FP8[get_rocm_arch()]
    ids, weights = routed(tokens, experts, top)
    x, scale_x = quantized(random(tokens * top, inner), dtype)
    w, scale_w = quantized(random(experts * width, inner, seed=5) / math.sqrt(inner), dtype)
    shuffled = torch.stack([blocked_rows(part) for part in w.reshape(experts, width, inner)])
    places, held, owners, count = sorted_by_expert(ids, weights, experts, tile[0])
    out = torch.zeros(tokens if accumulate else tokens * top, width, dtype=DTYPES[out_type])
    run = compile_moe_gemm2(
        model_dim=width,
        inter_dim=inner,
        experts=experts,
        topk=top,
        tile_m=tile[0],
        tile_n=tile[1],
        tile_k=tile[2],
        doweight_stage2=doweight,
        out_dtype=out_type,
        in_dtype=kind,
        accumulate=accumulate,
    )
    flat = (x, shuffled, scale_x.contiguous(), scale_w.contiguous())
    given = (out, *(one.reshape(-1) for one in flat), places, owners, held, count[:1])
    flyc.compile(run, *given, tokens, width, inner, len(owners), stream())
    full = (w.float() * scale_w).reshape(experts, width, inner)
    rows = (x.float() * scale_x).reshape(tokens, top, inner)
    wanted = torch.einsum("tki,tkoi->tko", rows, full[ids.long()])
    wanted = wanted * weights[..., None] if doweight else wanted
    wanted = wanted.sum(1) if accumulate else wanted.reshape(tokens * top, width)
    yield Comparison("out", out, wanted, 0.05, 0.02)
