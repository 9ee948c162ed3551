"""The kernels of attention of one query of each sequence, over keys that are stored in pages.

The time of decoding is that of reading keys and values, so each is read once, by one wave, for all
query heads that share it. Where a target has matrix instructions that suit it, `matrix_decode` has
the kernel, and on NVIDIA `warp_decode`; the one here multiplies by FMA, on every target, and takes
pages anywhere in memory.

A wave takes a piece of 256 keys of a sequence and computes an online softmax over them. Another
kernel combines the pieces, one after the other. How a sequence is divided depends on its length
alone: results are the same in each run, and beside any other sequences.
"""

from __future__ import annotations

import fly
import fly.expr as fx
from fly.kernels import dependent
from fly.kernels.approximations import LOG2_E
from fly.kernels.attention.decoding.matrix_decode import matrix_piece_kernel
from fly.kernels.attention.decoding.pieces import THREADS, Room, Softmax
from fly.kernels.attention.problem import shared_head
from fly.kernels.attention.vectors import WIDTH, load_vector, store_vector

PIECE = 256  # keys
MOST_HEADS = 8  # query heads of a wave: each has 16 numbers in registers of a thread

Rows = fx.Tensor[fx.Float, "sequences", fx.sym_int32("heads"), None]
Cache = fx.Tensor[fx.Float, "pages", fx.sym_int32("page"), fx.sym_int32("kv_heads"), None]
Tables = fx.Tensor[fx.Int32, "sequences", "most_pages"]
Lengths = fx.Tensor[fx.Int32, "sequences"]


@fly.kernel
def piece_kernel(
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
):
    """`heads` query heads of a sequence, and a piece of its keys."""
    dependent.let_next_begin()
    piece = (fx.block_idx.x * THREADS + fx.thread_idx.x) // fx.num_warp_threads()
    first_head, sequence = fx.block_idx.y * heads, fx.block_idx.z
    kv_head = shared_head(first_head, Q.shape[1], K.shape[2])
    # Adjacent lanes take a row. The wave takes several keys at a time.
    lanes = d // WIDTH
    key, column = fx.lane_id() // lanes, fx.lane_id() % lanes * WIDTH
    keys = fx.num_warp_threads() // lanes
    start = piece * PIECE
    end = fx.min(lengths[sequence], start + PIECE)
    if start >= end:
        return
    queries = [
        load_vector(Q[sequence, first_head + i, None], column) * (scale * LOG2_E)
        for i in range(heads)
    ]
    states = [Softmax.of_nothing() for _ in queries]
    size = fx.Uint32(K.shape[1])  # of a page
    for first in range(start, end, keys):
        own = first + key
        place = fx.Uint32(fx.min(own, end - 1))
        row = tables[sequence, place // size], place % size, kv_head, None
        k, value = load_vector(K[row], column), load_vector(V[row], column)
        for i, q in enumerate(queries):
            score = fx.warp.reduce((q * k).reduce("add"), width=lanes)
            score = fx.where(own < end, score, float("-inf"))
            states[i] = states[i].extended([score], [value])
    distance = lanes
    while distance < fx.num_warp_threads():
        states = [state.merge(fx.warp.shuffle_xor(state, distance)) for state in states]
        distance *= 2
    if key == 0:
        for i, state in enumerate(states):
            store_vector(Sums[sequence, first_head + i, piece, None], column, state.sums)
            if column == 0:
                Bounds[sequence, first_head + i, piece] = state.bound
                Totals[sequence, first_head + i, piece] = state.total


@fly.jit
def decode(
    Q: Rows,
    K: Cache,
    V: Cache,
    tables: Tables,
    lengths: Lengths,
    scale: fx.Float32,
    d: fx.Constexpr[int],
    heads: fx.Constexpr[int],
    lanes: fx.Constexpr[int],
):
    """One query of each sequence. `heads` is the number of query heads that a wave takes. lanes:
    those of a wave that multiplies by matrix instructions, of caches whose pages follow each other;
    0 for FMA."""
    room, groups = Room.of(Q, K, tables, PIECE, d), Q.shape[1] // heads
    arrays = Q, K, V, tables, lengths, *room.pieces
    if lanes:
        matrix_piece_kernel(*arrays, scale, d, heads, PIECE).launch(
            grid=(room.count, groups, Q.shape[0]), block=lanes
        )
    else:
        blocks = fx.ceildiv(room.count * fx.num_warp_threads(), THREADS)
        piece_kernel(*arrays, scale, d, heads).launch(
            grid=(blocks, groups, Q.shape[0]), block=THREADS
        )
    Out = room.combined(lengths, d, PIECE, 1)
    return Out
