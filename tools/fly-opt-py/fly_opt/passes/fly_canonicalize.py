"""`fly-canonicalize`: one form for what is known when compiling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from fly_dialect import ops
from fly_dialect.bindings import ir
from fly_dialect.dialect import PREFIX, int_tuple_of, spec_of
from fly_dialect.layout import is_static
from fly_dialect.op_table import OPS
from fly_dialect.types import IntTupleSpec, LayoutSpec, Spec

from fly_opt.passes.base import Pass
from fly_opt.passes.fly_builder import operations, unused

MAKERS = frozenset(("make_shape", "make_stride", "make_coord"))


@dataclass(frozen=True)
class Canonicalize(Pass):
    """Brings static tuples and layouts into normal form.

    An op whose result is a static int_tuple becomes `fly.make_int_tuple()`, one whose result is a
    static layout a make_layout of two such; make_shape, make_stride and make_coord become
    make_int_tuple. Pure fly ops that nothing uses any more are erased.
    """

    name: ClassVar[str] = "fly-canonicalize"

    def run(self, op: Any) -> None:
        found = [inner for inner in operations(op) if inner.name.startswith(PREFIX)]
        for inner in found:
            _normalise(inner)
        for inner in reversed(found):
            info = OPS.get(inner.name[len(PREFIX) :])
            if info and info.pure and all(unused(result) for result in inner.results):
                inner.erase()


def _normalise(op: Any) -> None:
    name = op.name[len(PREFIX) :]
    if len(op.results) != 1 or name in ("make_int_tuple", "make_layout"):
        return
    result = op.results[0]
    spec = spec_of(result.type)
    at = {"loc": op.location, "ip": ir.InsertionPoint(op)}
    if name in MAKERS:
        made = ops.make_int_tuple(*op.operands, spec=int_tuple_of(result), **at)
    else:
        made = _static(spec, at)
    if made is not None:
        result.replace_all_uses_with(made)


def _static(spec: Spec, at: dict[str, Any]) -> Any:
    if isinstance(spec, IntTupleSpec) and is_static(spec.value):
        return ops.make_int_tuple(spec=spec, **at)
    if isinstance(spec, LayoutSpec) and spec.layout.is_static:
        shape = _static(IntTupleSpec(spec.layout.shape), at)
        return ops.make_layout(shape, _static(IntTupleSpec(spec.layout.stride), at), **at)
    return None
