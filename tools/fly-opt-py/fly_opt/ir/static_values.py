"""Builds the normal form of a value that is static by its type."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fly_dialect.atoms import CopyAtomSpec, MmaAtomSpec, TiledCopySpec, TiledMmaSpec
from fly_dialect.builders import ops
from fly_dialect.types import IntTupleSpec, LayoutSpec, Spec, TileSpec

from fly_opt.ir.boundary import MAKERS, parts

if TYPE_CHECKING:
    from fly_dialect.bindings import ir


def make(spec: Spec, *, loc: ir.Location | None, ip: ir.InsertionPoint | None) -> ir.Value:
    """Builds the value at `ip`. `spec` must be a type that `carriers` finds static."""
    at = {"loc": loc, "ip": ip}

    def of(*specs: Spec) -> list[ir.Value]:
        return [make(part, **at) for part in specs]

    if isinstance(spec, IntTupleSpec):
        return ops.make_int_tuple(spec=spec, **at)
    if isinstance(spec, CopyAtomSpec):
        return ops.make_copy_atom(spec.op, spec.bits, **at)
    if isinstance(spec, MmaAtomSpec):
        return ops.make_mma_atom(spec.op, **at)
    if isinstance(spec, TiledCopySpec):
        made = of(spec.atom, LayoutSpec(spec.layout_tv), TileSpec(spec.tile))
        return ops.make_tiled_copy(*made, **at)
    if isinstance(spec, TiledMmaSpec):
        made = of(spec.atom, LayoutSpec(spec.atom_layout), TileSpec(spec.permutation))
        return ops.make_tiled_mma(*made, **at)
    if type(spec) in MAKERS:
        name, order = MAKERS[type(spec)]
        made = of(*parts(spec))
        return ops.build(name, [made[index] for index in order], **at)
    return ops.static(spec, **at)
