"""What a block's threads multiply tiles by, and how these lie in LDS.

Tiles lie in LDS by rows along K, whatever the matrices are in memory, in two stages. So that lanes
use different banks, rows of 64 bytes have their groups of 16 bytes permuted, and between rows of
128 bytes are gaps.

A product is computed as Cᵀ = Bᵀ·Aᵀ. A lane of a matrix instruction has several adjacent values of a
column, which become adjacent values of a row of C.
"""

from __future__ import annotations

from typing import Any

from fly_trace.values.dtypes import EVERY

import fly.expr as fx
from fly.kernels.gemm.plans import STAGES, WIDEST, Plan, Unit

SWIZZLED = 64  # bytes of rows in LDS whose groups are permuted; longer ones have gaps
ONES = 0x7F7F7F7F  # four scales of 1, by exponents of E8M0


def tiled_product(unit: Unit) -> Any:
    """The product of a block's threads, an fx.TiledMma: two waves along M, two along N."""
    dtype, sums = EVERY[unit.element], EVERY[unit.sum]
    if unit.kind == "FMA":
        across = unit.threads // 16
        return fx.make_tiled_mma(
            fx.make_mma_atom(fx.UniversalFMA(dtype)),
            fx.make_layout((16, across, 1), (1, 16, 0)),
            fx.make_tile(None, None, unit.wide),
        )
    shape = (unit.edge, unit.edge, unit.k)
    if unit.kind == "scaled MFMA":
        atom = fx.make_mma_atom(fx.rocdl.cdna4.MFMA_Scale(*shape, dtype))
    elif unit.kind == "MFMA":
        atom = fx.make_mma_atom(fx.rocdl.MFMA(*shape, dtype, sums))
    else:
        signs = {"sign_a": True, "sign_b": True} if dtype.kind == "int" else {}
        atom = fx.make_mma_atom(fx.rocdl.WMMA(*shape, dtype, sums, **signs))
    waves = fx.make_layout((2, 2, 1), (1, 2, 0))
    run, wide = unit.run, unit.wide
    if run >= wide:
        return fx.make_tiled_mma(atom, waves)
    # Consecutive products, and the runs of one, use the values that a lane reads at a time.
    groups = max(1, unit.k // (unit.parts * wide))
    order = fx.make_layout(
        (run, unit.parts, wide // run, groups), (1, wide, run, wide * unit.parts)
    )
    return fx.make_tiled_mma(atom, waves, fx.make_tile(None, None, order))


def shared_tiles(unit: Unit, rows: int) -> Any:
    """Tiles in LDS: (rows, columns, stages)."""
    dtype, group = EVERY[unit.element], unit.wide
    if unit.row > SWIZZLED:
        # Rows r, r + edge, … follow each other, and a gap follows them, so that the rows that a
        # wave reads at once are in different banks; what it reads next is at constant distances.
        stage = rows // unit.edge * unit.depth
        spread = STAGES * stage + group * max(1, unit.parts // 2)
        layout = fx.make_layout(
            ((unit.edge, rows // unit.edge), unit.depth, STAGES),
            ((spread, unit.depth), 1, stage),
        )
        return _shared(dtype, unit.edge * spread).view(layout)
    order = fx.make_ordered_layout((rows, unit.depth, STAGES), (1, 0, 2))
    swizzle = fx.static(fx.SwizzleType.get(2, group.bit_length() - 1, 3))
    return _shared(dtype, fx.size(order)).view(fx.make_composed_layout(swizzle, order))


def _shared(dtype: Any, count: int) -> Any:
    return fx.SharedAllocator().allocate(fx.Array[dtype, count, WIDEST]).peek()


def multiply(unit: Unit, product: Any, c: Any, a: Any, b: Any) -> None:
    """Adds the product of two fragments to the sums."""
    scales = {"scale_a": ONES, "scale_b": ONES} if unit.kind == "scaled MFMA" else {}
    fx.gemm(product, c, a, b, c, **scales)


def zeros(plan: Plan, product: Any) -> Any:
    """A thread's part of the sums of a tile of Cᵀ, of nothing yet."""
    shape = fx.make_identity_layout((plan.columns, plan.rows))
    own = product.get_slice(fx.thread_idx.x).partition_C(fx.make_view((0, 0), shape))
    c = fx.make_fragment_like(own, EVERY[plan.unit.sum])
    c.fill(0)
    return c


def products_first(unit: Unit) -> None:
    """Keeps LLVM from moving what follows, which waits for loads, before products."""
    if "MFMA" in unit.kind:
        fx.rocdl.sched_barrier(0)


def all_loaded(unit: Unit) -> None:
    """Waits for all loads once, instead of for each before it is stored."""
    if "MFMA" in unit.kind:
        fx.rocdl.s_waitcnt(vmcnt=0)
