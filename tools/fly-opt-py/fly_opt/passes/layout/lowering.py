"""The driver of `fly-layout-lowering`, and what every op's lowering uses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fly_dialect import algebra
from fly_dialect.bindings import ir
from fly_dialect.builders import ops
from fly_dialect.builders.building import Inferred
from fly_dialect.dialect import PREFIX, attributes_of, pointer_of, spec_of
from fly_dialect.inference.computation import COMPUTATIONS, Computation, View
from fly_dialect.layouts.int_tuple import IntTuple, dynamic_leaves
from fly_dialect.layouts.layout import AnyLayout, ComposedLayout, Layout
from fly_dialect.layouts.swizzle import CoordSwizzle, Swizzle
from fly_dialect.layouts.tile import Tile
from fly_dialect.op_table import OPS
from fly_dialect.types import IntTupleSpec, LayoutSpec, MemRefSpec, PtrSpec, Spec

from fly_opt.ir.builder import Builder, operations, unused, used_twice
from fly_opt.ir.scalars import tree_of, values_of
from fly_opt.passes.base import refuse
from fly_opt.passes.layout.lowered_values import UNKNOWN, Meaning, of_static_type, spec_of_known

# Lowers an op that does more than compute; returns whether the op is done with.
Lower = Callable[["Lowering", "ir.Operation"], bool]


class Lowering:
    """The state of the pass. `table` maps ops that do more than compute a tuple or layout, by
    name."""

    def __init__(self, table: Mapping[str, Lower]) -> None:
        self.table = table
        self.builder = Builder()
        self.meanings: dict[ir.Value, Meaning] = {}
        self.added: dict[ir.Value, tuple[ir.Value, Any]] = {}  # pointer → what it was added to
        self.inferred = Inferred()
        # Layouts, by identity, of the op that is being lowered, and their values: the hundreds of
        # parts that one copy or gemm takes of a view share one layout.
        self.layouts: dict[int, tuple[AnyLayout, ir.Value]] = {}

    def run(self, op: ir.Operation) -> None:
        """Lowers everything in `op`, definitions before uses."""
        # Not a set of ops: the bindings hash an op by its content and location. Equal ops of an
        # unrolled loop collide, and comparing with an erased one is an error.
        seen: list[tuple[ir.Operation, bool]] = []
        for inner in operations(op):
            if inner.name.startswith(PREFIX):
                self.builder.enter(inner)
                seen.append((inner, self.fly_op(inner)))
        # In reverse: values used only by lowered ops are then unused.
        for inner, lowered in reversed(seen):
            if lowered:
                self.retire(inner)
            elif OPS[inner.name[len(PREFIX) :]].pure and all(map(unused, inner.results)):
                inner.erase()
        self.builder.sweep()

    def fly_op(self, op: ir.Operation) -> bool:
        """Lowers one op; returns whether to retire it."""
        name = op.name[len(PREFIX) :]
        self.builder.at(op)
        self.layouts.clear()
        try:
            if name in self.table:
                return self.table[name](self, op)
            if name in COMPUTATIONS:
                return self.keep(op, self.computed(op, COMPUTATIONS[name]))
            if name == "static":
                return self.static(op)
        except ValueError as error:
            raise refuse(op, f"{op.name}: {error}") from None
        return False

    def static(self, op: ir.Operation) -> bool:
        """Keeps a swizzle, a tile or an atom if it still has uses."""
        meaning = of_static_type(spec_of(op.results[0].type))
        if meaning is UNKNOWN:
            return False
        self.keep(op, meaning)
        return not isinstance(meaning, (Swizzle, CoordSwizzle, Tile))

    def computed(self, op: ir.Operation, computation: Computation) -> Meaning:
        """Returns the meaning of the result: from its type, if that is static."""
        meaning = of_static_type(spec_of(op.results[0].type))
        if meaning is not UNKNOWN:
            return meaning
        return computation(map(self.meaning, op.operands), attributes_of(op))

    def retire(self, op: ir.Operation) -> None:
        """Erases a lowered op; if its result still has uses, its normal form replaces it."""
        for result in op.results:
            if unused(result):
                continue
            if op.name == "fly.make_int_tuple":
                return  # it is its own normal form
            self.builder.alone(op)
            meaning = self.meanings[result]
            result.replace_all_uses_with(self.normal_form(meaning, spec_of(result.type)))
        op.erase()

    # -- the meaning of a value

    def keep(self, op: ir.Operation, meaning: Meaning) -> bool:
        self.meanings[op.results[0]] = meaning
        return True

    def meaning(self, value: ir.Value) -> Meaning:
        """Returns what a value lowers to. ValueError if a dynamic value has an unknown source."""
        if value in self.meanings:
            return self.meanings[value]
        spec = spec_of(value.type)
        found = of_static_type(spec)
        if isinstance(spec, MemRefSpec) and spec.layout.is_static:
            # A block argument: convert-fly-to-rocdl lowers its pointer.
            found = View(self.once("get_iter", [value], spec.pointer), spec.layout)
        if found is UNKNOWN:
            found = self.argument(value, spec)
        return found

    def argument(self, value: ir.Value, spec: Spec) -> Meaning:
        """Returns what an argument of a function or of a block lowers to: its leaves are read where
        they are needed. fly-rewrite-func-signature, which has run before in a pipeline, takes
        arguments of functions apart instead."""
        if isinstance(value, ir.BlockArgument):
            if isinstance(spec, IntTupleSpec):
                return tree_of(self.builder, spec.value, self.leaves(value, spec.value))
            if isinstance(spec, LayoutSpec):
                return self.argument_layout(value, spec.layout)
            if isinstance(spec, MemRefSpec) and isinstance(spec.layout, Layout):
                base = self.once("get_iter", [value], spec.pointer)
                return View(base, self.argument_layout(value, spec.layout))
        raise ValueError(
            f"the contents of {spec} are not known here: run fly-rewrite-func-signature first"
        )

    def argument_layout(self, value: ir.Value, layout: Layout) -> Layout:
        parts = []
        for name, type_ in (("get_shape", layout.shape), ("get_stride", layout.stride)):
            part = self.once(name, [value], IntTupleSpec(type_)) if dynamic_leaves(type_) else value
            parts.append(tree_of(self.builder, type_, self.leaves(part, type_)))
        return Layout(*parts)

    def leaves(self, value: ir.Value, type_: IntTuple) -> list[ir.Value]:
        """Returns the dynamic leaves of a tuple as integers."""
        results: list[Spec] = [f"i{leaf.width}" for leaf in dynamic_leaves(type_)]
        if not results:
            return []
        loc, ip = self.builder.loc, self.builder.ip
        attributes = {"dynamicOnly": ir.BoolAttr.get(True)}

        def make() -> ir.Operation:
            return ops.build_op("get_leaves", [value], results, attributes, loc=loc, ip=ip)

        first: Any = self.builder.once(("get_leaves", value), make)
        return list(first.owner.results)

    def view(self, value: ir.Value) -> View:
        meaning = self.meaning(value)
        assert isinstance(meaning, View), "the verifier has seen to it"
        return meaning

    # -- the value of a meaning

    def once(self, name: str, operands: list[ir.Value], result: Spec) -> ir.Value:
        """Returns the value of the pure op `fly.name`, which is built if there is none yet."""
        loc, ip = self.builder.loc, self.builder.ip

        def make() -> ir.Operation:
            return ops.build_op(name, operands, [result], loc=loc, ip=ip)

        return self.builder.once((name, result, *operands), make)

    def once_inferred(self, name: str, operands: list[ir.Value]) -> ir.Value:
        """Like `once`, for an op whose result type follows from its operands."""
        loc, ip = self.builder.loc, self.builder.ip
        key = (name, *operands)
        return self.builder.once(key, lambda: self.inferred.build(name, operands, loc, ip))

    def normal_form(self, meaning: Meaning, spec: Spec) -> ir.Value:
        """Builds the value of a meaning of type `spec`: one make_int_tuple, make_layout,
        make_composed_layout or make_view."""
        if isinstance(meaning, View):
            base = meaning.base
            if isinstance(spec, MemRefSpec):
                base = self.pointer_as(base, spec.pointer)
            else:
                base = self.value_of(base)
            return self.once_inferred("make_view", [base, self.value_of(meaning.layout)])
        if isinstance(meaning, Layout):
            parts = [meaning.shape, meaning.stride]
            return self.once_inferred("make_layout", [self.value_of(part) for part in parts])
        if isinstance(meaning, ComposedLayout):
            parts = [meaning.inner, meaning.offset, meaning.outer]
            return self.once_inferred(
                "make_composed_layout", [self.value_of(part) for part in parts]
            )
        if isinstance(meaning, (Swizzle, CoordSwizzle, Tile)):
            return self.once("static", [], spec)
        return self.once("make_int_tuple", values_of(meaning), spec)

    def value_of(self, meaning: Meaning) -> ir.Value:
        return self.normal_form(meaning, spec_of_known(meaning))

    def view_value(self, view: View) -> ir.Value:
        """Builds the memref of a view; its type has all that is known of the pointer."""
        layout = view.layout
        known = self.layouts.get(id(layout))
        if known is None:
            known = self.layouts[id(layout)] = layout, self.value_of(layout)
        return self.once_inferred("make_view", [view.base, known[1]])

    # -- pointers

    def replace_pointer(self, result: ir.Value, pointer: ir.Value) -> None:
        """Replaces an op's result by a pointer. After reordering additions, more may be known of it
        than the result's type says. An op of another dialect may pass the pointer on to where only
        the original type fits, so it gets that type."""
        spec = pointer_of(result)
        if pointer_of(pointer) != spec:
            for owner in {use.owner.operation for use in result.uses}:
                if not owner.name.startswith(PREFIX):
                    owner.replace_uses_of_with(result, self.pointer_as(pointer, spec))
        result.replace_all_uses_with(pointer)

    def pointer_as(self, pointer: ir.Value, spec: PtrSpec) -> ir.Value:
        """Returns the pointer as type `spec`, which may differ in its alignment."""
        if pointer_of(pointer) == spec:
            return pointer
        return self.once("recast_iter", [pointer], spec)

    def add_offset(self, pointer: ir.Value, offset: Any) -> ir.Value:
        """Returns (pointer + dynamic) + static, with at most one addition of each kind."""
        if pointer in self.added:
            base, inner = self.added[pointer]
            both_static = inner.type.is_static and offset.type.is_static
            both_dynamic = not inner.type.is_static and not offset.type.is_static
            if both_static or both_dynamic:
                return self.add_offset(base, algebra.add(inner, offset))
            if inner.type.is_static and not used_twice(pointer):
                return self.plain_offset(self.add_offset(base, offset), inner)
        return self.plain_offset(pointer, offset)

    def plain_offset(self, pointer: ir.Value, offset: Any) -> ir.Value:
        result = self.once_inferred("add_offset", [pointer, self.value_of(offset)])
        self.added[result] = (pointer, offset)
        return result

    def element(self, view: View, coord: Any) -> ir.Value:
        """Returns the pointer to an element of a memref."""
        return self.add_offset(view.base, algebra.scalar(algebra.crd2idx(coord, view.layout)))
