"""The calls of `fly.kernels` that benchmarks/kernels.py measures, and what torch computes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from kernel_inputs import (
    VECTOR,
    Inputs,
    Sizes,
    angles,
    ends,
    experts,
    heads,
    integers,
    next_tokens,
    normal,
    packed,
    pages,
    rows,
    square,
)

from fly import kernels


def attention_gradients(attention: Callable[..., Any]) -> Callable[..., Any]:
    """A function that returns the gradients of attention, for those of its result, q, k and v."""

    def gradients(gradient: Any, *inputs: Any) -> Any:
        inputs = tuple(one.clone().requires_grad_() for one in inputs)
        return torch.autograd.grad(attention(*inputs), inputs, gradient)

    return gradients


def rotated(x: Any, cos: Any, sin: Any) -> Any:
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)


def preshuffled_product(a: Any, b: Any) -> Any:
    return kernels.matmul_preshuffled(a, kernels.preshuffle(b), b.shape[1])


def groups(rows: Any, ends: Any) -> Any:
    """The groups of rows that end at these numbers."""
    return rows.tensor_split(ends[:-1].long())


def mixture(x: Any, gate: Any, w1: Any, w2: Any) -> Any:
    """A mixture of experts, two for each token: all of them are computed, most times 0."""
    logits, experts = (x @ gate).topk(2)
    shares = torch.zeros(len(x), len(w1), dtype=x.dtype).scatter(1, experts, logits.softmax(1))
    return torch.einsum("etd,te->td", F.silu(x @ w1) @ w2, shares)


def packed_attention(q: Any, k: Any, v: Any, ends: Any) -> Any:
    """Attention within sequences that end at these rows, of rows × heads × d."""
    found = [
        F.scaled_dot_product_attention(*(one.transpose(0, 1) for one in part)).transpose(0, 1)
        for part in zip(*(groups(one, ends[1:]) for one in (q, k, v)), strict=True)
    ]
    return torch.cat(found)


def rotated_rows(q: Any, k: Any, v: Any, cos: Any, sin: Any, positions: Any, *_: Any) -> Any:
    """The results of rotary_and_cache: q and k, rotated."""
    chosen = [one[positions.long()][:, None] for one in (cos, sin)]
    return rotated(q, *chosen), rotated(k, *chosen)


@dataclass(frozen=True)
class Row:
    """A call as it is shown, its arguments, the function, and torch's if it has one. `flops` are
    the operations that the problem asks for, where these may bound the time."""

    name: str
    arguments: Callable[[Sizes], Inputs]
    call: Callable[..., Any]
    reference: Callable[..., Any] | None = None
    flops: Callable[[Inputs], int] | None = None


def product(inputs: Inputs) -> int:
    """Operations of a matrix product, or of the products of groups of rows."""
    return 2 * inputs[0].numel() * inputs[1].shape[-1]


def scores(inputs: Inputs) -> int:
    """Operations of the two products of attention: heads × positions × positions × d."""
    q = inputs[-3]
    return 4 * q.numel() * q.shape[-2]


CALLS: tuple[Row, ...] = (
    Row("softmax(x)", lambda n: (rows(n),), kernels.softmax, lambda x: x.softmax(-1)),
    Row("log_softmax(x)", lambda n: (rows(n),), kernels.log_softmax, lambda x: x.log_softmax(-1)),
    Row(
        "softmax_backward(dy, y)",
        lambda n: (rows(n, 2), rows(n).softmax(-1)),
        kernels.softmax_backward,
        lambda dy, y: y * (dy - (dy * y).sum(-1, keepdim=True)),
    ),
    Row(
        "log_softmax_backward(dy, y)",
        lambda n: (rows(n, 2), rows(n).log_softmax(-1)),
        kernels.log_softmax_backward,
        lambda dy, y: dy - y.exp() * dy.sum(-1, keepdim=True),
    ),
    Row(
        "rms_norm(x, w)",
        lambda n: (rows(n), VECTOR),
        kernels.rms_norm,
        lambda x, w: F.rms_norm(x, w.shape, w, 1e-6),
    ),
    Row(
        "add_rms_norm(x, r, w)",
        lambda n: (rows(n), rows(n, 2), VECTOR),
        kernels.add_rms_norm,
        lambda x, r, w: (F.rms_norm(x + r, w.shape, w, 1e-6), x + r),
    ),
    Row(
        "layer_norm(x, w, b)",
        lambda n: (rows(n), VECTOR, VECTOR),
        kernels.layer_norm,
        lambda x, w, b: F.layer_norm(x, w.shape, w, b, 1e-5),
    ),
    Row(
        'rms_norm_quantized(x, "int8", w)',
        lambda n: (rows(n), VECTOR),
        lambda x, w: kernels.rms_norm_quantized(x, "int8", w),
        None,
    ),
    Row(
        "norm_backward(dy, x, w, …)",
        lambda n: (rows(n, 2), rows(n), VECTOR),
        lambda dy, x, w: kernels.norm_backward(dy, x, w, 1e-5, True),
        lambda dy, x, w: torch.ops.aten.native_layer_norm_backward(
            dy,
            x,
            w.shape,
            x.mean(-1, keepdim=True),
            (x.var(-1, keepdim=True, correction=0) + 1e-5).rsqrt(),
            w,
            w,
            [True, True, True],
        ),
    ),
    Row(
        'quantize_rows(x, "int8")',
        lambda n: (rows(n),),
        lambda x: kernels.quantize_rows(x, "int8"),
        None,
    ),
    Row(
        "cross_entropy(x, classes)",
        lambda n: (rows(n), integers(n.rows, below=4096)),
        kernels.cross_entropy,
        lambda x, classes: F.cross_entropy(x, classes.long()),
    ),
    Row(
        "cross_entropy_backward(…)",
        lambda n: (
            rows(n),
            normal(n.rows, dtype=torch.float32),
            integers(n.rows, below=4096),
            rows(n).float().logsumexp(-1),
        ),
        lambda x, dy, *others: kernels.cross_entropy_backward(dy, x, *others, 0.0, -100),
        lambda x, dy, classes, _: (
            (x.softmax(-1) - F.one_hot(classes.long(), 4096)) * dy[:, None].to(x.dtype)
        ),
    ),
    Row(
        "top_k(x, 8)",
        lambda n: (rows(n),),
        lambda x: kernels.top_k(x, 8)[0],
        lambda x: x.topk(8)[0],
    ),
    Row(
        "prefix_sum(x)",
        lambda n: (normal(n.elements, dtype=torch.float32),),
        kernels.prefix_sum,
        lambda x: x.cumsum(0),
    ),
    Row(
        "histogram(x, 256)",
        lambda n: (integers(n.elements, below=256),),
        lambda x: kernels.histogram(x, 256),
        lambda x: x.bincount(minlength=256).int(),
    ),
    Row("dropout(x, 0.5, seed)", lambda n: (rows(n),), lambda x: kernels.dropout(x, 0.5, 7), None),
    Row(
        "matmul(a, b)",
        square,
        kernels.matmul,
        torch.matmul,
        product,
    ),
    Row(
        "matmul_preshuffled(a, preshuffle(b), n)",
        square,
        preshuffled_product,
        torch.matmul,
        product,
    ),
    Row(
        "grouped_matmul(a, b, offsets)",
        lambda n: (
            normal(n.edge, n.edge),
            normal(4, n.edge, n.edge // 2, seed=1),
            ends(n),
        ),
        kernels.grouped_matmul,
        lambda a, b, ends: torch.cat([x @ y for x, y in zip(groups(a, ends), b, strict=True)]),
        product,
    ),
    Row(
        "group_products(a, b, offsets)",
        lambda n: (
            normal(n.edge, n.edge // 2),
            normal(n.edge, n.edge // 2, seed=1),
            ends(n),
        ),
        kernels.group_products,
        lambda a, b, ends: torch.stack(
            [x.T @ y for x, y in zip(groups(a, ends), groups(b, ends), strict=True)]
        ),
        product,
    ),
    Row(
        "moe(x, gate, w1, w2, k=2)",
        experts,
        lambda *inputs: kernels.moe(*inputs, k=2),
        mixture,
    ),
    Row(
        "conv2d(x, weight)",
        lambda n: (
            normal(n.images, 32, 32, 32).to(memory_format=torch.channels_last),
            normal(64, 32, 3, 3, seed=1),
        ),
        kernels.conv2d,
        F.conv2d,
        lambda inputs: 2 * inputs[0].shape[0] * 30 * 30 * inputs[1].numel(),
    ),
    Row(
        "flash_attention(q, k, v)",
        heads,
        lambda *heads: kernels.flash_attention(*heads)[0],
        F.scaled_dot_product_attention,
        scores,
    ),
    Row(
        "the same and its gradient",
        lambda n: (heads(n)[0], *heads(n)),
        attention_gradients(lambda *heads: kernels.flash_attention(*heads)[0]),
        attention_gradients(F.scaled_dot_product_attention),
        lambda inputs: 7 * scores(inputs) // 2,
    ),
    Row(
        "flash_attention_varlen(q, k, v, …)",
        packed,
        lambda *inputs: kernels.flash_attention_varlen(*inputs)[0],
        lambda q, k, v, ends, _: packed_attention(q, k, v, ends),
    ),
    Row(
        "paged_attention(q, …)",
        pages,
        kernels.paged_attention,
        lambda q, k, v, *_: F.scaled_dot_product_attention(
            q, *(one.view(256, 64)[:250][None] for one in (k, v))
        ),
    ),
    Row(
        "rotary_embedding(x, cos, sin)",
        lambda n: (heads(n)[0], *angles(n.positions)),
        kernels.rotary_embedding,
        rotated,
    ),
    Row(
        "rotary_and_cache(q, k, v, cos, sin, …)",
        next_tokens,
        kernels.rotary_and_cache,
        rotated_rows,
    ),
)
