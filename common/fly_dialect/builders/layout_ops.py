"""Builders of the ops that compute tuples and layouts: one function per op, as in
`fly_dialect.builders.ops`.

Each takes the op's operands, then its attributes by name, then `loc` and `ip`. Optional operands
may be None: `coalesce(layout, None)`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from fly_dialect.bindings import ir
from fly_dialect.builders.building import Ip, Loc, Value, build
from fly_dialect.dialect import type_of
from fly_dialect.inference.computation import COMPUTATIONS


class Builder(Protocol):
    def __call__(
        self, *operands: Value | None, loc: Loc = None, ip: Ip = None, **attributes: Any
    ) -> Value: ...


def _builder(name: str) -> Builder:
    def op(*operands: Value | None, loc: Loc = None, ip: Ip = None, **attributes: Any) -> Value:
        given = [operand for operand in operands if operand is not None]
        encoded = {key: _attribute(data) for key, data in attributes.items() if data is not None}
        return build(name, given, None, encoded, loc=loc, ip=ip)

    op.__name__ = op.__qualname__ = name
    if name in COMPUTATIONS:
        op.__doc__ = COMPUTATIONS[name].function.__doc__
    return op


def _attribute(data: int | str | Sequence[int]) -> ir.Attribute:
    """Converts an integer to i32, several to an array of i32, and a type's name to the type."""
    if isinstance(data, int):
        return ir.IntegerAttr.get(ir.IntegerType.get_signless(32), data)
    if isinstance(data, str):
        return ir.TypeAttr.get(type_of(data))
    return ir.DenseI32ArrayAttr.get(list(data))


make_layout_like = _builder("make_layout_like")  # (layout)
make_ordered_layout = _builder("make_ordered_layout")  # (shape, order)
make_composed_layout = _builder("make_composed_layout")  # (inner, offset, outer)
make_identity_layout = _builder("make_identity_layout")  # (shape)
make_fragment_layout_like = _builder("make_fragment_layout_like")  # (layout)
make_fragment_like = _builder("make_fragment_like")  # (layout or view, dtype="f32")
composed_get_inner = _builder("composed_get_inner")  # (composed)
composed_get_offset = _builder("composed_get_offset")  # (composed)
composed_get_outer = _builder("composed_get_outer")  # (composed)
int_tuple_add = _builder("int_tuple_add")  # (lhs, rhs), as for those below
int_tuple_sub = _builder("int_tuple_sub")
int_tuple_mul = _builder("int_tuple_mul")
int_tuple_div = _builder("int_tuple_div")
int_tuple_mod = _builder("int_tuple_mod")
shape_div = _builder("shape_div")
ceil_div = _builder("ceil_div")
elem_less = _builder("elem_less")
equal = _builder("equal")
int_tuple_product = _builder("int_tuple_product")  # (tuple)
int_tuple_product_each = _builder("int_tuple_product_each")  # (tuple)
int_tuple_product_like = _builder("int_tuple_product_like")  # (tuple, guide)
take = _builder("take")  # (nested, begin=0, end=1)
select = _builder("select")  # (nested, indices=[1, 0])
group = _builder("group")  # (nested, begin=0, end=1)
append = _builder("append")  # (nested, element, n=3)
prepend = _builder("prepend")  # (nested, element, n=3)
slice_ = _builder("slice")  # (nested, coord)
dice = _builder("dice")  # (nested, coord)
coprofile = _builder("coprofile")  # (layout)
coshape = _builder("coshape")  # (layout)
idx2crd = _builder("idx2crd")  # (index, layout), as for those below
get_flat_coord = _builder("get_flat_coord")
get_1d_coord = _builder("get_1d_coord")
coalesce = _builder("coalesce")  # (layout, pattern)
composition = _builder("composition")  # (outer, inner layout or tile)
complement = _builder("complement")  # (layout, cotarget)
right_inverse = _builder("right_inverse")  # (layout)
left_inverse = _builder("left_inverse")  # (layout)
logical_divide = _builder("logical_divide")  # (layout, layout or tile), as for those below
zipped_divide = _builder("zipped_divide")
tiled_divide = _builder("tiled_divide")
flat_divide = _builder("flat_divide")
logical_product = _builder("logical_product")  # (block, tiler), as for those below
zipped_product = _builder("zipped_product")
tiled_product = _builder("tiled_product")
flat_product = _builder("flat_product")
blocked_product = _builder("blocked_product")
raked_product = _builder("raked_product")
recast_layout = _builder("recast_layout")  # (layout, new_type_bits=16, old_type_bits=8)
tile_to_shape = _builder("tile_to_shape")  # (block, shape, order)
decomposition = _builder("decomposition")  # (view)
apply_swizzle = _builder("apply_swizzle")  # (ptr, swizzle)
