"""Cases of kernels/attention: positions, caches, and one token at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from flydsl_kernels.case import DTYPES, Comparison, case, random


def rotated(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """NeoX's rotation of (tokens, heads, width) by angles of (tokens, width / 2)."""
    a, b = x.double().chunk(2, 2)
    cos, sin = cos.double()[:, None], sin.double()[:, None]
    return torch.cat([a * cos - b * sin, b * cos + a * sin], 2)


ROPE = "attention/fused_rope_cache_kernel.py"


@case("fused_rope_cache bf16 5", ROPE, kind="bf16", width=64, flash_layout=True, scaled=False)
@case("fused_rope_cache f16 d128 5", ROPE, kind="f16", width=128, flash_layout=False, scaled=False)
@case("fused_rope_cache fp8 5", ROPE, kind="bf16", width=128, flash_layout=True, scaled=True)
def rope_cache(kind: str, width: int, flash_layout: bool, scaled: bool) -> Iterator[Comparison]:
    from kernels.attention.fused_rope_cache_kernel import build_fused_rope_cache_module

    tokens, q_heads, kv_heads, blocks, block, positions = 5, 4, 2, 4, 16, 40
    dtype = DTYPES[kind]
    launch = build_fused_rope_cache_module(
        head_dim=width, num_q_heads=q_heads, num_kv_heads=kv_heads, block_size=block,
        flash_layout=flash_layout, dtype_str=kind, apply_scale=scaled,
    )  # fmt: skip
    q = random(tokens, q_heads, width, dtype=dtype)
    k, v = (random(tokens, kv_heads, width, seed=n, dtype=dtype) for n in (1, 2))
    at = torch.tensor([3, 0, 39, 17, 4], dtype=torch.int32)
    slots = torch.tensor([5, -1, 63, 16, 31], dtype=torch.int32)
    angles = torch.outer(torch.arange(positions), 0.1 * torch.arange(1, width // 2 + 1))
    cos, sin = angles.cos().to(dtype), angles.sin().to(dtype)
    held = torch.uint8 if scaled else dtype
    if flash_layout:
        keys = torch.zeros(blocks, block, kv_heads, width, dtype=held)
        values = torch.zeros_like(keys)
    else:
        keys = torch.zeros(blocks, kv_heads, width // 16, block, 16, dtype=held)
        values = torch.zeros(blocks, kv_heads, width, block, dtype=held)
    q_out, k_out = torch.empty_like(q), torch.empty_like(k)
    k_scale, v_scale = torch.tensor([0.5]), torch.tensor([0.25])
    launch(q, k, v, at, cos, sin, slots, keys, values, q_out, k_out, tokens, k_scale, v_scale)

    close = 0.03 if kind == "bf16" else 0.004
    k_wanted = rotated(k, cos[at], sin[at])
    yield Comparison("q_out", q_out, rotated(q, cos[at], sin[at]), close, 0.01)
    yield Comparison("k_out", k_out, k_wanted, close, 0.01)
    if scaled:
        kind_8 = torch.float8_e4m3fnuz
        keys, values = (one.view(kind_8).double() for one in (keys, values))
        k_wanted, v = k_wanted / 0.5, v.double() / 0.25
    elif not flash_layout:
        keys = keys.permute(0, 3, 1, 2, 4).reshape(blocks, block, kv_heads, width)
        values = values.permute(0, 3, 1, 2)
    wanted = torch.zeros(2, blocks * block, kv_heads, width, dtype=torch.double)
    for token, slot in enumerate(slots.tolist()):
        if slot >= 0:
            wanted[:, slot] = torch.stack([k_wanted[token], v[token].double()])
    shape = (blocks, block, kv_heads, width)
    away = 0.08 if scaled else 0.01
    yield Comparison("keys", keys, wanted[0].view(shape), close, away)
    yield Comparison("values", values, wanted[1].view(shape), close, away)


@case("qk_norm_rope_quant bf16 3", "attention/qk_norm_rope_quant.py", quant=False)
@case("qk_norm_rope_quant fp8 3", "attention/qk_norm_rope_quant.py", quant=True, group=64)
def qk_norm_rope(quant: bool, group: int = 512) -> Iterator[Comparison]:
    from kernels.attention.qk_norm_rope_quant import flydsl_qk_norm_rope_quant

    tokens, heads, width, turned = 3, 2, 512, 64
    q = random(tokens, heads, width, dtype=torch.bfloat16)
    kv = random(tokens, width, seed=1, dtype=torch.bfloat16)
    weight = random(width, seed=2, dtype=torch.bfloat16)
    at = torch.tensor([7, 0, 19])
    angles = torch.outer(torch.arange(20), 0.1 * torch.arange(1, turned // 2 + 1))
    cos, sin = angles.cos().bfloat16(), angles.sin().bfloat16()
    q_out, kv_out, q_scale, kv_scale = flydsl_qk_norm_rope_quant(
        q, kv, weight, cos, sin, at, num_q_heads=heads, head_dim=width, rope_head_dim=turned,
        quant=quant, quant_group_size=group,
    )  # fmt: skip

    def wanted(x: torch.Tensor, weight: Any) -> torch.Tensor:
        x = x.double()
        x = x * torch.rsqrt((x * x).mean(2, keepdim=True) + 1e-6) * weight
        a, b = x[..., width - turned :: 2].clone(), x[..., width - turned + 1 :: 2].clone()
        c, s = cos[at].double()[:, None], sin[at].double()[:, None]
        x[..., width - turned :: 2], x[..., width - turned + 1 :: 2] = a * c - b * s, b * c + a * s
        return x

    def plain(x: torch.Tensor, scale: Any) -> torch.Tensor:
        if not quant:
            return x.double()
        grouped = x.double().unflatten(-1, (-1, group)) * scale.double()[..., None]
        return grouped.flatten(-2)

    close = (0.2, 0.08) if quant else (0.02, 0.01)
    yield Comparison("q", plain(q_out, q_scale), wanted(q, 1.0), *close)
    kv_wanted = wanted(kv[:, None], weight.double())[:, 0]
    yield Comparison("kv", plain(kv_out, kv_scale), kv_wanted, *close)


@case("swa 512 window 200", "attention/swa_gfx950.py", target="gfx950")
def swa() -> Iterator[Comparison]:
    import flydsl.expr as fx
    from kernels.attention.swa_gfx950 import build_gqa_attn

    length, heads, kv_heads, width, left = 512, 2, 1, 128, 200
    q = random(1, length, heads, width, dtype=torch.bfloat16)
    k, v = (random(1, length, kv_heads, width, seed=n, dtype=q.dtype) for n in (1, 2))
    out = torch.zeros_like(q)
    launch = build_gqa_attn(
        ATTN_B=1, ATTN_H=heads, ATTN_H_KV=kv_heads, ATTN_D=width, sliding_window=(left, 0)
    )
    stream = fx.Stream(torch.cuda.current_stream())
    flat = (one.reshape(-1) for one in (q, k, v, out))
    strides = (heads * width, kv_heads * width, kv_heads * width, heads * width)
    arguments = (*flat, *strides, length, length, stream)
    launch.compile(*arguments)(*arguments)
    rows = torch.arange(length)
    away = rows[:, None] - rows[None]
    scores = torch.einsum("bqhd,bkgd->bhqk", q.double(), k.double()) / width**0.5
    scores = scores.masked_fill((away < 0) | (away > left), -torch.inf)
    wanted = torch.einsum("bhqk,bkgd->bqhd", torch.softmax(scores, 3), v.double())
    yield Comparison("out", out, wanted, 0.02, 0.02)
