"""Prints what the kernels of `fly.kernels` cost on gfx942, and how accurate they are, as the table
of docs/kernels.md.

    python benchmarks/kernels.py [--write]

Each function is called with torch tensors on the emulator. Counted are the instructions that the
waves of its kernels execute, per element of the first argument; the greatest numbers of VGPRs,
bytes of LDS and of scratch memory of a kernel. The error is the greatest difference from torch in
f64, beside that of torch in the arguments' own type on this machine's processor. --write puts the
table into the page; a test compares the counts. No GPU is needed.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
import torch.nn.functional as F
from executed import Counter
from fly_llc.backends.amd import comparison
from fly_run.devices.options import Options

from fly import kernels
from fly.call.compiled import Compiled

PAGE = Path(__file__).parents[1] / "docs" / "kernels.md"
FIRST, LAST = "<!-- benchmarks/kernels.py -->\n", "<!-- end -->\n"
COUNTED = ("instructions", "VGPRs", "LDS", "scratch")
HEAD = f"| call | arguments | {' | '.join(COUNTED)} | error | of torch |\n" + "|---" * 8 + "|\n"
SHORT = {torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16", torch.int32: "i32"}


def normal(*shape: int, dtype: torch.dtype = torch.float16, seed: int = 0) -> torch.Tensor:
    random = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=random, dtype=torch.float64).to(dtype)


def integers(*shape: int, below: int) -> torch.Tensor:
    random = torch.Generator().manual_seed(1)
    return torch.randint(0, below, shape, generator=random, dtype=torch.int32)


ROWS = normal(8, 4096)
VECTOR = normal(4096, seed=1)
OTHERS = normal(8, 4096, seed=2)

HEADS = tuple(normal(1, 4, 256, 64, seed=seed) for seed in range(3))
PAGES = tuple(normal(16, 16, 1, 64, seed=seed) for seed in range(2))
TABLE = torch.arange(16, dtype=torch.int32).view(1, 16)
ANGLES = tuple(one(normal(256, 32, dtype=torch.float64)).half() for one in (torch.cos, torch.sin))


def attention_gradients(attention: Callable[..., Any]) -> Callable[..., Any]:
    """A function that returns the gradients of attention, for those of its result, q, k and v."""

    def gradients(gradient: Any, *inputs: Any) -> Any:
        inputs = tuple(one.clone().requires_grad_() for one in inputs)
        return torch.autograd.grad(attention(*inputs), inputs, gradient)

    return gradients


def rotated(x: Any, cos: Any, sin: Any) -> Any:
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)


# The call as it is shown, its arguments, the function, and torch's.
Row = tuple[str, tuple[Any, ...], Callable[..., Any], Callable[..., Any]]
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
)


@contextmanager
def observed(counter: Counter, images: list[bytes]) -> Iterator[None]:
    """Counts what calls launch, and collects the images."""
    run = Compiled.run_viewed

    def run_observed(self: Compiled, given: Any, viewed: Any, device: str, *_: Any) -> Any:
        images.append(self.data)
        return run(self, given, viewed, device, Options(observers=(counter,)))

    with patch.object(Compiled, "run_viewed", run_observed):
        yield


def counts(call: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
    """What a call returns, and its counts."""
    counter, images = Counter(), []
    with observed(counter, images):
        made = call(*arguments)
    rows = [row for image in images for row in comparison.measure(image).values()]
    most = [
        max(row.get(name, 0) for row in rows) for name in ("VGPRs", "LDS bytes", "private bytes")
    ]
    each = sum(counter.found.values()) / arguments[0].numel()
    return made, (f"{each:.2f}", *most)


def error(found: Any, exact: Any) -> str:
    several = zip(found, exact, strict=True) if isinstance(exact, tuple) else [(found, exact)]
    return f"{max(float((a.double() - b).abs().max()) for a, b in several):.2g}"


def measured(row: Row) -> list[str]:
    """The cells of a row."""
    name, arguments, call, reference = row
    made, found = counts(call, arguments)
    shapes = ", ".join(f"{SHORT[one.dtype]} {'×'.join(map(str, one.shape))}" for one in arguments)
    errors = ["", ""]
    if reference is not None:
        wide = [one.double() if one.is_floating_point() else one for one in arguments]
        exact = reference(*wide)
        errors = [error(made, exact), error(reference(*arguments), exact)]
    return [f"`{name}`", shapes, *map(str, found), *errors]


def table() -> str:
    """The table, with its head."""
    return HEAD + "".join(f"| {' | '.join(measured(row))} |\n" for row in CALLS)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--write", action="store_true", help="put the table into the page")
    found = table()
    if not parser.parse_args().write:
        print(found, end="")
        return
    before, rest = PAGE.read_text(encoding="utf-8").split(FIRST)
    PAGE.write_text(f"{before}{FIRST}{found}{LAST}{rest.split(LAST)[1]}", encoding="utf-8")


if __name__ == "__main__":
    main()
