"""The rows of a matrix in a kernel, each taken by a block of threads.

A kernel says what it computes of a row's elements, once for rows of all lengths:

    row = Row(plan, X.shape[1])
    x = row.read(X)
    mean = row.mean(x)
    row.write(Y, row.map(lambda x: x - mean, x))

A row that fits into the block's registers is loaded once; of a longer one the block takes tiles,
and loads them again each time (`row_tiles`).

`each_row` of `row_streams` has such rows read to shared memory before they are needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from fly_target.registry import find
from fly_trace.core.target import chip

import fly.expr as fx
from fly.kernels.approximations import reciprocal
from fly.kernels.mixed_precision import (
    afresh,
    anew,
    converts_elements,
    in_order,
    one_by_one,
    rounds_elements,
    widened,
)
from fly.kernels.rowwise.row_exchanges import Exchange, first_row
from fly.kernels.rowwise.row_plans import Plan
from fly.kernels.rowwise.row_tiles import Tile

# The annotation of a matrix; columns are counted in 32 bits, which launches check.
Matrix = fx.Tensor[fx.Float, "M", fx.sym_int32("N")]


class Row:
    """Row `index`, or that of the block's number, of matrices with the same number of columns."""

    def __init__(
        self,
        plan: Plan,
        columns: Any,
        index: Any = None,
        ahead: Any = None,
        exchange: Exchange | None = None,
    ):
        """ahead: has the row in shared memory (`row_streams.Ahead`). exchange: of the cluster's
        blocks, if they share rows."""
        self.plan, self.columns, self.ahead, self.exchange = plan, columns, ahead, exchange
        self.index = first_row(plan) if index is None else index

    @property
    def extent(self) -> Any:
        """The elements of the block's tiles, at least."""
        return self.columns if self.plan.cluster == 1 else self.plan.room

    def leads(self) -> Any:
        """Whether the thread is the first one of those that have the row."""
        is_first = fx.thread_idx.x == 0
        return is_first if self.plan.cluster == 1 else is_first & (fx.cluster.rank() == 0)

    def reduce(self, value: Any, op: str = "add") -> Any:
        """A number of each thread, or a tuple of them, combined over the row's threads, for all of
        these. op: as in fx.block.reduce."""
        if self.plan.cluster == 1:
            return fx.block.reduce(value, op)
        if self.exchange is None:
            self.exchange = Exchange(self.plan)
        return self.exchange.reduce(value, op)

    def read(self, tensor: Any, default: float = 0.0) -> Line:
        """The row of a matrix, or a vector that is as long as a row. Elements beyond its end, which
        threads may have, are `default`."""
        return Line(self, lambda first: Tile(self, first).load(tensor, default))

    def release(self) -> None:
        """Says that matrices are not read again. If the row is in registers, the one that replaces
        it in shared memory is asked for now, and not when the row has been computed."""
        if self.ahead is not None and self.plan.fits:
            self.ahead.replace(0)

    def places(self) -> Line:
        """The numbers of the columns, as Int32."""
        return Line(self, lambda first: Tile(self, first).places())

    def map(self, function: Callable[..., Any], *lines: Line) -> Line:
        """`function` of all elements."""
        return Line(self, lambda first: function(*[line.at(first) for line in lines]))

    def map_late(self, function: Callable[..., Any], line: Line) -> Line:
        """As `map`, for `finish`. On AMD, elements of a row in registers are computed when they are
        stored, vector by vector, and what is loaded from now on, as the parameters of a norm, is
        not asked for earlier. That takes fewer registers than to do all of it at once."""
        if not (self.plan.fits and find(chip("registers")).amd):
            return self.map(function, line)
        in_order()
        return Late(function, line)

    def map_mixed(
        self, function: Callable[..., Any], fused: Callable[..., Any], *lines: Line
    ) -> Line:
        """As `map`. `fused` is the same function of single elements, as a product and a sum, by
        fx.fma. On AMD, it takes elements of f16 in the type that they have."""
        if not (self.plan.fits and converts_elements([line.raw(0).dtype for line in lines])):
            return self.map(function, *lines)

        def mixed(first: Any) -> Any:
            given = [line.raw(first) for line in lines]
            return one_by_one(fused, *given, dtype=fx.Float32).reshape(given[0].shape)

        return Line(self, mixed)

    def again(self) -> Row:
        """The same row, whose addresses are not taken from registers (`mixed_precision.anew`)."""
        return Row(self.plan, self.columns, anew(self.index), self.ahead, self.exchange)

    def afresh(self, line: Line, after: Line) -> Line:
        """The same elements, which are converted to f32 when those of another line have been
        computed: that takes fewer registers, if the row is there, than to convert both first."""
        if not self.plan.fits:
            return line
        return Line(self, lambda first: afresh(line.raw(first), after.raw(first)))

    def fold(
        self,
        function: Callable[..., Any],
        merge: Callable[..., Any],
        line: Line,
        *,
        within: bool = False,
    ) -> Any:
        """Each thread's value: `function` of its elements, merged over the tiles. within: elements
        beyond the row's end are 0."""

        def of_tile(first: Any) -> Any:
            elements = line.at(first)
            return function(Tile(self, first).within(elements) if within else elements)

        return self.over_tiles(of_tile, merge)

    def over_tiles(self, of_tile: Callable[[Any], Any], merge: Callable[..., Any]) -> Any:
        """What `of_tile` returns for the first elements of all tiles, merged."""
        if self._is_arriving():
            value = None
            for first in self._arriving():
                own = of_tile(first)
                value = own if value is None else merge(value, own)
            return value
        value = of_tile(0)
        if self.plan.unrolled:
            for group in fx.range_constexpr(1, self.plan.groups):
                value = merge(value, of_tile(group * self.plan.tile))
        elif not self.plan.fits:
            for first in range(
                self.plan.tile, self.extent, self.plan.tile, unroll=self.plan.unroll
            ):
                value = merge(value, of_tile(first))
        return value

    def sum(self, line: Line) -> Any:
        """The sum of all elements, for all threads."""
        return self.reduce(self.fold(added, lambda a, b: a + b, line, within=True))

    def own_sums(self, *lines: Line) -> tuple[Any, ...]:
        """Each thread's sums of several lines."""

        def of_tile(first: Any) -> tuple[Any, ...]:
            tile = Tile(self, first)
            return tuple(added(tile.within(line.at(first))) for line in lines)

        def both(a: Any, b: Any) -> tuple[Any, ...]:
            return tuple(one + other for one, other in zip(a, b, strict=True))

        return self.over_tiles(of_tile, both)

    def means(self, *lines: Line) -> Any:
        """The means of several lines, for all threads, who exchange values once for all of them."""
        totals = self.reduce(self.own_sums(*lines))
        return [total * reciprocal(total.dtype(self.columns)) for total in totals]

    def magnitude(self, line: Line) -> Any:
        """The greatest magnitude of all elements, for all threads; NaN if one is NaN.

        Bits of numbers without a sign are in their order as integers, and those of NaN above them.
        """
        bits = self.fold(lambda x: _bits(x).reduce("max"), fx.max, line, within=True)
        kind = fx.Float32 if bits.dtype.bits == 32 else fx.Float64
        return self.reduce(bits, "max").bitcast(kind)

    def mean(self, line: Line) -> Any:
        """The mean of all elements, for all threads."""
        total = self.sum(line)
        return total * reciprocal(total.dtype(self.columns))

    def each_tile(self, function: Callable[[Any], None]) -> None:
        """`function` of the first element of each tile."""
        if self.plan.fits:
            function(0)
        elif self._is_arriving():
            for first in self._arriving():
                function(first)
        elif self.plan.unrolled:
            for group in fx.range_constexpr(self.plan.groups):
                function(group * self.plan.tile)
        else:
            for first in range(0, self.extent, self.plan.tile, unroll=self.plan.unroll):
                function(first)

    def _is_arriving(self) -> bool:
        """Whether the row is read ahead, and not all of it need have arrived."""
        return self.ahead is not None and not self.ahead.has_arrived

    def _arriving(self) -> Iterator[int]:
        """The first element of each tile, when it has arrived."""
        for group in fx.range_constexpr(self.plan.groups):
            self.ahead.wait(group)
            yield group * self.plan.tile
        self.ahead.has_arrived = True

    def write(self, tensor: Any, line: Line, last: bool = False) -> None:
        """Stores all elements to the row of a matrix. last: nothing of the row is read again, so
        that what was read ahead may be replaced."""
        self._store(tensor, lambda first: line.at(first).to(tensor.dtype), last)

    def finish(
        self,
        tensor: Any,
        function: Callable[..., Any],
        *lines: Line,
        last: bool = False,
        beside: Callable[[Any], None] | None = None,
    ) -> None:
        """Stores `function` of all elements. It is best a single product or sum: on AMD, results of
        f16 are computed one by one, and rounded by the same instruction (`mixed_precision`).
        last: as in `write`. beside: is called for each tile, with its first element."""
        dtype = tensor.dtype

        def made(given: list[Any]) -> Any:
            wide = wide_type(given[0].dtype)
            if not rounds_elements(dtype, wide, [one.dtype for one in given]):
                return function(*[widened(one, wide) for one in given]).to(dtype)
            return one_by_one(function, *given)

        if any(isinstance(line, Late) for line in lines):
            if beside is not None:
                beside(0)
            for i in range(self.plan.vectors):
                if i:
                    in_order()
                Tile(self, 0).store_one(tensor, i, made([line.one(i) for line in lines]))
            return

        def whole(first: Any) -> Any:
            return made([line.raw(first) for line in lines])

        self._store(tensor, whole, last, beside)

    def _store(
        self,
        tensor: Any,
        made: Callable[[Any], Any],
        last: bool,
        beside: Callable[[Any], None] | None = None,
    ) -> None:
        ahead = self.ahead if last and not self.plan.fits else None

        def store(first: Any) -> None:
            values = made(first)
            if beside is not None:
                beside(first)
            Tile(self, first).store(tensor, values)
            if ahead is not None:
                ahead.replace(first)

        self.each_tile(store)


class Line:
    """A row's elements of a tensor, or of what is computed of tensors. They are in registers if the
    row fits, and computed again for each use if it does not. `make` returns those of a thread in
    the tile from an element on, of the tensor's type."""

    def __init__(self, row: Row, make: Callable[[Any], Any]):
        self.make = make
        self.held = make(0) if row.plan.fits else None

    def raw(self, first: Any) -> Any:
        """The thread's elements of the tile from element `first` on: an fx.Vector."""
        return self.make(first) if self.held is None else self.held

    def one(self, i: int) -> Any:
        """The thread's vector i, if the row is in registers."""
        return self.raw(0)[None, i]

    def at(self, first: Any) -> Any:
        """The same in the type to compute in."""
        held = self.raw(first)
        return widened(held, wide_type(held.dtype)) if held.dtype.is_float else held


class Late(Line):
    """A function of a line that is in registers, computed for each use."""

    def __init__(self, function: Callable[..., Any], line: Line):
        self.function, self.line = function, line

    def raw(self, first: Any) -> Any:
        return self.function(self.line.at(first))

    def one(self, i: int) -> Any:
        return self.function(self.line.at(0)[None, i])


def added(values: Any) -> Any:
    """The sum of a vector's elements, a power of two: of those at even and at odd places in order,
    which takes one instruction for two on targets that have it, and of both."""
    if values.numel == 1:
        return values[0]
    count = values.numel // 2
    pairs = values.reshape((2, count))
    total = pairs[None, 0]
    for i in fx.range_constexpr(1, count):
        total += pairs[None, i]
    return total[0] + total[1]


def _bits(x: Any) -> Any:
    """The bits of the magnitudes of a vector."""
    return fx.abs(x).bitcast(fx.Uint32 if x.dtype.bits == 32 else fx.Uint64)


def wide_type(dtype: Any) -> Any:
    """The type that elements are computed in."""
    return fx.Float64 if dtype is fx.Float64 else fx.Float32
