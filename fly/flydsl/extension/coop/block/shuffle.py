"""Shifts of the items of a block's threads, and what compares neighbours."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from fly_trace.control.branches import value_of
from fly_trace.values.dtypes import BOOL, I32, DType

from fly.flydsl.expr.gpu import barrier
from fly.flydsl.extension.coop._items import (
    converted,
    integer,
    items_of,
    shaped,
    truth,
)
from fly.flydsl.extension.coop._operations import operation
from fly.flydsl.extension.coop._policies import policies
from fly.flydsl.extension.coop.block._tile import Tile, TileMeta, struct_of

__all__ = ["BlockAdjacentDifference", "BlockDiscontinuity", "BlockShuffle", "BlockShuffleAlgorithm"]

BlockShuffleAlgorithm = policies("BlockShuffleAlgorithm", ("SHARED_MEMORY",), __name__)


class _BlockShuffleMeta(TileMeta):
    _policies = BlockShuffleAlgorithm
    _number = ""


class BlockShuffle(Tile, metaclass=_BlockShuffleMeta):
    """`BlockShuffle[dtype, block_size]`. A second use of the storage needs a barrier before it."""

    @classmethod
    def _storage(cls) -> Any:
        return struct_of(first=(cls.dtype, cls.tile), last=(cls.dtype, cls.tile))

    @classmethod
    def offset(cls, value: Any, distance: Any = 1, *, storage: Any, fill: Any = None) -> Any:
        """The value of the thread that is `distance` further. Where there is none: `fill`, or this
        thread's own value."""
        (item,) = items_of(value, cls.dtype, 1, cls.__name__)
        source = cls.thread() + integer(distance)
        storage.first[cls.thread()] = item
        barrier()
        inside = (source >= 0) & (source < cls.block_threads)
        other = item if fill is None else converted(fill, cls.dtype)
        return inside.select(storage.first[inside.select(source, 0)], other)

    @classmethod
    def rotate(cls, value: Any, distance: Any = 1, *, storage: Any) -> Any:
        """The value of the thread that is `distance` further, past the end from the start."""
        (item,) = items_of(value, cls.dtype, 1, cls.__name__)
        storage.first[cls.thread()] = item
        barrier()
        threads = cls.block_threads
        # The remainder has the sign of the dividend, which may be negative.
        source = ((cls.thread() + integer(distance)) % threads + threads) % threads
        return storage.first[source]

    @classmethod
    def up(
        cls, value: Any, *, storage: Any, predecessor: Any = None, return_suffix: bool = False
    ) -> Any:
        """Each item's predecessor in blocked order. The first item's is `predecessor`, or itself.
        `return_suffix`: also the last item of the block."""
        items = items_of(value, cls.dtype, None, cls.__name__)
        cls._publish(items, storage)
        found = shaped(cls._before(items, storage, predecessor), value)
        return (found, storage.last[cls.block_threads - 1]) if return_suffix else found

    @classmethod
    def down(
        cls, value: Any, *, storage: Any, successor: Any = None, return_prefix: bool = False
    ) -> Any:
        """Each item's successor in blocked order. The last item's is `successor`, or itself.
        `return_prefix`: also the first item of the block."""
        items = items_of(value, cls.dtype, None, cls.__name__)
        cls._publish(items, storage)
        found = shaped(cls._after(items, storage, successor), value)
        return (found, storage.first[0]) if return_prefix else found

    @classmethod
    def _publish(cls, items: list[Any], storage: Any) -> None:
        storage.first[cls.thread()] = items[0]
        storage.last[cls.thread()] = items[-1]
        barrier()

    @classmethod
    def _before(cls, items: list[Any], storage: Any, predecessor: Any) -> list[Any]:
        thread = cls.thread()
        is_inner = thread > 0
        outer = items[0] if predecessor is None else converted(predecessor, cls.dtype)
        before = is_inner.select(storage.last[is_inner.select(thread - 1, 0)], outer)
        return [before, *items[:-1]]

    @classmethod
    def _after(cls, items: list[Any], storage: Any, successor: Any) -> list[Any]:
        thread = cls.thread()
        is_inner = thread < cls.block_threads - 1
        outer = items[-1] if successor is None else converted(successor, cls.dtype)
        after = is_inner.select(storage.first[is_inner.select(thread + 1, 0)], outer)
        return [*items[1:], after]

    @classmethod
    def _places(cls, count: int) -> list[Any]:
        return [cls.thread() * count + at for at in range(count)]


class BlockAdjacentDifference(BlockShuffle):
    """`BlockAdjacentDifference[dtype, block_size]`: `op(item, neighbour)` of neighbouring items in
    blocked order, by default their difference. Items without a neighbour stay as they are."""

    @classmethod
    def subtract_left(
        cls,
        value: Any,
        op: Any = None,
        *,
        storage: Any,
        predecessor: Any = None,
        valid_items: Any = None,
        output_dtype: Any = None,
    ) -> Any:
        """`op(item, the one before)`. With `valid_items`, of the first items only."""
        items = items_of(value, cls.dtype, None, cls.__name__)
        cls._publish(items, storage)
        others = cls._before(items, storage, predecessor)
        alone = None if predecessor is not None else 0
        return cls._computed(value, items, others, op, alone, valid_items, output_dtype)

    @classmethod
    def subtract_right(
        cls,
        value: Any,
        op: Any = None,
        *,
        storage: Any,
        successor: Any = None,
        valid_items: Any = None,
        output_dtype: Any = None,
    ) -> Any:
        """`op(item, the one after)`. The last valid item's neighbour is `successor`."""
        items = items_of(value, cls.dtype, None, cls.__name__)
        cls._publish(items, storage)
        others = cls._after(items, storage, successor)
        last = cls.block_threads * len(items) if valid_items is None else integer(valid_items)
        if successor is not None and valid_items is not None:
            end = converted(successor, cls.dtype)
            others = [
                (place == last - 1).select(end, one)
                for place, one in zip(cls._places(len(items)), others, strict=True)
            ]
        alone = None if successor is not None else last - 1
        return cls._computed(value, items, others, op, alone, valid_items, output_dtype)

    @classmethod
    def subtract_left_partial_tile(
        cls, value: Any, valid_items: Any, op: Any = None, **named: Any
    ) -> Any:
        return cls.subtract_left(value, op, valid_items=valid_items, **named)

    @classmethod
    def subtract_right_partial_tile(
        cls, value: Any, valid_items: Any, op: Any = None, **named: Any
    ) -> Any:
        return cls.subtract_right(value, op, valid_items=valid_items, **named)

    @classmethod
    def _computed(
        cls,
        value: Any,
        items: list[Any],
        others: list[Any],
        op: Any,
        alone: Any,
        valid_items: Any,
        output_dtype: Any,
    ) -> Any:
        dtype = cls.dtype if output_dtype is None else output_dtype
        work: Callable[[Any, Any], Any] = _difference if op is None else operation(op)
        found = []
        for place, item, other in zip(cls._places(len(items)), items, others, strict=True):
            applies = None if alone is None else place != alone
            if valid_items is not None:
                valid = place < integer(valid_items)
                applies = valid if applies is None else applies & valid
            found.append(_made(work, item, other, applies, dtype))
        return shaped(found, value)


def _made(work: Any, item: Any, other: Any, applies: Any, dtype: DType) -> Any:
    """What an operation gives where it applies, else the item."""
    if applies is None:
        return converted(work(item, other), dtype)
    return value_of(
        applies,
        lambda: converted(work(item, other), dtype),
        lambda: converted(item, dtype),
        "item",
        "an item",
    )


def _difference(item: Any, other: Any) -> Any:
    return item - other


def _different(left: Any, right: Any) -> Any:
    return left != right


class BlockDiscontinuity(BlockShuffle):
    """`BlockDiscontinuity[dtype, block_size]`: flags, of i32, of the items that begin or end a run
    of equal ones: where `flag_op(left, right)` or `flag_op(left, right, place of right)` holds."""

    @classmethod
    def flag_heads(
        cls,
        value: Any,
        flag_op: Any = _different,
        *,
        storage: Any,
        predecessor: Any = None,
        return_predecessors: bool = False,
    ) -> Any:
        items = items_of(value, cls.dtype, None, cls.__name__)
        cls._publish(items, storage)
        heads, before = cls._heads(items, flag_op, storage, predecessor)
        found = shaped(heads, value)
        return (found, shaped(before, value)) if return_predecessors else found

    @classmethod
    def flag_tails(
        cls, value: Any, flag_op: Any = _different, *, storage: Any, successor: Any = None
    ) -> Any:
        items = items_of(value, cls.dtype, None, cls.__name__)
        cls._publish(items, storage)
        return shaped(cls._tails(items, flag_op, storage, successor), value)

    @classmethod
    def flag_heads_and_tails(
        cls,
        value: Any,
        flag_op: Any = _different,
        *,
        storage: Any,
        predecessor: Any = None,
        successor: Any = None,
        return_predecessors: bool = False,
    ) -> Any:
        items = items_of(value, cls.dtype, None, cls.__name__)
        cls._publish(items, storage)
        heads, before = cls._heads(items, flag_op, storage, predecessor)
        tails = cls._tails(items, flag_op, storage, successor)
        found = shaped(heads, value), shaped(tails, value)
        return (*found, shaped(before, value)) if return_predecessors else found

    @classmethod
    def _heads(
        cls, items: list[Any], flag_op: Any, storage: Any, predecessor: Any
    ) -> tuple[list[Any], list[Any]]:
        outer = storage.last[cls.block_threads - 1] if predecessor is None else predecessor
        before = cls._before(items, storage, outer)
        flag = _flag(flag_op)
        places = cls._places(len(items))
        edge = cls.thread() == 0 if predecessor is None else None
        flags = [
            _flagged(flag, edge if number == 0 else None, *three)
            for number, three in enumerate(zip(before, items, places, strict=True))
        ]
        return [one.select(I32(1), I32(0)) for one in flags], before

    @classmethod
    def _tails(cls, items: list[Any], flag_op: Any, storage: Any, successor: Any) -> list[Any]:
        after = cls._after(items, storage, successor)
        flag = _flag(flag_op)
        places = [place + 1 for place in cls._places(len(items))]
        edge = cls.thread() == cls.block_threads - 1 if successor is None else None
        flags = [
            _flagged(flag, edge if number == len(items) - 1 else None, *three)
            for number, three in enumerate(zip(items, after, places, strict=True))
        ]
        return [one.select(I32(1), I32(0)) for one in flags]


def _flagged(flag: Any, edge: Any, left: Any, right: Any, place: Any) -> Any:
    """A flag, which is set at an edge without the predicate."""
    if edge is None:
        return flag(left, right, place)
    return value_of(edge, lambda: BOOL(True), lambda: flag(left, right, place), "flag", "a flag")


def _flag(flag_op: Any) -> Callable[[Any, Any, Any], Any]:
    """A predicate of two operands, and the place of the right one if it takes that."""
    try:
        inspect.signature(flag_op).bind(0, 0, 0)
    except TypeError:
        return lambda left, right, place: truth(flag_op(left, right))
    return lambda left, right, place: truth(flag_op(left, right, place))
