"""What values of the fly dialect stand for while `fly-layout-lowering` is at work.

    int_tuple         a tree: Int where the type says the number, a Scalar where it doesn't
    layout            Layout, ComposedLayout
    swizzle, tile     Swizzle, CoordSwizzle, Tile
    memref            View of a pointer (an SSA value) and a layout
    coord_tensor      View of a tree and a layout

They are the data of `fly_dialect.algebra`: an op is lowered by calling the algebra's function of
its name on what its operands stand for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from fly_dialect.int_tuple import is_static, type_of
from fly_dialect.layout import AnyLayout, ComposedLayout, Layout
from fly_dialect.swizzle import CoordSwizzle, Swizzle
from fly_dialect.tile import Tile
from fly_dialect.types import (
    ComposedLayoutSpec,
    CoordSwizzleSpec,
    CoordTensorSpec,
    IntTupleSpec,
    LayoutSpec,
    Spec,
    SwizzleSpec,
    TileSpec,
    layout_spec,
)


@dataclass(frozen=True, slots=True)
class View:
    """What a memref or coord_tensor stands for. `base` is a pointer's SSA value or a tree."""

    base: Any
    layout: AnyLayout


# A tree, a layout, a swizzle, a tile or a View. (A tree may be a lone leaf, of any pass's kind.)
Meaning: TypeAlias = Any

# What `of_static_type` gives for a type that does not say it all; None is the tree `*`.
UNKNOWN = object()


def of_static_type(spec: Spec) -> Meaning:
    """What a value stands for whose type says it all; UNKNOWN for any other type."""
    if isinstance(spec, IntTupleSpec):
        return spec.value if is_static(spec.value) else UNKNOWN
    if isinstance(spec, (LayoutSpec, ComposedLayoutSpec)):
        return spec.layout if spec.layout.is_static else UNKNOWN
    if isinstance(spec, (SwizzleSpec, CoordSwizzleSpec)):
        return spec.swizzle
    if isinstance(spec, TileSpec):
        return spec.tile
    if isinstance(spec, CoordTensorSpec) and is_static(spec.base) and spec.layout.is_static:
        return View(spec.base, spec.layout)
    return UNKNOWN


def spec_of_meaning(meaning: Meaning) -> Spec:
    """The type of a value of this meaning. (Of a view it is that of the `make_view` it becomes.)"""
    if isinstance(meaning, (Layout, ComposedLayout)):
        return layout_spec(meaning.type)
    if isinstance(meaning, Swizzle):
        return SwizzleSpec(meaning)
    if isinstance(meaning, CoordSwizzle):
        return CoordSwizzleSpec(meaning)
    if isinstance(meaning, Tile):
        return TileSpec(meaning)
    return IntTupleSpec(type_of(meaning))
