"""Rings of buffers in shared memory, from one thread that copies to the groups that multiply."""

from __future__ import annotations

from typing import Any

import fly.expr as fx
from fly.kernels.attention.warpgroups.groups import GROUPS, THREADS


class Ring:
    """Buffers of one or several tiles, which are copied, read and released together. Each of these
    is by the number of the turn, from 0."""

    def __init__(self, stages: int, *tiles: Any):
        self.tiles, self.pipeline = tiles, fx.nvvm.Pipeline(stages, consumers=GROUPS)

    def copy(self, turn: Any, *sources: tuple[Any, Any]) -> None:
        """Starts to copy a tile of each tensor, (map, coordinates), when the buffer is free."""
        slot = self.pipeline.fill(turn, sum(source.nbytes for source, _ in sources))
        for tiles, (source, at) in zip(self.tiles, sources, strict=True):
            fx.nvvm.tma_load(source, at, tiles[slot.stage], slot.barrier)

    def wait(self, turn: Any) -> Any:
        """The number of the buffer, when its tiles have arrived."""
        return self.pipeline.wait(turn).stage

    def release(self, turn: Any) -> None:
        """The group has read the buffer."""
        if fx.thread_idx.x % THREADS == 0:
            self.pipeline.release(turn)


def start(product: Any, sums: Any, a: Any, b: Any) -> None:
    """Starts to add a product of tiles to sums."""
    fx.nvvm.wgmma_fence()
    fx.gemm(product, sums, a, b, sums)
    fx.nvvm.wgmma_commit()
