"""Decoding of runs: values and their lengths."""

from __future__ import annotations

from typing import Any

from fly_trace.values.dtypes import I32
from fly_trace.values.vector.vectors import ReductionOp

from fly.flydsl.expr.gpu import barrier
from fly.flydsl.expr.struct import Array, Struct
from fly.flydsl.expr.typing import Vector as Vectors
from fly.flydsl.extension.coop._items import blocked, converted, items_of
from fly.flydsl.extension.coop._policies import policies
from fly.flydsl.extension.coop.block._tile import Tile, TileMeta
from fly.flydsl.extension.coop.block.scan import BlockScan
from fly.flydsl.numbers.operators import wrapped

__all__ = ["BlockRunLengthDecode", "BlockRunLengthDecodeAlgorithm"]

BlockRunLengthDecodeAlgorithm = policies("BlockRunLengthDecodeAlgorithm", ("SCAN",), __name__)


class _BlockRunLengthDecodeMeta(TileMeta):
    _policies = BlockRunLengthDecodeAlgorithm
    _number = "runs_per_thread"
    _pairs = True

    def __call__(
        cls: Any,
        values: Any,
        lengths: Any,
        *,
        storage: Any,
        decoded_items_per_thread: int = 1,
        offset: Any = 0,
        default: Any = 0,
    ) -> Any:
        state = cls.init_with_run_lengths(values, lengths, storage=storage)
        return state.decode(decoded_items_per_thread, offset=offset, default=default)


class BlockRunLengthDecode(Tile, metaclass=_BlockRunLengthDecodeMeta):
    """`BlockRunLengthDecode[value or (value, offset), block_size, runs_per_thread](values,
    lengths, …)`: the values of a window, how far each is from its run's first, and the number of
    all. Items that no run has are `default`, at -1."""

    scan_type: Any = None

    @classmethod
    def _offsets(cls) -> Any:
        return I32 if cls.value_dtype is None else cls.value_dtype

    @classmethod
    def _storage(cls) -> Any:
        cls.scan_type = BlockScan[cls._offsets(), cls.block_size]
        return Struct[
            "values" : Array[cls.dtype, cls.tile],
            "starts" : Array[cls._offsets(), cls.tile],
            "scan" : cls.scan_type.SharedStorage,
        ]

    @classmethod
    def init_with_run_lengths(cls, values: Any, lengths: Any, *, storage: Any) -> Any:
        given = items_of(lengths, cls._offsets(), cls.count, "lengths")
        starts, total = cls.scan_type.exclusive_with_aggregate(
            Vectors.from_elements(given), ReductionOp.ADD, storage=storage.scan
        )
        return cls._state(values, list(starts), total, storage)

    @classmethod
    def init_with_run_offsets(
        cls, values: Any, offsets: Any, *, storage: Any, total: Any = None
    ) -> Any:
        """Runs by where each begins; the last one ends at `total`, or nowhere."""
        dtype = cls._offsets()
        end = wrapped(dtype.range[1], dtype) if total is None else total
        starts = items_of(offsets, dtype, cls.count, "offsets")
        return cls._state(values, starts, converted(end, dtype), storage)

    @classmethod
    def _state(cls, values: Any, starts: list[Any], total: Any, storage: Any) -> Any:
        items = items_of(values, cls.dtype, cls.count, "values")
        barrier()
        for place, item, start in zip(blocked(cls.thread(), cls.count), items, starts, strict=True):
            storage.values[place] = item
            storage.starts[place] = start
        barrier()
        return _Decoder(cls, storage, total)


class _Decoder:
    """Runs in shared memory, of which windows are decoded."""

    def __init__(self, kind: Any, storage: Any, total: Any):
        self.kind, self.storage, self.total = kind, storage, total

    def decode(
        self, decoded_items_per_thread: int = 1, *, offset: Any = 0, default: Any = 0
    ) -> tuple[Any, Any, Any]:
        kind, dtype = self.kind, self.kind._offsets()
        fill = converted(default, kind.dtype)
        nowhere = converted(wrapped(-1, dtype), dtype)
        values, places = [], []
        for at in blocked(kind.thread(), decoded_items_per_thread):
            wanted = converted(at, dtype) + converted(offset, dtype)
            run = self._run_of(wanted)
            known = (run >= 0) & (wanted >= 0) & (wanted < self.total)
            run = known.select(run, I32(0))
            values.append(known.select(self.storage.values[run], fill))
            places.append(known.select(wanted - self.storage.starts[run], nowhere))
        barrier()
        if decoded_items_per_thread == 1:
            return values[0], places[0], self.total
        return Vectors.from_elements(values), Vectors.from_elements(places), self.total

    run_length_decode = decode

    def _run_of(self, wanted: Any) -> Any:
        """The last run that begins at `wanted` or before, or -1."""
        low, high = I32(0), I32(self.kind.tile)
        for _ in range(self.kind.tile.bit_length()):
            middle = (low + high) // 2
            open_ = low < high
            probe = open_.select(middle, I32(0))
            goes = open_ & (self.storage.starts[probe] <= wanted)
            low, high = goes.select(middle + 1, low), (open_ & ~goes).select(middle, high)
        return low - 1
