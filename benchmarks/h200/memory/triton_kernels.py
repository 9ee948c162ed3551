"""The workloads in Triton, each in several configurations, of which the best one counts."""

from __future__ import annotations

from collections.abc import Callable

import torch
import triton
import triton.language as tl

from h200.memory.workloads import EPS

Call = Callable[[], object]


@triton.jit
def add_kernel(a, b, c, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    tl.store(c + i, tl.load(a + i, mask=inside) + tl.load(b + i, mask=inside), mask=inside)


@triton.jit
def softmax_kernel(x, y, stride, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * stride + tl.arange(0, BLOCK)
    values = tl.load(x + at).to(tl.float32)
    weights = tl.exp(values - tl.max(values, 0))
    tl.store(y + at, (weights / tl.sum(weights, 0)).to(y.dtype.element_ty))


@triton.jit
def layernorm_kernel(x, weight, bias, y, stride, eps, BLOCK: tl.constexpr):
    column = tl.arange(0, BLOCK)
    at = tl.program_id(0).to(tl.int64) * stride + column
    values = tl.load(x + at).to(tl.float32)
    mean = tl.sum(values, 0) / BLOCK
    away = values - mean
    scale = tl.rsqrt(tl.sum(away * away, 0) / BLOCK + eps)
    w = tl.load(weight + column).to(tl.float32)
    b = tl.load(bias + column).to(tl.float32)
    tl.store(y + at, (away * scale * w + b).to(y.dtype.element_ty))


@triton.jit
def rmsnorm_kernel(x, weight, y, stride, eps, BLOCK: tl.constexpr):
    column = tl.arange(0, BLOCK)
    at = tl.program_id(0).to(tl.int64) * stride + column
    values = tl.load(x + at).to(tl.float32)
    scale = tl.rsqrt(tl.sum(values * values, 0) / BLOCK + eps)
    w = tl.load(weight + column).to(tl.float32)
    tl.store(y + at, (values * scale * w).to(y.dtype.element_ty))


@triton.jit
def transpose_kernel(a, b, rows, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    i = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    j = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    tile = tl.load(a + i.to(tl.int64)[:, None] * columns + j[None, :])
    tl.store(b + j.to(tl.int64)[:, None] * rows + i[None, :], tl.trans(tile))


def _add(inputs: list[torch.Tensor], out: torch.Tensor) -> dict[str, Call]:
    a, b = inputs
    n = a.numel()

    def call(block: int, warps: int) -> Call:
        grid = (triton.cdiv(n, block),)
        return lambda: add_kernel[grid](a, b, out, n, BLOCK=block, num_warps=warps)

    configurations = ((1024, 4), (1024, 8), (2048, 8), (4096, 8))
    return {f"{block}, {warps} warps": call(block, warps) for block, warps in configurations}


def _rows(kernel: Callable, scalars: tuple[float, ...]) -> Callable[..., dict[str, Call]]:
    def calls(inputs: list[torch.Tensor], out: torch.Tensor) -> dict[str, Call]:
        rows, columns = out.shape

        def call(warps: int) -> Call:
            given = (*inputs, out, columns, *scalars)
            return lambda: kernel[(rows,)](*given, BLOCK=columns, num_warps=warps)

        return {f"{warps} warps": call(warps) for warps in (4, 8, 16)}

    return calls


def _transpose(inputs: list[torch.Tensor], out: torch.Tensor) -> dict[str, Call]:
    (a,) = inputs
    rows, columns = a.shape

    def call(high: int, wide: int, warps: int) -> Call:
        grid = (columns // wide, rows // high)
        constants = {"ROWS": high, "COLUMNS": wide, "num_warps": warps}
        return lambda: transpose_kernel[grid](a, out, rows, columns, **constants)

    configurations = ((64, 64, 4), (64, 64, 8), (128, 64, 8), (128, 128, 8))
    return {f"{h}x{w}, {warps} warps": call(h, w, warps) for h, w, warps in configurations}


CALLS: dict[str, Callable[[list[torch.Tensor], torch.Tensor], dict[str, Call]]] = {
    "add f32": _add,
    "softmax bf16": _rows(softmax_kernel, ()),
    "layernorm bf16": _rows(layernorm_kernel, (EPS,)),
    "rmsnorm bf16": _rows(rmsnorm_kernel, (EPS,)),
    "transpose bf16": _transpose,
    "transpose f32": _transpose,
}
