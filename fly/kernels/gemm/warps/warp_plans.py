"""When and how matrices are multiplied by `mma.sync`, the matrix instruction of a warp."""

from __future__ import annotations

import math
from functools import cache
from typing import Any, NamedTuple

from fly_backend.choice import choose, row_of
from fly_dialect.atoms.nvidia.mma import MmaSync
from fly_numerics.element_types import ELEMENT_TYPES

from fly.kernels.gemm.epilogue import Epilogue
from fly.kernels.gemm.plans import element_type
from fly.kernels.gemm.warpgroups.warpgroup_choices import MOST_EXTENT, lines_of, operand_access
from fly.kernels.gemm.warpgroups.warpgroup_plans import ALIGNMENT, ROW

WARPS = (2, 4)  # of a block: above one another, and beside one another
THREADS = 32 * WARPS[0] * WARPS[1]
PIECE = 16  # bytes that a thread copies at a time
STAGES = (4, 3, 2)  # tiles of A and B, the most that fit
BAND = 8
BLOCKS = 128  # that fill a device: about the multiprocessors of an A100, L40 or H200
STEPS = 8  # along K, at least, of each part of a sum that is split
RESULTS = ("f16", "bf16", "f32", "i32")
# Rows and columns of a tile → the time of a step along K as a share of the first one's.
TILES = {(128, 256): 1.0, (128, 128): 0.55, (64, 128): 0.32, (64, 64): 0.2}


class WarpPlan(NamedTuple):
    """element, out, sum: the types of operands, of what the kernel stores, and of sums. rows,
    columns: of a tile of C. stages: the tiles in shared memory. pad_a, pad_b: whether the operand
    is copied first, because its rows do not begin at multiples of 16 bytes. whole: K is a multiple
    of a tile's extent. vectors: rows of C begin at multiples of 16 bytes. splits: the parts of K
    that different blocks take. lines: the rows of C whose parts a block adds."""

    element: str
    out: str
    sum: str = "f32"
    rows: int = 128
    columns: int = 256
    stages: int = 4
    pad_a: bool = False
    pad_b: bool = False
    whole: bool = True
    vectors: bool = True
    splits: int = 1
    lines: int = 1
    band: int = BAND

    @property
    def depth(self) -> int:
        """The extent of tiles along K."""
        return ROW * 8 // ELEMENT_TYPES[self.element].bits

    @property
    def k(self) -> int:
        """The extent of an instruction along K: 32 bytes."""
        return self.depth // 4

    @property
    def unit(self) -> int:
        """The elements whose parts a thread adds."""
        return 4 if self.vectors else 1


def warp_multiplies(a: Any, b: Any, epilogue: Epilogue) -> bool:
    """Whether the target multiplies `a`, batches × M × K, and `b`, batches × K × N, so."""
    chip = row_of(choose())
    extents = (a.shape[0], a.shape[1], b.shape[2], a.shape[2])
    if 0 in extents or max(extents) >= MOST_EXTENT or epilogue.out not in RESULTS:
        return False
    return chip.nvidia is not None and _sum(element_type(a.dtype).name, chip.name) is not None


@cache
def _sum(element: str, target: str) -> str | None:
    """The type of sums of products of an element type, if `mma.sync` has them on the target. f32
    would be rounded to 10 bits of fraction."""
    chip = row_of(choose(target))
    assert chip.nvidia is not None
    sums = "i32" if element == "i8" else "f32"
    forms = [
        form
        for form in MmaSync.FORMS
        if (form.a, form.b, form.acc) == (element, element, sums) and element != "f32"
    ]
    found = any(chip.nvidia.traits & {*form.families} for form in forms)
    return sums if found else None


def warp_plan(a: Any, b: Any, epilogue: Epilogue, splits: int | None = None) -> WarpPlan:
    """The plan for operands whose values of K are adjacent."""
    extents = (a.shape[0], a.shape[1], b.shape[2], a.shape[2])
    element = element_type(a.dtype).name
    # Whole groups of 16 bytes are copied, so a row ends with one.
    ragged = a.shape[2] * a.itemsize % ALIGNMENT > 0
    pads = ragged or operand_access(a, 2)[1], ragged or operand_access(b, 1)[1]
    return _plan(element, epilogue.out, extents, pads, splits, choose().target)


@cache
def _plan(
    element: str,
    out: str,
    extents: tuple[int, int, int, int],
    pads: tuple[bool, bool],
    splits: int | None,
    target: str,
) -> WarpPlan:
    """Equal plans are one object, which calls of `@fly.jit` functions find fastest."""
    batches, m, n, k = extents
    sums = _sum(element, target)
    assert sums is not None
    room = row_of(choose(target)).lds
    made = WarpPlan(element, out, sums, pad_a=pads[0], pad_b=pads[1])
    steps = max(1, -(-k // made.depth))
    best: tuple[float, WarpPlan] | None = None
    for (rows, columns), one in TILES.items():
        stages = next((count for count in STAGES if count * ROW * (rows + columns) <= room), 0)
        if not stages:
            continue
        tiles = batches * -(-m // rows) * -(-n // columns)
        widest = max(1, min(BLOCKS // max(1, tiles), steps // STEPS)) if splits is None else splits
        each = -(-steps // min(widest, steps))
        parts = -(-steps // each)
        cost = one * (each + STEPS) * -(-tiles * parts // BLOCKS) + STEPS * (parts > 1)
        plan = made._replace(rows=rows, columns=columns, stages=stages, splits=parts)
        if best is None or cost < best[0]:
            best = cost, plan
    assert best is not None, "the smallest tile fits everywhere"
    plan = best[1]
    stored = sums if plan.splits > 1 else out
    aligned = n * ELEMENT_TYPES[stored].bytes % 16 == 0
    return plan._replace(
        out=stored,
        whole=k % plan.depth == 0,
        vectors=aligned,
        lines=lines_of(n, aligned) if plan.splits > 1 else 1,
        band=min(BAND, 1 << math.ceil(math.log2(max(1, -(-m // plan.rows))))),
    )
