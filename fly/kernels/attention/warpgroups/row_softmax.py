"""The softmax of the rows of scores that a thread has in registers, and the sums that it weighs."""

from __future__ import annotations

import fly.expr as fx
from fly.kernels.approximations import LOG2_E, exp2, log2
from fly.kernels.attention.warpgroups.forms import KEYS
from fly.kernels.attention.warpgroups.query_schedule import keys_seen

TINY = 1e-30  # instead of 0, which is not a factor of -inf


class Rows:
    """The softmax of a thread's two rows: the bound of scores, and the sum of weights so far."""

    def __init__(self, scale):
        self.factor = fx.max(scale * LOG2_E, TINY)
        self.bound = fx.make_rmem_tensor(2, fx.Float32)
        self.total = fx.make_rmem_tensor(2, fx.Float32)

    def start(self):
        self.bound.fill(float("-inf"))
        self.total.fill(0)

    def weigh(self, s):
        """Replaces scores by weights; returns the factors of the sums so far."""
        count = int(fx.size(s))
        shrink = []
        for r in fx.range_constexpr(2):
            own = [i for i in range(count) if i // 2 % 2 == r]
            most = self.bound[r]
            for i in own:
                most = fx.maxnumf(most, s[i])
            for distance in (1, 2):
                most = fx.maxnumf(most, fx.shuffle_xor(most, distance, 32))
            zero = fx.where(most == float("-inf"), 0.0, most * self.factor)
            shrink.append(exp2(self.bound[r] * self.factor - zero))
            total = self.total[r] * shrink[r]
            for i in own:
                weight = exp2(fx.fma(s[i], self.factor, -zero))
                s[i] = weight
                total += weight
            self.bound[r], self.total[r] = most, total
        return shrink


def hide(s, places, step, part, query):
    """Makes the scores -inf of keys that do not exist, or that a thread's queries do not see, where
    a tile has such for the group's queries, from `query` on."""
    if (step + 1) * KEYS > keys_seen(part, query):
        for i in fx.range_constexpr(int(fx.size(s))):
            own, key = places[i].unpack()
            limit = part.length_k
            if part.problem.causal:
                limit = fx.min(limit, own + 1 + limit - part.length_q)
            s[i] = fx.where(key + step * KEYS < limit, s[i], float("-inf"))


def scaled(o, factors):
    for i in fx.range_constexpr(int(fx.size(o))):
        o[i] = o[i] * factors[i // 2 % 2]


def divide(o, rows, place, Lse, part, head):
    """Divides a group's sums by those of weights, whose logarithms it stores."""
    numbers = part.numbers(Lse, head)
    inverse = []
    for r in fx.range_constexpr(2):
        total = rows.total[r]
        for distance in (1, 2):
            total += fx.shuffle_xor(total, distance, 32)
        inverse.append(fx.where(total == 0.0, 0.0, 1.0 / total))
        query, _ = place[2 * r].unpack()
        if (fx.thread_idx.x % 4 == 0) & (query < part.length_q):
            lse = (rows.bound[r] * rows.factor + log2(total)) * (1 / LOG2_E)
            numbers[query] = fx.where(total == 0.0, float("-inf"), lse)
    scaled(o, inverse)
