"""Layouts: functions from coordinates to offsets, with FlyDSL's text.

    Layout((4, 8), (1, 4))                        (4,8):(1,4)
    ComposedLayout(Swizzle(3, 3, 3), 0, outer)    S<3,3,3> o 0 o (8,64):(64,1)

A layout is `shape:stride`, two congruent integer tuples. It maps a coordinate to the sum of
coordinates times strides. A composed layout `inner o offset o outer` maps it to
inner(offset + outer(coordinate)). Leaves are `Int`, or a pass's. `scanner` parses the text.

This module also exports the parts of layouts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from fly_common.record import record

from fly_dialect.layouts.int_tuple import (
    IntTuple,
    Tree,
    are_layout,
    congruent,
    dynamic_leaves,
    int_tuple,
    is_static,
    text,
    type_of,
)
from fly_dialect.layouts.integers import INT32_MAX, Basis, Int
from fly_dialect.layouts.swizzle import CoordSwizzle, Swizzle

__all__ = [
    "INT32_MAX",
    "AnyLayout",
    "Basis",
    "ComposedLayout",
    "CoordSwizzle",
    "Inner",
    "Int",
    "IntTuple",
    "Layout",
    "Swizzle",
    "Tree",
    "congruent",
    "dynamic_leaves",
    "int_tuple",
    "is_static",
    "text",
    "type_of",
]


@record
class Layout:
    """`shape:stride`. Converts Python integers and lists. Raises ValueError if not congruent."""

    shape: Tree
    stride: Tree

    def __post_init__(self) -> None:
        if are_layout(self.shape, self.stride):
            return
        object.__setattr__(self, "shape", int_tuple(self.shape))
        object.__setattr__(self, "stride", int_tuple(self.stride))
        if not congruent(self.shape, self.stride):
            raise ValueError(
                f"shape {text(self.shape)} and stride {text(self.stride)} are not congruent"
            )

    @property
    def linear(self) -> Layout:
        """The layout that is applied to the coordinate: this one."""
        return self

    @property
    def is_static(self) -> bool:
        return is_static(self.shape) and is_static(self.stride)

    @property
    def type(self) -> Layout:
        """The type: what is known of it statically."""
        return self.mapped(type_of)

    def mapped(self, change: Callable[[Tree], Tree]) -> Layout:
        """Applies `change` to each of the layout's integer tuples."""
        return Layout(change(self.shape), change(self.stride))

    def with_linear(self, layout: Layout) -> Layout:
        return layout

    def __str__(self) -> str:
        return f"{text(self.shape)}:{text(self.stride)}"


@record
class ComposedLayout:
    """`inner o offset o outer`: applies `outer` to the coordinate, adds `offset`, applies `inner`.
    Its shape is that of `outer`. It has no stride."""

    inner: Inner
    offset: Tree
    outer: AnyLayout

    def __post_init__(self) -> None:
        object.__setattr__(self, "offset", int_tuple(self.offset))

    @property
    def linear(self) -> Layout:
        """The layout that is applied to the coordinate: the last one in the composition."""
        return self.outer.linear

    @property
    def shape(self) -> Tree:
        return self.linear.shape

    @property
    def is_static(self) -> bool:
        inner = isinstance(self.inner, (Swizzle, CoordSwizzle)) or self.inner.is_static
        return inner and is_static(self.offset) and self.outer.is_static

    @property
    def type(self) -> ComposedLayout:
        """The type: what is known of it statically."""
        return self.mapped(type_of)

    def mapped(self, change: Callable[[Tree], Tree]) -> ComposedLayout:
        """Applies `change` to each of the layout's integer tuples."""
        inner = self.inner
        if not isinstance(inner, (Swizzle, CoordSwizzle)):
            inner = inner.mapped(change)
        return ComposedLayout(inner, change(self.offset), self.outer.mapped(change))

    def with_linear(self, layout: Layout) -> ComposedLayout:
        """The composition with another linear layout."""
        return ComposedLayout(self.inner, self.offset, self.outer.with_linear(layout))

    def __str__(self) -> str:
        outer = f"[{self.outer}]" if isinstance(self.outer, ComposedLayout) else str(self.outer)
        return f"{self.inner} o {text(self.offset)} o {outer}"


AnyLayout: TypeAlias = Layout | ComposedLayout
Inner: TypeAlias = Layout | ComposedLayout | Swizzle | CoordSwizzle
