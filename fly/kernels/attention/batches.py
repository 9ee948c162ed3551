"""Attention of batches of sequences of one length, and its gradients."""

from __future__ import annotations

import math
from typing import Any

from fly.kernels.arrays import contiguous, filled
from fly.kernels.attention.arguments import (
    check,
    check_like,
    for_maps,
    for_tiles,
    scale_of,
    scaled_up,
    typed,
)
from fly.kernels.attention.entries import attention, attention_gradients
from fly.kernels.attention.problem import Problem
from fly.kernels.attention.warpgroups.groups import has_warpgroups
from fly.kernels.operators import operator


def _heads_like(x: Any) -> Any:
    """A tensor of the shape of batches × heads × length × d as the kernels allocate it."""
    return x.new_empty(x.swapaxes(1, 2).shape).swapaxes(1, 2)


def _fake(q: Any, k: Any, v: Any, causal: bool = False, scale: float | None = None) -> Any:
    return _heads_like(q), q.new_empty(q.shape[:3], dtype=_float32())


def _fake_backward(d_out: Any, d_lse: Any, q: Any, k: Any, v: Any, *_: Any) -> tuple[Any, Any, Any]:
    return _heads_like(q), _heads_like(k), _heads_like(v)


def _zeros(x: Any) -> Any:
    """As the kernels allocate it."""
    return filled(x, x.swapaxes(1, 2).shape, 0.0).swapaxes(1, 2)


@operator(
    "(Tensor q, Tensor k, Tensor v, bool causal=False, float? scale=None) -> (Tensor, Tensor)",
    fake=_fake,
)
def flash_attention(
    q: Any, k: Any, v: Any, causal: bool = False, scale: float | None = None
) -> tuple[Any, Any]:
    """softmax(scale · q·kᵀ)·v, and the logarithms of the sums of exponentials, of each query.

    q: batches × heads × queries × d, of f16 or bf16; d is 64 or 128. k, v: batches × kv_heads ×
    keys × d, of the same type; heads is a multiple of kv_heads, and heads / kv_heads adjacent heads
    of q share one of k and v. Copied if rows are not at multiples of 16 bytes or their elements are
    not adjacent. causal: query i sees the keys up to i + keys - queries, so that the last query
    sees all (aligned at the bottom right). scale: 1/√d if None.

    Returns out, as q, in memory as batches × queries × heads × d; and lse, batches × heads ×
    queries, of f32. A query that sees no key has an out of 0 and an lse of -inf. UsageError for
    other types and shapes, and for targets without wgmma and without MFMA or WMMA of 16×16×16.
    """
    check(q, k, v, 4)
    problem = Problem(q.shape[3], causal, packed=False)
    q, factor = scaled_up(q, scale)
    q, k, v = [for_tiles(one, 2) for one in (q, k, v)]
    if has_warpgroups():
        if 0 in (*q.shape, *k.shape):
            return typed(_zeros(q), q), filled(q, q.shape[:3], -math.inf, "float32")
        q, k, v = map(for_maps, (q, k, v))
    out, lse = attention(q, k, v, factor, problem)
    return typed(out, q), lse


@operator(
    "(Tensor d_out, Tensor d_lse, Tensor q, Tensor k, Tensor v, Tensor out, Tensor lse, "
    "bool causal=False, float? scale=None) -> (Tensor, Tensor, Tensor)",
    fake=_fake_backward,
)
def flash_attention_backward(
    d_out: Any,
    d_lse: Any,
    q: Any,
    k: Any,
    v: Any,
    out: Any,
    lse: Any,
    causal: bool = False,
    scale: float | None = None,
) -> tuple[Any, Any, Any]:
    """The gradients of q, k and v, from those of out, lse = flash_attention(q, k, v, causal,
    scale); of their types and shapes. The same in each run, but for those of q on sm_90a, whose
    parts are added in any order."""
    check(q, k, v, 4)
    check_like(q, d_out=d_out, out=out)
    problem = Problem(q.shape[3], causal, packed=False)
    d_out, q, k, v, out = [for_tiles(one, 2) for one in (d_out, q, k, v, out)]
    lse = contiguous(lse)  # as the kernels read it
    if has_warpgroups():
        if 0 in (*q.shape, *k.shape):
            return _zeros(q), _zeros(k), _zeros(v)
        d_out, q, k, v = map(for_maps, (d_out, q, k, v))
    made = attention_gradients(d_out, d_lse, q, k, v, out, lse, scale_of(scale, q), problem)
    return tuple(typed(one, q) for one in made)


def _save(ctx: Any, inputs: Any, output: Any) -> None:
    *tensors, ctx.causal, ctx.scale = inputs
    ctx.save_for_backward(*tensors, *output)


@flash_attention.gradient(_save)
def _(ctx: Any, d_out: Any, d_lse: Any) -> Any:
    gradients = flash_attention_backward(d_out, d_lse, *ctx.saved_tensors, ctx.causal, ctx.scale)
    return (*gradients, None, None)


def _float32() -> Any:
    import torch

    return torch.float32
