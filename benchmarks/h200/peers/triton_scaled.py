"""A product of 8-bit floats with scales of blocks in Triton, in several configurations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import triton
import triton.language as tl

BLOCK = 128
BAND = 8  # rows of tiles that programs go through together
CONFIGURATIONS = ((128, 128, 4, 3), (128, 128, 8, 4), (64, 128, 4, 4), (128, 64, 4, 4))


@triton.jit
def scaled_kernel(
    a,
    b,
    c,
    scale_a,
    scale_b,
    m,
    n,
    k,
    a_step,
    b_step,
    scale_a_row,
    scale_a_block,
    scale_b_block,
    scale_b_column,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    DEPTH: tl.constexpr,
    BAND: tl.constexpr,
):
    down, across = tl.cdiv(m, ROWS), tl.cdiv(n, COLUMNS)
    number = tl.program_id(0)
    band, inside = number // (BAND * across), number % (BAND * across)
    height = tl.minimum(down - band * BAND, BAND)
    first_row = (band * BAND + inside % height) * ROWS
    first_column = inside // height * COLUMNS
    row = first_row + tl.arange(0, ROWS)
    column = first_column + tl.arange(0, COLUMNS)
    along = tl.arange(0, DEPTH)
    from_a = a + (row % m)[:, None] * a_step + along[None, :]
    from_b = b + (column % n)[None, :] * b_step + along[:, None]
    of_a = scale_a + (row % m) * scale_a_row
    of_b = scale_b + first_column // DEPTH * scale_b_column
    sums = tl.zeros((ROWS, COLUMNS), tl.float32)
    for block in range(tl.cdiv(k, DEPTH)):
        rest = k - block * DEPTH
        left = tl.load(from_a, mask=along[None, :] < rest, other=0.0)
        right = tl.load(from_b, mask=along[:, None] < rest, other=0.0)
        factor = tl.load(of_a) * tl.load(of_b)
        sums += tl.dot(left, right) * factor[:, None]
        from_a += DEPTH
        from_b += DEPTH
        of_a += scale_a_block
        of_b += scale_b_block
    to = c + row[:, None].to(tl.int64) * n + column[None, :]
    tl.store(to, sums.to(c.dtype.element_ty), mask=(row < m)[:, None] & (column < n)[None, :])


def calls(inputs: list[torch.Tensor]) -> dict[str, Callable[[], Any]]:
    """A call for each configuration; columns of a tile are within a block of scales."""
    a, b, scale_a, scale_b = inputs
    (m, k), n = a.shape, b.shape[1]

    def call(rows: int, columns: int, warps: int, stages: int) -> Callable[[], Any]:
        c = torch.empty((m, n), device=a.device, dtype=torch.bfloat16)
        grid = (triton.cdiv(m, rows) * triton.cdiv(n, columns),)
        steps = (a.stride(0), b.stride(1), *scale_a.stride(), *scale_b.stride())

        def run() -> Any:
            scaled_kernel[grid](
                a, b, c, scale_a, scale_b, m, n, k, *steps,
                ROWS=rows, COLUMNS=columns, DEPTH=BLOCK, BAND=BAND,
                num_warps=warps, num_stages=stages,
            )  # fmt: skip
            return c

        return run

    return {
        f"Triton {rows}x{columns}, {warps} warps, {stages} stages": call(
            rows, columns, warps, stages
        )
        for rows, columns, warps, stages in CONFIGURATIONS
    }
