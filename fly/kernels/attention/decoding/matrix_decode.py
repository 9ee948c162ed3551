"""The kernel of decoding on matrix cores: a piece of a sequence's keys, for the query heads that
share them.

Products are transposed: scores are keys × heads, and sums d × heads, so that a lane has numbers of
one head, and the scores of a lane are what it has as weights. It takes a wave of `lanes` / 16
groups of lanes, and as many keys as lanes in each step:

    scores += keys · queriesᵀ     lane: a row of 16 keys, adjacent elements of d; a head, the same
    sums   += valuesᵀ · weights   lane: adjacent elements of d, of the keys that it has weights of

Keys and values go from memory to the registers that multiply them. Which elements of d a lane takes
is arbitrary, if it is the same for both operands, or if sums are stored to where they belong.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from fly_target.registry import find

import fly
import fly.expr as fx
from fly.kernels.approximations import LOG2_E, exp2
from fly.kernels.attention.decoding.cache_rows import (
    Stored,
    chunks,
    elements,
    fragment_of,
    load_run,
)
from fly.kernels.attention.forward import LOWEST, SLACK, TINY, sum_of
from fly.kernels.attention.problem import shared_head
from fly.kernels.attention.vectors import WIDTH, store_vector
from fly.kernels.attention.workgroup import WAVE_LANES, across_rows

EDGE = 16  # rows and columns of a product
MATRICES = ("CDNA2", "CDNA3", "CDNA4", "RDNA4")  # where a lane's scores are its weights
MOST_SUMS = 64  # of a lane
LOADED_AT_ONCE = 64  # elements of rows of which all blocks of a step are loaded at once


def lanes_for(matrix: str, d: int) -> int:
    """The lanes of a wave that decodes heads of d elements by such matrix instructions; 0 if none
    does."""
    lanes = WAVE_LANES[matrix] if matrix in MATRICES else 0
    return lanes if d * EDGE <= MOST_SUMS * lanes else 0


class Instruction(NamedTuple):
    """What a wave multiplies by. groups: the groups of 16 lanes. own: the rows of a block of scores
    that a lane has. deep: the values of an operand that a lane has."""

    product: Any
    groups: int
    own: int
    deep: int

    @classmethod
    def of(cls, dtype: Any) -> Instruction:
        matrix = find(fx.rocdl.get_rocm_arch()).matrix
        groups = WAVE_LANES[matrix] // EDGE
        if matrix == "RDNA4":
            atom = fx.make_mma_atom(fx.rocdl.WMMA(EDGE, EDGE, 16, dtype))
        else:
            atom = fx.make_mma_atom(
                fx.rocdl.MFMA(EDGE, EDGE, 32 if matrix == "CDNA4" else 16, dtype)
            )
        _, _, k = atom.shape_mnk.unpack()
        waves = fx.make_layout((1, 1, 1), (0, 0, 0))
        return cls(fx.make_tiled_mma(atom, waves), groups, EDGE // groups, k // groups)

    @property
    def edge(self) -> int:
        """Lanes so far apart have the same head (`across_rows`)."""
        return EDGE

    def zeros(self) -> Any:
        """A block of sums."""
        tile = fx.make_view((0, 0), fx.make_identity_layout((EDGE, EDGE)))
        part = self.product.get_slice(fx.lane_id()).partition_C(tile)
        sums = fx.make_fragment_like(part, fx.Float32)
        sums.fill(0.0)
        return sums

    def multiply(self, sums: Any, a: list[Any], b: list[Any]) -> None:
        """Adds a product of the lane's values of both operands, `deep` each."""
        tile = fx.make_view((0, 0), fx.make_identity_layout((EDGE, self.deep * self.groups)))
        thread = self.product.get_slice(fx.lane_id())
        own_a = fragment_of(thread.partition_A(tile), a)
        own_b = fragment_of(thread.partition_B(tile), b)
        fx.gemm(self.product, sums, own_a, own_b, sums)


def block_ends(d: int) -> None:
    """Keeps LLVM from loading all blocks of long rows at once: it has too few registers."""
    if d > LOADED_AT_ONCE:
        fx.rocdl.sched_barrier(0)


@fly.kernel
def matrix_piece_kernel(
    Q: fx.Tensor,
    K: fx.Tensor,
    V: fx.Tensor,
    tables: fx.Tensor,
    lengths: fx.Tensor,
    Bounds: fx.Tensor,
    Totals: fx.Tensor,
    Sums: fx.Tensor,
    scale: fx.Float32,
    d: fx.Constexpr[int],
    heads: fx.Constexpr[int],
    keys: fx.Constexpr[int],
):
    """`heads` query heads of a sequence, at most 16, and a piece of so many of its keys. A block is
    a wave."""
    unit = Instruction.of(Q.dtype)
    groups, step = unit.groups, unit.groups * EDGE
    piece, sequence = fx.block_idx.x, fx.block_idx.z
    first_head = fx.block_idx.y * heads
    kv_head = shared_head(first_head, Q.shape[1], K.shape[2])
    lane = fx.lane_id()
    column, group = lane % EDGE, lane // EDGE
    start = piece * keys
    end = fx.min(lengths[sequence], start + keys)
    if start >= end:
        return
    own_keys, own_values = Stored(K, kv_head, d), Stored(V, kv_head, d)
    page = fx.Uint32(K.shape[1])
    head = first_head + fx.min(column, heads - 1)
    query = chunks(Q[sequence, head, None], group, groups, d)
    # The lane's elements of a value; products have one of them of each of 16 lanes.
    run = d // EDGE
    sums = [unit.zeros() for _ in range(run)]
    factor = fx.max(scale * LOG2_E, TINY)
    bound, total = fx.Float32(LOWEST), fx.Float32(0)
    for first in range(start, end, step):
        place = fx.Uint32(fx.min(first + lane, end - 1))
        number, offset = place // page, place % page
        index = fx.Int32(fx.Uint32(tables[sequence, number]) * page + offset)
        scores = []
        for block in range(groups):
            own = fx.shuffle_idx(index, block * EDGE + column)
            row = own_keys.row(own_keys.place_in_order(own))
            key, block_scores = chunks(row, group, groups, d), unit.zeros()
            for i in range(0, len(key), unit.deep):
                unit.multiply(block_scores, key[i : i + unit.deep], query[i : i + unit.deep])
            scores += elements([block_scores.load()])
            block_ends(d)
        s = fx.make_rmem_tensor(len(scores), fx.Float32)
        for i, score in enumerate(scores):
            s[i] = score
        if first + step > end:
            for i in fx.range_constexpr(len(scores)):
                key = i // unit.own * EDGE + group * unit.own + i % unit.own
                s[i] = fx.where(first + key < end, s[i], float("-inf"))
        most = across_rows(unit, fx.maxnumf(*s.load()), fx.maxnumf) * factor
        if most > bound + SLACK:
            shrink = exp2(bound - most)
            bound, total = most, total * shrink
            for one in sums:
                one.store(one.load() * shrink)
        weights = exp2(fx.fma(s.load(), factor, -bound))
        total += sum_of(weights)
        weights = elements([weights.to(Q.dtype)])
        for i in range(0, len(weights), unit.deep):
            values = []
            for place in range(i, i + unit.deep):
                own = place // unit.own * EDGE + group * unit.own + place % unit.own
                row = own_values.place_in_order(fx.shuffle_idx(index, own))
                values.append(load_run(own_values.row(row), column * run, run))
            for j, one in enumerate(sums):
                unit.multiply(one, [value[j] for value in values], weights[i : i + unit.deep])
            block_ends(d)
    total = across_rows(unit, total, lambda a, b: a + b)
    if column < heads:
        # Sums j of a lane are of elements j, run + j, … of d, from its group's first on.
        own = fx.make_rmem_tensor(run * unit.own, fx.Float32)
        for j, one in enumerate(sums):
            for i in fx.range_constexpr(unit.own):
                own[i * run + j] = one[i]
        made = own.load()
        row = Sums[sequence, head, piece, None]
        for first in range(0, run * unit.own, WIDTH):
            part = made.shuffle(made, [*range(first, first + WIDTH)])
            store_vector(row, group * (run * unit.own) + first, part)
        if group == 0:
            Bounds[sequence, head, piece] = bound
            Totals[sequence, head, piece] = total
