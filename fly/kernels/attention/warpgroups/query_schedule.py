"""The tiles of queries, in the order in which blocks take them."""

from __future__ import annotations

import fly.expr as fx
from fly.kernels.attention.warpgroups.forms import KEYS
from fly.kernels.attention.warpgroups.groups import GROUPS, ROWS

BLOCKS = 132  # that run at once: the multiprocessors of an H100 or H200
CACHED = 24 << 20  # bytes of keys and values of heads that blocks work on together


class Schedule:
    """The tiles of queries, in the order in which blocks take them: of as many heads as have their
    keys and values in the L2 cache together, those with most keys first. Those of packed sequences
    one head after another."""

    def __init__(self, Q, K, starts_q, starts_k, problem):
        self.problem, self.given = problem, (Q, K, starts_q, starts_k)
        self.every = fx.Int32(Q.shape[0] * Q.shape[1])
        self.heads, self.kv_heads = Q.shape[1], K.shape[1]
        if problem.packed:
            self.rows = problem.count(GROUPS * ROWS, starts_q)
        else:
            self.rows = fx.ceildiv(Q.shape[2], GROUPS * ROWS)
            self.near = fx.max(1, CACHED // (4 * problem.d) // K.shape[2])
            if problem.causal:  # enough tiles for blocks to have equally many keys
                self.near = fx.max(self.near, 4 * BLOCKS // self.rows)
        self.count = self.every * self.rows

    def place(self, number):
        """Of a tile by its number: its part of a sequence, head of queries and of keys, first
        query, and tiles of keys."""
        if self.problem.packed:
            head, row = divmod(number, self.rows)
            batch = 0
        else:
            part, number = divmod(number, self.near * self.rows)
            row, number = divmod(number, fx.min(self.near, self.every - part * self.near))
            batch, head = divmod(part * self.near + number, self.heads)
            row = self.rows - 1 - row
        part = self.problem.part_of(row, batch, GROUPS * ROWS, *self.given)
        first = part.tile * (GROUPS * ROWS)
        steps = fx.ceildiv(keys_seen(part, first + GROUPS * ROWS - 1), KEYS)
        return part, head, head * self.kv_heads // self.heads, first, steps


def keys_seen(part, query):
    """How many keys a query sees; 1 for those of none, whose weights are 0."""
    return fx.max(1, part.keys_end(query + 1))
