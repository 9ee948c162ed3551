"""Attention by torch, as a reference for kernels of attention."""

from __future__ import annotations

import math
from typing import Any

import torch

from fly_kernels.judging import tensor


def reference(q: Any, k: Any, v: Any, causal: bool, scale: float | None = None) -> Any:
    """Torch's attention; where no key is seen its result is 0. Logarithms of sums are torch's."""
    queries, keys = q.shape[2], k.shape[2]
    mask = torch.ones(queries, keys, dtype=torch.bool).tril(keys - queries) if causal else None
    attention = torch.nn.functional.scaled_dot_product_attention
    out = attention(q, k, v, attn_mask=mask, scale=scale, enable_gqa=True)
    scale = 1 / math.sqrt(q.shape[3]) if scale is None else scale
    wide = torch.promote_types(q.dtype, torch.float32)
    k = k.repeat_interleave(q.shape[1] // k.shape[1], 1)
    scores = scale * q.to(wide) @ k.to(wide).mT
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    return out, scores.logsumexp(-1)


def inputs(
    batches: int, heads: int, kv_heads: int, queries: int, keys: int, d: int, dtype: torch.dtype
) -> list[torch.Tensor]:
    """q, k and v."""
    of_keys = (batches, kv_heads, keys, d)
    shapes = ((batches, heads, queries, d), of_keys, of_keys)
    return [tensor(seed, shape, dtype, 1.0) for seed, shape in enumerate(shapes)]


def both(out: Any, lse: Any) -> Any:
    """One tensor with both results, where logarithms are finite."""
    return out + torch.where(lse.isfinite(), lse, 0.0).unsqueeze(-1).to(out.dtype)
