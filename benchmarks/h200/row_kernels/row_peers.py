"""The kernels of `row_cases` in Triton, each in several configurations, of which the best counts.

A program has a row in registers; with `rows` programs it takes one, and with fewer it takes rows in
turn, whose loads Triton moves ahead by `stages`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
import triton
import triton.language as tl

from h200.row_kernels.row_cases import EPS, HEAD, PROCESSORS

Call = Callable[[], Any]


@triton.jit
def softmax_kernel(x, y, rows, columns, BLOCK: tl.constexpr, STAGES: tl.constexpr):
    column = tl.arange(0, BLOCK)
    inside = column < columns
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0), num_stages=STAGES):
        at = row.to(tl.int64) * columns + column
        values = tl.load(x + at, mask=inside, other=-float("inf")).to(tl.float32)
        powers = tl.exp(values - tl.max(values, 0))
        made = powers / tl.sum(powers, 0)
        tl.store(y + at, made.to(y.dtype.element_ty), mask=inside)


@triton.jit
def softmax_backward_kernel(dy, y, dx, rows, columns, BLOCK: tl.constexpr, STAGES: tl.constexpr):
    column = tl.arange(0, BLOCK)
    inside = column < columns
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0), num_stages=STAGES):
        at = row.to(tl.int64) * columns + column
        d = tl.load(dy + at, mask=inside, other=0.0).to(tl.float32)
        p = tl.load(y + at, mask=inside, other=0.0).to(tl.float32)
        made = p * (d - tl.sum(d * p, 0))
        tl.store(dx + at, made.to(dx.dtype.element_ty), mask=inside)


@triton.jit
def norm_kernel(
    x, w, b, y, rows, columns, eps,
    CENTRED: tl.constexpr, BLOCK: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    column = tl.arange(0, BLOCK)
    inside = column < columns
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0), num_stages=STAGES):
        at = row.to(tl.int64) * columns + column
        values = tl.load(x + at, mask=inside, other=0.0).to(tl.float32)
        if CENTRED:
            values = tl.where(inside, values - tl.sum(values, 0) / columns, 0.0)
        factor = tl.rsqrt(tl.sum(values * values, 0) / columns + eps)
        made = values * factor * tl.load(w + column, mask=inside, other=0.0).to(tl.float32)
        if CENTRED:
            made += tl.load(b + column, mask=inside, other=0.0).to(tl.float32)
        tl.store(y + at, made.to(y.dtype.element_ty), mask=inside)


@triton.jit
def norm_backward_kernel(
    dy, x, w, dx, of_weight, of_bias, rows, columns, eps,
    CENTRED: tl.constexpr, BLOCK: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """Each program has sums of its rows' derivatives by w and b."""
    column = tl.arange(0, BLOCK)
    inside = column < columns
    weight = tl.load(w + column, mask=inside, other=0.0).to(tl.float32)
    dw = tl.zeros([BLOCK], tl.float32)
    db = tl.zeros([BLOCK], tl.float32)
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0), num_stages=STAGES):
        at = row.to(tl.int64) * columns + column
        values = tl.load(x + at, mask=inside, other=0.0).to(tl.float32)
        given = tl.load(dy + at, mask=inside, other=0.0).to(tl.float32)
        if CENTRED:
            values = tl.where(inside, values - tl.sum(values, 0) / columns, 0.0)
        factor = tl.rsqrt(tl.sum(values * values, 0) / columns + eps)
        values *= factor
        own = given * weight
        made = own - values * (tl.sum(own * values, 0) / columns)
        if CENTRED:
            made -= tl.sum(own, 0) / columns
            db += given
        dw += given * values
        tl.store(dx + at, (made * factor).to(dx.dtype.element_ty), mask=inside)
    to = tl.program_id(0) * columns + column
    tl.store(of_weight + to, dw, mask=inside)
    if CENTRED:
        tl.store(of_bias + to, db, mask=inside)


@triton.jit
def loss_kernel(x, targets, losses, sums, rows, columns, BLOCK: tl.constexpr, STAGES: tl.constexpr):
    column = tl.arange(0, BLOCK)
    inside = column < columns
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0), num_stages=STAGES):
        start = x + row.to(tl.int64) * columns
        own = tl.load(start + tl.load(targets + row)).to(tl.float32)
        values = tl.load(start + column, mask=inside, other=-float("inf")).to(tl.float32)
        most = tl.max(values, 0)
        total = most + tl.log(tl.sum(tl.exp(values - most), 0))
        tl.store(losses + row, total - own)
        tl.store(sums + row, total)


@triton.jit
def loss_backward_kernel(
    d, x, targets, sums, dx, rows, columns, BLOCK: tl.constexpr, STAGES: tl.constexpr
):
    column = tl.arange(0, BLOCK)
    inside = column < columns
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0), num_stages=STAGES):
        at = row.to(tl.int64) * columns + column
        values = tl.load(x + at, mask=inside, other=0.0).to(tl.float32)
        powers = tl.exp(values - tl.load(sums + row))
        powers -= tl.where(column == tl.load(targets + row), 1.0, 0.0)
        made = powers * tl.load(d + row)
        tl.store(dx + at, made.to(dx.dtype.element_ty), mask=inside)


@triton.jit
def rotary_kernel(
    x, cos, sin, y, heads, positions,
    HALF: tl.constexpr, PLACES: tl.constexpr, HEADS: tl.constexpr,
):  # fmt: skip
    """Some positions of some heads; programs of the same positions follow each other."""
    groups = tl.cdiv(heads, HEADS)
    place = tl.program_id(0) // groups * PLACES + tl.arange(0, PLACES)
    inside = (place < positions)[:, None]
    pair = tl.arange(0, HALF)[None, :]
    of_angles = place[:, None] * HALF + pair
    c = tl.load(cos + of_angles, mask=inside).to(tl.float32)
    s = tl.load(sin + of_angles, mask=inside).to(tl.float32)
    for i in tl.static_range(HEADS):
        head = tl.program_id(0) % groups * HEADS + i
        if head < heads:
            at = (head.to(tl.int64) * positions + place)[:, None] * (2 * HALF) + pair
            a = tl.load(x + at, mask=inside).to(tl.float32)
            b = tl.load(x + at + HALF, mask=inside).to(tl.float32)
            tl.store(y + at, (a * c - b * s).to(y.dtype.element_ty), mask=inside)
            tl.store(y + at + HALF, (a * s + b * c).to(y.dtype.element_ty), mask=inside)


def _rows(
    kernel: Any, outputs: Callable[..., list[torch.Tensor]], *scalars: Any, matrix: int = 0
) -> Callable[[list[torch.Tensor]], Iterator[tuple[str, Call]]]:
    """Calls of a kernel that takes inputs, outputs, extents, scalars and constants."""

    def calls(inputs: list[torch.Tensor]) -> Iterator[tuple[str, Call]]:
        rows, columns = inputs[matrix].shape
        made = outputs(*inputs)
        block = triton.next_power_of_2(columns)
        for warps, programs, stages in _configurations(rows, columns):
            given = (*inputs, *made, rows, columns, *scalars)
            options = {"BLOCK": block, "STAGES": stages, "num_warps": warps}

            def call(given: Any = given, programs: int = programs, options: Any = options) -> Any:
                kernel[(programs,)](*given, **options)
                return tuple(made)

            yield f"{warps} warps, {programs} programs, {stages} stages", call

    return calls


def _configurations(rows: int, columns: int) -> Iterator[tuple[int, int, int]]:
    """Warps, programs and stages: a row a program, and rows in turn."""
    usual = min(32, max(1, columns // 1024))
    for warps in sorted({min(32, max(1, usual * factor)) for factor in (1, 2, 4)}):
        yield warps, rows, 1
    yield usual, min(rows, PROCESSORS * max(1, 32 // usual)), 2


def _norm(centred: bool) -> Callable[[list[torch.Tensor]], Iterator[tuple[str, Call]]]:
    def calls(inputs: list[torch.Tensor]) -> Iterator[tuple[str, Call]]:
        x, w, *b = inputs
        kernel = partial(_centred, norm_kernel, centred)
        every = _rows(_Launched(kernel), lambda *_: [torch.empty_like(x)], EPS)
        yield from every([x, w, *(b or [w])])

    return calls


class _Launched:
    """`kernel[grid](…)` with a constant added."""

    def __init__(self, launch: Callable[..., Any]):
        self.launch = launch

    def __getitem__(self, grid: Any) -> Callable[..., Any]:
        return partial(self.launch, grid)


def _centred(kernel: Any, centred: bool, grid: Any, *given: Any, **options: Any) -> Any:
    return kernel[grid](*given, CENTRED=centred, **options)


def _norm_backward(centred: bool) -> Callable[[list[torch.Tensor]], Iterator[tuple[str, Call]]]:
    def calls(inputs: list[torch.Tensor]) -> Iterator[tuple[str, Call]]:
        dy, x, w = inputs
        rows, columns = x.shape
        dx, block = torch.empty_like(x), triton.next_power_of_2(columns)
        usual = min(32, max(1, columns // 1024))
        for warps in sorted({min(32, max(4, usual * factor)) for factor in (1, 2)}):
            for stages in (1, 2):
                programs = min(rows, PROCESSORS * max(1, 16 // warps))
                parts = torch.empty((2, programs, columns), dtype=torch.float32, device=x.device)
                options = {"BLOCK": block, "STAGES": stages, "num_warps": warps, "CENTRED": centred}

                def call(
                    parts: Any = parts, programs: Any = programs, options: Any = options
                ) -> Any:
                    given = (dy, x, w, dx, *parts, rows, columns, EPS)
                    norm_backward_kernel[(programs,)](*given, **options)
                    kinds = 2 if centred else 1
                    return dx, *parts[:kinds].sum(1).to(w.dtype)

                yield f"{warps} warps, {programs} programs, {stages} stages", call

    return calls


def _rotary(inputs: list[torch.Tensor]) -> Iterator[tuple[str, Call]]:
    x, cos, sin = inputs
    heads, positions, _ = x.shape
    y = torch.empty_like(x)
    for places, many, warps in ((16, 1, 4), (16, 4, 4), (32, 4, 4), (32, 8, 8)):
        grid = (triton.cdiv(positions, places) * triton.cdiv(heads, many),)
        constants = {"HALF": HEAD // 2, "PLACES": places, "HEADS": many, "num_warps": warps}

        def call(grid: Any = grid, constants: Any = constants) -> Any:
            rotary_kernel[grid](x, cos, sin, y, heads, positions, **constants)
            return y

        yield f"{places} positions, {many} heads, {warps} warps", call


def _transpose(inputs: list[torch.Tensor]) -> Iterator[tuple[str, Call]]:
    from h200.memory.triton_kernels import _transpose as every

    x, out = inputs
    for name, call in every([x], out).items():

        def made(call: Call = call) -> Any:
            call()
            return out

        yield name, made


def _losses(x: torch.Tensor, *_: Any) -> list[torch.Tensor]:
    return [torch.empty(len(x), device=x.device) for _ in range(2)]


CALLS: dict[str, Callable[[list[torch.Tensor]], Iterator[tuple[str, Call]]]] = {
    "softmax": _rows(softmax_kernel, lambda x: [torch.empty_like(x)]),
    "softmax_backward": _rows(softmax_backward_kernel, lambda dy, y: [torch.empty_like(y)]),
    "layer_norm": _norm(True),
    "rms_norm": _norm(False),
    "layer_norm_backward": _norm_backward(True),
    "rms_norm_backward": _norm_backward(False),
    "cross_entropy": _rows(loss_kernel, _losses),
    "cross_entropy_backward": _rows(
        loss_backward_kernel, lambda d, x, t, sums: [torch.empty_like(x)], matrix=1
    ),
    "rotary_embedding": _rotary,
    "transpose": _transpose,
}


def calls(name: str, inputs: list[torch.Tensor]) -> dict[str, Call]:
    """Calls of a case's kernel in Triton, by the names of configurations."""
    return dict(CALLS[name](inputs))
