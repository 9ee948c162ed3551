"""Copies of tiles by all threads of a block: pieces of 16 bytes, or elements.

What lies beyond the tensor is 0 in the tile. Where rows of the tensor, or the tile's first column,
do not begin at multiples of 16 bytes, elements are copied one by one, without being ahead of their
use; that is decided when the kernel runs, if it is not known before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fly_trace.atoms.atom import UniversalCopy, make_copy_atom
from fly_trace.atoms.movement import copy
from fly_trace.control.branches import branch
from fly_trace.control.loops.dynamic import for_
from fly_trace.core import tracing
from fly_trace.core.tracing import describe
from fly_trace.gpu.device import thread_idx
from fly_trace.layouts.swizzled_tiles import GROUP
from fly_trace.memory.tensors import Tensor
from fly_trace.memory.view_construction import get_iter, make_rmem_tensor
from fly_trace.pipelines.mechanisms import Direct
from fly_trace.pipelines.tiles import Buffer, Tile, piece_at
from fly_trace.values.conversion import convert, integer
from fly_trace.values.dtypes import I32, I64, U32, U64
from fly_trace.values.scalars import Scalar


def when(test: Any, then: Callable[[], Any], orelse: Callable[[], Any] = lambda: None) -> None:
    """Builds `if test: then() else: orelse()`, of which no value is used afterwards."""
    if isinstance(test, Scalar) and test.number is None:
        branch(test, then, orelse, lambda a, b, merging: None)
    else:
        (then if (test.number if isinstance(test, Scalar) else test) else orelse)()


def repeat(first: Any, last: Any, body: Callable[[Any], None]) -> None:
    """Builds `for i in range(first, last): body(i)`, which assigns no variable, and is not
    unrolled."""
    for_(range, (first, last), body, tuple, lambda values: None, (), 0, (), unroll=1)


class Source:
    """Where a tile is in a tensor: the address of its first element, the elements of the tensor
    from there on, and the distances of its rows and columns."""

    def __init__(self, what: str, tensor: Any, coordinate: tuple[Any, ...], tile: Tile):
        if not isinstance(tensor, Tensor):
            tracing.refuse(
                f"{what} takes a tensor, or what fx.tile_source makes of it, not {describe(tensor)}"
            )
        if tensor.dtype is not tile.dtype or tensor.space != "global":
            tracing.refuse(
                f"{what}: the tensor is {tensor.describe()} in {tensor.space} memory, and the tile"
                f" is of {tile.dtype.name}"
            )
        if tensor.rank < 2 or len(coordinate) != tensor.rank:
            tracing.refuse(
                f"{what} takes as many integers as the tensor has dimensions, two at least:"
                f" {tensor.describe()} has {tensor.rank}, not {len(coordinate)}"
            )
        tensor.access.reads = True
        places = [
            convert(integer(item, f"a coordinate of {what}", I32, U32, I64), I64)
            for item in coordinate
        ]
        steps = [convert(tensor.stride[mode], I64) for mode in range(tensor.rank)]
        start: Any = convert(0, I64)
        for place, step in zip(places, steps, strict=True):
            start = start + place * step
        extents = [convert(tensor.shape[mode], I64) for mode in range(tensor.rank)]
        self.pointer = get_iter(tensor) + start
        self.places, self.extents, self.steps = places[-2:], extents[-2:], steps[-2:]
        self.adjacent = _is_one(tensor.stride[tensor.rank - 1])
        self.tile = tile

    def holds(self, row: Any, column: Any) -> Any:
        """Whether an element of the tile is one of the tensor."""
        inside = [
            # Negative coordinates are large ones: a tile may begin in front of the tensor.
            convert(place + convert(at, I64), U64) < convert(extent, U64)
            for place, at, extent in zip(self.places, (row, column), self.extents, strict=True)
        ]
        return inside[0] & inside[1]

    def at(self, row: Any, column: Any) -> Any:
        """The address of an element."""
        return self.pointer + (
            convert(row, I64) * self.steps[0] + convert(column, I64) * self.steps[1]
        )

    def is_whole(self) -> Any:
        """Whether pieces of 16 bytes are at multiples of 16 bytes, and in the tensor or beyond it
        with all of their elements."""
        if not self.adjacent:
            return False
        from fly_dialect.builders import ops

        builder = tracing.kernel("fx.pipeline")
        size = self.tile.dtype.bits // 8
        address = Scalar(I64, builder.fly(ops.ptrtoint, self.pointer.value(builder)))
        rest = self.extents[1] - self.places[1]
        odd = address | (self.steps[0] * size) | (rest * size)
        return (odd & (GROUP - 1)) == 0


def _is_one(value: Any) -> bool:
    return (value.number if isinstance(value, Scalar) else value) == 1


class Cooperation:
    """A thread's part in copying tiles: pieces number `thread`, `thread` + `threads`, …"""

    def __init__(self, threads: int):
        self.threads, self.thread = threads, thread_idx.x

    def pieces(self, tile: Tile, body: Callable[[int, Any], None]) -> None:
        """Calls `body(i, piece)` for this thread's pieces."""
        for i in range(-(-tile.pieces // self.threads)):
            piece = self.thread + i * self.threads
            every = (i + 1) * self.threads <= tile.pieces
            when(True if every else piece < tile.pieces, lambda i=i, piece=piece: body(i, piece))

    def elements(self, source: Source, buffer: Buffer, stage: Any) -> None:
        """Copies a tile element by element."""
        tile, view = source.tile, buffer.view(stage)

        def one(number: Any) -> None:
            element = number * self.threads + self.thread
            row, column = element // tile.columns, element % tile.columns

            def move() -> None:
                view[row, column] = source.at(row, column).load()

            def zero() -> None:
                view[row, column] = tile.dtype(0)

            def found() -> None:
                when(source.holds(row, column), move, zero)

            when(True if whole else element < tile.elements, found)

        whole = tile.elements % self.threads == 0
        repeat(0, -(-tile.elements // self.threads), one)


class Asynchronous:
    """Copies of pieces by a target's asynchronous instruction."""

    def __init__(self, how: Direct, cooperation: Cooperation, uneven: Callable[[], None]):
        """`uneven()` is called where a tile is copied with fewer instructions than others."""
        self.how, self.cooperation, self.uneven = how, cooperation, uneven

    def start(self, source: Source, buffer: Buffer, stage: Any) -> None:
        tile, work = source.tile, self.cooperation
        store = make_copy_atom(UniversalCopy(GROUP * 8), tile.dtype)
        held = make_rmem_tensor(tile.unit, tile.dtype)

        def move(number: int, which: Any) -> None:
            at = source.at(*tile.place(which))
            self.how.copy(piece_at(at), buffer.piece(stage, which), tile.dtype)

        def move_inside(number: int, which: Any) -> None:
            held.fill(0)
            when(
                source.holds(*tile.place(which)),
                lambda: move(number, which),
                lambda: copy(store, held, buffer.piece(stage, which)),
            )

        def through_registers(number: int, which: Any) -> None:
            row, column = tile.place(which)
            held.fill(0)
            when(
                source.holds(row, column),
                lambda: copy(store, piece_at(source.at(row, column)), held),
            )
            copy(store, held, buffer.piece(stage, which))

        def counted() -> None:
            # Each wave must issue as many copies for each tile.
            even = tile.pieces % work.threads == 0
            inside = source.holds(0, 0) & source.holds(tile.rows - 1, tile.columns - 1)
            when(inside if even else False, lambda: work.pieces(tile, move), slower)

        def slower() -> None:
            self.uneven()
            work.pieces(tile, through_registers)

        def elements() -> None:
            self.uneven()
            work.elements(source, buffer, stage)

        pieces = (lambda: work.pieces(tile, move_inside)) if self.how.groups else counted
        when(source.is_whole(), pieces, elements)


class Registers:
    """Copies of pieces through registers: loaded by `start`, and stored to shared memory later, by
    `land`, for targets whose copies to shared memory can't be ahead."""

    def __init__(self, cooperation: Cooperation, buffers: dict[str, Buffer]):
        self.cooperation = cooperation
        self.held = {
            name: make_rmem_tensor(
                (one.tile.unit, -(-one.tile.pieces // cooperation.threads)), one.tile.dtype
            )
            for name, one in buffers.items()
        }
        # Whether a tile is in registers: elements that were copied one by one are not.
        self.loaded = {name: make_rmem_tensor(1, I32) for name in buffers}
        for one in self.loaded.values():
            one[0] = 0
        for one in self.held.values():
            one.fill(0)

    def start(self, name: str, source: Source, buffer: Buffer, stage: Any) -> None:
        tile, held = source.tile, self.held[name]
        load = make_copy_atom(UniversalCopy(GROUP * 8), tile.dtype)

        def piece(number: int, which: Any) -> None:
            row, column = tile.place(which)
            when(
                source.holds(row, column),
                lambda: copy(load, piece_at(source.at(row, column)), held[None, number]),
            )

        def pieces() -> None:
            self.cooperation.pieces(tile, piece)
            self.loaded[name][0] = 1

        def elements() -> None:
            self.cooperation.elements(source, buffer, stage)
            self.loaded[name][0] = 0
            # For the next tile: in front of its loads, where it would wait for those of others.
            held.fill(0)

        when(source.is_whole(), pieces, elements)

    def land(self, buffers: dict[str, Buffer], stage: Any) -> None:
        """Stores what has been loaded to a stage."""
        for name, buffer in buffers.items():
            held = self.held[name]
            store = make_copy_atom(UniversalCopy(GROUP * 8), buffer.tile.dtype)

            def piece(number: int, which: Any, held=held, store=store, buffer=buffer) -> None:
                copy(store, held[None, number], buffer.piece(stage, which))

            when(
                self.loaded[name][0] != 0,
                lambda piece=piece, buffer=buffer: self.cooperation.pieces(buffer.tile, piece),
            )
            self.loaded[name][0] = 0
            # For the next tile: in front of its loads, where it would wait for those of others.
            held.fill(0)
