"""Tiles: a divisor for each mode of a layout. The text is FlyDSL's.

Tile((Int(4), Layout(8, 1), None))     [4|8:1|*]
Tile(Int(4))                           4
"""

from __future__ import annotations

from typing import TypeAlias

from fly_common.quoting import quoted
from fly_common.record import record

from fly_dialect.layouts.integers import Int
from fly_dialect.layouts.layout import Layout


@record
class Tile:
    """For each mode an extent, a layout, a tile of the mode's modes, or None to leave it undivided.
    A single mode that is not in a tuple divides the whole layout. Everything is static. Python
    integers and lists are converted."""

    modes: Mode | tuple[Mode, ...]

    def __post_init__(self) -> None:
        modes = self.modes
        if isinstance(modes, (tuple, list)):
            if not modes:
                raise ValueError("a tile must have at least one mode")
            object.__setattr__(self, "modes", tuple(map(_mode, modes)))
        else:
            object.__setattr__(self, "modes", _mode(modes))

    @property
    def rank(self) -> int:
        return len(self.modes) if isinstance(self.modes, tuple) else 1

    def __str__(self) -> str:
        if isinstance(self.modes, tuple):
            return f"[{'|'.join(map(_text, self.modes))}]"
        return _text(self.modes)


Mode: TypeAlias = "Int | Layout | Tile | None"


def _mode(mode: object) -> Mode:
    if isinstance(mode, int) and not isinstance(mode, bool):
        return Int(mode)
    if isinstance(mode, (tuple, list)):
        return Tile(tuple(mode))
    if isinstance(mode, Tile) and not isinstance(mode.modes, tuple):
        return mode.modes
    if mode is None or isinstance(mode, Tile):
        return mode
    if not isinstance(mode, (Int, Layout)):
        raise TypeError(f"{quoted(mode)} is not a mode of a tile")
    if not mode.is_static:
        raise ValueError(f"a mode of a tile must be known at compile time, but {mode} is not")
    return mode


def _text(mode: Mode) -> str:
    return "*" if mode is None else str(mode)
