"""The calls of `fly.kernels` that benchmarks/kernel_costs.py measures, and what torch computes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

from fly import kernels


def normal(*shape: int, dtype: torch.dtype = torch.float16, seed: int = 0) -> torch.Tensor:
    random = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=random, dtype=torch.float64).to(dtype)


def integers(*shape: int, below: int) -> torch.Tensor:
    random = torch.Generator().manual_seed(1)
    return torch.randint(0, below, shape, generator=random, dtype=torch.int32)


ROWS = normal(8, 4096)
VECTOR = normal(4096, seed=1)
OTHERS = normal(8, 4096, seed=2)
LOG_SUMS = ROWS.float().logsumexp(-1)

HEADS = tuple(normal(1, 4, 256, 64, seed=seed) for seed in range(3))
PAGES = tuple(normal(16, 16, 1, 64, seed=seed) for seed in range(2))
TABLE = torch.arange(16, dtype=torch.int32).view(1, 16)
ANGLES = tuple(one(normal(256, 32, dtype=torch.float64)).half() for one in (torch.cos, torch.sin))


ENDS = torch.tensor([70, 70, 200, 256], dtype=torch.int32)  # of groups, one of which is empty
WEIGHTS = (normal(128, 8, seed=1), *(normal(8, 128, 128, seed=seed) / 12 for seed in (2, 3)))
LENGTHS = torch.tensor([0, 100, 256], dtype=torch.int32)
PACKED = tuple(normal(256, 4, 64, seed=seed) for seed in range(3))
TOKENS = (normal(4, 8, 64), *(normal(4, 2, 64, seed=seed) for seed in (1, 2)))
CACHES = tuple(normal(4, 16, 2, 64, seed=seed) for seed in range(2))
POSITIONS = torch.tensor([0, 7, 100, 255], dtype=torch.int32)
SLOTS = torch.tensor([5, 20, 21, 63], dtype=torch.int32)  # of the caches


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


# The call as it is shown, its arguments, the function, and torch's if it has one.
Row = tuple[str, tuple[Any, ...], Callable[..., Any], Callable[..., Any] | None]
CALLS: tuple[Row, ...] = (
    ("softmax(x)", (ROWS,), kernels.softmax, lambda x: x.softmax(-1)),
    ("log_softmax(x)", (ROWS,), kernels.log_softmax, lambda x: x.log_softmax(-1)),
    (
        "softmax_backward(dy, y)",
        (OTHERS, ROWS.softmax(-1)),
        kernels.softmax_backward,
        lambda dy, y: y * (dy - (dy * y).sum(-1, keepdim=True)),
    ),
    (
        "log_softmax_backward(dy, y)",
        (OTHERS, ROWS.log_softmax(-1)),
        kernels.log_softmax_backward,
        lambda dy, y: dy - y.exp() * dy.sum(-1, keepdim=True),
    ),
    (
        "rms_norm(x, w)",
        (ROWS, VECTOR),
        kernels.rms_norm,
        lambda x, w: F.rms_norm(x, w.shape, w, 1e-6),
    ),
    (
        "add_rms_norm(x, r, w)",
        (ROWS, OTHERS, VECTOR),
        kernels.add_rms_norm,
        lambda x, r, w: (F.rms_norm(x + r, w.shape, w, 1e-6), x + r),
    ),
    (
        "layer_norm(x, w, b)",
        (ROWS, VECTOR, VECTOR),
        kernels.layer_norm,
        lambda x, w, b: F.layer_norm(x, w.shape, w, b, 1e-5),
    ),
    (
        'rms_norm_quantized(x, "int8", w)',
        (ROWS, VECTOR),
        lambda x, w: kernels.rms_norm_quantized(x, "int8", w),
        None,
    ),
    (
        "norm_backward(dy, x, w, …)",
        (OTHERS, ROWS, VECTOR),
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
    ('quantize_rows(x, "int8")', (ROWS,), lambda x: kernels.quantize_rows(x, "int8"), None),
    (
        "cross_entropy(x, classes)",
        (ROWS, integers(8, below=4096)),
        kernels.cross_entropy,
        lambda x, classes: F.cross_entropy(x, classes.long()),
    ),
    (
        "cross_entropy_backward(…)",
        (ROWS, normal(8, dtype=torch.float32), integers(8, below=4096), LOG_SUMS),
        lambda x, dy, *others: kernels.cross_entropy_backward(dy, x, *others, 0.0, -100),
        lambda x, dy, classes, _: (
            (x.softmax(-1) - F.one_hot(classes.long(), 4096)) * dy[:, None].to(x.dtype)
        ),
    ),
    ("top_k(x, 8)", (ROWS,), lambda x: kernels.top_k(x, 8)[0], lambda x: x.topk(8)[0]),
    (
        "prefix_sum(x)",
        (normal(32768, dtype=torch.float32),),
        kernels.prefix_sum,
        lambda x: x.cumsum(0),
    ),
    (
        "histogram(x, 256)",
        (integers(32768, below=256),),
        lambda x: kernels.histogram(x, 256),
        lambda x: x.bincount(minlength=256).int(),
    ),
    ("dropout(x, 0.5, seed)", (ROWS,), lambda x: kernels.dropout(x, 0.5, 7), None),
    (
        "matmul(a, b)",
        (normal(256, 256), normal(256, 256, seed=1)),
        kernels.matmul,
        torch.matmul,
    ),
    (
        "matmul_preshuffled(a, preshuffle(b), n)",
        (normal(256, 256), normal(256, 256, seed=1)),
        preshuffled_product,
        torch.matmul,
    ),
    (
        "grouped_matmul(a, b, offsets)",
        (normal(256, 256), normal(4, 256, 128, seed=1), ENDS),
        kernels.grouped_matmul,
        lambda a, b, ends: torch.cat([x @ y for x, y in zip(groups(a, ends), b, strict=True)]),
    ),
    (
        "group_products(a, b, offsets)",
        (normal(256, 128), normal(256, 128, seed=1), ENDS),
        kernels.group_products,
        lambda a, b, ends: torch.stack(
            [x.T @ y for x, y in zip(groups(a, ends), groups(b, ends), strict=True)]
        ),
    ),
    (
        "moe(x, gate, w1, w2, k=2)",
        (normal(64, 128), *WEIGHTS),
        lambda *inputs: kernels.moe(*inputs, k=2),
        mixture,
    ),
    (
        "conv2d(x, weight)",
        (normal(1, 32, 32, 32).to(memory_format=torch.channels_last), normal(64, 32, 3, 3, seed=1)),
        kernels.conv2d,
        F.conv2d,
    ),
    (
        "flash_attention(q, k, v)",
        HEADS,
        lambda *heads: kernels.flash_attention(*heads)[0],
        F.scaled_dot_product_attention,
    ),
    (
        "the same and its gradient",
        (HEADS[0], *HEADS),
        attention_gradients(lambda *heads: kernels.flash_attention(*heads)[0]),
        attention_gradients(F.scaled_dot_product_attention),
    ),
    (
        "flash_attention_varlen(q, k, v, …)",
        (*PACKED, LENGTHS, LENGTHS),
        lambda *inputs: kernels.flash_attention_varlen(*inputs)[0],
        lambda q, k, v, ends, _: packed_attention(q, k, v, ends),
    ),
    (
        "paged_attention(q, …)",
        (normal(1, 8, 64, seed=5), *PAGES, TABLE, torch.tensor([250], dtype=torch.int32)),
        kernels.paged_attention,
        lambda q, k, v, *_: F.scaled_dot_product_attention(
            q, *(one.view(256, 64)[:250][None] for one in (k, v))
        ),
    ),
    (
        "rotary_embedding(x, cos, sin)",
        (HEADS[0], *ANGLES),
        kernels.rotary_embedding,
        rotated,
    ),
    (
        "rotary_and_cache(q, k, v, cos, sin, …)",
        (*TOKENS, *ANGLES, POSITIONS, *CACHES, SLOTS),
        kernels.rotary_and_cache,
        rotated_rows,
    ),
)
