"""Builds ops at an insertion point, each pure op only once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import TypeAlias

from fly_common.quoting import quoted
from fly_dialect.bindings import ir

Attributes: TypeAlias = Mapping[str, ir.Attribute]


def operations(op: ir.Operation | ir.OpView | ir.Module) -> list[ir.Operation]:
    """Returns all operations inside `op`, in textual order.

    Uses walk instead of iterating over blocks, which creates an OpView of every op.
    """
    found: list[ir.Operation] = []
    append, advance = found.append, ir.WalkResult.ADVANCE

    def visit(inner: ir.Operation) -> ir.WalkResult:
        append(inner.operation)
        return advance

    op.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found[1:]


def unused(value: ir.Value) -> bool:
    return next(iter(value.uses), None) is None


def used_twice(value: ir.Value) -> bool:
    return len(list(islice(value.uses, 2))) == 2


class Builder:
    """An insertion point, and the pure ops that are visible from it.

    Equal constants and address computations are built once in the scope where the first is visible:
    its block and the blocks nested in it. `visible` maps an op's key to its value; a scope lists
    the keys that expire with it.
    """

    def __init__(self) -> None:
        self.ip: ir.InsertionPoint | None = None
        self.loc: ir.Location | None = None
        self.visible: dict[tuple[object, ...], ir.Value] = {}
        # (block, the keys of what is built in it)
        self.scopes: list[tuple[ir.Block, list[tuple[object, ...]]]] = []
        self.unsure: list[ir.Operation] = []  # pure ops that may turn out to be unused

    def enter(self, op: ir.Operation) -> None:
        """Sets the scopes to the blocks around `op`; must be called in textual order."""
        block = op.block
        if self.scopes and self.scopes[-1][0] == block:
            return
        depths = {other: depth for depth, (other, _) in enumerate(self.scopes, 1)}
        # The nearest enclosing block that has a scope; blocks without fly ops have none.
        around, holder = block, op.parent
        while around not in depths and holder is not None and holder.parent is not None:
            # The outermost op, the module, is in no block; asking for its block is an error.
            around, holder = holder.block, holder.parent
        self._leave(depths.get(around, 0))
        if around != block or not self.scopes:
            self.scopes.append((block, []))

    def at(self, op: ir.Operation) -> None:
        """Sets the insertion point before `op`, and the location to that of `op`."""
        self.ip, self.loc = ir.InsertionPoint(op), op.location

    def alone(self, op: ir.Operation) -> None:
        """Sets the insertion point before `op` without reusing values built elsewhere."""
        self._leave(0)
        self.scopes.append((op.block, []))
        self.at(op)

    @contextmanager
    def within(self, block: ir.Block) -> Iterator[None]:
        """Builds at the end of a new block for the duration; its pure ops are not visible
        outside."""
        outside = self.ip
        self.scopes.append((block, []))
        self.ip = ir.InsertionPoint(block)
        try:
            yield
        finally:
            self.ip = outside
            self._leave(len(self.scopes) - 1)

    def _leave(self, depth: int) -> None:
        """Drops all scopes but the `depth` outermost, and the values built in them."""
        for _, keys in self.scopes[depth:]:
            for key in keys:
                del self.visible[key]
        del self.scopes[depth:]

    def op(
        self,
        name: str,
        result: ir.Type | None,
        operands: Sequence[ir.Value],
        attributes: Attributes | None = None,
    ) -> ir.Operation:
        """Builds an op and returns the ir.Operation."""
        return ir.Operation.create(
            name,
            results=[] if result is None else [result],
            operands=operands,
            attributes=attributes,
            loc=self.loc,
            ip=self.ip,
        )

    def value(
        self,
        name: str,
        result: ir.Type,
        operands: Sequence[ir.Value],
        attributes: Attributes | None = None,
    ) -> ir.Value:
        """Builds an op and returns its result."""
        return self.op(name, result, operands, attributes).results[0]

    def pure(
        self,
        name: str,
        result: ir.Type,
        operands: Sequence[ir.Value],
        attributes: Attributes | None = None,
    ) -> ir.Value:
        """Builds a pure op, or returns the value of an equal one that dominates this point."""
        key = (name, result, *operands, str(attributes) if attributes else None)
        return self.once(key, lambda: self.op(name, result, operands, attributes))

    def once(self, key: tuple[object, ...], make: Callable[[], ir.Operation]) -> ir.Value:
        """Returns the value of `key`; if there is none yet, `make` builds the pure op."""
        value = self.visible.get(key)
        if value is None:
            op = make()
            self.unsure.append(op)
            value = self.visible[key] = op.results[0]
            self.scopes[-1][1].append(key)
        return value

    def sweep(self) -> None:
        """Erases the pure ops that have no uses."""
        for op in reversed(self.unsure):
            if all(map(unused, op.results)):
                op.erase()
        self.unsure.clear()

    def constant_of(self, attribute: ir.Attribute) -> ir.Value:
        """Returns the constant with this typed attribute."""
        return self.pure("arith.constant", attribute.type, [], {"value": attribute})

    def constant(self, value: int, width: int) -> ir.Value:
        """Returns an integer constant. ValueError for one that does not fit in 64 bits."""
        if not -(1 << 63) <= value < 1 << 63:
            raise ValueError(f"the constant {quoted(value)} does not fit in 64 bits")

        def make() -> ir.Operation:
            type_ = ir.IntegerType.get_signless(width)
            attributes = {"value": ir.IntegerAttr.get(type_, value)}
            return self.op("arith.constant", type_, [], attributes)

        return self.once(("arith.constant", value, width), make)
