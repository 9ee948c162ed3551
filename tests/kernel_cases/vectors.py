"""Calls of kernels of vectors."""

from __future__ import annotations

from typing import Any

import torch

from fly import kernels
from kernel_cases.case import Case
from kernel_cases.choice import FLOATS, INTEGERS, SMALL_FLOATS, Choice

LONGEST = 12_000


def prefix_sum(choice: Choice) -> Case:
    size, exclusive = choice.extent(LONGEST), choice.chance(0.5)
    dtype = choice.one((*FLOATS, *INTEGERS))

    def exact(x: Any) -> Any:
        wide = torch.promote_types(x.dtype, torch.float32) if x.is_floating_point() else x.dtype
        upto = x.to(wide).cumsum(0, dtype=wide)
        return (
            (upto.roll(1).index_fill(0, torch.tensor([0]), 0) if size else upto)
            if exclusive
            else upto
        ).to(x.dtype)

    def call(x: Any) -> Any:
        return kernels.prefix_sum(x, exclusive)

    text = f"prefix_sum(exclusive={exclusive})"
    if dtype.is_floating_point:
        x = choice.normal([size], dtype, 1.0)
        return Case(call, exact, [x], text, differentiable=[0], options={"roundings": 50.0})
    limits = torch.iinfo(dtype)
    x = choice.integers([size], dtype, limits.min, limits.max)

    def check(found: Any, given: Any) -> None:
        torch.testing.assert_close(found, exact(*given), rtol=0, atol=0)

    return Case(call, exact, [x], text, check)


def histogram(choice: Choice) -> Case:
    shape = [choice.extent(90) for _ in range(choice.whole(1, 2))]
    bins = choice.one((1, 2, 7, 128, 256, 300, 8192, 8193, 40_000))
    dtype = choice.one(INTEGERS)
    limits = torch.iinfo(dtype)
    wide = choice.one(((-5, bins + 5), (limits.min, limits.max), (0, min(3, bins))))
    x = choice.integers(shape, dtype, *wide)

    def check(found: Any, given: Any) -> None:
        flat = given[0].reshape(-1).long()
        inside = flat[(flat >= 0) & (flat < bins)]
        torch.testing.assert_close(found, torch.bincount(inside, minlength=bins).int())

    return Case(lambda x: kernels.histogram(x, bins), lambda x: x, [x], f"histogram({bins})", check)


def dropout(choice: Choice) -> Case:
    shape = [choice.extent(70) for _ in range(choice.whole(0, 3))]
    p, dtype = choice.one((0.0, 0.3, 1.0, choice.random.random())), choice.one(SMALL_FLOATS)
    seed, offset = choice.whole(-(2**63), 2**63 - 1), choice.whole(0, 2**40)

    def call(x: Any) -> Any:
        return kernels.dropout(x, p, seed, offset)

    # Which elements are kept depends on their places alone.
    kept = call(torch.ones(shape)) != 0

    def check(found: Any, given: Any) -> None:
        (x,) = given
        share = float(kept.float().mean()) if kept.numel() > 500 else 1 - p
        assert abs(share - (1 - p)) < 0.15, f"{share} are kept"
        assert found.dtype == x.dtype
        scale = 1 / (1 - p) if p < 1 else 0.0
        wanted = torch.where(kept, x.double() * scale, 0.0)
        eps = torch.finfo(x.dtype).eps
        torch.testing.assert_close(found.double(), wanted, rtol=2 * eps + 3e-7, atol=1e-7)

    x = choice.normal(shape, dtype)
    return Case(call, lambda x: x, [x], f"dropout({p}, {seed}, {offset})", check)
