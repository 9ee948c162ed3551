"""How the warps of a block add what they have of a piece, in shared memory."""

from __future__ import annotations

from typing import Any

import fly.expr as fx
from fly.kernels.approximations import exp2
from fly.kernels.attention.decoding.warp_products import EDGE, value_run
from fly.kernels.attention.vectors import WIDTH, load_vector, store_vector

WARPS = 4  # of a block


class Shared:
    """What the warps of a block have of a piece, in shared memory."""

    def __init__(self, warp: Any, row: Any, column: Any, d: int, heads: int):
        self.warp, self.row, self.column, self.d, self.heads = warp, row, column, d, heads
        self.bounds, self.totals = [
            fx.shared_array(fx.Float32, (WARPS, 2 * EDGE)) for _ in range(2)
        ]
        # Rows of so many elements that lanes write to different banks.
        self.sums = fx.shared_array(fx.Float32, (WARPS, heads, d + 2 * WIDTH))

    def put(self, bounds: list[Any], totals: list[Any], sums: list[list[Any]]) -> None:
        """Writes a warp's; its sums to the bound of all warps."""
        for half, (bound, total) in enumerate(zip(bounds, totals, strict=True)):
            if self.column == 0:
                self.bounds[self.warp, half * EDGE + self.row] = bound
                self.totals[self.warp, half * EDGE + self.row] = total
        fx.barrier()
        run = value_run(self.d)
        for half, own in enumerate(sums):
            for j in range(2):
                head = half * EDGE + 2 * self.column + j
                factor = exp2(self.bounds[self.warp, head] - self.bound(head))
                made = [x * factor for one in own for x in (one[j], one[2 + j])]
                if head < self.heads:
                    to = self.sums[self.warp, head, None]
                    for i in range(0, self.d // EDGE, run):
                        store_run(to, i * EDGE + self.row * run, made[i : i + run])
        fx.barrier()

    def bound(self, head: Any) -> Any:
        """The bound of all warps."""
        return fx.maxnumf(*[self.bounds[warp, head] for warp in range(WARPS)])

    def store(self, sequence: Any, first: Any, piece: Any, Bounds: Any, Totals: Any, Sums: Any):
        """Adds what all warps have."""
        if fx.thread_idx.x < self.heads:
            head = fx.thread_idx.x
            bound, total = self.bound(head), fx.Float32(0)
            for warp in range(WARPS):
                total += self.totals[warp, head] * exp2(self.bounds[warp, head] - bound)
            Bounds[sequence, first + head, piece] = bound
            Totals[sequence, first + head, piece] = total
        lanes = self.d // WIDTH
        for place in range(fx.thread_idx.x, self.heads * lanes, 32 * WARPS):
            head, column = place // lanes, place % lanes * WIDTH
            parts = [load_vector(self.sums[warp, head, None], column) for warp in range(WARPS)]
            total = parts[0]
            for part in parts[1:]:
                total = total + part
            store_vector(Sums[sequence, first + head, piece, None], column, total)


def store_run(row: Any, first: Any, values: list[Any]) -> None:
    """Stores adjacent numbers of f32: a multiple of four."""
    held = fx.make_rmem_tensor((4, len(values) // 4), fx.Float32)
    for i, value in enumerate(values):
        held[i % 4, i // 4] = value
    to = fx.make_view(fx.get_iter(row) + first, fx.make_layout((4, len(values) // 4), (1, 4)))
    fx.copy(fx.make_copy_atom(fx.UniversalCopy128b(), fx.Float32), held, to)
