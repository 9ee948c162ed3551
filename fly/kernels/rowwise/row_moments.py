"""The mean and the variance of a row by one exchange, and sums of products with another row.

They are merged from parts, each of which has the squares of differences from its own mean, so that
rows with a great mean lose no digits (Chan, Golub and LeVeque, 1979). A thread takes its elements
less one of them, so that it reads them once. With n elements in a thread and m parts to merge, what
such a difference can lose is at most n, or m, roundings of the variance, as its square is a part of
it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import fly.expr as fx
from fly.kernels.approximations import reciprocal
from fly.kernels.rowwise.row_exchanges import Exchange
from fly.kernels.rowwise.row_tiles import Tile
from fly.kernels.rowwise.rows import Line, Row, added


class Moments(NamedTuple):
    """Of some of a row's elements x: how many they are, their mean, the sum of the squares of
    x - mean; and of another row y, the sums of y and of (x - mean) · y, or None without one. All
    are f32; the count is None where all parts have as many elements (`Plan.whole`)."""

    count: Any
    mean: Any
    squares: Any
    plain: Any = None
    along: Any = None

    def means(self, columns: Any) -> tuple[Any, ...]:
        """The mean, the variance, and with y its mean and that of (x - mean) · y, of a row of so
        many columns."""
        share = reciprocal(fx.Float32(columns))
        sums = [one for one in self[2:] if one is not None]
        return self.mean, *[one * share for one in sums]


def moments(row: Row, x: Line, *y: Line) -> tuple[Any, ...]:
    """`Moments.means` of a row x, or of x and y, for all threads, by one exchange."""
    send_moments(row, x, *y)
    return received_moments(row, len(y))


def send_moments(row: Row, x: Line, *y: Line) -> None:
    """Sends the moments of a warp's elements, for `received_moments`."""
    each = row.plan.room // row.plan.threads
    own = _merged([_of_thread(row, x, *y)], each, each * fx.num_warp_threads())
    row.exchange.send([one for one in own if one is not None])


def received_moments(row: Row, others: int) -> tuple[Any, ...]:
    """What `moments` returns, with 0 or 1 other lines, of what all warps have sent."""
    plan, exchange = row.plan, row.exchange
    counts = 0 if plan.whole else 1
    found = exchange.received([fx.Float32] * (counts + 2 + 2 * others))
    parts = [Moments(*[None] * (1 - counts), *one) for one in found]
    whole = _merged(parts, plan.room // exchange.warps, row.columns, exchange)
    return whole.means(row.columns)


def send_sums(row: Row, *lines: Line) -> None:
    """Sends a warp's sums of lines, for `received_means`."""
    row.exchange.send(fx.warp.reduce(row.own_sums(*lines)))


def received_means(row: Row, count: int) -> list[Any]:
    """The means of so many lines, for all threads, of what all warps have sent."""
    found = row.exchange.over_warps(row.exchange.received([fx.Float32] * count))
    share = reciprocal(fx.Float32(row.columns))
    return [one * share for one in found]


def _of_thread(row: Row, x: Line, *y: Line) -> Moments:
    """Those of a thread's elements."""
    plan = row.plan
    near: list[Any] = []  # one of the elements

    def of_tile(first: Any) -> tuple[Any, ...]:
        tile, values = Tile(row, first), x.at(first)
        if not near:
            near.append(values[0, 0])
        away = tile.within(values - near[0])
        sums = [added(away), added(away * away)]
        for one in y:
            other = tile.within(one.at(first))
            sums += [added(other), added(away * other)]
        if not plan.whole:
            sums.append(added(tile.within(fx.full((plan.vector, plan.vectors), 1.0, fx.Float32))))
        return tuple(sums)

    def both(a: Any, b: Any) -> tuple[Any, ...]:
        return tuple(one + other for one, other in zip(a, b, strict=True))

    with fx.fastmath("contract"):
        total, squares, *rest = row.over_tiles(of_tile, both)
        count = None if plan.whole else rest.pop()
        each = fx.Float32(plan.room // plan.threads) if count is None else fx.max(count, 1.0)
        shift = total * reciprocal(each)
        own = Moments(count, near[0] + shift, squares - shift * total)
        if not y:
            return own
        plain, along = rest
        return own._replace(plain=plain, along=along - shift * plain)


def _merged(
    parts: list[Moments], each: Any, total: Any, exchange: Exchange | None = None
) -> Moments:
    """The moments of the parts of all lanes of a warp, or if these are the parts of all warps, of
    all that have the row. each: the elements of a part, where all have as many; total: of all
    parts."""
    near = fx.warp.broadcast(parts[0].mean, 0)
    counted = parts[0].count is not None

    def moved(part: Moments) -> tuple[Any, ...]:
        """Sums with respect to `near`."""
        away = part.mean - near
        weighed = away * (part.count if counted else fx.Float32(each))
        sums = [weighed, part.squares + away * weighed]
        if part.plain is not None:
            sums += [part.plain, part.along + away * part.plain]
        return tuple([*sums, part.count] if counted else sums)

    with fx.fastmath("contract"):
        terms = [moved(one) for one in parts]
        sums = fx.warp.reduce(terms[0]) if exchange is None else exchange.over_warps(terms)
        weighed, squares, *rest = sums
        count = rest.pop() if counted else None
        shift = weighed * reciprocal(fx.max(count, 1.0) if counted else fx.Float32(total))
        own = Moments(count, near + shift, squares - shift * weighed)
        if not rest:
            return own
        plain, along = rest
        return own._replace(plain=plain, along=along - shift * plain)
