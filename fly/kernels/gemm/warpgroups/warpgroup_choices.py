"""Which products warp groups multiply, and by which plan: decided by the host from arrays and the
target.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

from fly_backend.choice import choose, row_of
from fly_numerics.element_types import ELEMENT_TYPES

from fly.kernels.arrays import address, contiguous, strides
from fly.kernels.gemm.epilogue import Epilogue
from fly.kernels.gemm.plans import element_type
from fly.kernels.gemm.warpgroups.warpgroup_plans import (
    ALIGNMENT,
    BAND,
    BLOCKS,
    LEAST_STEPS,
    PART_STEPS,
    SUM_UNIT,
    SUMMED,
    WarpgroupPlan,
)

ELEMENTS = ("f16", "bf16", "f8E4M3FN", "f8E5M2")
RESULTS = ("f16", "bf16", "f32")
# Rows and columns of a tile → the time of a step along K as a share of the first one's, fitted to
# times of an H200. Warp groups are above one another, or beside one another in 64 rows.
TILES = {
    (128, 256): 1.0,
    (128, 192): 0.78,
    (128, 128): 0.54,
    (64, 256): 0.675,
    (64, 128): 0.33,
}
LARGEST = (128, 256)
# The same where the products of a step are scaled before they are added: a warp group's registers
# hold both products and sums.
SCALED_TILES = {(128, 192): 1.0, (128, 128): 0.72, (64, 256): 0.76, (64, 128): 0.53}
# In units of a step along K of the first tile, 0.8 µs on an H200: what a tile costs beside its
# steps, and a kernel that adds parts; and the bytes that the memory moves meanwhile.
TILE_STEPS, SUM_STEPS, STEP_BYTES = 8, 5, 3.4e6
READERS = 80  # blocks that together read as fast as the memory can
# Steps that the division of the last tiles among all blocks costs, and how much less time than the
# best plan without it the plan has to take.
STREAM_STEPS, STREAM_SHARE = 18, 0.97
MOST_EXTENT = 1 << 31


def multiplies(a: Any, b: Any, epilogue: Epilogue, tf32: bool) -> bool:
    """Whether the target multiplies `a`, batches × M × K, and `b`, batches × K × N, so: it has
    wgmma, and the types are those of its operands; f32 only if it may be rounded (`tf32`)."""
    element = element_type(a.dtype).name
    if element not in (*ELEMENTS, *("f32",) * tf32) or epilogue.out not in RESULTS:
        return False
    extents = (a.shape[0], a.shape[1], b.shape[2], a.shape[2])
    if 0 in extents or max(extents) >= MOST_EXTENT:
        return False
    return row_of(choose()).family == "Hopper"


def readable(x: Any, along_k: int) -> Any:
    """An operand as wgmma reads it: only elements of 16 bits may be adjacent across K."""
    return x if x.itemsize == 2 else with_adjacent(x, along_k)


def with_adjacent(x: Any, along_k: int) -> Any:
    """An operand whose values of K are adjacent, copied if they are not."""
    if strides(x)[along_k] == 1 or x.shape[along_k] == 1:
        return x
    return contiguous(x.swapaxes(along_k, 2)).swapaxes(along_k, 2)


def warpgroup_plan(a: Any, b: Any, epilogue: Epilogue, splits: int | None = None) -> WarpgroupPlan:
    """The plan for operands that are `readable`; into `splits` parts sums are divided, as many as
    are fast if that is None."""
    extents = (a.shape[0], a.shape[1], b.shape[2], a.shape[2])
    element = element_type(a.dtype).name
    return _plan(element, epilogue.out, extents, operand_access(a, 2), operand_access(b, 1), splits)


def scaled_plan(a: Any, b: Any, epilogue: Epilogue) -> WarpgroupPlan:
    """As `warpgroup_plan`, where the products of each step along K are scaled."""
    extents = (a.shape[0], a.shape[1], b.shape[2], a.shape[2])
    element = element_type(a.dtype).name
    return _plan(
        element,
        epilogue.out,
        extents,
        operand_access(a, 2),
        operand_access(b, 1),
        None,
        scaled=True,
    )


def grouped_plan(a: Any, b: Any, epilogue: Epilogue) -> WarpgroupPlan:
    """The plan for groups of rows of `a`, 1 × M × K, each times its matrix of `b`."""
    groups, k, n = b.shape
    extents = (groups, -(-a.shape[1] // groups), n, k)
    element = element_type(a.dtype).name
    made = _plan(element, epilogue.out, extents, operand_access(a, 2), operand_access(b, 1), 1)
    return _grouped(made, -(-k // made.depth) >= PART_STEPS + LEAST_STEPS)


@cache
def _grouped(made: WarpgroupPlan, is_long: bool) -> WarpgroupPlan:
    return made._replace(grouped=True, least=LEAST_STEPS if is_long else 0)


def operand_access(x: Any, along_k: int) -> tuple[bool, bool]:
    """Whether an operand's values of K are adjacent, and whether it has to be copied for TMA."""
    steps, size = strides(x), x.itemsize
    inner = along_k if steps[along_k] == 1 or x.shape[along_k] == 1 else 3 - along_k
    # A stride of 1 is part of the array's type, also where the extent is 1.
    others = [steps[i] for i in (0, 3 - inner) if x.shape[i] > 1 or steps[i] == 1]
    sound = steps[inner] == 1 or x.shape[inner] == 1
    aligned = all(step > 0 and step * size % ALIGNMENT == 0 for step in others)
    return inner == along_k, not (sound and aligned and address(x) % ALIGNMENT == 0)


@cache
def _plan(
    element: str,
    out: str,
    extents: tuple[int, int, int, int],
    a: tuple[bool, bool],
    b: tuple[bool, bool],
    splits: int | None,
    scaled: bool = False,
) -> WarpgroupPlan:
    """Equal plans are one object, which calls of `@fly.jit` functions find fastest."""
    batches, m, n, k = extents
    made = WarpgroupPlan(element, out, a_along_k=a[0], b_along_k=b[0], pad_a=a[1], pad_b=b[1])
    steps = -(-k // made.depth)
    size, results = ELEMENT_TYPES[element].bytes, batches * m * n
    read = batches * (m + n) * k * size / STEP_BYTES  # no tile makes this faster
    best: tuple[tuple[float, float], int, int, int] | None = None
    for (rows, columns), one in (SCALED_TILES if scaled else TILES).items():
        tiles = batches * -(-m // rows) * -(-n // columns)
        widest = max(1, min(BLOCKS // tiles, steps // TILE_STEPS)) if splits is None else splits
        for parts in range(1, min(widest, steps) + 1) if splits is None else (min(splits, steps),):
            each = -(-steps // parts)
            parts = -(-steps // each)
            time = one * (each + TILE_STEPS) * -(-tiles * parts // BLOCKS)
            # Parts are written, read and added.
            added = SUM_STEPS + parts * results * 8 / STEP_BYTES if parts > 1 else 0.0
            reading = read * max(1.0, READERS / (tiles * parts))
            cost = max(reading, time) + added, time
            if best is None or cost < best[0]:
                best = cost, rows, columns, parts
    assert best is not None
    (cost, _), rows, columns, parts = best
    stream = splits is None and not scaled and _streams(batches, m, n, steps, max(cost, read))
    if stream:
        rows, columns, parts = *LARGEST, 1
    stored = "f32" if parts > 1 else out
    aligned = n * ELEMENT_TYPES[stored].bytes % ALIGNMENT == 0
    return made._replace(
        out=stored,
        rows=rows,
        columns=columns,
        splits=parts,
        lines=lines_of(n, aligned) if parts > 1 else 1,
        tma_store=aligned,
        band=min(BAND, 1 << math.ceil(math.log2(max(1, -(-m // rows))))),
        stream=stream,
    )


def _streams(batches: int, m: int, n: int, steps: int, cost: float) -> bool:
    """Whether largest tiles, the last ones of which are divided among all blocks, take less time
    than `cost`, that of the best plan without: whole turns leave many blocks idle."""
    rows, columns = LARGEST
    tiles = batches * -(-m // rows) * -(-n // columns)
    time = steps * tiles / BLOCKS + TILE_STEPS * -(-tiles // BLOCKS) + STREAM_STEPS
    return tiles > BLOCKS and time < STREAM_SHARE * cost


def lines_of(n: int, aligned: bool) -> int:
    """The rows that a block's threads have elements of, if it adds the parts of rows of n."""
    threads = -(-n // (SUM_UNIT if aligned else 1))
    return max(1, SUMMED >> max(0, threads - 1).bit_length())
