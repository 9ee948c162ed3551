"""The layout algebra: functions from coordinates to offsets, over constants and over SSA values.

Every function takes layouts and trees whose leaves are `Integer`s. `Int` is such a leaf, and what
it computes is the *type* of the result; a pass gives leaves that carry an SSA value, and the same
function then builds the code. So the type that a verifier recomputes and the code that a pass
builds cannot disagree. A result may hold `Int` leaves beside a pass's.

A bad argument is a ValueError that shows the shapes.
"""

from fly_dialect.algebra.arithmetic import (
    add,
    ceil_div,
    elem_less,
    elementwise,
    equal,
    product,
    product_each,
    product_like,
    shape_div,
)
from fly_dialect.algebra.coordinates import (
    coprofile,
    coshape,
    cosize,
    crd2idx,
    flat_index,
    get_1d_coord,
    get_flat_coord,
    idx2crd,
    size,
    slice_,
    slice_offset,
)
from fly_dialect.algebra.structure import (
    append,
    at,
    dice,
    flatten,
    group,
    integers,
    prepend,
    scalar,
    select,
    take,
    transform,
)

__all__ = [
    "add",
    "append",
    "at",
    "ceil_div",
    "coprofile",
    "coshape",
    "cosize",
    "crd2idx",
    "dice",
    "elem_less",
    "elementwise",
    "equal",
    "flat_index",
    "flatten",
    "get_1d_coord",
    "get_flat_coord",
    "group",
    "idx2crd",
    "integers",
    "prepend",
    "product",
    "product_each",
    "product_like",
    "scalar",
    "select",
    "shape_div",
    "size",
    "slice_",
    "slice_offset",
    "take",
    "transform",
]
