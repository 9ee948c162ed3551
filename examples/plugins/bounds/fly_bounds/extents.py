"""The pass `bounds-extents`: marks the kernels' tensors with the extents of their memory.

A kernel's argument becomes a view at the kernel's entry: a pointer with a layout. The mark is a
call, which stays in place while layouts and pointers are lowered:

    llvm.call @fly_bounds_extent(%pointer, %low, %high)     offsets in elements: low ≤ offset < high
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fly_opt.passes.base import Pass

MARK = "fly_bounds_extent"
NAME, BITS = "bounds.name", "bounds.bits"


@dataclass(frozen=True)
class Extents(Pass):
    """Marks kernels' tensors with the extents of their memory."""

    name: ClassVar[str] = "bounds-extents"

    def run(self, op):
        from fly_opt.passes.instrumentation.building import add_functions, gpu_modules, kernels

        for module in gpu_modules(op):
            marked = [view for kernel in kernels(module) for view in tensors(kernel)]
            for view in marked:
                _mark(view)
            if marked:
                add_functions(module, f"llvm.func @{MARK}(!llvm.ptr<1>, i64, i64)", MARK)


def tensors(kernel):
    """The views that are a kernel's tensors: of a pointer that nothing else in the kernel uses."""
    from fly_dialect.algebra import flatten
    from fly_dialect.dialect import spec_of
    from fly_dialect.layouts.integers import Int
    from fly_dialect.layouts.layout import Layout
    from fly_dialect.types import MemRefSpec

    entry = kernel.regions[0].blocks[0]
    found = []
    for argument in entry.arguments:
        uses = list(argument.uses)
        if len(uses) != 1 or uses[0].owner.operation.name != "fly.make_view":
            continue
        view = uses[0].owner.operation
        spec = spec_of(view.results[0].type)
        if view.block != entry or not isinstance(spec, MemRefSpec) or spec.space != "global":
            continue
        strides = flatten(spec.layout.stride) if isinstance(spec.layout, Layout) else [None]
        if all(isinstance(one, Int) for one in strides):
            found.append(view)
    return found


def _mark(view) -> None:
    from fly_dialect.bindings import ir
    from fly_dialect.builders import ops
    from fly_dialect.builders.building import build
    from fly_dialect.dialect import spec_of
    from fly_dialect.types import bits
    from fly_opt.passes.instrumentation.building import SLE, Arithmetic, call

    ip, loc = ir.InsertionPoint.after(view), view.location
    tensor = view.results[0]
    spec = spec_of(tensor.type)
    at = Arithmetic(ip, loc)

    def leaves(tree):
        found = build("get_leaves", [tree], loc=loc, ip=ip)
        return [at.wide(one) for one in (found if isinstance(found, list) else [found])]

    shape = leaves(ops.get_shape(tensor, loc=loc, ip=ip))
    stride = leaves(ops.get_stride(tensor, loc=loc, ip=ip))
    zero, one = at.constant(0), at.constant(1)
    low, high, some = zero, one, None
    for extent, step in zip(shape, stride, strict=True):
        last = at.mul(at.sub(extent, one), step)
        low, high = at.add(low, at.min(last, zero)), at.add(high, at.max(last, zero))
        empty = at.compare(SLE, extent, zero)
        some = empty if some is None else at.either(some, empty)
    if some is not None:
        low, high = at.select(some, zero, low), at.select(some, zero, high)
    pointer = ops.to_llvm_ptr(view.operands[0], loc=loc, ip=ip)
    mark = call(ip, loc, MARK, [pointer, low, high])
    mark.attributes[NAME] = ir.StringAttr.get(name_of(view.operands[0]))
    mark.attributes[BITS] = ir.IntegerAttr.get(at.i64, bits(spec.element))


def name_of(argument) -> str:
    """The name of a kernel's argument in its source."""
    from fly_dialect.bindings import ir

    location = argument.location
    if isinstance(location, ir.NameLoc):
        return location.name_str
    return f"argument {argument.arg_number}"
