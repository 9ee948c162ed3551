"""Cases of kernels/moe/mxfp_moe: weights of 4 bits, activations of 4 or 8, with scales of 32."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from flydsl_kernels.case import Comparison, case, random
from flydsl_kernels.gemm_cdna4 import E2M1, blocks_of_16, microscaled, scale_blocks
from flydsl_kernels.moe import routed, sorted_by_expert

GEMM1, GEMM2 = "moe/mxfp_moe/gemm1.py", "moe/mxfp_moe/gemm2.py"


def padded(scales: torch.Tensor) -> torch.Tensor:
    """Scales in blocks of 32 rows by 8 columns, of as many rows as fill the last one."""
    rows, columns = scales.shape
    made = torch.full((-(-rows // 32) * 32, -(-columns // 8) * 8), 127, dtype=torch.uint8)
    made[:rows, :columns] = scales
    return scale_blocks(made)


def unpacked(codes: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    """The numbers that packed four-bit floats and their scales mean."""
    both = torch.stack([codes & 15, codes >> 4], 2).flatten(1)
    values = E2M1[(both & 7).long()].double() * torch.where(both >= 8, -1.0, 1.0)
    return values * torch.exp2(scales.double() - 127).repeat_interleave(32, 1)


def rounded(x: torch.Tensor, kind: str) -> torch.Tensor:
    """Activations as the kernel quantizes them: blocks of 32 share the least power of two for which
    none is above 6; halves go to even codes."""
    parts = x.double().unflatten(1, (-1, 32))
    step = torch.exp2(torch.ceil(torch.log2(parts.abs().amax(2, keepdim=True) / 6)))
    parts = parts / step
    if kind == "fp8":
        made = parts.to(torch.float8_e4m3fn).double()
    else:
        odd = torch.arange(8) % 2 * 1e-9
        nearest = ((parts.abs()[..., None] - E2M1.double()).abs() + odd).argmin(3)
        made = E2M1.double()[nearest] * parts.sign()
    return (made * step).flatten(1)


@case("mxfp_moe gemm1 a4w4 50x512x256", GEMM1, target="gfx950", tokens=50, rows=32)
@case(
    "mxfp_moe gemm1 a8w4 70x512x256",
    GEMM1,
    target="gfx950",
    defect="copies rows of the tile of A to LDS 128 bytes apart, and reads them 256 apart",
    tokens=70,
    rows=32,
    activation="fp8",
)
@case("mxfp_moe gemm1 a4w4 64 rows", GEMM1, target="gfx950", tokens=70, rows=64)
@case("mxfp_moe gemm1 quantizes 9 tokens", GEMM1, target="gfx950", tokens=9, rows=16, inline=True)
@case(
    "mxfp_moe gemm1 quantizes 13 tokens to fp8",
    GEMM1,
    target="gfx950",
    tokens=13,
    rows=16,
    inline=True,
    activation="fp8",
)
@case("mxfp_moe gemm1 a4w4 128 rows", GEMM1, target="gfx950", tokens=90, rows=128)
@case(
    "mxfp_moe gemm1 a4w4 128 rows of 256",
    GEMM1,
    target="gfx950",
    defect="multiplies two tiles of K, where K = 256 has one",
    tokens=90,
    rows=128,
    width=256,
)
def gemm1(
    tokens: int, rows: int, width: int = 512, activation: str = "fp4", inline: bool = False
) -> Iterator[Comparison]:
    from kernels.moe.mxfp_moe import flydsl_mxfp4_gemm1

    experts, top, inner = 3, 2, 256
    ids, weights = routed(tokens, experts, top)
    places, _, owners, count = sorted_by_expert(ids, weights, experts, rows)
    end, size = int(count[0]), len(owners) * rows
    token = torch.full((size,), tokens, dtype=torch.int32)
    token[: len(places)] = places & 0xFFFFFF
    hidden = random(tokens, width, dtype=torch.bfloat16)
    a, scale_a, fine = microscaled(tokens, width, 3)
    if activation == "fp8":
        a = random(tokens, width, seed=4).to(torch.float8_e4m3fn)
        fine = a.float() * torch.exp2(scale_a.float() - 127).repeat_interleave(32, 1)
    w, scale_w, meant = microscaled(experts * 2 * inner, width, 5)
    scale_w, meant = scale_w - 6, meant / 64
    if inline:
        fine = rounded(hidden, activation)
    gathered = scale_a[token.long().clamp(max=tokens - 1)]
    out = torch.zeros(size, inner // 2, dtype=torch.uint8)
    out_scale = torch.zeros(-(-size // 256) * 256 * (inner // 32), dtype=torch.uint8)
    if rows == 16:  # each tile has a block of 32 rows by itself
        out_scale = torch.zeros(size * 2 * (inner // 32), dtype=torch.uint8)
    flydsl_mxfp4_gemm1(
        a_quant=a.view(torch.uint8), a_scale_sorted_shuffled=padded(gathered),
        w1_u8=blocks_of_16(w), w1_scale_u8=padded(scale_w), sorted_expert_ids=owners,
        cumsum_tensor=count[:1].clone(), m_indices=token, inter_sorted_quant=out,
        inter_sorted_shuffled_scale=out_scale, hidden_states=hidden, n_tokens=tokens, BM=rows,
        use_nt=inline or rows == 32, inline_quant=inline, NE=experts, D_HIDDEN=width,
        D_INTER=inner, topk=top, a_dtype=activation,
    )  # fmt: skip
    columns = inner // 32
    blocks = out_scale.view(-1, columns // 8, 4, 16, 2, 2).permute(0, 5, 3, 1, 4, 2)
    scales = blocks.reshape(-1, 32, columns)
    scales = scales[:, :16].reshape(-1, columns) if rows == 16 else scales.reshape(-1, columns)
    real = token[:end] < tokens
    values = unpacked(out[:end], scales[:end])[real]
    meant = meant.double().reshape(experts, 2 * inner, width)
    owner = owners.long().repeat_interleave(rows)[:end][real]
    both = torch.einsum("rk,rok->ro", fine.double()[token[:end][real].long()], meant[owner])
    wanted = torch.nn.functional.silu(both[:, :inner]) * both[:, inner:]
    # A block's steps are a power of two that depends on its largest value: at most a third of it.
    largest = wanted.abs().view(-1, columns, 32).amax(2).repeat_interleave(32, 1)
    away = (values - wanted).abs()
    limit = 0.26 * largest + 1e-3
    yield Comparison("too far", (away > limit).sum()[None], torch.zeros(1))
    close = torch.nn.functional.cosine_similarity(values.flatten(), wanted.flatten(), 0)
    yield Comparison("cosine", close[None], torch.ones(1), 0.02)


@case("mxfp_moe gemm2 atomic 50x256x512", GEMM2, target="gfx950", tokens=50, rows=32)
@case("mxfp_moe gemm2 atomic 16 rows", GEMM2, target="gfx950", tokens=9, rows=16, inner=256)
@case("mxfp_moe gemm2 atomic 64 rows", GEMM2, target="gfx950", tokens=70, rows=64, width=512)
@case("mxfp_moe gemm2 flat 128 rows", GEMM2, target="gfx950", tokens=70, rows=128, flat=True)
def gemm2(
    tokens: int, rows: int, width: int = 256, inner: int = 512, flat: bool = False
) -> Iterator[Comparison]:
    from kernels.moe.mxfp_moe import flydsl_mxfp4_gemm2

    experts, top = 3, 2
    ids, weights = routed(tokens, experts, top)
    places, factors, owners, count = sorted_by_expert(ids, weights, experts, rows)
    end, size = int(count[0]), len(owners) * rows
    a, scale_a, fine = microscaled(size, inner, 3)
    w, scale_w, meant = microscaled(experts * width, inner, 5)
    scale_w, meant = scale_w - 6, meant / 64
    shape = (size if flat else tokens, width)
    out = torch.zeros(shape, dtype=torch.bfloat16)
    if rows == 16:  # each tile has a block of 32 rows by itself
        spread = torch.full((size * 2, inner // 32), 127, dtype=torch.uint8)
        spread.view(-1, 2, 16, inner // 32)[:, 0] = scale_a.view(-1, 16, inner // 32)
        held = padded(spread)
    else:
        held = padded(scale_a)
    flydsl_mxfp4_gemm2(
        inter_sorted_quant=a, inter_sorted_shuffled_scale=held, w2_u8=blocks_of_16(w),
        w2_scale_u8=padded(scale_w), sorted_expert_ids=owners, cumsum_tensor=count[:1].clone(),
        sorted_token_ids=places, sorted_weights=factors, flat_out=out, M_logical=tokens,
        max_sorted=size, BM=rows, use_nt=False, epilog="nonatomic" if flat else "atomic",
        NE=experts, D_HIDDEN=width, D_INTER=inner, topk=top,
    )  # fmt: skip
    meant = meant.double().reshape(experts, width, inner)
    owner = owners.long().repeat_interleave(rows)[:end]
    made = torch.einsum("rk,rok->ro", fine.double()[:end], meant[owner])
    token = places[:end].long() & 0xFFFFFF
    real = token < tokens
    if flat:
        yield Comparison("out", out[:end][real], made[real], 0.02, 0.01)
        return
    wanted = torch.zeros(shape, dtype=torch.double)
    wanted.index_add_(0, token[real], made[real] * factors[:end].double()[real, None])
    yield Comparison("out", out, wanted, 0.1, 0.02)
