"""`fly-canonicalize`: normalises values that are known at compile time."""

from __future__ import annotations

from typing import ClassVar

from fly_common.record import record
from fly_dialect.bindings import ir
from fly_dialect.builders import ops
from fly_dialect.dialect import PREFIX, int_tuple_of, spec_of
from fly_dialect.op_table import OPS
from fly_dialect.types import (
    CoordSwizzleSpec,
    SwizzleSpec,
    TileSpec,
)

from fly_opt.ir import static_values
from fly_opt.ir.boundary import carriers
from fly_opt.ir.builder import operations, unused
from fly_opt.passes.base import Pass

# Synonyms of make_int_tuple.
ALIASES = frozenset(("make_shape", "make_stride", "make_coord"))
# Types whose static values only `fly.static` builds.
NO_OTHER_FORM = (SwizzleSpec, CoordSwizzleSpec, TileSpec)
# The ops that are the normal form of a static value.
NORMAL = frozenset(
    (
        "make_int_tuple",
        "make_layout",
        "make_composed_layout",
        "make_view",
        "make_copy_atom",
        "make_mma_atom",
        "make_tiled_copy",
        "make_tiled_mma",
    )
)


@record
class Canonicalize(Pass):
    """Normalises static tuples, layouts and atoms.

    An op whose result is a static int_tuple becomes `fly.make_int_tuple()`; a static layout becomes
    a make_layout of two of those; a static composed layout, coord_tensor, tiled copy or tiled mma
    becomes the op that makes it from such parts. make_shape, make_stride and make_coord become
    make_int_tuple. Pure fly ops without uses are erased.
    """

    name: ClassVar[str] = "fly-canonicalize"

    def run(self, op: ir.Operation) -> None:
        # In reverse: an op that its user no longer needs is erased instead of normalised.
        for inner in reversed(operations(op)):
            if inner.name.startswith(PREFIX) and not _erased(inner):
                _normalise(inner)
                _erased(inner)


def _erased(op: ir.Operation) -> bool:
    """Erases an op that has no side effects and no uses; returns whether it did."""
    info = OPS.get(op.name[len(PREFIX) :])
    if info is None or not info.pure or not all(map(unused, op.results)):
        return False
    op.erase()
    return True


def _normalise(op: ir.Operation) -> None:
    name = op.name[len(PREFIX) :]
    if len(op.results) != 1 or name in NORMAL:
        return
    result = op.results[0]
    spec = spec_of(result.type)
    at = {"loc": op.location, "ip": ir.InsertionPoint(op)}
    if name in ALIASES:
        result.replace_all_uses_with(
            ops.make_int_tuple(*op.operands, spec=int_tuple_of(result), **at)
        )
    elif carriers(spec) == [] and not (name == "static" and isinstance(spec, NO_OTHER_FORM)):
        result.replace_all_uses_with(static_values.make(spec, **at))
