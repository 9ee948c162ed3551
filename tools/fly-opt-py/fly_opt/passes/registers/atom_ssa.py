"""`fly-convert-atom-call-to-ssa-form`: passes registers to atoms as values instead of memory."""

from __future__ import annotations

from functools import lru_cache
from typing import ClassVar

from fly_common.record import record
from fly_dialect.bindings import ir
from fly_dialect.dialect import memref_of, spec_of, type_of
from fly_dialect.layouts.int_tuple import leaves
from fly_dialect.layouts.integers import Int
from fly_dialect.layouts.layout import AnyLayout, Layout
from fly_dialect.types import MemRefSpec

from fly_opt.ir.builder import Attributes, operations
from fly_opt.ir.storage import storage_type
from fly_opt.passes.base import Pass


@record
class ConvertAtomCalls(Pass):
    """Gives copy_atom_call and mma_atom_call vectors for contiguous register memrefs.

    A register memref that is read becomes a ptr.load and a vector operand of copy_atom_call_ssa or
    mma_atom_call_ssa; one that is written becomes a vector result and a ptr.store. A copy under a
    predicate also reads its old destination. Other memrefs and non-contiguous registers stay
    memrefs; a call with only such operands is unchanged.
    """

    name: ClassVar[str] = "fly-convert-atom-call-to-ssa-form"
    only_with: ClassVar[tuple[str, ...]] = ("copy", "gemm", "atom")

    def run(self, op: ir.Operation) -> bool:
        pointers: dict[ir.Value, ir.Value] = {}  # view → its pointer
        changed = False
        # The hundreds of calls in a module share a few operand types.
        known: dict[ir.Type, ir.Type | None] = {}
        for inner in operations(op):
            if inner.name == "fly.make_view":
                pointers[inner.results[0]] = inner.operands[0]
            elif inner.name in _CONVERT:
                _Call(inner, pointers, known).convert()
                changed = True
        return changed


class _Call:
    """One atom call, and the registers among its operands."""

    def __init__(
        self,
        op: ir.Operation,
        pointers: dict[ir.Value, ir.Value],
        known: dict[ir.Type, ir.Type | None],
    ) -> None:
        self.op = op
        self.pointers = pointers
        self.operands = list(op.operands)
        self.types: list[ir.Type | None] = []
        for operand in self.operands:
            type_ = operand.type
            if type_ not in known:
                known[type_] = register_type(type_)
            self.types.append(known[type_])

    def convert(self) -> None:
        if any(self.types):
            _CONVERT[self.op.name](self)
            self.op.erase()

    def build(
        self,
        name: str,
        results: list[ir.Type],
        operands: list[ir.Value],
        attributes: Attributes | None,
    ) -> ir.Operation:
        return ir.Operation.create(
            f"fly.{name}",
            results=results,
            operands=operands,
            attributes=attributes,
            loc=self.op.location,
            ip=ir.InsertionPoint(self.op),
        )

    def pointer(self, index: int) -> ir.Value:
        view = self.operands[index]
        if view not in self.pointers:
            type_ = type_of(memref_of(view).pointer)
            self.pointers[view] = self.build("get_iter", [type_], [view], None).results[0]
        return self.pointers[view]

    def read(self, index: int) -> ir.Value:
        """Returns an operand as a value: the content of its registers, or the memref itself."""
        type_ = self.types[index]
        if type_ is None:
            return self.operands[index]
        return self.build("ptr.load", [type_], [self.pointer(index)], None).results[0]

    def write(self, call: ir.Operation, index: int) -> None:
        self.build("ptr.store", [], [call.results[0], self.pointer(index)], None)

    def copy(self) -> None:
        atom, source = self.operands[0], self.read(1)
        predicate = [self.read(3)] if len(self.operands) == 4 else []
        result = self.types[2]
        # If the predicate is false, the copy's result is the old destination.
        old = [self.read(2)] if predicate or result is None else []
        segments = ir.DenseI32ArrayAttr.get([1, 1, len(old), len(predicate)])
        call = self.build(
            "copy_atom_call_ssa",
            [] if result is None else [result],
            [atom, source, *old, *predicate],
            {"operandSegmentSizes": segments},
        )
        if result is not None:
            self.write(call, 2)

    def mma(self) -> None:
        # Operands: the atom, d, a, b, c.
        inputs = [self.read(index) for index in (2, 3, 4)]
        result = self.types[1]
        if result is None:
            self.build("mma_atom_call_ssa", [], [self.operands[0], self.operands[1], *inputs], None)
        else:
            call = self.build("mma_atom_call_ssa", [result], [self.operands[0], *inputs], None)
            self.write(call, 1)


_CONVERT = {"fly.copy_atom_call": _Call.copy, "fly.mma_atom_call": _Call.mma}


def register_type(type_: ir.Type) -> ir.Type | None:
    """Returns the type of contiguous registers as one value: a vector, or a scalar for one element.
    None for memrefs elsewhere, for registers with gaps or in another order, and for other types."""
    spec = spec_of(type_)
    if not isinstance(spec, MemRefSpec) or spec.space != "register":
        return None
    count = contiguous(spec.layout)
    if count is None:
        return None
    element = storage_type(spec.element)
    return element if count == 1 else ir.VectorType.get([count], element)


@lru_cache(maxsize=256)
def contiguous(layout: AnyLayout) -> int | None:
    """Returns the size of a static layout that maps index i to offset i; None for any other."""
    if not isinstance(layout, Layout) or not layout.is_static:
        return None
    count = 1
    for extent, stride in zip(leaves(layout.shape), leaves(layout.stride), strict=True):
        if not isinstance(extent, Int) or extent.value is None or extent.value == 1:
            continue
        if not isinstance(stride, Int) or stride.value != count:
            return None
        count *= extent.value
    return count
