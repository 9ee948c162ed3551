"""What values of the fly dialect stand for while `fly-layout-lowering` is at work.

They are the data of `fly_dialect.inference.computation`: trees, layouts, swizzles, tiles and Views,
whose integers are `Int` where the type says them and Scalars where it doesn't. A memref's View has
the pointer's SSA value for its base.
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

# What `of_static_type` gives for a type that does not say it all. (None is a tree: `*`.)
UNKNOWN = object()

_DATA = (*NESTED.specs, SwizzleSpec, CoordSwizzleSpec, TileSpec)


@lru_cache(maxsize=4096)
def of_static_type(spec: Spec) -> Meaning:
    """What a value stands for whose type says it all; UNKNOWN for any other type."""
    if isinstance(spec, _DATA) and carriers(spec) == []:
        return meaning_of(spec)
    return UNKNOWN


def spec_of_known(meaning: Meaning) -> Spec:
    """The type of a tree, layout, swizzle or tile."""
    if isinstance(meaning, (Layout, ComposedLayout)):
        return spec_of_meaning(meaning.type)
    if isinstance(meaning, (Swizzle, CoordSwizzle, Tile)):
        return spec_of_meaning(meaning)
    return spec_of_meaning(type_of(meaning))
