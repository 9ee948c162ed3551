"""The problems of kernel_quality.py: arguments, and the results that torch computes of them in f64.

This module needs torch only, as the programs that solve the problems run in different Pythons.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F

EPS = 1e-5
TOKENS, EXPERTS, CHOSEN = 64, 8, 2
DEPTH, LENGTH = 2048, 1024  # of matrix products, and of attention
FP8 = {"gfx942": torch.float8_e4m3fnuz, **dict.fromkeys(("gfx950", "sm_90a"), torch.float8_e4m3fn)}
SHORT = {
    torch.float32: "f32",
    torch.float16: "f16",
    torch.bfloat16: "bf16",
    torch.int8: "i8",
    torch.int32: "i32",
    **dict.fromkeys(FP8.values(), "fp8"),
}


@dataclass(frozen=True)
class Problem:
    """A function and its arguments.

    name: the call of `fly.kernels`. make: the arguments for a target. exact: the results as torch
    computes them, of arguments in f64; None if they are random. tolerance: the greatest difference
    that rounding explains.
    """

    name: str
    make: Callable[[str], tuple[torch.Tensor, ...]]
    exact: Callable[..., Any] | None
    tolerance: float = 0.01

    def shapes(self, target: str) -> str:
        """The types and shapes of the arguments, up to the third."""
        made = self.make(target)
        parts = [f"{SHORT[one.dtype]} {'×'.join(map(str, one.shape))}" for one in made[:3]]
        return ", ".join(parts) + (", …" if len(made) > 3 else "")

    def error(self, found: Any, made: tuple[torch.Tensor, ...]) -> float:
        """The greatest difference of results from the exact ones; inf if one is NaN."""
        if self.exact is None:
            return 0.0
        exact = self.exact(*(one.double() if one.is_floating_point() else one for one in made))
        pairs = zip(as_tuple(found), as_tuple(exact), strict=True)
        errors = [float((one.double() - two.double()).abs().max()) for one, two in pairs]
        return max(one if one == one else float("inf") for one in errors)


def as_tuple(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, tuple | list) else (value,)


def normal(*shape: int, dtype: torch.dtype = torch.float16, seed: int = 0) -> torch.Tensor:
    random = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=random, dtype=torch.float64).to(dtype)


def integers(
    *shape: int, below: int, least: int = 0, dtype: torch.dtype = torch.int32
) -> torch.Tensor:
    random = torch.Generator().manual_seed(1)
    return torch.randint(least, below, shape, generator=random, dtype=torch.int64).to(dtype)


def rows(count: int = 1) -> Callable[[str], tuple[torch.Tensor, ...]]:
    return lambda _: tuple(normal(8, 4096, seed=seed) for seed in range(count))


def rows_and_vectors(count: int, vectors: int) -> Callable[[str], tuple[torch.Tensor, ...]]:
    return lambda _: (*rows(count)(""), *(normal(4096, seed=9 + i) for i in range(vectors)))


def layer_norm(x: Any, w: Any, b: Any) -> Any:
    return F.layer_norm(x, w.shape, w, b, EPS)


def rms_norm(x: Any, w: Any) -> Any:
    return F.rms_norm(x, w.shape, w, EPS)


def quantized(y: Any) -> Any:
    """The values, and the scales of rows. FlyDSL rounds towards 0: by up to a step, and more after
    sums of f16."""
    scales = y.abs().amax(-1) / 127
    return y / scales[:, None], scales


def norm_gradients(centred: bool) -> Callable[..., Any]:
    """The gradients of x and of the parameters."""

    def gradients(dy: Any, x: Any, w: Any) -> Any:
        x, w = x.clone().requires_grad_(), w.clone().requires_grad_()
        b = torch.zeros_like(w).requires_grad_()
        y = layer_norm(x, w, b) if centred else rms_norm(x, w)
        return torch.autograd.grad(y, (x, w, b) if centred else (x, w), dy)

    return gradients


def matrices(kind: str, n: int = 256) -> Callable[[str], tuple[torch.Tensor, ...]]:
    """A of 256 × DEPTH and Bᵀ of n × DEPTH."""

    def make(target: str) -> tuple[torch.Tensor, ...]:
        if kind == "i8":
            return tuple(
                integers(rows, DEPTH, least=-9, below=10, dtype=torch.int8) for rows in (256, n)
            )
        dtype = {"f16": torch.float16, "bf16": torch.bfloat16, "fp8": FP8[target]}[kind]
        return normal(256, DEPTH, dtype=dtype), normal(n, DEPTH, dtype=dtype, seed=1)

    return make


def product(a: Any, b: Any) -> Any:
    return a.double() @ b.double().T


def grouped(a: Any, b: Any, offsets: Any) -> Any:
    parts = torch.tensor_split(a, offsets[:-1].tolist())
    return torch.cat([part @ matrix for part, matrix in zip(parts, b, strict=True)])


def heads(d: int, shared: int = 1) -> Callable[[str], tuple[torch.Tensor, ...]]:
    return lambda _: (
        normal(1, 2, LENGTH, d),
        *(normal(1, 2 // shared, LENGTH, d, seed=seed) for seed in (1, 2)),
    )


def attention(causal: bool) -> Callable[..., Any]:
    def attend(q: Any, k: Any, v: Any) -> Any:
        return F.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=True)

    return attend


def pages(_: str) -> tuple[torch.Tensor, ...]:
    table = torch.arange(16, dtype=torch.int32).view(1, 16)
    length = torch.tensor([250], dtype=torch.int32)
    return (
        normal(1, 8, 64, seed=5),
        *(normal(16, 16, 1, 64, seed=seed) for seed in (6, 7)),
        table,
        length,
    )


def paged(q: Any, k: Any, v: Any, _: Any, length: Any) -> Any:
    keys, values = (one.reshape(256, 64)[: int(length)][None] for one in (k, v))
    return F.scaled_dot_product_attention(q, keys, values)


def angles(positions: int, pairs: int) -> tuple[torch.Tensor, torch.Tensor]:
    at = normal(positions, pairs, dtype=torch.float64)
    return torch.cos(at).half(), torch.sin(at).half()


def rotated(x: Any, cos: Any, sin: Any) -> Any:
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)


def tokens(_: str) -> tuple[torch.Tensor, ...]:
    """q, k, v, cosines and sines, positions, caches of keys and values, slots."""
    return (
        *(normal(TOKENS, count, 64, seed=count) for count in (8, 1, 1)),
        *angles(TOKENS, 32),
        torch.arange(TOKENS, dtype=torch.int32).flip(0),
        *(torch.zeros(4, 16, 1, 64, dtype=torch.float16) for _ in range(2)),
        torch.arange(TOKENS, dtype=torch.int32),
    )


def rotated_and_cached(
    q: Any, k: Any, v: Any, cos: Any, sin: Any, at: Any, keys: Any, values: Any, slots: Any
) -> Any:
    at, slots = at.long(), slots.long()
    q, k = (rotated(one, cos[at][:, None], sin[at][:, None]) for one in (q, k))
    keys, values = (torch.zeros_like(one).view(-1, 1, 64) for one in (keys, values))
    keys[slots], values[slots] = k, v
    return q, k, keys.view(4, 16, 1, 64), values.view(4, 16, 1, 64)


def routed(logits: Any) -> Any:
    weights, experts = logits.softmax(-1).topk(CHOSEN, -1)
    return weights / weights.sum(-1, keepdim=True), experts


def sorted_choices(experts: Any) -> Any:
    """The choices in order of the experts, and the ends of the experts' parts."""
    flat = experts.flatten()
    return flat.argsort(stable=True), flat.bincount(minlength=EXPERTS).cumsum(0)


def combined(parts: Any, weights: Any) -> Any:
    """The sum of each token's rows: parts is tokens × chosen × columns."""
    return (parts * weights[..., None]).sum(1)


def ends(_: str) -> tuple[torch.Tensor, ...]:
    at = torch.tensor([100, 180, 400, 512], dtype=torch.int32)
    return normal(512, 256), normal(4, 256, 256, seed=1), at


def image(_: str) -> tuple[torch.Tensor, ...]:
    """Of 32 channels, which are adjacent in memory, and 128 filters of 3 × 3."""
    x = normal(1, 32, 16, 16, dtype=torch.bfloat16)
    weight = normal(128, 32, 3, 3, dtype=torch.bfloat16, seed=1)
    return tuple(one.contiguous(memory_format=torch.channels_last) for one in (x, weight))


PROBLEMS: tuple[Problem, ...] = (
    Problem("softmax(x)", rows(), lambda x: x.softmax(-1), 1e-4),
    Problem("log_softmax(x)", rows(), lambda x: x.log_softmax(-1)),
    Problem(
        "softmax_backward(dy, y)",
        lambda _: (normal(8, 4096), normal(8, 4096, seed=1).softmax(-1)),
        lambda dy, y: y * (dy - (dy * y).sum(-1, keepdim=True)),
        1e-4,
    ),
    Problem("layer_norm(x, w, b)", rows_and_vectors(1, 2), layer_norm, 0.02),
    Problem("rms_norm(x, w)", rows_and_vectors(1, 1), rms_norm, 0.02),
    Problem(
        "add_layer_norm(x, r, w, b)",
        rows_and_vectors(2, 2),
        lambda x, r, w, b: (layer_norm(x + r, w, b), x + r),
        0.02,
    ),
    Problem(
        "add_rms_norm(x, r, w)",
        rows_and_vectors(2, 1),
        lambda x, r, w: (rms_norm(x + r, w), x + r),
        0.02,
    ),
    Problem(
        'layer_norm_quantized(x, "int8", w, b)',
        rows_and_vectors(1, 2),
        lambda x, w, b: quantized(layer_norm(x, w, b)),
        1.1,
    ),
    Problem(
        'rms_norm_quantized(x, "int8", w)',
        rows_and_vectors(1, 1),
        lambda x, w: quantized(rms_norm(x, w)),
        1.1,
    ),
    Problem(
        'add_rms_norm_quantized(x, r, "int8", w)',
        rows_and_vectors(2, 1),
        lambda x, r, w: (*quantized(rms_norm(x + r, w)), x + r),
        1.1,
    ),
    Problem('quantize_rows(x, "int8")', rows(), quantized, 0.6),
    Problem(
        "norm_backward(dy, x, w), layer norm", rows_and_vectors(2, 1), norm_gradients(True), 0.05
    ),
    Problem(
        "norm_backward(dy, x, w), rms norm", rows_and_vectors(2, 1), norm_gradients(False), 0.05
    ),
    Problem(
        "cross_entropy(x, classes)",
        lambda _: (normal(8, 4096), integers(8, below=4096)),
        lambda x, classes: F.cross_entropy(x, classes.long(), reduction="none"),
    ),
    Problem("top_k(x, 8)", rows(), lambda x: x.topk(8)[0]),
    Problem("dropout(x, 0.5, seed)", rows(), None),
    Problem(
        "prefix_sum(x)",
        lambda _: (normal(32768, dtype=torch.float32),),
        lambda x: x.cumsum(0),
        1e-3,
    ),
    Problem(
        "histogram(x, 256)",
        lambda _: (integers(32768, below=256),),
        lambda x: x.bincount(minlength=256),
        0,
    ),
    *(
        Problem(f"matmul(a, b.T), {kind}", matrices(kind), product, tolerance)
        for kind, tolerance in (("f16", 0.1), ("bf16", 0.5), ("fp8", 1e-2), ("i8", 0))
    ),
    *(
        Problem(f"matmul_preshuffled(a, b), {kind}", matrices(kind), product, tolerance)
        for kind, tolerance in (("f16", 0.1), ("bf16", 0.5), ("fp8", 0.5), ("i8", 64))
    ),
    Problem("grouped_matmul(a, b, ends)", ends, grouped, 0.1),
    Problem(
        "conv2d(x, w, padding=1)",
        image,
        lambda x, w: F.conv2d(x, w, padding=1),
        0.5,
    ),
    Problem("moe_route(logits, 2)", lambda _: (normal(TOKENS, EXPERTS),), routed, 1e-3),
    Problem(
        "moe_sort(experts, 8)",
        lambda _: (integers(TOKENS, CHOSEN, below=EXPERTS),),
        sorted_choices,
        0,
    ),
    Problem(
        "moe_combine(x, …)",
        lambda _: (normal(TOKENS, CHOSEN, 512), torch.ones(TOKENS, CHOSEN)),
        combined,
    ),
    *(
        Problem(
            f"flash_attention(q, k, v{', causal=True' if causal else ''}), d = {d}",
            heads(d),
            attention(causal),
        )
        for causal in (False, True)
        for d in (64, 128)
    ),
    Problem("paged_attention(q, …)", pages, paged),
    Problem(
        "rotary_embedding(x, cos, sin)",
        lambda _: (normal(1, 4, 256, 64), *angles(256, 32)),
        rotated,
    ),
    Problem("rotary_and_cache(q, k, v, …)", tokens, rotated_and_cached),
)
