"""What a warp group does with a tile of queries: its part of the gradients of keys and values, and
of those of the queries.

Scores and dP are computed transposed, so that the rows are the group's 64 keys: as P and dS they
lie in its registers as the operand of the sums of dV and dK has to. The product of dS and the keys
is one of all 128 keys: dS goes through shared memory.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import fly.expr as fx
from fly.kernels.approximations import LOG2_E, exp2
from fly.kernels.attention.views import transposed
from fly.kernels.attention.warpgroups.forms import KEYS, QUERIES
from fly.kernels.attention.warpgroups.groups import (
    ROWS,
    SHARED,
    THREADS,
    WORKERS,
    store,
)
from fly.kernels.attention.warpgroups.rings import start


class Streamed(NamedTuple):
    """What has arrived of a tile of queries: these, the gradients of their results, the logarithms
    and the deltas."""

    queries: Any
    gradients: Any
    logs: Any
    deltas: Any


class KeyGradients:
    """The sums of a group's keys, and the registers for those of a tile of queries."""

    def __init__(self, form: Any, dtype: Any, part: Any, consumer: Any, scale: Any):
        self.form, self.dtype, self.part = form, dtype, part
        self.rows, self.first_key = QUERIES[part.problem.d], part.tile * KEYS
        products = form.scores, form.sums, form.queries
        self.of_scores, self.of_sums, self.of_queries = [
            product.get_slice(consumer * THREADS) for product in products
        ]
        own = consumer * THREADS + fx.thread_idx.x % THREADS
        self.own = form.scores.get_slice(own)
        self.places = self.own.partition_C(
            fx.make_view((self.first_key, 0), fx.make_identity_layout((KEYS, self.rows)))
        )
        self.s, self.dp, self.dk, self.dv, self.dq = [
            fx.make_rmem_tensor(fx.nvvm.accumulators(product), fx.Float32)
            for product in (form.scores, form.scores, form.sums, form.sums, form.queries)
        ]
        weights = fx.nvvm.operand_a(form.sums, self.rows)
        self.p, self.ds = [fx.make_rmem_tensor(weights, dtype) for _ in range(2)]
        self.move = fx.make_copy_atom(fx.nvvm.StoreMatrix(4), dtype)
        self.write = fx.make_tiled_copy_C(self.move, form.scores).get_slice(own)
        self.scale, self.factor = scale, scale * LOG2_E

    def start_scores(self, keys: Any, queries: Any) -> None:
        """Starts S, as K · Qᵀ."""
        self.s.fill(0)
        self.dp.fill(0)
        a, b = self.of_scores.partition_A(keys), self.of_scores.partition_B(queries)
        start(self.form.scores, self.s, a, b)

    def start_weights(self, values: Any, gradients: Any) -> None:
        """Starts dP, as V · dOutᵀ."""
        a, b = self.of_scores.partition_A(values), self.of_scores.partition_B(gradients)
        start(self.form.scores, self.dp, a, b)

    def weigh(self, step: Any, tile: Streamed) -> None:
        """Makes P of S, and starts to add Pᵀ · dOut to dV."""
        fx.nvvm.wgmma_wait(1, self.s)
        s, part, rows = self.s, self.part, self.rows
        log = self._numbers(tile.logs)
        for i in fx.range_constexpr(int(fx.size(s))):
            s[i] = exp2(fx.fma(s[i], self.factor, -log[i]))
        if not part.all_see(step * rows, rows, self.first_key, KEYS):
            for i in fx.range_constexpr(int(fx.size(s))):
                key, query = self.places[i].unpack()
                s[i] = fx.where(part.sees(query + step * rows, key), s[i], 0.0)
        fx.make_view(fx.get_iter(self.p), s.layout).store(s.load().to(self.dtype))
        gradients = transposed(tile.gradients)
        start(self.form.sums, self.dv, self.p, self.of_sums.partition_B(gradients))

    def differentiate(self, tile: Streamed, shared: Any) -> None:
        """Makes dS of P and dP, and stores it to shared memory, of all groups."""
        fx.nvvm.wgmma_wait(1, self.dp)
        s, dp = self.s, self.dp
        delta = self._numbers(tile.deltas)
        for i in fx.range_constexpr(int(fx.size(s))):
            dp[i] = s[i] * (dp[i] - delta[i])
        held = fx.make_view(fx.get_iter(self.ds), s.layout)
        held.store(dp.load().to(self.dtype))
        fx.copy(self.move, self.write.retile(held), self.write.partition_D(shared))
        fx.nvvm.fence_async()
        fx.nvvm.barrier_sync(SHARED, WORKERS)

    def start_sums(self, keys: Any, tile: Streamed, shared: Any) -> None:
        """Starts dQ, as dS · K, and to add dSᵀ · Q to dK; waits for the former."""
        self.dq.fill(0)
        a = self.of_queries.partition_A(transposed(shared))
        start(self.form.queries, self.dq, a, self.of_queries.partition_B(transposed(keys)))
        queries = transposed(tile.queries)
        start(self.form.sums, self.dk, self.ds, self.of_sums.partition_B(queries))
        fx.nvvm.wgmma_wait(1, self.dq)

    def store(self, buffers: Any, consumer: Any, head: Any, targets: Any) -> None:
        """Stores dK and dV, of which there are (map, tensor) in `targets`."""
        for i in fx.range_constexpr(int(fx.size(self.dk))):
            self.dk[i] = self.dk[i] * self.scale
        part, row = self.part, self.first_key + consumer * ROWS
        at = part.batch, head, part.first_k + row, 0
        for sums, (target, tensor) in zip((self.dk, self.dv), targets, strict=True):
            rest = (tensor, part.length_k - row) if part.problem.packed else None
            store(sums, buffers, consumer, target, at, self.dtype, rest)

    def _numbers(self, tile: Any) -> Any:
        """Those of the queries of a thread's scores, in the order of these."""
        layout = fx.make_layout((KEYS, int(fx.size(tile))), (0, 1))
        return self.own.partition_C(fx.make_view(fx.get_iter(tile), layout))
