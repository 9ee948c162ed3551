"""The ops without side effects: each is a function of the layout algebra.

The table is used for types and for code. The verifier calls an op's function on its operands' types
(integers are `Int`) and gets the result's type. `fly-layout-lowering` calls it on the operands'
values (integers carry SSA values) and gets code. Attributes are passed by name.

    int_tuple         a tree
    layout            Layout, ComposedLayout
    swizzle, tile     Swizzle, CoordSwizzle, Tile
    memref            View of a pointer and a layout
    coord_tensor      View of a tree and a layout
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from fly_common.record import record

from fly_dialect import algebra
from fly_dialect.layouts.int_tuple import Tree, is_tree
from fly_dialect.layouts.layout import AnyLayout, ComposedLayout, Layout
from fly_dialect.types import (
    ComposedLayoutSpec,
    CoordSwizzleSpec,
    CoordTensorSpec,
    IntTupleSpec,
    LayoutSpec,
    MemRefSpec,
    SwizzleSpec,
    TileSpec,
)


@record
class View:
    """The parts of a memref or coord_tensor. `base` is a tree, or represents a pointer."""

    base: Any
    layout: AnyLayout


@record
class Kind:
    """The kind of an operand: its name, and its specs."""

    name: str
    specs: tuple[type, ...]


TUPLE = Kind("an int_tuple", (IntTupleSpec,))
LAYOUT = Kind("a layout", (LayoutSpec,))
COMPOSED = Kind("a composed_layout", (ComposedLayoutSpec,))
NARROW = Kind("a layout or composed_layout", (LayoutSpec, ComposedLayoutSpec))
VIEW = Kind("a memref or coord_tensor", (MemRefSpec, CoordTensorSpec))
LAYOUT_LIKE = Kind("a layout, memref or coord_tensor", (*NARROW.specs, *VIEW.specs))
NESTED = Kind("an int_tuple, layout, memref or coord_tensor", (*TUPLE.specs, *LAYOUT_LIKE.specs))
TUPLE_OR_NARROW = Kind("an int_tuple or layout", (*TUPLE.specs, *NARROW.specs))
DIVISOR = Kind("a layout or tile", (LayoutSpec, TileSpec))
MAP = Kind("a layout or swizzle", (*NARROW.specs, SwizzleSpec, CoordSwizzleSpec))


@record
class Computation:
    """An op: its function, the kinds of its operands, of which the last `optional` are optional,
    and the attributes that are passed by name. Those in `defaults` are optional."""

    function: Callable[..., Any]
    operands: tuple[Kind, ...]
    optional: int = 0
    attributes: tuple[str, ...] = ()
    defaults: tuple[str, ...] = ()

    def __call__(self, operands: Iterable[Any], attributes: Mapping[str, Any]) -> Any:
        """Computes the op's result. `attributes` may contain other attributes as well."""
        for name in self.attributes:
            if name not in attributes:
                raise ValueError(f"needs the attribute {name}")
        names = (*self.attributes, *(name for name in self.defaults if name in attributes))
        return self.function(*operands, **{name: attributes[name] for name in names})


def _of_layout(function: Callable[..., Any]) -> Callable[..., Any]:
    """Extends a function of a layout to views. It ignores the base."""

    def compute(source: Any, *rest: Any) -> Any:
        return function(source.layout if isinstance(source, View) else source, *rest)

    return compute


def _as_view(function: Callable[..., Any]) -> Callable[..., Any]:
    """Extends a function from layout to layout to views. It keeps the base."""

    def compute(source: Any, *rest: Any, **attributes: Any) -> Any:
        if isinstance(source, View):
            return View(source.base, function(source.layout, *rest, **attributes))
        return function(source, *rest, **attributes)

    return compute


def _stride(layout: AnyLayout) -> Tree:
    if isinstance(layout, ComposedLayout):
        raise ValueError(f"{layout} has no stride: it is composed")
    return layout.stride


def _get(source: Any, mode: list[int]) -> Any:
    """A part of a tree, layout or view. For a view of coordinates, also a part of its base."""
    path = tuple(mode)
    if not isinstance(source, View):
        return algebra.at(source, path)
    base = algebra.at(source.base, path) if is_tree(source.base) else source.base
    return View(base, algebra.at(source.layout, path))


def _recast(layout: AnyLayout, *, new_type_bits: int, old_type_bits: int) -> AnyLayout:
    return algebra.recast_layout(layout, old_type_bits, new_type_bits)


COMPUTATIONS: dict[str, Computation] = {
    # Construction
    "make_layout": Computation(Layout, (TUPLE, TUPLE)),
    "make_layout_like": Computation(algebra.make_layout_like, (LAYOUT,)),
    "make_ordered_layout": Computation(algebra.make_ordered_layout, (TUPLE, TUPLE)),
    "make_composed_layout": Computation(ComposedLayout, (MAP, TUPLE, NARROW)),
    "make_identity_layout": Computation(algebra.make_identity_layout, (TUPLE,)),
    "make_fragment_layout_like": Computation(
        _of_layout(algebra.make_fragment_layout_like), (LAYOUT_LIKE,)
    ),
    # Extraction
    "get_shape": Computation(_of_layout(lambda layout: layout.shape), (LAYOUT_LIKE,)),
    "get_stride": Computation(_of_layout(_stride), (LAYOUT_LIKE,)),
    "get_layout": Computation(lambda view: view.layout, (VIEW,)),
    "composed_get_inner": Computation(lambda layout: layout.inner, (COMPOSED,)),
    "composed_get_offset": Computation(lambda layout: layout.offset, (COMPOSED,)),
    "composed_get_outer": Computation(lambda layout: layout.outer, (COMPOSED,)),
    # Arithmetic of tuples
    **{
        name: Computation(partial(algebra.elementwise, name), (TUPLE, TUPLE))
        for name in (
            "int_tuple_add",
            "int_tuple_sub",
            "int_tuple_mul",
            "int_tuple_div",
            "int_tuple_mod",
        )
    },
    "int_tuple_product": Computation(algebra.product, (TUPLE,)),
    "int_tuple_product_each": Computation(algebra.product_each, (TUPLE,)),
    "int_tuple_product_like": Computation(algebra.product_like, (TUPLE, TUPLE)),
    "shape_div": Computation(algebra.shape_div, (TUPLE, TUPLE)),
    "ceil_div": Computation(algebra.ceil_div, (TUPLE, TUPLE)),
    # Modes. (`slice` moves the base of a view: see `infer_layout` and the pass.)
    "get": Computation(_get, (NESTED,), attributes=("mode",)),
    "take": Computation(_as_view(algebra.take), (NESTED,), attributes=("begin", "end")),
    "select": Computation(_as_view(algebra.select), (NESTED,), attributes=("indices",)),
    "group": Computation(_as_view(algebra.group), (NESTED,), attributes=("begin", "end")),
    "append": Computation(algebra.append, (TUPLE_OR_NARROW,) * 2, defaults=("n",)),
    "prepend": Computation(algebra.prepend, (TUPLE_OR_NARROW,) * 2, defaults=("n",)),
    "dice": Computation(algebra.dice, (TUPLE_OR_NARROW, TUPLE)),
    # Layouts
    "size": Computation(_of_layout(algebra.size), (NESTED,)),
    "coprofile": Computation(_of_layout(algebra.coprofile), (LAYOUT_LIKE,)),
    "coshape": Computation(_of_layout(algebra.coshape), (LAYOUT_LIKE,)),
    "cosize": Computation(_of_layout(algebra.cosize), (LAYOUT_LIKE,)),
    "crd2idx": Computation(algebra.crd2idx, (TUPLE, MAP)),
    "idx2crd": Computation(algebra.idx2crd, (TUPLE, LAYOUT)),
    "get_flat_coord": Computation(algebra.get_flat_coord, (TUPLE, LAYOUT)),
    "get_1d_coord": Computation(algebra.get_1d_coord, (TUPLE, LAYOUT)),
    "coalesce": Computation(_as_view(algebra.coalesce), (LAYOUT_LIKE, TUPLE), optional=1),
    "composition": Computation(_as_view(algebra.composition), (LAYOUT_LIKE, DIVISOR)),
    "complement": Computation(algebra.complement, (NARROW, TUPLE), optional=1),
    "right_inverse": Computation(algebra.right_inverse, (NARROW,)),
    "left_inverse": Computation(algebra.left_inverse, (NARROW,)),
    "logical_divide": Computation(_as_view(algebra.logical_divide), (LAYOUT_LIKE, DIVISOR)),
    "zipped_divide": Computation(_as_view(algebra.zipped_divide), (LAYOUT_LIKE, DIVISOR)),
    "tiled_divide": Computation(_as_view(algebra.tiled_divide), (LAYOUT_LIKE, DIVISOR)),
    "flat_divide": Computation(_as_view(algebra.flat_divide), (LAYOUT_LIKE, DIVISOR)),
    "logical_product": Computation(algebra.logical_product, (NARROW, LAYOUT)),
    "zipped_product": Computation(algebra.zipped_product, (NARROW, LAYOUT)),
    "tiled_product": Computation(algebra.tiled_product, (NARROW, LAYOUT)),
    "flat_product": Computation(algebra.flat_product, (NARROW, LAYOUT)),
    "blocked_product": Computation(algebra.blocked_product, (NARROW, LAYOUT)),
    "raked_product": Computation(algebra.raked_product, (NARROW, LAYOUT)),
    "recast_layout": Computation(_recast, (NARROW,), attributes=("new_type_bits", "old_type_bits")),
    "tile_to_shape": Computation(algebra.tile_to_shape, (NARROW, TUPLE, TUPLE)),
}
