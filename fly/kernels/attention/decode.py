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

from typing import Any, NamedTuple

import fly
import fly.expr as fx
from fly.kernels import dependent
from fly.kernels.approximations import LOG2_E, exp2
from fly.kernels.attention.matrix_decode import matrix_piece_kernel
from fly.kernels.attention.problem import shared_head
from fly.kernels.attention.vectors import WIDTH, load_vector, store_vector

PIECE = 256  # keys
MOST_HEADS = 8  # query heads of a wave: each has 16 numbers in registers of a thread
LOWEST = -3.4028234663852886e38  # LOWEST - LOWEST is 0, unlike -inf - -inf
THREADS = 64  # of a block: one wave, or two of 32 lanes that share nothing

Rows = fx.Tensor[fx.Float, "sequences", fx.sym_int32("heads"), None]
Cache = fx.Tensor[fx.Float, "pages", fx.sym_int32("page"), fx.sym_int32("kv_heads"), None]
Tables = fx.Tensor[fx.Int32, "sequences", "most_pages"]
Lengths = fx.Tensor[fx.Int32, "sequences"]


class Softmax(NamedTuple):
    """Over some keys: a bound of the scores, the sum of 2^(score - bound), and the sums of values
    with these weights."""

    bound: Any
    total: Any
    sums: Any

    @classmethod
    def of_nothing(cls) -> Softmax:
        """Over no keys."""
        return cls(fx.Float32(LOWEST), fx.Float32(0), fx.full(WIDTH, 0.0, fx.Float32))

    def extended(self, scores: list[Any], values: list[Any]) -> Softmax:
        """Over further keys, too."""
        bound = fx.maxnumf(self.bound, *scores)
        own = exp2(self.bound - bound)
        total, sums = self.total * own, self.sums * own
        for score, value in zip(scores, values, strict=True):
            weight = exp2(score - bound)
            total, sums = total + weight, sums + value * weight
        return Softmax(bound, total, sums)

    def where(self, exists: Any) -> Softmax:
        """Over these keys, or over none."""
        bound, total = fx.where(exists, self.bound, LOWEST), fx.where(exists, self.total, 0.0)
        return Softmax(bound, total, self.sums)

    def merge(self, other: Softmax) -> Softmax:
        """Over the keys of both."""
        bound = fx.maxnumf(self.bound, other.bound)
        own, others = exp2(self.bound - bound), exp2(other.bound - bound)
        total = self.total * own + other.total * others
        return Softmax(bound, total, self.sums * own + other.sums * others)


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


@fly.kernel
def combine_kernel(
    Bounds: fx.Tensor,
    Totals: fx.Tensor,
    Sums: fx.Tensor,
    lengths: fx.Tensor,
    Out: fx.Tensor,
    d: fx.Constexpr[int],
    keys: fx.Constexpr[int],
    at_once: fx.Constexpr[int],
):
    """Eight elements of a head for each thread, which loads `at_once` pieces of so many keys before
    it combines them."""
    dependent.wait_for_previous()
    lanes = d // WIDTH
    head = fx.block_idx.x * (THREADS // lanes) + fx.thread_idx.x // lanes
    column, sequence = fx.thread_idx.x % lanes * WIDTH, fx.block_idx.y
    if head >= Out.shape[1]:
        return
    state, count = Softmax.of_nothing(), fx.ceildiv(lengths[sequence], keys)
    for first in range(0, count, at_once):
        loaded = []
        for i in range(at_once):
            place = sequence, head, fx.min(first + i, count - 1) if i else first
            sums = load_vector(Sums[(*place, None)], column)
            loaded.append(Softmax(Bounds[place], Totals[place], sums))
        for i, one in enumerate(loaded):
            state = state.merge(one.where(first + i < count) if i else one)
    share = 1 / state.total if state.total > 0 else 0.0  # 0 for a sequence without keys
    store_vector(Out[sequence, head, None], column, state.sums * share)


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
    sequences, all_heads = Q.shape[0], Q.shape[1]
    pieces = fx.ceildiv(tables.shape[1] * K.shape[1], PIECE)
    blocks = fx.ceildiv(pieces * fx.num_warp_threads(), THREADS)
    Bounds = fx.empty((sequences, all_heads, pieces), fx.Float32)
    Totals = fx.empty((sequences, all_heads, pieces), fx.Float32)
    Sums = fx.empty((sequences, all_heads, pieces, d), fx.Float32)
    Out = fx.empty(Q.shape, Q.dtype)
    arrays = Q, K, V, tables, lengths, Bounds, Totals, Sums
    if lanes:
        matrix_piece_kernel(*arrays, scale, d, heads, PIECE).launch(
            grid=(pieces, all_heads // heads, sequences), block=lanes
        )
    else:
        piece_kernel(*arrays, scale, d, heads).launch(
            grid=(blocks, all_heads // heads, sequences), block=THREADS
        )
    combine_kernel(Bounds, Totals, Sums, lengths, Out, d, PIECE, 1).launch(
        grid=(fx.ceildiv(all_heads, THREADS * WIDTH // d), sequences), block=THREADS
    )
    return Out
