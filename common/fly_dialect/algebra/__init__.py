"""The layout algebra: functions from coordinates to offsets, over constants or SSA values.

Every function takes layouts and trees whose leaves are `Integer`s. `Int` is a leaf that computes
the *type* of the result. A pass provides leaves that carry an SSA value, and the same function then
builds the code. The type that a verifier infers and the code that a pass builds therefore cannot
disagree. A result may contain `Int` leaves besides those of a pass.

Invalid arguments raise a ValueError that shows the shapes.
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
from fly_dialect.algebra.coalescing import coalesce
from fly_dialect.algebra.composition import composition
from fly_dialect.algebra.construction import (
    make_identity_layout,
    make_layout_like,
    make_ordered_layout,
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
    origin,
    size,
    slice_,
    slice_offset,
)
from fly_dialect.algebra.division import (
    flat_divide,
    logical_divide,
    tiled_divide,
    zipped_divide,
)
from fly_dialect.algebra.inverse import complement, left_inverse, right_inverse
from fly_dialect.algebra.multiplication import (
    blocked_product,
    flat_product,
    logical_product,
    raked_product,
    tile_to_shape,
    tiled_product,
    zipped_product,
)
from fly_dialect.algebra.partition import (
    local_partition,
    local_tile,
    make_fragment_layout_like,
    make_layout_tv,
    thread_coord,
    thread_tile,
    tile_coord,
)
from fly_dialect.algebra.recast import recast_layout
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
    "blocked_product",
    "ceil_div",
    "coalesce",
    "complement",
    "composition",
    "coprofile",
    "coshape",
    "cosize",
    "crd2idx",
    "dice",
    "elem_less",
    "elementwise",
    "equal",
    "flat_divide",
    "flat_index",
    "flat_product",
    "flatten",
    "get_1d_coord",
    "get_flat_coord",
    "group",
    "idx2crd",
    "integers",
    "left_inverse",
    "local_partition",
    "local_tile",
    "logical_divide",
    "logical_product",
    "make_fragment_layout_like",
    "make_identity_layout",
    "make_layout_like",
    "make_layout_tv",
    "make_ordered_layout",
    "origin",
    "prepend",
    "product",
    "product_each",
    "product_like",
    "raked_product",
    "recast_layout",
    "right_inverse",
    "scalar",
    "select",
    "shape_div",
    "size",
    "slice_",
    "slice_offset",
    "take",
    "thread_coord",
    "thread_tile",
    "tile_coord",
    "tile_to_shape",
    "tiled_divide",
    "tiled_product",
    "transform",
    "zipped_divide",
    "zipped_product",
]
