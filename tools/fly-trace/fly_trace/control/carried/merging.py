"""The results of a dynamic branch: what its sides give a variable becomes one value behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fly_trace.control.carried import carried_values
from fly_trace.control.carried.carried_values import Mismatch
from fly_trace.control.carried.leaf_kinds import LeafKind, kind_of, unify
from fly_trace.control.carried.mismatches import refuse_mismatch
from fly_trace.core import tracing
from fly_trace.rewrite.exits import STATE, VALUE
from fly_trace.values.dtypes import BOOL
from fly_trace.values.scalars import Scalar

if TYPE_CHECKING:
    from fly_dialect.bindings import ir

    from fly_trace.session.builder import Builder

GENERATORS = "__fly_generators"  # the variables of suspended generators, as a variable
_FILLER = object()  # the value on a path that leaves


class Merging:
    """The results of an scf.if: leaves whose values differ between its sides."""

    def __init__(self, builder: Builder, what: str, condition: ir.Value, draft: ir.Operation):
        self.builder = builder
        self.draft = draft
        self.what = what
        self.condition = condition
        self.pairs: list[tuple[Any, Any]] = []
        self.results: list[Any] = []
        self.kinds: list[LeafKind] = []

    def merge(self, name: str, a: Any, b: Any) -> Any:
        """A value that is `a` on one side and `b` on the other."""
        try:
            return self.join(a, b)
        except Mismatch as mismatch:
            refuse_mismatch(
                shown(name), mismatch, f"on one side of the {self.what}", "on the other side"
            )

    def join(self, a: Any, b: Any) -> Any:
        """As `merge`. Raises Mismatch if the values can't be merged."""
        return carried_values.merge(a, b, self._leaf)

    def fill(self, name: str, value: Any, side: int) -> Any:
        """A value that only one side gives; on the other one it is never read."""

        def leaf(one: Any) -> Any:
            if not made_in(self.draft, one):
                return one
            if not fillable(one):
                tracing.refuse(
                    f"{shown(name)} is {tracing.describe(one)} on one side of the {self.what}, and"
                    " the other side leaves early",
                    "make it before the `if`",
                )
            pair = (_FILLER, one) if side else (one, _FILLER)
            return self._add(kind_of(one), pair)

        return carried_values.transform(value, leaf)

    def resumed(self, variables: list[Any]) -> list[Any]:
        """The variables of generators, behind an iteration on the second side."""

        def part(value: Any) -> Any:
            made = any(made_in(self.draft, leaf) for leaf in carried_values.leaves(value))
            return self.fill("a variable of the generator", value, 1) if made else value

        return [(put, {key: part(one) for key, one in held.items()}) for put, held in variables]

    def test(self, positive: bool) -> Scalar:
        """The condition, or its opposite."""
        value = self.condition
        if not positive:
            true = self.builder.constant(True, BOOL)
            value = self.builder.one("arith.xori", "i1", value, true)
        return Scalar(BOOL, value)

    def operands(self, side: int) -> list[ir.Value]:
        found = []
        for pair, kind in zip(self.pairs, self.kinds, strict=True):
            other = pair[1 - side]
            leaf = pair[side]
            found.append(
                filler(self.builder, kind, other)
                if leaf is _FILLER
                else kind.ssa(self.builder, leaf)
            )
        return found

    def _leaf(self, a: Any, b: Any) -> Any:
        return self._add(unify(a, b), (a, b))

    def _add(self, kind: LeafKind, pair: tuple[Any, Any]) -> Any:
        self.kinds.append(kind)
        self.pairs.append(pair)
        self.results.append(kind.made(None))
        return self.results[-1]


def shown(name: str) -> str:
    """A variable's name in messages."""
    if name.startswith(STATE):
        return "the loop's state"
    return "the returned value" if name == VALUE else name


def made_in(op: ir.Operation, leaf: Any) -> bool:
    """Whether a leaf is a dynamic value that is made in a region of `op`, and not before."""
    from fly_dialect.bindings import ir

    value = getattr(leaf, "ssa", None)
    if value is None:
        return False
    owner = value.owner
    inner = owner.owner if isinstance(owner, ir.Block) else owner.operation.parent
    while inner is not None and inner.operation != op.operation:
        inner = inner.operation.parent
    return inner is not None


def fillable(leaf: Any) -> bool:
    """Whether there is a value of the leaf's type that needs no operands."""
    from fly_dialect.bindings import ir

    if isinstance(leaf, Scalar):
        return True
    return isinstance(leaf.ssa.type, (ir.IntegerType, ir.VectorType, ir.FloatType))


def filler(builder: Builder, kind: LeafKind, like: Any) -> ir.Value:
    """A value of a leaf's type that is never read."""
    if kind.dtype is None:
        type_ = like.ssa.type
    elif builder.host:  # the host program has no undefined values
        return builder.constant(0, kind.dtype)
    else:
        type_ = builder.type(kind.dtype.ir)
    poison = {"value": builder.attribute("#ub.poison")}
    return builder.op("ub.poison", [type_], [], poison).results[0]
