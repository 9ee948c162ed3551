"""Pieces of sequences: what of softmax kernels have of some keys, and how pieces are combined."""

from __future__ import annotations

from typing import Any, NamedTuple

import fly
import fly.expr as fx
from fly.kernels import dependent
from fly.kernels.approximations import exp2
from fly.kernels.attention.forward import LOWEST
from fly.kernels.attention.vectors import WIDTH, load_vector, store_vector

THREADS = 64  # of a block: one wave, or two of 32 lanes that share nothing


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


class Room(NamedTuple):
    """In a host function: where kernels store what they have of pieces, of which each sequence has
    at most `count`, and the results."""

    count: Any
    pieces: tuple[Any, Any, Any]
    results: Any

    @classmethod
    def of(cls, Q: Any, K: Any, tables: Any, keys: int, d: int) -> Room:
        """Allocates them, for pieces of so many keys."""
        count = fx.ceildiv(tables.shape[1] * K.shape[1], keys)
        shape = Q.shape[0], Q.shape[1], count
        Bounds, Totals = fx.empty(shape, fx.Float32), fx.empty(shape, fx.Float32)
        Sums = fx.empty((*shape, d), fx.Float32)
        return cls(count, (Bounds, Totals, Sums), fx.empty(Q.shape, Q.dtype))

    def combined(self, lengths: Any, d: int, keys: int, at_once: int) -> Any:
        """Combines the pieces; returns the results."""
        combine_kernel(*self.pieces, lengths, self.results, d, keys, at_once).launch(
            grid=(fx.ceildiv(self.results.shape[1], THREADS * WIDTH // d), self.results.shape[0]),
            block=THREADS,
        )
        return self.results


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
