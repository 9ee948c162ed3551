"""Attention on matrix cores, and its gradients: of sequences of one length, and of packed ones."""

from __future__ import annotations

import math
from typing import Any

from fly_common.errors import UsageError

from fly.kernels import attention_backward, attention_forward
from fly.kernels.attention_problem import Problem
from fly.kernels.attention_tiles import VALUES
from fly.kernels.operators import operator
from fly.kernels.rows import contiguous

DIMENSIONS = (64, 128)
LOG2_E = math.log2(math.e)


def _heads_like(x: Any) -> Any:
    """A tensor of the shape of batches × heads × length × d as the kernels allocate it."""
    return x.new_empty(x.swapaxes(1, 2).shape).swapaxes(1, 2)


def _fake(q: Any, k: Any, v: Any, causal: bool = False, scale: float | None = None) -> Any:
    return _heads_like(q), q.new_empty(q.shape[:3], dtype=_float32())


def _fake_backward(d_out: Any, d_lse: Any, q: Any, k: Any, v: Any, *_: Any) -> tuple[Any, Any, Any]:
    return _heads_like(q), _heads_like(k), _heads_like(v)


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
    other types and shapes, and for targets without MFMA or WMMA of 16×16×16.
    """
    _check(q, k, v, 4)
    problem = Problem(q.shape[3], causal, packed=False)
    q, k, v = map(_for_loads, (q, k, v))
    out, lse = attention_forward.attention(q, k, v, _scale(scale, q) * LOG2_E, problem)
    return _typed(out, q), lse


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
    scale); of their types and shapes. The same in each run."""
    _check(q, k, v, 4)
    problem = Problem(q.shape[3], causal, packed=False)
    d_out, q, k, v, out = map(_for_loads, (d_out, q, k, v, out))
    made = attention_backward.attention_gradients(
        d_out, d_lse, q, k, v, out, lse, _scale(scale, q), problem
    )
    return tuple(_typed(one, q) for one in made)


def _save(ctx: Any, inputs: Any, output: Any) -> None:
    *tensors, ctx.causal, ctx.scale = inputs
    ctx.save_for_backward(*tensors, *output)


@flash_attention.gradient(_save)
def _(ctx: Any, d_out: Any, d_lse: Any) -> Any:
    gradients = flash_attention_backward(d_out, d_lse, *ctx.saved_tensors, ctx.causal, ctx.scale)
    return (*gradients, None, None)


def _for_loads(x: Any) -> Any:
    """An array whose rows are at multiples of 16 bytes and have adjacent elements: x, or a copy."""
    is_torch = hasattr(x, "data_ptr")
    address = x.data_ptr() if is_torch else x.ctypes.data
    steps = x.stride() if is_torch else [step // x.itemsize for step in x.strides]
    moved = [step for step, extent in zip(steps[:-1], x.shape, strict=False) if extent > 1]
    if steps[-1] == 1 and all(step % VALUES == 0 for step in moved):
        if address % (2 * VALUES) == 0:
            return x
        return x.clone() if is_torch else x.copy("K")
    return contiguous(x)


def _check(q: Any, k: Any, v: Any, rank: int) -> None:
    """UsageError for arrays of other ranks, types and shapes than those of attention."""
    shapes = [tuple(one.shape) for one in (q, k, v)]
    if any(len(shape) != rank for shape in shapes) or len({*map(_name, (q, k, v))}) > 1:
        raise UsageError(
            f"q, k and v are of one type and {rank} dimensions, not "
            + ", ".join(
                f"{_name(one)}{shape}" for one, shape in zip((q, k, v), shapes, strict=True)
            )
        )
    if _name(q) not in ("float16", "bfloat16"):
        raise UsageError(f"attention takes float16 and bfloat16, not {_name(q)}")
    heads = rank - 3 if rank == 4 else 1
    of_q, of_k, of_v = shapes
    if of_q[-1] not in DIMENSIONS:
        raise UsageError(f"heads are of 64 or 128 elements, not {of_q[-1]}: pad q, k and v with 0")
    fits = of_k == of_v and of_q[-1] == of_k[-1] and (rank == 3 or of_q[0] == of_k[0])
    if not fits or of_k[heads] < 1 or of_q[heads] % of_k[heads]:
        raise UsageError(f"the shapes of q, k and v do not fit: {of_q}, {of_k}, {of_v}")


def _float32() -> Any:
    import torch

    return torch.float32


def _name(x: Any) -> str:
    return str(x.dtype).removeprefix("torch.")


def _typed(x: Any, q: Any) -> Any:
    """A result as of q's type: of ml_dtypes' bfloat16, NumPy's are the bits."""
    return x if hasattr(x, "data_ptr") else x.view(q.dtype)


def _scale(scale: float | None, q: Any) -> float:
    return 1 / math.sqrt(q.shape[-1]) if scale is None else scale
