"""Cases of kernels/attention: whole sequences."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch

from flydsl_kernels.case import DTYPES, Comparison, case, random

FILES = {"generic": "attention/flash_attn_generic.py", "wave": "attention/flash_attn_gfx950.py"}


def attended(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """Attention of (batch, sequence, heads, width), and the logarithms of the sums."""
    group = q.shape[2] // k.shape[2]
    k, v = (one.double().repeat_interleave(group, 2) for one in (k, v))
    scores = torch.einsum("bqhd,bkhd->bhqk", q.double(), k) / math.sqrt(q.shape[3])
    if causal:
        rows, columns = scores.shape[2:]
        late = torch.arange(columns)[None] > torch.arange(rows)[:, None] + columns - rows
        scores = scores.masked_fill(late, -math.inf)
    weights = torch.softmax(scores, 3)
    return torch.einsum("bhqk,bkhd->bqhd", weights, v), scores.logsumexp(3)


@case("flash_attn bf16 causal 100", FILES["generic"], kind="bf16", length=100, causal=True)
@case(
    "flash_attn f16 128 grouped",
    FILES["generic"],
    kind="f16",
    length=128,
    causal=False,
    heads=4,
    kv=2,
)
@case("flash_attn f16 d64 77", FILES["generic"], kind="f16", length=77, causal=False, width=64)
@case(
    "flash_attn bf16 gfx950 130",
    FILES["generic"],
    target="gfx950",
    kind="bf16",
    length=130,
    causal=True,
)
@case(
    "flash_attn bf16 dualwave 512",
    FILES["wave"],
    target="gfx950",
    kind="bf16",
    length=512,
    causal=True,
    heads=1,
    kv=1,
    batch=1,
)
@case(
    "flash_attn f16 dualwave 600",
    FILES["wave"],
    target="gfx950",
    defect="it gives NaN for 600 queries",
    kind="f16",
    length=600,
    causal=False,
    heads=1,
    kv=1,
    batch=1,
)
@case(
    "flash_attn splits 768",
    FILES["wave"],
    target="gfx950",
    kind="bf16",
    length=768,
    causal=False,
    heads=1,
    kv=1,
    batch=1,
    num_kv_splits=2,
)
def flash(
    kind: str,
    length: int,
    causal: bool,
    heads: int = 2,
    kv: int = 2,
    width: int = 128,
    batch: int = 2,
    **options: Any,
) -> Iterator[Comparison]:
    from kernels.attention.flash_attn_interface import flydsl_flash_attn_func

    q = random(batch, length, heads, width, dtype=DTYPES[kind])
    k, v = (random(batch, length, kv, width, seed=n, dtype=q.dtype) for n in (1, 2))
    out = flydsl_flash_attn_func(q, k, v, causal=causal, num_kv_heads=kv, **options)
    close = 0.004 if kind == "f16" else 0.02
    yield Comparison("out", out, attended(q, k, v, causal)[0], close, 0.02)


@case("flash_attn varlen 33+100", "attention/flash_attn_interface.py", target="gfx950")
def varlen() -> Iterator[Comparison]:
    from kernels.attention.flash_attn_interface import flydsl_flash_attn_func

    ends = torch.tensor([0, 33, 133], dtype=torch.int32)
    q, k, v = (random(133, 2, 128, seed=n, dtype=torch.bfloat16) for n in range(3))
    out = flydsl_flash_attn_func(
        q, k, v, causal=True, num_kv_heads=2, cu_seqlens_q=ends, cu_seqlens_kv=ends,
        max_seqlen_q=100, cross_seqlen=False,
    )  # fmt: skip
    parts = [slice(0, 33), slice(33, 133)]
    wanted = [attended(*(one[None, part] for one in (q, k, v)), True)[0][0] for part in parts]
    yield Comparison("out", out, torch.cat(wanted), 0.02, 0.02)


@case("flash_attn fp8 512", "attention/flash_attn_fp8_gfx950.py", target="gfx950")
def fp8() -> Iterator[Comparison]:
    from kernels.attention.flash_attn_interface import flydsl_flash_attn_func

    kind = torch.float8_e4m3fn
    q, k, v = (random(1, 512, 1, 128, seed=n).to(kind) for n in range(3))
    one = torch.ones(1)
    out = flydsl_flash_attn_func(
        q, k, v, causal=False, num_kv_heads=1, q_descale=one, k_descale=one, v_descale=one
    )
    wanted = attended(q.float(), k.float(), v.float(), False)[0]
    yield Comparison("out", out, wanted, 0.06, 0.1)
