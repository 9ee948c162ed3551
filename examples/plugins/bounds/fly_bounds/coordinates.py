"""The pass `bounds-coordinates`: checks each coordinate of an access against its axis.

An index that is out of bounds for its axis may still be inside the tensor's memory, and only
here are axes known. What is accessed by whole views (copies) is inside these by construction.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fly_opt.passes.base import Pass

TEXT = "bounds: {what} of {name}: index {{0}} is out of bounds for axis {{2}} with size {{1}}"
_VIEW = {"fly.memref.load": (0, 1), "fly.memref.store": (1, 2)}
_ATOMICS = ("llvm.atomicrmw", "llvm.cmpxchg")


@dataclass(frozen=True)
class Coordinates(Pass):
    """Checks each coordinate of an access against its axis."""

    name: ClassVar[str] = "bounds-coordinates"

    def run(self, op):
        from fly_opt.passes.instrumentation.building import gpu_modules, kernels
        from fly_opt.passes.instrumentation.reports import Reports

        for module in gpu_modules(op):
            reports = Reports(module)
            for kernel in kernels(module):
                _Kernel(kernel, reports).run()
            reports.finish()


class _Kernel:
    def __init__(self, kernel, reports):
        from fly_dialect.bindings import ir

        self.kernel, self.reports = kernel, reports
        self.name = ir.StringAttr(kernel.attributes["sym_name"]).value

    def run(self) -> None:
        from fly_opt.ir.builder import operations

        for op in operations(self.kernel):
            if op.name in _VIEW:
                view, coordinate = (op.operands[n] for n in _VIEW[op.name])
                what = "load" if op.name == "fly.memref.load" else "store"
                self._check(op, what, view, coordinate)
            elif op.name in _ATOMICS:
                self._atomic(op)

    def _atomic(self, op) -> None:
        """An atomic update of a tensor's element: crd2idx, get_iter, add_offset, to_llvm_ptr."""
        pointer = _source(op.operands[0], "fly.to_llvm_ptr")
        moved = pointer and _source(pointer.operands[0], "fly.add_offset")
        base = moved and _source(moved.operands[0], "fly.get_iter")
        index = moved and _source(moved.operands[1], "fly.crd2idx")
        if base and index:
            self._check(op, "atomic update", base.operands[0], index.operands[0])

    def _check(self, op, what: str, view, coordinate) -> None:
        from fly_dialect.algebra import integers
        from fly_dialect.bindings import ir
        from fly_dialect.builders import ops
        from fly_dialect.builders.building import build
        from fly_dialect.dialect import spec_of
        from fly_dialect.types import IntTupleSpec, MemRefSpec
        from fly_opt.passes.instrumentation.building import ULT, Arithmetic, guarded

        spec, where = spec_of(view.type), spec_of(coordinate.type)
        if not isinstance(spec, MemRefSpec) or not isinstance(where, IntTupleSpec):
            return
        shape = spec.layout.shape
        axes = _axes(where.value, shape)
        if axes is None:
            return
        given, sizes = integers(where.value), integers(shape)
        wrong = [
            axis for axis in axes if not _is_inside(given[axis[0]], [sizes[n] for n in axis[1]])
        ]
        if not wrong:
            return
        ip, loc = ir.InsertionPoint(op), op.location
        at = Arithmetic(ip, loc)

        def leaves(tree):
            found = build("get_leaves", [tree], loc=loc, ip=ip)
            return [at.wide(one) for one in (found if isinstance(found, list) else [found])]

        coordinates = leaves(coordinate)
        extents = leaves(ops.get_shape(view, loc=loc, ip=ip))
        values, fine = None, None
        for leaf, group, axis in reversed(wrong):
            extent = at.product([extents[n] for n in group])
            inside = at.compare(ULT, coordinates[leaf], extent)
            mine = (coordinates[leaf], extent, at.constant(axis))
            if values is None:
                values, fine = mine, inside
            else:
                values = tuple(at.select(inside, *pair) for pair in zip(values, mine, strict=True))
                fine = at.both(fine, inside)
        text = TEXT.format(what=what, name=_name(view))
        site = self.reports.site(self.name, text, loc)
        # Values of registers may be no memory at all, and their extents are the compiler's.
        skip = spec.space != "register" and all(_has_zero(one.type) for one in op.results)
        guarded(op, fine, lambda then: self.reports.emit(then.ip, loc, site, values), skip)


def _has_zero(type_) -> bool:
    from fly_dialect.bindings import ir

    return isinstance(type_, (ir.IntegerType, ir.FloatType, ir.VectorType))


def _source(value, name: str):
    """The op `name` that makes a value; None if another one does."""
    from fly_dialect.bindings import ir

    if isinstance(value, ir.BlockArgument) or value.owner.operation.name != name:
        return None
    return value.owner.operation


def _axes(coordinate, shape):
    """For each leaf of a coordinate its number, the leaves of the shape that it counts in, and the
    axis: the shape's outermost mode. None for a coordinate with a free mode, or of another form."""
    found, leaf, size = [], 0, 0

    def leaves(tree) -> int:
        return sum(map(leaves, tree)) if isinstance(tree, tuple) else 1

    def visit(coordinate, shape, axis) -> bool:
        nonlocal leaf, size
        if not isinstance(coordinate, tuple):
            count = leaves(shape)
            found.append((leaf, range(size, size + count), axis))
            leaf, size = leaf + 1, size + count
            return coordinate is not None
        if not isinstance(shape, tuple) or len(coordinate) != len(shape):
            return len(coordinate) == 1 and visit(coordinate[0], shape, axis)
        return all(visit(c, s, axis) for c, s in zip(coordinate, shape, strict=True))

    if isinstance(coordinate, tuple) and isinstance(shape, tuple) and len(coordinate) == len(shape):
        pairs = enumerate(zip(coordinate, shape, strict=True))
        return found if all(visit(c, s, axis) for axis, (c, s) in pairs) else None
    return found if visit(coordinate, shape, 0) else None


def _is_inside(coordinate, sizes) -> bool:
    """Whether a coordinate is known to be inside."""
    if coordinate.value is None or any(one.value is None for one in sizes):
        return False
    extent = 1
    for one in sizes:
        extent *= one.value
    return 0 <= coordinate.value < extent


def _name(view) -> str:
    """What a view is of, for messages."""
    from fly_dialect.bindings import ir
    from fly_dialect.dialect import spec_of

    from fly_bounds.extents import name_of

    whole = True
    while not isinstance(view, ir.BlockArgument):
        op = view.owner.operation
        if op.name in ("fly.make_view", "fly.get_iter", "fly.recast_iter"):
            view = op.operands[0]
        elif op.name in ("fly.add_offset", "fly.apply_swizzle", "fly.slice") or op.operands:
            whole = False
            moved = op.name.startswith(("fly.tiled_", "fly.mma"))
            view = op.operands[1 if moved and len(op.operands) > 1 else 0]
        else:
            space = getattr(spec_of(view.type), "space", "")
            kind = "registers" if space == "register" else f"{space} memory"
            return kind if space in ("shared", "register") else "a tensor"
    return name_of(view) if whole else f"a view of {name_of(view)}"
