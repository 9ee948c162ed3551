"""Tiles: divisors of a layout, mode by mode."""

from __future__ import annotations

from typing import Any

from fly_dialect.layouts.integers import Int
from fly_dialect.layouts.layout import Layout as LayoutData
from fly_dialect.layouts.tile import Tile as TileData
from fly_dialect.types import LayoutSpec, TileSpec

from fly_trace.core import tracing
from fly_trace.core.dialect_value import DialectValue, values_of, wrap
from fly_trace.core.tracing import describe
from fly_trace.layouts.int_tuples import Extent, IntTuple
from fly_trace.values.scalars import Scalar

__all__ = ["Tile", "make_tile"]


@values_of(TileSpec, lambda spec: True)
class Tile(DialectValue):
    """A tile: for each mode an extent, a layout, a tile of the mode's modes, or None."""

    __slots__ = ()
    noun = "a tile"

    @property
    def rank(self) -> int:
        return self.spec.tile.rank

    def unpack(self) -> Any:
        """The tile as Python ints, layouts, None, and nested tuples of them."""
        return _unpacked(self.spec.tile)

    def __iter__(self) -> Any:
        unpacked = self.unpack()
        return iter(unpacked if isinstance(unpacked, tuple) else (unpacked,))


def _unpacked(mode: Any) -> Any:
    if isinstance(mode, TileData):
        modes = mode.modes
        return tuple(map(_unpacked, modes)) if isinstance(modes, tuple) else _unpacked(modes)
    if isinstance(mode, LayoutData):
        return wrap(LayoutSpec(mode), None)
    return None if mode is None else Extent(mode.value)


def make_tile(*modes: Any) -> Tile:
    """A tile of extents, static layouts, and nested tuples of them. None leaves a mode
    undivided."""
    made = tuple(_mode(mode) for mode in modes)
    try:
        return Tile(TileSpec(TileData(made[0] if len(made) == 1 else made)))
    except (ValueError, TypeError) as error:
        tracing.refuse(f"fx.make_tile: {error}")


def _mode(mode: Any) -> Any:
    if isinstance(mode, Tile):
        return mode.spec.tile
    if isinstance(mode, IntTuple) and mode.is_static:
        return _mode(mode.unpack())
    if isinstance(mode, DialectValue) and mode.is_static and isinstance(mode.spec, LayoutSpec):
        return mode.spec.layout
    if isinstance(mode, (tuple, list)):
        return TileData(tuple(map(_mode, mode)))
    if isinstance(mode, Scalar) and mode.number is not None:
        mode = mode.number
    if isinstance(mode, int) and not isinstance(mode, bool):
        return Int(int(mode))
    if mode is None:
        return None
    return tracing.refuse(
        "a mode of a tile must be an integer, a layout, a tuple or None, known while tracing, not"
        f" {describe(mode)}"
    )


def tiler(value: Any, what: str) -> DialectValue:
    """Converts a divisor: a tuple of extents becomes a tile; a tile or layout is returned
    unchanged."""
    if isinstance(value, DialectValue) and not isinstance(value, IntTuple):
        return value
    if isinstance(value, (tuple, list)):
        return make_tile(*value)
    if isinstance(value, IntTuple) and not value.is_static:
        tracing.refuse(f"{what} divides by a tile that is known while tracing, not by {value}")
    return make_tile(value)
