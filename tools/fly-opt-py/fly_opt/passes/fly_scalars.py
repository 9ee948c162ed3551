"""Integers of a layout as code: leaves for `fly_dialect.algebra` that build arith ops.

A `Scalar` has the type that the verifier infers (`layout.Int`) and, where that is dynamic, the SSA
value. Its operators build the op at the builder's place and give the type that `Int`'s operators
give, so lowering an op yields what its inferred type says. Static parts fold away.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from typing import Any

from fly_dialect import algebra
from fly_dialect.bindings import ir
from fly_dialect.layout import Basis, Int

Value = Any  # an ir.Value


def operations(op: Any) -> list[Any]:
    """All operations inside `op`, in the order of the text.

    By walking, not by iterating over blocks: that makes an OpView of every op, for which the
    bindings import each dialect's Python module (llvm's alone takes 30 ms).
    """
    found: list[Any] = []

    def visit(inner: Any) -> Any:
        found.append(inner.operation)
        return ir.WalkResult.ADVANCE

    op.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found[1:]


def unused(value: Value) -> bool:
    return next(iter(value.uses), None) is None


def used_twice(value: Value) -> bool:
    return len(list(islice(value.uses, 2))) == 2


class Builder:
    """Where ops are built, and which pure ones are there already.

    A scope maps an op's key to its value, one for each block that encloses the insertion point:
    equal constants and address computations are built once where the first is visible.
    """

    def __init__(self) -> None:
        self.ip: Any = None
        self.loc: Any = None
        self.scopes: list[tuple[Any, dict[Any, Value]]] = []  # (block, what is built in it)
        self.unsure: list[Any] = []  # pure ops that may turn out unused

    def enter(self, op: Any) -> None:
        """Makes the scopes those of the blocks around `op`; ops come in the order of the text."""
        block = op.block
        if self.scopes and self.scopes[-1][0] == block:
            return
        depths = {other: depth for depth, (other, _) in enumerate(self.scopes, 1)}
        # The nearest block around it that has a scope; blocks without fly ops have none.
        around, holder = block, op.parent
        while around not in depths and holder is not None and holder.parent is not None:
            # (The outermost op, the module, is in no block, and must not be asked for it.)
            around, holder = holder.block, holder.parent
        del self.scopes[depths.get(around, 0) :]
        if around != block or not self.scopes:
            self.scopes.append((block, {}))

    def at(self, op: Any) -> None:
        """Builds before `op` from now on, with its location."""
        self.ip, self.loc = ir.InsertionPoint(op), op.location

    def op(self, name: str, result: Any, operands: list[Value], attributes: Any = None) -> Any:
        """Builds an op; gives the ir.Operation."""
        return ir.Operation.create(
            name,
            results=[] if result is None else [result],
            operands=operands,
            attributes=attributes,
            loc=self.loc,
            ip=self.ip,
        )

    def value(self, name: str, result: Any, operands: list[Value], attributes: Any = None) -> Value:
        """Builds an op; gives its result."""
        return self.op(name, result, operands, attributes).results[0]

    def pure(self, name: str, result: Any, operands: list[Value], attributes: Any = None) -> Value:
        """Such an op, or the value of an equal one that dominates this place."""
        key = (name, result, *operands, str(attributes) if attributes else None)
        return self.once(key, lambda: self.op(name, result, operands, attributes))

    def once(self, key: Any, make: Callable[[], Any]) -> Value:
        """The value of `key`, made by the pure op that `make` builds where it isn't there yet."""
        for _, scope in reversed(self.scopes):
            if key in scope:
                return scope[key]
        op = make()
        self.unsure.append(op)
        value = self.scopes[-1][1][key] = op.results[0]
        return value

    def sweep(self) -> None:
        """Erases the pure ops that nothing has come to use."""
        for op in reversed(self.unsure):
            if unused(op.results[0]):
                op.erase()
        self.unsure.clear()

    def constant(self, value: int, width: int) -> Value:
        def make() -> Any:
            type_ = ir.IntegerType.get_signless(width)
            attributes = {"value": ir.IntegerAttr.get(type_, value)}
            return self.op("arith.constant", type_, [], attributes)

        return self.once(("arith.constant", value, width), make)

    def scalar(self, value: Value | int, type_: Int | None = None) -> Scalar:
        """A leaf of an SSA value (of type i32 or i64) or a Python integer."""
        if isinstance(value, int):
            return Scalar(self, Int(value), None)
        return Scalar(self, type_ or Int(None, value.type.width), value)


@dataclass(frozen=True, slots=True)
class Scalar:
    """A leaf; `value` is None where the type says it all."""

    builder: Builder
    type: Int
    value: Value | None

    def __str__(self) -> str:
        return str(self.type)

    def read(self, width: int | None = None) -> Value:
        """The SSA value, sign-extended to `width` bits if that is wider."""
        width = max(width or 0, self.type.width)
        if self.type.value is not None:
            return self.builder.constant(self.type.value, width)
        if width == self.type.width:
            return self.value
        type_ = ir.IntegerType.get_signless(width)
        return self.builder.pure("arith.extsi", type_, [self.value])

    def constant(self, value: Int) -> Scalar:
        """A leaf like this one that is known."""
        return Scalar(self.builder, value, None)

    def widened(self) -> Scalar:
        type_ = self.type.widened()
        if type_ == self.type:
            return self
        return Scalar(self.builder, type_, self.read(64))

    def __add__(self, other: Scalar | Int) -> Scalar:
        other = self._lift(other)
        if self.type.value == 0:
            return other
        if other.type.value == 0:
            return self
        return self._build("arith.addi", other, self.type + other.type)

    def __sub__(self, other: Scalar | Int) -> Scalar:
        other = self._lift(other)
        if other.type.value == 0:
            return self
        return self._build("arith.subi", other, self.type - other.type)

    def __mul__(self, other: Scalar | Int) -> Scalar:
        other = self._lift(other)
        type_ = self.type * other.type
        if other.type.value == 1:
            return self._as(type_)
        if self.type.value == 1:
            return other._as(type_)
        return self._build("arith.muli", other, type_)

    def __floordiv__(self, other: Scalar | Int) -> Scalar:
        other = self._lift(other)
        type_ = self.type // other.type
        return (
            self._as(type_) if other.type.value == 1 else self._build("arith.divsi", other, type_)
        )

    def __mod__(self, other: Scalar | Int) -> Scalar:
        other = self._lift(other)
        return self._build("arith.remsi", other, self.type % other.type)

    def ceildiv(self, other: Scalar | Int) -> Scalar:
        other = self._lift(other)
        type_ = self.type.ceildiv(other.type)
        if type_ == self.type:
            return self
        return self._build("arith.ceildivsi", other, type_)

    def _lift(self, other: Scalar | Int) -> Scalar:
        return other if isinstance(other, Scalar) else Scalar(self.builder, other, None)

    def _as(self, type_: Int) -> Scalar:
        """The same number, of which `type_` is known."""
        if type_.value is not None:
            return Scalar(self.builder, type_, None)
        return Scalar(self.builder, type_, self.read(type_.width))

    def _build(self, name: str, other: Scalar, type_: Int) -> Scalar:
        if type_.value is not None:
            return Scalar(self.builder, type_, None)
        result = ir.IntegerType.get_signless(type_.width)
        operands = [self.read(type_.width), other.read(type_.width)]
        return Scalar(self.builder, type_, self.builder.pure(name, result, operands))


def tree_of(builder: Builder, value: Any, dynamic: list[Value]) -> Any:
    """A tuple of Scalars of the int_tuple type `value`; `dynamic` holds the values of its dynamic
    leaves from left to right and is used up. One of another width than the type says is cut or
    sign-extended."""
    if isinstance(value, tuple):
        return tuple(tree_of(builder, part, dynamic) for part in value)
    if isinstance(value, Int):
        if value.is_static:
            return Scalar(builder, value, None)
        return Scalar(builder, value, _resized(builder, dynamic.pop(0), value.width))
    return value


def _resized(builder: Builder, value: Value, width: int) -> Value:
    if value.type.width == width:
        return value
    name = "arith.trunci" if width < value.type.width else "arith.extsi"
    return builder.pure(name, ir.IntegerType.get_signless(width), [value])


def types_of(tree: Any) -> Any:
    """The int_tuple type of a tree of Scalars."""
    if isinstance(tree, tuple):
        return tuple(map(types_of, tree))
    return tree if tree is None or isinstance(tree, Basis) else tree.type


def values_of(tree: Any) -> list[Value]:
    """The SSA values of the dynamic leaves, from left to right."""
    found = []
    for leaf in algebra.flatten(tree):
        if isinstance(leaf, Scalar) and leaf.value is not None:
            found.append(leaf.value)
    return found
