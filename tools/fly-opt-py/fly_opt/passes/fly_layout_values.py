"""What values of the fly dialect stand for while `fly-layout-lowering` is at work."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from fly_dialect import algebra, ops
from fly_dialect.dialect import PREFIX, spec_of
from fly_dialect.layout import Int, Layout, is_static
from fly_dialect.types import CoordTensorSpec, IntTupleSpec, LayoutSpec, MemRefSpec, layout_spec

from fly_opt.passes.base import refuse
from fly_opt.passes.fly_scalars import (
    Builder,
    Scalar,
    operations,
    tree_of,
    types_of,
    unused,
    used_twice,
    values_of,
)

Value = Any  # an ir.Value


@dataclass(frozen=True, slots=True)
class Tuple:
    """What an int_tuple value stands for: a tree of Scalars."""

    tree: Any


@dataclass(frozen=True, slots=True)
class View:
    """What a memref stands for: its pointer and its layout. A coord_tensor's `base` is a tree."""

    base: Any
    map: Layout


Meaning = Tuple | Layout | View


class Lowering:
    """The pass at work. `table` gives, for each op by name, the function that lowers it and says
    whether the op is done with."""

    def __init__(self, table: Mapping[str, Callable[[Lowering, Any], bool]]) -> None:
        self.table = table
        self.builder = Builder()
        self.meanings: dict[Value, Meaning] = {}
        self.added: dict[Value, tuple[Value, Scalar]] = {}  # pointer → what it was added to

    def run(self, op: Any) -> None:
        """Lowers all that `op` holds, definitions before uses."""
        lowered = []
        for inner in operations(op):
            if inner.name.startswith(PREFIX):
                self.builder.enter(inner)
                if self.fly_op(inner):
                    lowered.append(inner)
        # Last first: what only lowered ops used is then unused.
        for inner in reversed(lowered):
            self.retire(inner)
        self.builder.sweep()

    def fly_op(self, op: Any) -> bool:
        """Lowers one op; whether it is to be retired."""
        lower = self.table.get(op.name[len(PREFIX) :])
        if lower is None:
            return False
        self.builder.at(op)
        try:
            return lower(self, op)
        except ValueError as error:
            raise refuse(op, f"{op.name}: {error}") from None

    def retire(self, op: Any) -> None:
        """Erases a lowered op; where its result is still used, its normal form takes its place."""
        for result in op.results:
            if unused(result):
                continue
            if op.name == "fly.make_int_tuple":
                return
            self.builder.at(op)
            meaning = self.meanings[result]
            result.replace_all_uses_with(self.normal_form(meaning, spec_of(result.type)))
        op.erase()

    def normal_form(self, meaning: Meaning, spec: Any) -> Value:
        loc, ip = self.builder.loc, self.builder.ip
        if isinstance(meaning, Tuple):
            return ops.make_int_tuple(*values_of(meaning.tree), spec=spec, loc=loc, ip=ip)
        if isinstance(meaning, Layout):
            shape = self.tuple_value(meaning.shape)
            return ops.make_layout(shape, self.tuple_value(meaning.stride), loc=loc, ip=ip)
        base = meaning.base
        if isinstance(spec, CoordTensorSpec):
            base = self.tuple_value(base)
        layout = self.normal_form(meaning.map, layout_spec(spec.layout))
        return ops.make_view(base, layout, loc=loc, ip=ip)

    def tuple_value(self, tree: Any) -> Value:
        spec = IntTupleSpec(types_of(tree))
        return self.normal_form(Tuple(tree), spec)

    # -- what values stand for

    def meaning(self, value: Value) -> Meaning:
        """ValueError where a dynamic value comes from somewhere this pass does not see."""
        if value in self.meanings:
            return self.meanings[value]
        spec = spec_of(value.type)
        if isinstance(spec, MemRefSpec) and spec.layout.is_static:
            base = ops.get_iter(value, loc=self.builder.loc, ip=self.builder.ip)
            found: Meaning = View(base, self.static_map(spec.layout))
        elif isinstance(spec, IntTupleSpec) and is_static(spec.value):
            found = Tuple(tree_of(self.builder, spec.value, []))
        elif isinstance(spec, LayoutSpec) and spec.layout.is_static:
            found = self.static_map(spec.layout)
        else:
            raise ValueError(
                f"what {spec} holds is not known here: run fly-rewrite-func-signature first"
            )
        return found

    def static_map(self, layout: Any) -> Layout:
        return layout.mapped(lambda tree: tree_of(self.builder, tree, []))

    def tree(self, value: Value) -> Any:
        meaning = self.meaning(value)
        assert isinstance(meaning, Tuple), "the verifier has seen to it"
        return meaning.tree

    def map(self, value: Value) -> Layout:
        meaning = self.meaning(value)
        if isinstance(meaning, View):
            return meaning.map
        assert isinstance(meaning, Layout), "the verifier has seen to it"
        return meaning

    def keep(self, op: Any, meaning: Meaning) -> bool:
        self.meanings[op.results[0]] = self.lifted(meaning)
        return True

    def lifted(self, meaning: Meaning) -> Meaning:
        """The meaning with Scalars for the constants that the algebra left as Int."""

        def lift(tree: Any) -> Any:
            return algebra.transform(
                lambda leaf: Scalar(self.builder, leaf, None) if isinstance(leaf, Int) else leaf,
                tree,
            )

        if isinstance(meaning, Tuple):
            return Tuple(lift(meaning.tree))
        if isinstance(meaning, Layout):
            return meaning.mapped(lift)
        return View(meaning.base, meaning.map.mapped(lift))

    # -- pointers

    def add_offset(self, pointer: Value, offset: Scalar) -> Value:
        """pointer + offset, in the form (pointer + dynamic) + static: at most one of each."""
        if pointer in self.added:
            base, inner = self.added[pointer]
            both_static = inner.type.is_static and offset.type.is_static
            both_dynamic = not inner.type.is_static and not offset.type.is_static
            if both_static or both_dynamic:
                return self.add_offset(base, inner + offset)
            if inner.type.is_static and not used_twice(pointer):
                return self.plain_offset(self.add_offset(base, offset), inner)
        return self.plain_offset(pointer, offset)

    def plain_offset(self, pointer: Value, offset: Scalar) -> Value:
        key = ("fly.add_offset", pointer, offset.type, offset.value)

        loc, ip = self.builder.loc, self.builder.ip
        spec = IntTupleSpec(offset.type)
        dynamic = [] if offset.value is None else [offset.value]

        def step() -> Any:
            return ops.build_op("make_int_tuple", dynamic, [spec], loc=loc, ip=ip)

        def make() -> Any:
            made = self.builder.once(("fly.make_int_tuple", offset.type, offset.value), step)
            return ops.build_op("add_offset", [pointer, made], loc=loc, ip=ip)

        result = self.builder.once(key, make)
        self.added[result] = (pointer, offset)
        return result

    def element(self, view: Value, coord: Value) -> Value:
        """The pointer to an element of a memref."""
        meaning = self.meaning(view)
        assert isinstance(meaning, View), "the verifier has seen to it"
        offset = algebra.crd2idx(self.tree(coord), meaning.map)
        return self.add_offset(meaning.base, offset)
