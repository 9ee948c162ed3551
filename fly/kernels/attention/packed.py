"""Attention of sequences of various lengths, one after the other in memory, and its gradients."""

from __future__ import annotations

import math
from typing import Any

from fly_common.errors import UsageError

from fly.kernels.arrays import contiguous, filled, type_name
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


def _fake(q: Any, *_: Any, **__: Any) -> Any:
    import torch

    return q.new_empty(q.shape), q.new_empty((q.shape[1], q.shape[0]), dtype=torch.float32)


def _fake_backward(d_out: Any, d_lse: Any, q: Any, k: Any, v: Any, *_: Any, **__: Any) -> Any:
    return tuple(one.new_empty(one.shape) for one in (q, k, v))


@operator(
    "(Tensor q, Tensor k, Tensor v, Tensor cu_seqlens_q, Tensor cu_seqlens_k, "
    "bool causal=False, float? scale=None) -> (Tensor, Tensor)",
    fake=_fake,
)
def flash_attention_varlen(
    q: Any,
    k: Any,
    v: Any,
    cu_seqlens_q: Any,
    cu_seqlens_k: Any,
    causal: bool = False,
    scale: float | None = None,
) -> tuple[Any, Any]:
    """`flash_attention` of each of several sequences.

    q: queries of all sequences × heads × d. k, v: keys of all sequences × kv_heads × d. Sequence i
    has the queries from cu_seqlens_q[i] to cu_seqlens_q[i + 1], and the keys between the same
    elements of cu_seqlens_k; both are vectors of i32 that begin with 0, increase, and end with the
    number of rows. They are not checked, as they are the device's.

    Returns out, as q, and lse, heads × queries of all sequences, of f32.
    """
    starts, problem = _checked(q, k, v, cu_seqlens_q, cu_seqlens_k, causal)
    turned, factor = scaled_up(q, scale)
    if has_warpgroups() and 0 in (*q.shape, *k.shape):
        rows, many = q.shape[0], q.shape[1]
        return filled(q, q.shape, 0.0), filled(q, (many, rows), -math.inf, "float32")
    heads = [_by_heads(one) for one in (turned, k, v)]
    if has_warpgroups():
        heads = [*map(for_maps, heads)]
    out, lse = attention(*heads, factor, problem, *starts)
    return _by_rows(out, q), lse[0]


@operator(
    "(Tensor d_out, Tensor d_lse, Tensor q, Tensor k, Tensor v, Tensor cu_seqlens_q, "
    "Tensor cu_seqlens_k, Tensor out, Tensor lse, bool causal=False, float? scale=None) "
    "-> (Tensor, Tensor, Tensor)",
    fake=_fake_backward,
)
def flash_attention_varlen_backward(
    d_out: Any,
    d_lse: Any,
    q: Any,
    k: Any,
    v: Any,
    cu_seqlens_q: Any,
    cu_seqlens_k: Any,
    out: Any,
    lse: Any,
    causal: bool = False,
    scale: float | None = None,
) -> tuple[Any, Any, Any]:
    """The gradients of q, k and v, from those of out, lse = flash_attention_varlen(q, k, v,
    cu_seqlens_q, cu_seqlens_k, causal, scale); of their types and shapes. The same in each run, as
    those of `flash_attention_backward`."""
    starts, problem = _checked(q, k, v, cu_seqlens_q, cu_seqlens_k, causal)
    check_like(q, d_out=d_out, out=out)
    if has_warpgroups() and 0 in (*q.shape, *k.shape):
        return tuple(filled(one, one.shape, 0.0) for one in (q, k, v))
    d_out, *heads, out = [_by_heads(one) for one in (d_out, q, k, v, out)]
    if has_warpgroups():
        d_out, *heads = map(for_maps, (d_out, *heads))
    d_lse, lse = d_lse[None], contiguous(lse)[None]  # as the kernels read them
    given = d_out, d_lse, *heads, out, lse, scale_of(scale, q), problem
    made = attention_gradients(*given, *starts)
    return tuple(_by_rows(one, q) for one in made)


def _save(ctx: Any, inputs: Any, output: Any) -> None:
    *tensors, ctx.causal, ctx.scale = inputs
    ctx.save_for_backward(*tensors, *output)


@flash_attention_varlen.gradient(_save)
def _(ctx: Any, d_out: Any, d_lse: Any) -> Any:
    options = ctx.causal, ctx.scale
    gradients = flash_attention_varlen_backward(d_out, d_lse, *ctx.saved_tensors, *options)
    return (*gradients, None, None, None, None)


def _checked(q: Any, k: Any, v: Any, starts_q: Any, starts_k: Any, causal: bool) -> Any:
    """The starts of sequences, and the problem."""
    check(q, k, v, 3)
    for starts in (starts_q, starts_k):
        given = tuple(starts.shape)
        if type_name(starts) != "int32" or len(given) != 1 or given[0] < 1:
            raise UsageError(
                f"cu_seqlens are vectors of int32 with a first 0, not {type_name(starts)}{given}"
            )
    if starts_q.shape[0] != starts_k.shape[0]:
        raise UsageError(
            f"cu_seqlens_q has {starts_q.shape[0]} elements, and cu_seqlens_k {starts_k.shape[0]}"
        )
    return (starts_q, starts_k), Problem(q.shape[-1], causal, packed=True)


def _by_heads(x: Any) -> Any:
    """rows × heads × d as 1 × heads × rows × d."""
    return for_tiles(x, 0).swapaxes(0, 1)[None]


def _by_rows(x: Any, like: Any) -> Any:
    return typed(x[0].swapaxes(0, 1), like)
