"""The registry of pictures: name → function, resolved on use.

A function takes what is drawn (`fly_draw.subject`) and the options of `fly_draw.draw` as `Options`,
and returns a `fly_draw.svg.Picture`. Active plugins (`fly_plugin`) add theirs; `picture=NAME`
selects one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fly_common.quoting import quoted
from fly_common.resolve import resolve
from fly_plugin import active

from fly_draw.svg import Picture

BUILT_IN = {
    "layout": "fly_draw.draw:draw_layout",
    "operation": "fly_draw.draw:draw_operation",
}


@dataclass(frozen=True)
class Options:
    """See `fly_draw.draw`."""

    tile: tuple[int, int] | None = None
    element: str | None = None
    vector: int = 1
    target: str = "gfx942"


def find(name: str) -> Callable[[Any, Options], Picture]:
    """Returns the function of a picture. Raises ValueError, which lists the names, if there is
    none."""
    others = {name: where for one in active() for name, where in one.plugin.pictures.items()}
    known = {**others, **BUILT_IN}
    if name not in known:
        raise ValueError(f"there is no picture {quoted(name)}; the pictures are {', '.join(known)}")
    return resolve(known[name])


def owner(name: str) -> str | None:
    """Returns who has the picture `name`, besides plugins, for messages; None if nobody has."""
    return "fly-filters" if name in BUILT_IN else None
