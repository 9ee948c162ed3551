"""Kernels of rows at several widths: their inputs, ours, and the same in torch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch.ops import aten

from fly import kernels

ELEMENTS = 1 << 28  # of a matrix
WIDTHS = tuple(1024 << i for i in range(7))
EPS = 1e-5
HEAD = 128  # elements that are rotated together
PROCESSORS = 132
BF16 = torch.bfloat16
Tensors = list[torch.Tensor]


@dataclass(frozen=True)
class Case:
    """`inputs(rows, columns)` are shapes and types. `ours` and `torch` take them, and so does
    `exact`, as f64, which may be given some rows: its first result has a row for each of theirs,
    others are sums over rows. `compiled` is what torch.compile takes, if not `torch`. matrices: the
    inputs that are rows of columns. heavy: the f32 that a thread has for each element beside them.
    rounded: whether results may differ by the rounding of bf16."""

    name: str
    matrices: int
    inputs: Callable[[int, int], list[tuple[tuple[int, ...], torch.dtype]]]
    ours: Callable[..., Any]
    torch: Callable[..., Any]
    exact: Callable[..., Any]
    compiled: Callable[..., Any] | None = None
    heavy: int = 0
    rounded: bool = True
    by_rows: bool = True

    def make(self, columns: int, place: str, elements: int = ELEMENTS) -> Tensors:
        """Random inputs: numbers, and integers below the number of columns. Means are not 0, nor
        deviations 1: so no term of a gradient vanishes, nor is a factor left out unnoticed."""
        random = torch.Generator(place).manual_seed(columns)
        made = []
        for shape, dtype in self.inputs(elements // columns, columns):
            options: Any = {"generator": random, "device": place}
            if dtype.is_floating_point:
                made.append(torch.randn(shape, dtype=dtype, **options).mul_(1.5).add_(0.5))
            else:
                made.append(torch.randint(0, columns, shape, dtype=dtype, **options))
        return made

    def empty(self, columns: int, elements: int = ELEMENTS) -> Tensors:
        """Inputs whose elements do not matter."""
        shapes = self.inputs(elements // columns, columns)
        return [torch.empty(shape, dtype=dtype) for shape, dtype in shapes]


def _matrices(count: int, vectors: int = 0) -> Callable[[int, int], Any]:
    return lambda rows, columns: [
        *[((rows, columns), BF16)] * count,
        *[((columns,), BF16)] * vectors,
    ]


def _classes(rows: int, columns: int) -> Any:
    return [((rows, columns), BF16), ((rows,), torch.int64)]


def _of_losses(rows: int, columns: int) -> Any:
    return [((rows,), torch.float32), *_classes(rows, columns), ((rows,), torch.float32)]


def _heads(rows: int, columns: int) -> Any:
    """A row is a position of all heads."""
    angles = (rows, HEAD // 2)
    return [((columns // HEAD, rows, HEAD), BF16), (angles, BF16), (angles, BF16)]


def _transposed(rows: int, columns: int) -> Any:
    return [((rows, columns), BF16), ((columns, rows), BF16)]


def _softmax_backward(dy: Any, y: Any) -> Any:
    return y * (dy - (dy * y).sum(-1, keepdim=True))


def _softmax_backward_compiled(dy: Any, y: Any) -> Any:
    return _softmax_backward(dy.float(), y.float()).to(y.dtype)


def _normalized(x: Any, centred: bool) -> tuple[Any, Any]:
    """Rows, normalized, and the factors."""
    if centred:
        x = x - x.mean(-1, keepdim=True)
    factor = (x.square().mean(-1, keepdim=True) + EPS).rsqrt()
    return x * factor, factor


def _norm_backward(dy: Any, x: Any, w: Any, centred: bool) -> Any:
    x, factor = _normalized(x, centred)
    own = dy * w
    dx = own - x * (own * x).mean(-1, keepdim=True)
    if centred:
        dx = dx - own.mean(-1, keepdim=True)
    sums = [(dy * x).sum(0), *([dy.sum(0)] if centred else [])]
    return dx * factor, *sums


def _norm_backward_compiled(centred: bool) -> Callable[..., Any]:
    def backward(dy: Any, x: Any, w: Any) -> Any:
        made = _norm_backward(dy.float(), x.float(), w.float(), centred)
        return tuple(one.to(x.dtype) for one in made)

    return backward


def _layer_norm_backward(dy: Any, x: Any, w: Any) -> Any:
    mean, factor = _statistics(x, True)
    every = [True, True, True]
    return aten.native_layer_norm_backward(dy, x, w.shape, mean, factor, w, w, every)


def _rms_norm_backward(dy: Any, x: Any, w: Any) -> Any:
    _, factor = _statistics(x, False)
    return aten._fused_rms_norm_backward(dy, x, w.shape, factor, w, [True, True])


_kept: dict[tuple[int, int, bool], tuple[Any, Any]] = {}


def _statistics(x: torch.Tensor, centred: bool) -> tuple[Any, Any]:
    """The means and factors that torch keeps from the forward pass, computed once."""
    key = x.data_ptr(), x.shape[1], centred
    if key not in _kept:
        _kept.clear()
        wide = x.float()
        mean = wide.mean(-1, keepdim=True)
        off = mean.square() if centred else 0.0
        _kept[key] = mean, (wide.square().mean(-1, keepdim=True) - off + EPS).rsqrt()
    return _kept[key]


def _cross_entropy_backward(d: Any, x: Any, t: Any, log_sums: Any) -> Any:
    columns = torch.arange(x.shape[1], device=x.device)
    p = (x - log_sums[:, None]).exp() - (columns == t[:, None]).to(x.dtype)
    return p * d[:, None]


def _cross_entropy_backward_torch(d: Any, x: Any, t: Any, log_sums: Any) -> Any:
    made = _cross_entropy_backward(d, x.float(), t, log_sums)
    return made.to(x.dtype)


def _losses(x: Any, t: Any) -> Any:
    return F.cross_entropy(x, t, reduction="none")


def _exact_losses(x: Any, t: Any) -> Any:
    return x.logsumexp(-1) - x.gather(1, t[:, None].long())[:, 0]


def _rotated(x: Any, cos: Any, sin: Any) -> Any:
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)


CASES = (
    Case(
        *("softmax", 1, _matrices(1), kernels.softmax),
        *(lambda x: x.softmax(-1), lambda x: x.softmax(-1)),
    ),
    Case(
        *("softmax_backward", 2, _matrices(2), kernels.softmax_backward),
        lambda dy, y: aten._softmax_backward_data(dy, y, -1, y.dtype),
        *(_softmax_backward, _softmax_backward_compiled),
    ),
    Case(
        *("layer_norm", 1, _matrices(1, 2), lambda x, w, b: kernels.layer_norm(x, w, b, EPS)),
        lambda x, w, b: F.layer_norm(x, w.shape, w, b, EPS),
        lambda x, w, b: _normalized(x, True)[0] * w + b,
    ),
    Case(
        *("rms_norm", 1, _matrices(1, 1), lambda x, w: kernels.rms_norm(x, w, EPS)),
        lambda x, w: F.rms_norm(x, w.shape, w, EPS),
        lambda x, w: _normalized(x, False)[0] * w,
    ),
    Case(
        *("layer_norm_backward", 2, _matrices(2, 1)),
        lambda dy, x, w: kernels.norm_backward(dy, x, w, EPS, True),
        *(_layer_norm_backward, lambda dy, x, w: _norm_backward(dy, x, w, True)),
        *(_norm_backward_compiled(True), 2),
    ),
    Case(
        *("rms_norm_backward", 2, _matrices(2, 1)),
        lambda dy, x, w: kernels.norm_backward(dy, x, w, EPS, False)[:2],
        *(_rms_norm_backward, lambda dy, x, w: _norm_backward(dy, x, w, False)),
        *(_norm_backward_compiled(False), 1),
    ),
    Case(
        *("cross_entropy", 1, _classes, lambda x, t: kernels.cross_entropy_rows(x, t)),
        *(_losses, _exact_losses),
    ),
    Case(
        *("cross_entropy_backward", 1, _of_losses),
        lambda d, x, t, sums: kernels.cross_entropy_backward(d, x, t, sums, 0.0, -100),
        *(_cross_entropy_backward_torch, _cross_entropy_backward),
    ),
    Case(
        *("rotary_embedding", 1, _heads, kernels.rotary_embedding),
        *(_rotated, _rotated),
        by_rows=False,
    ),
    Case(
        *("transpose", 1, _transposed, lambda x, out: None),
        *(lambda x, _: x.t().contiguous(), lambda x, _: x.t()),
        rounded=False,
        by_rows=False,
    ),
)
