"""The calls of `fly.kernels` whose times are measured, with torch's for the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
import torch.nn.functional as F

from fly import kernels

Sizes = dict[str, int]
BF16 = torch.bfloat16


@dataclass(frozen=True)
class Timed:
    """`inputs(sizes)` are the shapes and types of the inputs; integers are below `below`. `ours`
    and `torch` take the inputs. `flops` counts operations where these bound the time, not memory.
    `captured`: whether a CUDA graph can hold the calls; those of kernels with asserts read what
    they say."""

    name: str
    inputs: Callable[[Sizes], list[tuple[tuple[int, ...], torch.dtype]]]
    ours: Callable[..., Any]
    torch: Callable[..., Any]
    rtol: float = 2.0**-6
    atol: float = 2.0**-6
    below: int = 256
    captured: bool = True
    flops: Callable[[list[torch.Tensor]], int] = lambda _: 0

    def empty(self, sizes: Sizes) -> list[torch.Tensor]:
        """Inputs whose elements do not matter."""
        return [torch.empty(shape, dtype=dtype) for shape, dtype in self.inputs(sizes)]

    def make(self, sizes: Sizes, place: str) -> list[torch.Tensor]:
        """Random inputs."""
        random = torch.Generator(place).manual_seed(1)
        made = []
        for shape, dtype in self.inputs(sizes):
            options: Any = {"generator": random, "device": place}
            if dtype.is_floating_point:
                made.append(torch.randn(shape, dtype=dtype, **options))
            else:
                made.append(torch.randint(0, self.below, shape, dtype=dtype, **options))
        return made


def matrices(count: int, *vectors: str) -> Callable[[Sizes], Any]:
    """Matrices of bf16, and vectors of as many elements as the sizes that are named."""
    return lambda sizes: [
        *[((sizes["rows"], sizes["columns"]), BF16)] * count,
        *[((sizes[name],), BF16) for name in vectors],
    ]


def vector(dtype: torch.dtype) -> Callable[[Sizes], Any]:
    return lambda sizes: [((sizes["elements"],), dtype)]


def _classes(sizes: Sizes) -> Any:
    return [((sizes["rows"], sizes["columns"]), BF16), ((sizes["rows"],), torch.int64)]


def _heads(sizes: Sizes) -> Any:
    """16 heads of 128 elements, and angles by position."""
    positions = sizes["rows"] * sizes["columns"] // (16 * 128)
    return [((16, positions, 128), BF16), *[((positions, 64), BF16)] * 2]


def _square(sizes: Sizes) -> Any:
    return [((sizes["edge"], sizes["edge"]), torch.float32)] * 2


def _rotated(x: Any, cos: Any, sin: Any) -> Any:
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)


@lru_cache(maxsize=1)
def _statistics(x: torch.Tensor) -> tuple[Any, Any]:
    """The means of rows, and the factors that normalize them: computed before the time is taken,
    since torch keeps them from the forward pass. On a processor they are in the type of x."""
    dtype = torch.float32 if x.is_cuda else x.dtype
    mean = x.float().mean(-1, keepdim=True)
    scale = (x.float().var(-1, keepdim=True, correction=0) + 1e-5).rsqrt()
    return mean.to(dtype), scale.to(dtype)


def _layer_norm_backward(dy: Any, x: Any, w: Any) -> Any:
    return torch.ops.aten.native_layer_norm_backward(
        dy, x, w.shape, *_statistics(x), w, w, [True, True, True]
    )


CALLS = (
    Timed("softmax(x)", matrices(1), kernels.softmax, lambda x: x.softmax(-1)),
    Timed(
        "log_softmax(x)",
        matrices(1),
        kernels.log_softmax,
        lambda x: x.log_softmax(-1),
    ),
    Timed(
        "softmax_backward(dy, y)",
        matrices(2),
        kernels.softmax_backward,
        lambda dy, y: torch.ops.aten._softmax_backward_data(dy, y, -1, y.dtype),
    ),
    Timed(
        "rms_norm(x, w)",
        matrices(1, "columns"),
        kernels.rms_norm,
        lambda x, w: F.rms_norm(x, w.shape, w, 1e-6),
    ),
    Timed(
        "add_rms_norm(x, r, w)",
        matrices(2, "columns"),
        kernels.add_rms_norm,
        lambda x, r, w: (F.rms_norm(x + r, w.shape, w, 1e-6), x + r),
    ),
    Timed(
        "layer_norm(x, w, b)",
        matrices(1, "columns", "columns"),
        kernels.layer_norm,
        lambda x, w, b: F.layer_norm(x, w.shape, w, b),
    ),
    Timed(
        "norm_backward(dy, x, w, …)",
        matrices(2, "columns"),
        lambda dy, x, w: kernels.norm_backward(dy, x, w, 1e-5, True),
        _layer_norm_backward,
        atol=0.1,  # sums over all rows
    ),
    Timed(
        "cross_entropy_rows(x, classes)",
        _classes,
        kernels.cross_entropy_rows,
        lambda x, t: (F.cross_entropy(x, t, reduction="none").float(), x.float().logsumexp(-1)),
        captured=False,
    ),
    Timed(
        "top_k(x, 8)",
        matrices(1),
        lambda x: kernels.top_k(x, 8),
        lambda x: x.topk(8).values,
    ),
    Timed(
        "prefix_sum(x)",
        vector(torch.int32),
        kernels.prefix_sum,
        lambda x: x.cumsum(0, dtype=torch.int32),
        below=2,
    ),
    Timed(
        "histogram(x, 256)",
        vector(torch.int32),
        lambda x: kernels.histogram(x, 256),
        lambda x: x.bincount(minlength=256).int(),
        captured=False,
    ),
    Timed("rotary_embedding(x, cos, sin)", _heads, kernels.rotary_embedding, _rotated),
    Timed(
        "matmul(a, b), f32",
        _square,
        lambda a, b: kernels.matmul(a, b, split_k=1),
        torch.matmul,
        rtol=1e-3,
        flops=lambda inputs: 2 * inputs[0].shape[0] ** 3,
    ),
)
