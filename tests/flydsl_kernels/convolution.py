"""Cases of kernels/conv."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch.nn import functional

from flydsl_kernels.case import Comparison, case, random

BF16 = torch.bfloat16


@case(
    "conv3d 16ch 3x3x3 padded",
    "conv/conv3d_implicit.py",
    target="gfx950",
    size=(1, 16, 3, 6, 7, 40),
    kernel=3,
    padding=1,
)
@case(
    "conv3d 5ch stride 2",
    "conv/conv3d_implicit.py",
    target="gfx950",
    size=(2, 5, 4, 7, 9, 33),
    kernel=3,
    padding=1,
    stride=2,
)
@case(
    "conv3d 64ch 1x3x3",
    "conv/conv3d_implicit.py",
    target="gfx950",
    size=(1, 64, 2, 5, 8, 64),
    kernel=(1, 3, 3),
    padding=(0, 1, 1),
)
def conv3d(size: Any, kernel: Any, padding: Any = 0, stride: int = 1) -> Iterator[Comparison]:
    from kernels.conv.conv3d_implicit import conv3d_implicit

    n, c, t, h, w, k = size
    x = random(n, c, t, h, w, dtype=BF16)
    extents = (kernel,) * 3 if isinstance(kernel, int) else kernel
    weight = random(k, c, *extents, seed=1, dtype=BF16)
    bias = random(k, seed=2)
    y = conv3d_implicit(x, weight, bias=bias, stride=stride, padding=padding)
    wanted = functional.conv3d(x.float(), weight.float(), bias, stride, padding)
    yield Comparison("y", y, wanted, 0.06, 0.02)


@case("conv3d autotuned", "conv/conv3d_autotune.py", target="gfx950")
def autotuned() -> Iterator[Comparison]:
    """Measures tiles, one of which the kernel refuses, and keeps the fastest for the next call."""
    import os
    import tempfile

    from kernels.conv.conv3d_autotune import autotune_conv3d
    from kernels.conv.conv3d_implicit import conv3d_implicit

    x, weight = random(1, 16, 2, 5, 9, dtype=BF16), random(40, 16, 1, 3, 3, seed=1, dtype=BF16)
    tiles, made = [(64, 64, 2, 2), (48, 64, 2, 2), (64, 128, 1, 4)], {}

    def run(tile: tuple[int, ...]) -> torch.Tensor:
        made[tile] = conv3d_implicit(x, weight, padding=(0, 1, 1), tile=tile)
        return made[tile]

    with tempfile.TemporaryDirectory() as folder:
        os.environ["FLYDSL_AUTOTUNE_CACHE_DIR"] = folder
        given = ("bf16", (1, 16, 2, 5, 9, 40), "bf16", tiles, x.device)
        chosen = autotune_conv3d(*given, run, warmup=1, rep=1)
        again = autotune_conv3d(*given, lambda tile: 1 / 0)
    wanted = functional.conv3d(x.float(), weight.float(), padding=(0, 1, 1))
    yield Comparison("chosen again", torch.tensor(again), torch.tensor(chosen))
    yield Comparison("tiles that ran", torch.tensor(sorted(made)), torch.tensor(sorted(tiles[::2])))
    for y in made.values():
        yield Comparison("y", y, wanted, 0.06, 0.02)


@case(
    "conv3d_fp8 128ch 1x1x1",
    "conv/conv3d_implicit_fp8.py",
    target="gfx950",
    size=(1, 128, 2, 9, 9, 128),
    kernel=1,
)
@case(
    "conv3d_fp8 96ch 1x3x3",
    "conv/conv3d_implicit_fp8.py",
    target="gfx950",
    size=(1, 128, 1, 6, 6, 96),
    kernel=(1, 3, 3),
    padding=(0, 1, 1),
)
def conv3d_fp8(size: Any, kernel: Any, padding: Any = 0) -> Iterator[Comparison]:
    from kernels.conv.conv3d_implicit_fp8 import conv3d_implicit_fp8

    n, c, t, h, w, k = size
    extents = (kernel,) * 3 if isinstance(kernel, int) else kernel
    kind = torch.float8_e4m3fn
    x, weight = random(n, c, t, h, w).to(kind), random(k, c, *extents, seed=1).to(kind)
    y = conv3d_implicit_fp8(x, weight, stride=1, padding=padding)
    wanted = functional.conv3d(x.float(), weight.float(), padding=padding)
    yield Comparison("y", y, wanted, 0.3, 0.02)
