"""Solves the problems of kernel_quality.py by `fly.kernels`, on the target of FLY_TARGET."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import kernel_problems as problems
import torch
from kernel_problems import CHOSEN, EPS, EXPERTS
from recording import Solution, main

from fly import kernels

Call = Callable[..., Any]


def call(function: Call) -> Solution:
    """A solution that needs no preparation."""
    return lambda *made: lambda: function(*made)


def preshuffled(a: Any, b: Any) -> Call:
    shuffled = kernels.preshuffle(b.T)
    return lambda: kernels.matmul_preshuffled(a, shuffled, b.shape[0], out_dtype=output(a))


def output(a: Any) -> Any:
    """The type of FlyDSL's results."""
    return a.dtype if a.dtype.itemsize == 2 else torch.float16


def sort(experts: Any) -> Any:
    order, _, offsets = kernels.moe_sort(experts, EXPERTS)
    return order, offsets


def combine(parts: Any, weights: Any) -> Call:
    """The rows lie in order of the experts; here, of the tokens."""
    tokens, chosen, columns = parts.shape
    places = torch.arange(tokens * chosen, dtype=torch.int32)
    rows = parts.reshape(-1, columns)
    return lambda: kernels.moe_combine(rows, places, places, weights)


def rotate_and_cache(*made: Any) -> Call:
    keys, values = (one.clone() for one in made[6:8])
    return lambda: (*kernels.rotary_and_cache(*made[:6], keys, values, made[8]), keys, values)


SOLUTIONS: dict[str, Solution] = {
    "softmax(x)": call(kernels.softmax),
    "log_softmax(x)": call(kernels.log_softmax),
    "softmax_backward(dy, y)": call(kernels.softmax_backward),
    "layer_norm(x, w, b)": call(lambda x, w, b: kernels.layer_norm(x, w, b, EPS)),
    "rms_norm(x, w)": call(lambda x, w: kernels.rms_norm(x, w, EPS)),
    "add_layer_norm(x, r, w, b)": call(lambda *made: kernels.add_layer_norm(*made, EPS)),
    "add_rms_norm(x, r, w)": call(lambda *made: kernels.add_rms_norm(*made, EPS)),
    'layer_norm_quantized(x, "int8", w, b)': call(
        lambda x, w, b: kernels.layer_norm_quantized(x, "int8", w, b, EPS)
    ),
    'rms_norm_quantized(x, "int8", w)': call(
        lambda x, w: kernels.rms_norm_quantized(x, "int8", w, EPS)
    ),
    'add_rms_norm_quantized(x, r, "int8", w)': call(
        lambda x, r, w: kernels.add_rms_norm_quantized(x, r, "int8", w, EPS)
    ),
    'quantize_rows(x, "int8")': call(lambda x: kernels.quantize_rows(x, "int8")),
    "norm_backward(dy, x, w), layer norm": call(
        lambda *made: kernels.norm_backward(*made, EPS, True)
    ),
    "norm_backward(dy, x, w), rms norm": call(
        lambda *made: kernels.norm_backward(*made, EPS, False)[:2]
    ),
    "cross_entropy(x, classes)": call(lambda *made: kernels.cross_entropy_rows(*made)[0]),
    "top_k(x, 8)": call(lambda x: kernels.top_k(x, 8)[0]),
    "dropout(x, 0.5, seed)": call(lambda x: kernels.dropout(x, 0.5, 7)),
    "prefix_sum(x)": call(kernels.prefix_sum),
    "histogram(x, 256)": call(lambda x: kernels.histogram(x, 256)),
    **{
        f"matmul(a, b.T), {kind}": call(lambda a, b: kernels.matmul(a, b.T, split_k=1))
        for kind in ("f16", "bf16", "fp8", "i8")
    },
    **{f"matmul_preshuffled(a, b), {kind}": preshuffled for kind in ("f16", "bf16", "fp8", "i8")},
    "grouped_matmul(a, b, ends)": call(kernels.grouped_matmul),
    "conv2d(x, w, padding=1)": call(lambda x, w: kernels.conv2d(x, w, padding=1)),
    "moe_route(logits, 2)": call(lambda logits: kernels.moe_route(logits, CHOSEN)),
    "moe_sort(experts, 8)": call(sort),
    "moe_combine(x, …)": combine,
    **{
        f"flash_attention(q, k, v{', causal=True' if causal else ''}), d = {d}": call(
            lambda q, k, v, causal=causal: kernels.flash_attention(q, k, v, causal)[0]
        )
        for causal in (False, True)
        for d in (64, 128)
    },
    "paged_attention(q, …)": call(kernels.paged_attention),
    "rotary_embedding(x, cos, sin)": call(kernels.rotary_embedding),
    "rotary_and_cache(q, k, v, …)": rotate_and_cache,
}
assert set(SOLUTIONS) == {one.name for one in problems.PROBLEMS}

if __name__ == "__main__":
    main(SOLUTIONS)
