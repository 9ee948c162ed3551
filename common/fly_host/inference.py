"""Symbolic inference of a tensor's shape, strides and size from its allocation.

    inferred = infer(graph, shape, Allocation().split(3, 4).reorder(0, 3, 1, 2, 4))

Inference runs once, when a program is compiled, and adds expressions to the program's graph:

1. Extents are computed forward, step by step. The extents of a split are its factor and a ceildiv;
   an exact split adds a check that the factor divides the extent.
2. The allocation domain is contiguous in row-major order. As in torch, an extent of 0 counts as 1
   for strides.
3. Strides are computed backward, from the last step to the first. A merged axis of stride s had an
   inner axis of stride s and an outer axis of stride s times the inner extent. A split is undone if
   its parts are adjacent (outer stride = inner stride times inner extent). Otherwise the axis has
   no stride and the tensor has no logical strides; `reason` says why. The tensor can then be used
   as a view of its allocation domain, `axes` and `axis_strides`. If a merge has joined parts that
   are not adjacent, there is no such view either, and the allocation is rejected.

Adjacency is decided on expressions, at compile time: parts with an axis of unknown extent between
them are not adjacent, even if the extent turns out to be 1. nvFuser does the same, but allocates
the logical size at padded strides for a padded split, 42 elements for [3, 10] split by 16;
`elements` here is the size of the allocation domain, 48.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import gcd

from fly_common.errors import InputError

from fly_host.axes import Axis, Check, Move, forward
from fly_host.domain import Allocation, Broadcast, Merge, Reorder, Split, Step
from fly_host.graph import Graph

# The maximum number of factors of a product that is compared. Larger products may compare unequal,
# which is safe: the parts are then treated as not adjacent.
MOST_FACTORS = 1000


@dataclass(frozen=True)
class Inferred:
    """Indices of expressions. `strides` is None where the logical domain has none, for `reason`."""

    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    elements: int  # that are allocated, with padding
    axes: tuple[int, ...]  # extents of the allocation domain
    axis_strides: tuple[int, ...]
    checks: tuple[Check, ...] = ()
    reason: str = ""
    moves: tuple[Move, ...] = field(default=(), repr=False)  # from the logical domain on


def infer(graph: Graph, shape: Sequence[int], allocation: Allocation | None = None) -> Inferred:
    """Infers a tensor of this shape (indices of expressions) with this allocation."""
    allocation = allocation or Allocation()
    empty = [axis for axis, extent in enumerate(shape) if graph.constant(extent) == 0]
    if not empty:
        return _infer(graph, shape, allocation)
    # Whether a tensor without elements has logical strides is decided as if its zero extents were
    # unknown, so that it agrees with tensors that have elements.
    general = Graph(graph.expressions)
    extents = [general.extent("", at) if at in empty else e for at, e in enumerate(shape)]
    reason = _infer(general, extents, allocation).reason
    found = _infer(graph, shape, allocation, empty=True)
    return replace(found, strides=None, reason=reason) if reason else found


def _infer(
    graph: Graph, shape: Sequence[int], allocation: Allocation, empty: bool = False
) -> Inferred:
    made = forward(graph, shape, allocation)
    axes = made.allocated
    quotients = _quotients(graph, made.moves)
    axis_strides = _contiguous(graph, axes, quotients)
    parts = _Back(graph, made.moves, quotients, empty).logical(axes, axis_strides)
    strides = tuple(part.stride for part in parts if part.stride is not None)
    padded = any(isinstance(move.step, Split) and move.step.padded for move in made.moves)
    stored = (axis.extent for axis in (axes if padded else made.logical) if not axis.shared)
    return Inferred(
        shape=tuple(axis.extent for axis in made.logical),
        strides=strides if len(strides) == len(parts) else None,
        elements=graph.product(stored),
        axes=tuple(axis.extent for axis in axes),
        axis_strides=axis_strides,
        checks=made.checks,
        reason=next((part.reason for part in parts if part.stride is None), ""),
        moves=made.moves,
    )


def address(graph: Graph, inferred: Inferred, index: Sequence[int]) -> int:
    """Returns the offset in elements of a logical index (indices of expressions). It applies the
    steps to the index, so it does not need logical strides."""
    if len(index) != len(inferred.shape):
        raise InputError(f"an index of {len(index)} numbers into {len(inferred.shape)} axes")
    position = list(index)
    for step, before, after in inferred.moves:
        match step:
            case Split(axis):
                inner = after[axis + 1].span
                whole = position[axis]
                position[axis : axis + 1] = [graph.floordiv(whole, inner), graph.mod(whole, inner)]
            case Merge(axis):
                outer, inner = position[axis : axis + 2]
                outer = graph.mul(outer, before[axis + 1].span)
                position[axis : axis + 2] = [graph.add(outer, inner)]
            case Reorder(permutation):
                position = [position[axis] for axis in permutation]
            case Broadcast(axis):
                position.insert(axis, graph.const(0))
    offset = graph.const(0)
    for at, stride in zip(position, inferred.axis_strides, strict=True):
        if graph.constant(stride) != 0:
            offset = graph.add(offset, graph.mul(at, stride))
    return offset


def _quotients(graph: Graph, moves: Sequence[Move]) -> dict[int, tuple[int, int]]:
    """Maps the quotient of each exact split to its span and factor."""
    quotients: dict[int, tuple[int, int]] = {}
    for step, before, after in moves:
        if isinstance(step, Split) and not step.padded:
            parts = after[step.axis].span, after[step.axis + 1].span
            number, factor = parts if step.inner else reversed(parts)
            whole = before[step.axis].span
            if graph.expressions[number] == ("ceildiv", whole, factor):
                quotients[number] = whole, factor
    return quotients


def _contiguous(
    graph: Graph, axes: Sequence[Axis], quotients: dict[int, tuple[int, int]]
) -> tuple[int, ...]:
    """The strides of row-major axes. The product of adjacent parts of an exact split is the span
    that was split, so the strides of outer axes are the expressions that they are without it."""
    wholes = {frozenset((number, factor)): whole for number, (whole, factor) in quotients.items()}
    strides: list[int] = []
    inside, last, running = 0, -1, graph.const(1)
    for axis in reversed(axes):
        if axis.shared:
            strides.append(graph.const(0))
            continue
        strides.append(running)
        whole = wholes.get(frozenset((axis.span, last)))
        outside = graph.mul(running, axis.span) if whole is None else graph.mul(inside, whole)
        inside, last, running = running, axis.span, outside
    return tuple(reversed(strides))


@dataclass(frozen=True)
class _Part:
    """The memory layout of an axis.

    `stride` is None if it has none; `reason` says why. `tail` is the stride of its innermost part,
    and the product of `follows` is the stride that an adjacent outer part must have; both may be
    known even if the axis has no stride. `ends` are the axes of the allocation domain that contain
    it."""

    stride: int | None
    follows: tuple[int, ...] | None
    tail: int | None
    ends: frozenset[int]
    reason: str = ""


class _Back:
    """Computes the layout of the logical domain from that of the allocation domain."""

    def __init__(
        self,
        graph: Graph,
        moves: Sequence[Move],
        quotients: dict[int, tuple[int, int]],
        empty: bool,
    ):
        self.graph = graph
        self.moves = moves
        self.quotients = quotients
        self.empty = empty  # no two elements tell whether parts are adjacent

    def logical(self, axes: Sequence[Axis], strides: Sequence[int]) -> list[_Part]:
        placed = enumerate(zip(strides, axes, strict=True))
        parts = [
            self._regular(stride, axis.span, frozenset((at,))) for at, (stride, axis) in placed
        ]
        for step, before, after in reversed(self.moves):
            match step:
                case Reorder(permutation):
                    placed = dict(zip(permutation, parts, strict=True))
                    parts = [placed[axis] for axis in range(len(permutation))]
                case Broadcast(axis):
                    del parts[axis]
                case Merge(axis):
                    outer, inner = before[axis], before[axis + 1]
                    parts[axis : axis + 1] = self._unmerged(outer, inner, parts[axis])
                case Split(axis):
                    split = Move(step, before[axis : axis + 1], after[axis : axis + 2])
                    parts[axis : axis + 2] = [self._unsplit(split, *parts[axis : axis + 2])]
        return parts

    def _unmerged(self, outer: Axis, inner: Axis, merged: _Part) -> list[_Part]:
        if merged.stride is None:
            return [_Part(None, None, None, merged.ends, merged.reason)] * 2
        zero = self.graph.const(0)
        outer_stride = zero if outer.shared else self.graph.mul(merged.stride, inner.span)
        inner_stride = zero if inner.shared else merged.stride
        return [
            self._regular(outer_stride, outer.span, merged.ends),
            self._regular(inner_stride, inner.span, merged.ends),
        ]

    def _unsplit(self, split: Move, outer: _Part, inner: _Part) -> _Part:
        """The layout of a split axis. `split` contains only this axis and its parts."""
        (axis,), spans = split.before, [self.graph.constant(part.span) for part in split.after]
        ends = outer.ends | inner.ends
        if axis.shared:
            return self._regular(self.graph.const(0), axis.span, ends)
        if 1 not in spans and not self._adjacent(outer, inner):
            reason = _apart(split.step, outer, inner)
            return _Part(None, self._follows(split, outer), inner.tail, ends, reason)
        if outer.stride is None or inner.stride is None:
            reason = outer.reason or inner.reason
            return _Part(None, self._follows(split, outer), inner.tail, ends, reason)
        # Where one part has but one position, the other one is all of the axis.
        return self._regular(outer.stride if spans[1] == 1 else inner.stride, axis.span, ends)

    def _adjacent(self, outer: _Part, inner: _Part) -> bool:
        """Whether the outer part is adjacent to the inner part; true if it is not known."""
        if self.empty or outer.tail is None or inner.follows is None:
            return True
        return self._factors(outer.tail) == self._factors(*inner.follows)

    def _follows(self, split: Move, outer: _Part) -> tuple[int, ...] | None:
        """`follows` of a split axis; no stride is adjacent to a padded one."""
        (axis,), parts = split.before, [part.span for part in split.after]
        padded = self._factors(*parts) != self._factors(axis.span)
        return (self.graph.const(0),) if padded else outer.follows

    def _regular(self, stride: int, span: int, ends: frozenset[int]) -> _Part:
        """An axis that has a stride. An axis of extent 1 is contained in no axis."""
        only = self.graph.constant(span) == 1
        return _Part(stride, (stride, span), stride, frozenset() if only else ends)

    def _factors(self, *product: int) -> tuple[int, int, dict[int, int]]:
        """The normal form of a product of spans and strides: its constant factor as a fraction in
        lowest terms, and the exponents of the other factors, negative for divisors."""
        graph, powers, constants = self.graph, Counter[int](), {1: 1, -1: 1}
        left, seen = [(index, 1) for index in product], 0
        while left:
            index, power = left.pop()
            value = graph.constant(index)
            op, *operands = graph.expressions[index]
            seen += 1
            if value is not None:
                constants[power] *= value
            elif seen > MOST_FACTORS:  # x·x, its square, the square of that …
                powers[index] += power
            elif op == "mul":
                left += ((operand, power) for operand in operands)
            elif index in self.quotients:
                whole, factor = self.quotients[index]
                left += (whole, power), (factor, -power)
            else:
                powers[index] += power
        common = gcd(*constants.values())
        above, below = constants[1] // common, constants[-1] // common
        return above, below, {index: power for index, power in powers.items() if power}


def _apart(split: Step, outer: _Part, inner: _Part) -> str:
    """The reason why an axis whose parts are not adjacent has no stride."""
    if outer.ends & inner.ends:
        raise InputError(
            f"{split}: its parts are not adjacent in memory, and a merge joins them:"
            " the axis that it makes counts no axis of the tensor",
            hint="leave the merge out, or the reorder before it",
        )
    return f"there are no logical strides: the parts of {split} are not adjacent in memory"
