"""The kernels of rotary position embedding of rows."""

from __future__ import annotations

import fly
import fly.expr as fx
from fly.kernels.attention.rotation import THREADS, Rotation
from fly.kernels.attention.vectors import WIDTH, load_stored

Rows = fx.Tensor[fx.Float, "rows", "positions", None]
Angles = fx.Tensor[fx.Float, "positions", "pairs"]


@fly.kernel
def rotary_kernel(
    X: fx.Tensor, cos: fx.Tensor, sin: fx.Tensor, Y: fx.Tensor, rotation: fx.Constexpr[Rotation]
):
    """Rows × positions × d."""
    index = fx.block_idx.x * THREADS + fx.thread_idx.x
    position, item, row = index // rotation.items, index % rotation.items, fx.block_idx.y
    if position < X.shape[1]:
        places = rotation.places(item)
        held = rotation.load(X[row, position, None], places)
        held = rotation.apply(item, held, cos[position, None], sin[position, None], in_turn=True)
        held.store(Y[row, position, None], places)


@fly.kernel
def rotary_rows_kernel(
    X: fx.Tensor,
    cos: fx.Tensor,
    sin: fx.Tensor,
    Y: fx.Tensor,
    rotation: fx.Constexpr[Rotation],
    lines: fx.Constexpr[int],
    threads: fx.Constexpr[int],
    together: fx.Constexpr[bool],
):
    """As rotary_kernel. A thread takes `lines` rows at a position, whose angles it loads once.
    together: blocks with the same positions follow each other, so that their angles stay in the
    cache; else those of adjacent memory do."""
    rows, positions = X.shape[0], X.shape[1]
    if together:
        part, group = divmod(fx.block_idx.x, fx.ceildiv(rows, lines))
    else:
        group, part = divmod(fx.block_idx.x, fx.ceildiv(positions * rotation.items, threads))
    index = part * threads + fx.thread_idx.x
    position, item = divmod(index, rotation.items)
    if position < positions:
        places = rotation.places(item)
        taken = [fx.min(group * lines + i, rows - 1) for i in fx.range_constexpr(lines)]
        held = [rotation.load(X[row, position, None], places) for row in taken]
        if rotation.paired(item):
            angles = [load_stored(one[position, None], item * WIDTH) for one in (cos, sin)]
            held = [rotation.turned(one, *angles) for one in held]
        for i in fx.range_constexpr(lines):
            if i == 0 or group * lines + i < rows:
                held[i].store(Y[taken[i], position, None], places)


@fly.jit
def rotate(X: Rows, cos: Angles, sin: Angles, rotation: fx.Constexpr[Rotation]):
    Y = fx.empty(X.shape, X.dtype)
    grid = (fx.ceildiv(X.shape[1] * rotation.items, THREADS), X.shape[0])
    rotary_kernel(X, cos, sin, Y, rotation).launch(grid=grid, block=THREADS)
    return Y


@fly.jit
def rotate_rows(
    X: Rows,
    cos: Angles,
    sin: Angles,
    rotation: fx.Constexpr[Rotation],
    lines: fx.Constexpr[int],
    threads: fx.Constexpr[int],
    together: fx.Constexpr[bool],
):
    Y = fx.empty(X.shape, X.dtype)
    parts = fx.ceildiv(X.shape[1] * rotation.items, threads)
    rotary_rows_kernel(X, cos, sin, Y, rotation, lines, threads, together).launch(
        grid=parts * fx.ceildiv(X.shape[0], lines), block=threads
    )
    return Y
