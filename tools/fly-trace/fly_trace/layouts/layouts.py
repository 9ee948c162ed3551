"""Layouts: functions from coordinates to offsets. A static layout is plain data in Python."""

from __future__ import annotations

from typing import Any

from fly_dialect.layouts.swizzle import CoordSwizzle as CoordSwizzleData
from fly_dialect.layouts.swizzle import Swizzle as SwizzleData
from fly_dialect.types import (
    ComposedLayoutSpec,
    CoordSwizzleSpec,
    IntTupleSpec,
    LayoutSpec,
    SwizzleSpec,
    TileSpec,
)

from fly_trace.core import tracing
from fly_trace.core.dialect_value import DialectValue, apply, says_all, values_of, wrap
from fly_trace.core.tracing import describe
from fly_trace.layouts.int_tuples import IntTuple, has_none, int_tuple

__all__ = [
    "ComposedLayout",
    "CoordSwizzle",
    "CoordSwizzleType",
    "Layout",
    "Swizzle",
    "SwizzleType",
    "composed_get_inner",
    "composed_get_offset",
    "composed_get_outer",
    "get_layout",
    "get_shape",
    "get_stride",
    "make_composed_layout",
    "make_identity_layout",
    "make_layout",
    "make_layout_like",
    "make_ordered_layout",
    "static",
]


class Moded(DialectValue):
    """A value whose type has a layout, and therefore modes."""

    __slots__ = ()

    @property
    def rank(self) -> int:
        shape = self.spec.layout.shape
        return len(shape) if isinstance(shape, tuple) else 1

    @property
    def depth(self) -> int:
        return IntTuple(IntTupleSpec(self.spec.layout.shape)).depth


class LayoutLike(Moded):
    """Base of layouts. `layout(i, j)` is an offset, or with None a part of the layout."""

    __slots__ = ()

    @property
    def is_leaf(self) -> bool:
        return not isinstance(self.spec.layout.shape, tuple)

    @property
    def shape(self) -> IntTuple:
        """The extents, an int tuple; ints if they are static."""
        return get_shape(self)

    def __len__(self) -> int:
        return self.rank

    def __getitem__(self, mode: Any) -> Any:
        path = tuple(mode) if isinstance(mode, (list, tuple)) else (mode,)
        return apply("get", self, mode=path)

    def __call__(self, *coord: Any) -> Any:
        given = coord[0] if len(coord) == 1 else coord
        where = int_tuple(given, "a coordinate")
        return apply("slice", self, where) if has_none(where) else apply("crd2idx", where, self)


@values_of(LayoutSpec, lambda spec: spec.layout.is_static)
class Layout(LayoutLike):
    """`shape:stride`: maps a coordinate to the sum of coordinates times strides."""

    __slots__ = ()
    noun = "a layout"

    @property
    def stride(self) -> IntTuple:
        """The strides in elements, an int tuple."""
        return get_stride(self)

    @property
    def is_static_shape(self) -> bool:
        return says_all(IntTupleSpec(self.spec.layout.shape))

    @property
    def is_static_stride(self) -> bool:
        return says_all(IntTupleSpec(self.spec.layout.stride))

    def get_hier_coord(self, index: Any) -> Any:
        """The coordinate whose offset is `index`, with the structure of the shape."""
        return apply("idx2crd", int_tuple(index), self)

    def get_flat_coord(self, index: Any) -> Any:
        """The coordinate whose offset is `index`, with one number per mode."""
        return apply("get_flat_coord", int_tuple(index), self)

    def get_1d_coord(self, index: Any) -> Any:
        """The index, first mode fastest, of the coordinate whose offset is `index`."""
        return apply("get_1d_coord", int_tuple(index), self)


@values_of(ComposedLayoutSpec, lambda spec: spec.layout.is_static)
class ComposedLayout(LayoutLike):
    """`inner o offset o outer`: applies `outer` to the coordinate, adds `offset`, and applies
    `inner` (a layout or a swizzle)."""

    __slots__ = ()
    noun = "a composed layout"

    @property
    def stride(self) -> IntTuple:
        return tracing.refuse("a composed layout has no stride", "its .outer has one")

    @property
    def inner(self) -> Any:
        return composed_get_inner(self)

    @property
    def offset(self) -> Any:
        return composed_get_offset(self)

    @property
    def outer(self) -> Any:
        return composed_get_outer(self)


@values_of(SwizzleSpec, lambda spec: True)
class Swizzle(DialectValue):
    """`S<mask,base,shift>`: exclusive-ors the `mask` bits of an offset at bit `base` with those
    `shift` bits above."""

    __slots__ = ()
    noun = "a swizzle"

    @property
    def mask(self) -> int:
        return self.spec.swizzle.mask

    @property
    def base(self) -> int:
        return self.spec.swizzle.base

    @property
    def shift(self) -> int:
        return self.spec.swizzle.shift


@values_of(CoordSwizzleSpec, lambda spec: True)
class CoordSwizzle(DialectValue):
    """Exclusive-ors bits of a coordinate's column with bits of its row."""

    __slots__ = ()
    noun = "a coordinate swizzle"


class SwizzleType:
    """`SwizzleType.get(mask, base, shift)`: the type from which `fx.static` makes a swizzle."""

    @staticmethod
    def get(mask: int, base: int, shift: int) -> SwizzleSpec:
        try:
            return SwizzleSpec(SwizzleData(mask, base, shift))
        except (ValueError, TypeError) as error:
            tracing.refuse(f"fx.SwizzleType.get: {error}")


class CoordSwizzleType:
    """`CoordSwizzleType.get(mask, base_row, mode_row, base_col, mode_col)`."""

    @staticmethod
    def get(mask: int, base_row: int, mode_row: Any, base_col: int, mode_col: Any) -> Any:
        try:
            swizzle = CoordSwizzleData(mask, base_row, tuple(mode_row), base_col, tuple(mode_col))
        except (ValueError, TypeError) as error:
            tracing.refuse(f"fx.CoordSwizzleType.get: {error}")
        return CoordSwizzleSpec(swizzle)


def static(result_type: Any) -> Any:
    """The value of a type that describes it completely: `static(SwizzleType.get(3, 3, 3))`."""
    if isinstance(result_type, DialectValue) and result_type.is_static:
        return result_type
    kinds = (IntTupleSpec, LayoutSpec, ComposedLayoutSpec, SwizzleSpec, CoordSwizzleSpec, TileSpec)
    if not isinstance(result_type, kinds) or not says_all(result_type):
        tracing.refuse(
            f"fx.static takes a type that determines its value, not {describe(result_type)}"
        )
    return wrap(result_type, None)


# -- construction ----------------------------------------------------------------------------------


def make_layout(shape: Any, stride: Any) -> Layout:
    """The layout `shape:stride`, two congruent tuples. The stride counts elements."""
    return apply(
        "make_layout", int_tuple(shape, "fx.make_layout"), int_tuple(stride, "fx.make_layout")
    )


def make_ordered_layout(shape: Any, order: Any) -> Layout:
    """A compact layout. The mode with the least `order` is contiguous: (1, 0) is row-major."""
    what = "fx.make_ordered_layout"
    return apply("make_ordered_layout", int_tuple(shape, what), int_tuple(order, what))


def make_layout_like(ref: Any) -> Layout:
    """A compact layout of the same shape, with strides in the same order."""
    return apply("make_layout_like", layout_of(ref, "fx.make_layout_like"))


def make_identity_layout(shape: Any) -> Layout:
    """The layout that maps each coordinate to itself: `(4,8):(1E0,1E1)` for (4, 8)."""
    return apply("make_identity_layout", int_tuple(shape, "fx.make_identity_layout"))


def make_composed_layout(inner: Any, offset_or_outer: Any, outer: Any = None) -> ComposedLayout:
    """`inner o offset o outer`. The default offset is zero. `inner` is a swizzle or a layout."""
    what = "fx.make_composed_layout"
    if outer is None:
        outer = layout_of(offset_or_outer, what)
        offset = apply("coprofile", outer)
    else:
        offset = offset_or_outer
    inner = static(inner) if isinstance(inner, (SwizzleSpec, CoordSwizzleSpec)) else inner
    if not isinstance(inner, (Layout, ComposedLayout, Swizzle, CoordSwizzle)):
        tracing.refuse(f"{what} takes a swizzle or a layout first, not {describe(inner)}")
    return apply("make_composed_layout", inner, int_tuple(offset, what), layout_of(outer, what))


# -- access ----------------------------------------------------------------------------------------


def layout_of(value: Any, what: str) -> DialectValue:
    """Returns a layout or a tensor. Refuses other values."""
    if isinstance(value, LayoutLike) or (
        isinstance(value, DialectValue) and hasattr(value.spec, "layout")
    ):
        return value
    return tracing.refuse(f"{what} takes a layout, not {describe(value)}")


def get_shape(layout: Any) -> Any:
    """The shape of a layout or tensor."""
    return _tuple_of("get_shape", layout)


def get_stride(layout: Any) -> Any:
    """The stride of a layout or tensor, in elements."""
    return _tuple_of("get_stride", layout)


def _tuple_of(name: str, layout: Any) -> Any:
    found = apply(name, layout_of(layout, f"fx.{name}"))
    return found if isinstance(found, IntTuple) else int_tuple(found)


def get_layout(memref: Any) -> Any:
    """The layout of a tensor."""
    return apply("get_layout", layout_of(memref, "fx.get_layout"))


def composed_get_inner(input: ComposedLayout) -> Any:
    """The part of a composed layout that is applied last."""
    return apply("composed_get_inner", layout_of(input, "fx.composed_get_inner"))


def composed_get_offset(input: ComposedLayout) -> Any:
    """The offset of a composed layout."""
    return apply("composed_get_offset", layout_of(input, "fx.composed_get_offset"))


def composed_get_outer(input: ComposedLayout) -> Any:
    """The part of a composed layout that is applied first."""
    return apply("composed_get_outer", layout_of(input, "fx.composed_get_outer"))
