"""Histograms of a block."""

from __future__ import annotations

from typing import Any

from fly_trace.gpu import atomics
from fly_trace.values.dtypes import I32

from fly.flydsl.expr.gpu import barrier
from fly.flydsl.expr.primitive import make_layout
from fly.flydsl.extension.coop._items import integer, items_of, put
from fly.flydsl.extension.coop._policies import policies
from fly.flydsl.extension.coop.block._tile import Tile, TileMeta, struct_of

__all__ = ["BlockHistogram", "BlockHistogramAlgorithm"]

# ATOMIC: an atomic addition for each key. SORT: no atomic operations; here each thread counts the
# keys of its own bins.
BlockHistogramAlgorithm = policies("BlockHistogramAlgorithm", ("ATOMIC", "SORT"), __name__)


class _BlockHistogramMeta(TileMeta):
    _policies = BlockHistogramAlgorithm
    _number = "bins"
    _pairs = True

    def __call__(cls: Any, value: Any, *, storage: Any) -> Any:
        cls.init(storage=storage)
        return cls.composite(value, storage=storage)


class BlockHistogram(Tile, metaclass=_BlockHistogramMeta):
    """`BlockHistogram[dtype, block_size, bins](keys, storage=…)`: how many keys of the block have
    each value from 0 to bins - 1. Others are not counted. Returns the counts in the storage."""

    bins: int = 0

    @classmethod
    def _counters(cls) -> Any:
        return I32 if cls.value_dtype is None else cls.value_dtype

    @classmethod
    def _storage(cls) -> Any:
        arrays = {"counts": (cls._counters(), cls.bins)}
        if cls.algorithm is BlockHistogramAlgorithm.SORT:
            arrays["keys"] = (I32, cls.block_threads)
        return struct_of(**arrays)

    @classmethod
    def init(cls, *, storage: Any) -> None:
        """Sets the counts to zero."""
        for place, where in cls._own_bins():
            put(storage.counts, place, cls._counters()(0), where)
        barrier()

    @classmethod
    def composite(cls, value: Any, *, storage: Any) -> Any:
        """Counts keys in addition to those that are counted."""
        items = [integer(one) for one in items_of(value, cls.dtype, None, cls.__name__)]
        if cls.algorithm is BlockHistogramAlgorithm.SORT:
            for item in items:
                cls._compare(item, storage)
        else:
            one = cls._counters()(1)
            table = storage.counts.view(make_layout(cls.bins, 1))
            for item in items:
                inside = (item >= 0) & (item < cls.bins)
                _where(inside, lambda at=item: atomics.atomic_add(table, at, one))
        barrier()
        return storage.counts

    @classmethod
    def _own_bins(cls) -> Any:
        for first in range(0, cls.bins, cls.block_threads):
            place = cls.thread() + first
            yield place, None if first + cls.block_threads <= cls.bins else place < cls.bins

    @classmethod
    def _compare(cls, item: Any, storage: Any) -> None:
        """Counts one key of each thread: each thread those of its bins."""
        storage.keys[cls.thread()] = item
        barrier()
        counters = cls._counters()
        for place, where in cls._own_bins():
            count = counters(0)
            for thread in range(cls.block_threads):
                is_mine = storage.keys[thread] == place
                count = count + is_mine.select(counters(1), counters(0))

            def add(place: Any = place, count: Any = count) -> None:
                storage.counts[place] = storage.counts[place] + count

            _where(where, add)
        barrier()


def _where(condition: Any, work: Any) -> None:
    from fly.flydsl.extension.coop._common import when

    work() if condition is None else when(condition, work)
