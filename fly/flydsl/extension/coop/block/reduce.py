"""Reductions of a block's threads."""

from __future__ import annotations

import enum
from typing import Any

from fly.flydsl.expr.gpu import barrier
from fly.flydsl.expr.struct import Array, Struct
from fly.flydsl.extension.coop import warp as _warp
from fly.flydsl.extension.coop._common import (
    combine,
    linear_thread_id,
    number,
    thread_partial,
    when,
    with_identity,
)
from fly.flydsl.extension.coop._common import identity as identity_of
from fly.flydsl.extension.coop.block._spec import BlockAlgorithm, BlockAlgorithmMeta

__all__ = ["BlockReduce", "BlockReduceAlgorithm"]


class BlockReduceAlgorithm(enum.Enum):
    """How a block combines its threads' values, by a commutative operation.

    WARP_REDUCTIONS: each wave reduces its own, and all threads combine the waves' results, from
    shared memory. RAKING: all values are in shared memory, and one wave combines them, each lane
    a segment. FlyDSL names the two others, and has no implementation of them either.
    """

    RAKING = "raking"
    RAKING_COMMUTATIVE_ONLY = "raking_commutative_only"
    WARP_REDUCTIONS = "warp_reductions"
    WARP_REDUCTIONS_NONDETERMINISTIC = "warp_reductions_nondeterministic"


def _of_waves(dtype: Any, threads: int, lanes: int) -> Any:
    return Struct["slots" : Array[dtype, threads // lanes]]


def _of_threads(dtype: Any, threads: int, lanes: int) -> Any:
    slots = threads if threads > lanes else 1  # one wave needs none
    return Struct["slots" : Array[dtype, slots], "result" : Array[dtype, 1]]


class _BlockReduceMeta(BlockAlgorithmMeta):
    _algorithms = BlockReduceAlgorithm
    _shared_storage = {  # noqa: RUF012  read only
        BlockReduceAlgorithm.WARP_REDUCTIONS: _of_waves,
        BlockReduceAlgorithm.RAKING: _of_threads,
    }

    def _default_algorithm_for(cls, target: Any) -> Any:
        return BlockReduceAlgorithm.WARP_REDUCTIONS

    def __call__(
        cls: Any,
        value: Any,
        op: Any,
        *,
        storage: Any,
        valid_items: Any = None,
        identity: Any = None,
    ) -> Any:
        """Combines the values of the block's threads, a vector's elements first. All threads get
        the result. A second use of the storage needs a barrier before it. `op` may be a function.
        With `valid_items`, the first threads' values, so many; `identity` if there are none."""
        if cls.block_threads is None:
            raise TypeError("specialize first, e.g. BlockReduce[fx.Float32, 256]")
        partial, tid = number(thread_partial(value, op)), linear_thread_id(cls.block_size)
        if valid_items is not None:
            neutral = identity_of(with_identity(op, identity), partial.dtype)
            partial = (tid < valid_items).select(partial, neutral)
        reduce, lanes = cls.warp_ops.warp_reduce, cls.warp_threads
        if cls.num_warps == 1:
            return reduce(partial, op, width=lanes)
        if cls.algorithm is BlockReduceAlgorithm.WARP_REDUCTIONS:
            return _waves(partial, tid, storage.slots, op, reduce, lanes, cls.num_warps)
        return _raked(partial, tid, storage, op, reduce, lanes, cls.num_warps)


def _waves(partial: Any, tid: Any, slots: Any, op: str, reduce: Any, lanes: int, waves: int) -> Any:
    found = reduce(partial, op, width=lanes)

    def tell() -> None:
        slots[tid // lanes] = found

    when(tid % lanes == 0, tell)
    barrier()
    total = slots[0]
    for wave in range(1, waves):
        total = combine(op, total, slots[wave])
    return total


def _raked(
    partial: Any, tid: Any, storage: Any, op: str, reduce: Any, lanes: int, each: int
) -> Any:
    storage.slots[tid] = partial
    barrier()

    def rake() -> None:
        base = tid * each
        found = storage.slots[base]
        for at in range(1, each):
            found = combine(op, found, storage.slots[base + at])
        found = reduce(found, op, width=lanes)

        def tell() -> None:
            storage.result[0] = found

        when(tid == 0, tell)

    when(tid < lanes, rake)
    barrier()
    return storage.result[0]


class BlockReduce(BlockAlgorithm, metaclass=_BlockReduceMeta):
    """`BlockReduce[fx.Float32, 256](value, fx.ReductionOp.ADD, storage=…)`, with storage of its
    `SharedStorage`."""

    warp_ops: Any = _warp
