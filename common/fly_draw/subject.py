"""What is to be drawn, from whatever form it comes in."""

from __future__ import annotations

from typing import Any

from fly_dialect.atoms import MmaAtomSpec, MmaOp, TiledCopySpec, TiledMmaSpec
from fly_dialect.layouts.layout import ComposedLayout, Layout
from fly_dialect.layouts.scanner import parse_any_layout
from fly_dialect.type_text import parse_type
from fly_dialect.types import ComposedLayoutSpec, LayoutSpec, MemRefSpec


def subject(what: Any) -> Layout | ComposedLayout | MmaOp | TiledCopySpec | TiledMmaSpec:
    """What `what` stands for.

    Text is read; of a type that holds a layout, and of a value of the language, the layout is
    taken. Raises ValueError for text that is none of these, TypeError for other objects.
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
