"""Converts the argument of `draw` to a layout, an atom or a tiled operation."""

from __future__ import annotations

from typing import Any

from fly_dialect.atoms import MmaAtomSpec, MmaOp, TiledCopySpec, TiledMmaSpec
from fly_dialect.layouts.layout import ComposedLayout, Layout
from fly_dialect.layouts.scanner import parse_any_layout
from fly_dialect.type_text import parse_type
from fly_dialect.types import ComposedLayoutSpec, LayoutSpec, MemRefSpec


def subject(what: Any) -> Layout | ComposedLayout | MmaOp | TiledCopySpec | TiledMmaSpec:
    """Returns the object to draw.

    Text is parsed. A type that holds a layout, or a value of the language, is replaced by its
    layout. Raises ValueError for text in another form, and TypeError for other objects.
    """
    if isinstance(what, str):
        text = what.strip()
        return subject(parse_type(text)) if text.startswith("!") else parse_any_layout(text)
    what = getattr(what, "spec", what)
    if isinstance(what, (Layout, ComposedLayout, MmaOp, TiledCopySpec, TiledMmaSpec)):
        return what
    if isinstance(what, (LayoutSpec, ComposedLayoutSpec, MemRefSpec)):
        return what.layout
    if isinstance(what, MmaAtomSpec):
        return what.op
    raise TypeError(f"a layout, a tiled copy or an MMA can be drawn, not {what}")
