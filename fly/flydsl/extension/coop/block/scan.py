"""Scans of a block's threads."""

from __future__ import annotations

import enum
from typing import Any

from fly_trace.values.vector.vectors import Vector

from fly.flydsl.expr.gpu import barrier
from fly.flydsl.expr.struct import Array, Struct
from fly.flydsl.expr.typing import Vector as Vectors
from fly.flydsl.extension.coop import warp as _warp
from fly.flydsl.extension.coop._common import (
    combine,
    linear_thread_id,
    number,
    seed,
    when,
    with_identity,
)
from fly.flydsl.extension.coop.block._spec import BlockAlgorithm, BlockAlgorithmMeta

__all__ = ["BlockScan", "BlockScanAlgorithm"]


class BlockScanAlgorithm(enum.Enum):
    """How a block scans its threads' values. WARP_SCANS: each wave scans its own, and all threads
    combine the totals of the waves before theirs. FlyDSL names the two others, and has no
    implementation of them either."""

    RAKING = "raking"
    RAKING_MEMOIZE = "raking_memoize"
    WARP_SCANS = "warp_scans"


def _of_waves(dtype: Any, threads: int, lanes: int) -> Any:
    return Struct["slots" : Array[dtype, threads // lanes]]


class _BlockScanMeta(BlockAlgorithmMeta):
    _algorithms = BlockScanAlgorithm
    _shared_storage = {BlockScanAlgorithm.WARP_SCANS: _of_waves}  # noqa: RUF012  read only

    def _default_algorithm_for(cls, target: Any) -> Any:
        return BlockScanAlgorithm.WARP_SCANS

    def __call__(cls, *_: Any, **__: Any) -> Any:
        raise TypeError("a scan has two forms; call .inclusive(...) or .exclusive(...)")


class BlockScan(BlockAlgorithm, metaclass=_BlockScanMeta):
    """`BlockScan[fx.Float32, 256].inclusive(value, fx.ReductionOp.ADD, storage=…)`, with storage of
    its `SharedStorage`. A vector is several items of a thread, one after the other. The operation
    is associative, and need not be commutative: a `ReductionOp`, or a function with an `identity`.
    A second use of the storage needs a barrier before it."""

    warp_ops: Any = _warp

    @classmethod
    def inclusive(
        cls, value: Any, op: Any, *, storage: Any, init: Any = None, identity: Any = None
    ) -> Any:
        """Combines the items up to and including each one."""
        return cls._scan(value, with_identity(op, identity), storage, True, init)[0]

    @classmethod
    def exclusive(
        cls, value: Any, op: Any, *, storage: Any, init: Any = None, identity: Any = None
    ) -> Any:
        """Combines the items before each one. The first gets `init`, or the identity."""
        return cls._scan(value, with_identity(op, identity), storage, False, init)[0]

    @classmethod
    def inclusive_with_aggregate(
        cls, value: Any, op: Any, *, storage: Any, init: Any = None, identity: Any = None
    ) -> tuple[Any, Any]:
        """The inclusive scan, and the block's total without `init`."""
        return cls._scan(value, with_identity(op, identity), storage, True, init)

    @classmethod
    def exclusive_with_aggregate(
        cls, value: Any, op: Any, *, storage: Any, init: Any = None, identity: Any = None
    ) -> tuple[Any, Any]:
        """The exclusive scan, and the block's total without `init`."""
        return cls._scan(value, with_identity(op, identity), storage, False, init)

    @classmethod
    def _scan(
        cls, value: Any, op: str, storage: Any, inclusive: bool, init: Any
    ) -> tuple[Any, Any]:
        if cls.block_threads is None:
            raise TypeError("specialize first, e.g. BlockScan[fx.Float32, 256]")
        is_vector = isinstance(value, (list, tuple, Vector))
        items = [number(one) for one in value] if is_vector else [number(value)]
        running = [items[0]]
        for item in items[1:]:
            running.append(combine(op, running[-1], item))
        prefix, total = cls._before(running[-1], op, storage.slots)
        prefix = seed(prefix, op, init)
        heads = running if inclusive else running[:-1]
        found = [combine(op, prefix, head) for head in heads]
        found = found if inclusive else [prefix, *found]
        return (Vectors.from_elements(found) if is_vector else found[0]), total

    @classmethod
    def _before(cls, partial: Any, op: str, slots: Any) -> tuple[Any, Any]:
        """The values of the threads before this one, combined, and those of all."""
        tid, lanes = linear_thread_id(cls.block_size), cls.warp_threads
        scan = cls.warp_ops.warp_scan_with_aggregate
        inclusive, prefix, total = scan(partial, op, width=lanes)
        if cls.num_warps == 1:
            return prefix, total

        def tell() -> None:
            slots[tid // lanes] = inclusive

        when(tid % lanes == lanes - 1, tell)
        barrier()
        for wave in range(cls.num_warps - 2, -1, -1):
            lower = combine(op, slots[wave], prefix)
            prefix = (tid // lanes > wave).select(lower, prefix)
        total = slots[0]
        for wave in range(1, cls.num_warps):
            total = combine(op, total, slots[wave])
        return prefix, total
