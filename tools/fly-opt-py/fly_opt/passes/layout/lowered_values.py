"""What values of the fly dialect are while `fly-layout-lowering` runs.

They are the data of `fly_dialect.inference.computation`: trees, layouts, swizzles, tiles and Views.
Their integers are `Int` if the type says them and Scalars otherwise. The base of a memref's View is
the pointer's SSA value.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, TypeAlias

from fly_dialect.inference.computation import NESTED
from fly_dialect.inference.layouts import meaning_of, spec_of_meaning
from fly_dialect.layouts.int_tuple import type_of
from fly_dialect.layouts.layout import ComposedLayout, Layout
from fly_dialect.layouts.swizzle import CoordSwizzle, Swizzle
from fly_dialect.layouts.tile import Tile
from fly_dialect.types import CoordSwizzleSpec, Spec, SwizzleSpec, TileSpec

from fly_opt.ir.boundary import carriers

Meaning: TypeAlias = Any

# The result of `of_static_type` for a type that is not static. (None is a tree: `*`.)
UNKNOWN = object()

_DATA = (*NESTED.specs, SwizzleSpec, CoordSwizzleSpec, TileSpec)


@lru_cache(maxsize=4096)
def of_static_type(spec: Spec) -> Meaning:
    """Returns the meaning of a value that is static by its type; UNKNOWN for any other type."""
    if isinstance(spec, _DATA) and carriers(spec) == []:
        return meaning_of(spec)
    return UNKNOWN


def spec_of_known(meaning: Meaning) -> Spec:
    """Returns the type of a tree, layout, swizzle or tile."""
    if isinstance(meaning, (Layout, ComposedLayout)):
        return spec_of_meaning(meaning.type)
    if isinstance(meaning, (Swizzle, CoordSwizzle, Tile)):
        return spec_of_meaning(meaning)
    return spec_of_meaning(type_of(meaning))
