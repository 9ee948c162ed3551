"""The kernels of decoding by `mma.sync` (sm_80 and later), of up to 16 query heads that share keys.

Each warp of a block takes every few keys of a piece of a sequence, and keeps an online softmax over
them. Keys and values go from memory to the registers that multiply them. Scores are computed as
heads × keys, and sums transposed, as d × heads: what a lane has of scores is then what it has as
weights. Lane 4 · r + c has, of 16 keys:

    scores += queries · keysᵀ    queries r and r + 8, keys r and r + 8: each fourth vector;
                                 scores of these heads with keys 2c, 2c + 1, 2c + 8, 2c + 9
    sums   += valuesᵀ · weights  weights of these heads, and values of these keys: each eighth
                                 vector; sums of heads 2c, 2c + 1, 2c + 8 and 2c + 9

Which elements of d are a product's is arbitrary, if they are the same for both operands, or if sums
are stored to where they belong. In the end the warps of a block add what they have, in shared
memory, and `combine_kernel` combines pieces. How a sequence is divided depends on its length alone.
"""

from __future__ import annotations

from typing import Any

from fly_backend.choice import choose, row_of
from fly_dialect.atoms.nvidia.mma import AMPERE

import fly
import fly.expr as fx
from fly.kernels import dependent
from fly.kernels.approximations import LOG2_E, exp2
from fly.kernels.attention.decoding.cache_rows import Stored, chunks, elements
from fly.kernels.attention.decoding.decode import Cache, Lengths, Rows, Tables
from fly.kernels.attention.decoding.pieces import Room
from fly.kernels.attention.decoding.warp_products import EDGE, UNIT, Product, value_part
from fly.kernels.attention.decoding.warp_sums import WARPS, Shared
from fly.kernels.attention.forward import LOWEST, TINY, sum_of
from fly.kernels.attention.problem import shared_head

KEYS = 1024  # of a piece
MOST_SUMS = 2048  # of heads × d: a lane has a 32nd of them in registers
LOADED = 128 * 32  # elements of keys, and of values, that a warp loads at a time
QUAD = 4  # lanes that have a row
AT_ONCE = 8  # pieces that a thread loads before it combines them


def most_heads(d: int) -> int:
    """The query heads of d elements that a warp takes; 0 if the target has no `mma.sync`."""
    chip = row_of(choose())
    if chip.nvidia is None or AMPERE not in chip.nvidia.traits:
        return 0
    return min(2 * EDGE, MOST_SUMS // d)


@fly.kernel
def warp_piece_kernel(
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
    """`heads` query heads of a sequence, and a piece of so many of its keys."""
    dependent.let_next_begin()
    unit, halves = Product(Q.dtype), 1 + (heads > EDGE)
    step = max(UNIT, min(2 * UNIT, LOADED // d))
    piece, sequence = fx.block_idx.y, fx.block_idx.z
    start = piece * keys
    end = fx.min(lengths[sequence], start + keys)
    if start >= end:
        return
    first_head = fx.block_idx.x * heads
    kv_head = shared_head(first_head, Q.shape[1], K.shape[2])
    lane, warp = fx.lane_id(), fx.thread_idx.x // 32
    row, column = lane // 4, lane % 4
    own_keys, own_values = Stored(K, kv_head, d), Stored(V, kv_head, d)
    page = fx.Uint32(K.shape[1])

    def places(first: Any) -> tuple[Any, Any]:
        """Where the key and the value are that the lane looks up for others."""
        place = fx.Uint32(fx.min(first + lane % step, end - 1))
        number, offset = tables[sequence, place // page], place % page
        return own_keys.place(number, offset), own_values.place(number, offset)

    zero = Q.dtype(0)
    queries = [[zero] * (d // 4)] * 2
    for half in range(halves):
        head = first_head + fx.min(half * EDGE + row, heads - 1)
        queries[half] = chunks(Q[sequence, head, None], column, QUAD, d)
    query = [unit.a(*[one[i : i + 4] for one in queries]) for i in range(0, d // 4, 4)]
    sums = [[unit.zeros() for _ in range(d // UNIT)] for _ in range(halves)]
    bounds = [fx.Float32(LOWEST) for _ in range(halves)]
    totals = [fx.Float32(0) for _ in range(halves)]
    factor = fx.max(scale * LOG2_E, TINY)
    begin = start + warp * step
    next_key, next_value = places(begin)
    for first in range(begin, end, WARPS * step):
        of_key, of_value = next_key, next_value
        loaded = [
            chunks(own_keys.row(fx.shuffle_idx(of_key, tile + row)), column, QUAD, d)
            for tile in range(0, step, EDGE)
        ]
        values = [
            [
                value_part(own_values.row(fx.shuffle_idx(of_value, block + own)), row, d)
                for own in (2 * column, 2 * column + 1, 2 * column + 8, 2 * column + 9)
            ]
            for block in range(0, step, UNIT)
        ]
        next_key, next_value = places(first + WARPS * step)
        scores = []
        for key in loaded:
            made = unit.zeros()
            for i, a in enumerate(query):
                unit.add(made, a, unit.b(key[4 * i : 4 * i + 4]))
            scores.append(made)
        for half in range(halves):
            s = fx.make_rmem_tensor(step // 4, fx.Float32)
            for i in range(step // 4):
                exists = first + i // 2 * EDGE + 2 * column + i % 2 < end
                s[i] = fx.where(exists, scores[i // 2][2 * half + i % 2], float("-inf"))
            most = over_quad(fx.maxnumf(*s.load()), fx.maxnumf) * factor
            bound = fx.maxnumf(bounds[half], most)
            shrink = exp2(bounds[half] - bound)
            bounds[half] = bound
            weights = exp2(fx.fma(s.load(), factor, -bound))
            totals[half] = totals[half] * shrink + sum_of(weights)
            shrinks = [fx.shuffle_idx(shrink, 8 * column + 4 * i) for i in range(2)]
            weights = elements([weights.to(Q.dtype)])
            for i, one in enumerate(sums[half]):
                for j in range(4):
                    one[j] = one[j] * shrinks[j % 2]
                for block, value in enumerate(values):
                    own = [[v[2 * i + j] for v in value] for j in range(2)]
                    unit.add(one, unit.a(*own), unit.b(weights[4 * block : 4 * block + 4]))
    totals = [over_quad(one, lambda a, b: a + b) for one in totals]
    shared = Shared(warp, row, column, d, heads)
    shared.put(bounds, totals, sums)
    shared.store(sequence, first_head, piece, Bounds, Totals, Sums)


def over_quad(value: Any, combine: Any) -> Any:
    """Combines the values of the lanes that have the same head."""
    for distance in (1, 2):
        value = combine(value, fx.shuffle_xor(value, distance))
    return value


@fly.jit
def warp_decode(
    Q: Rows,
    K: Cache,
    V: Cache,
    tables: Tables,
    lengths: Lengths,
    scale: fx.Float32,
    d: fx.Constexpr[int],
    heads: fx.Constexpr[int],
):
    """One query of each sequence. `heads` is the number of query heads that a warp takes."""
    room = Room.of(Q, K, tables, KEYS, d)
    # Blocks that run together read heads that are adjacent in memory.
    arrays = Q, K, V, tables, lengths, *room.pieces
    warp_piece_kernel(*arrays, scale, d, heads, KEYS).launch(
        grid=(Q.shape[1] // heads, room.count, Q.shape[0]), block=32 * WARPS
    )
    Out = room.combined(lengths, d, KEYS, AT_ONCE)
    return Out
