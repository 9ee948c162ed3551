"""Shape, strides and size of a tensor, as expressions, from its allocation.

    inferred = infer(graph, shape, Allocation().split(3, 4).reorder(0, 3, 1, 2, 4))

Inference runs once, when a program is compiled, and puts what it finds into the program's graph:

1. Extents go forward, step by step. A split's extents are its factor and a ceildiv; an exact one
   has a check that the factor divides the extent.
2. The axes of the allocation domain are contiguous in their order: the last one has stride 1. As
   in torch, an extent of 0 counts as 1 here, so strides are those of the shape with ones for zeros.
3. Strides go back, from the last step to the first. A merged axis of stride s was an inner axis of
   stride s and an outer one of s times the inner extent. A split is undone where its outer part
   lies next to its inner one (stride of the outer = stride of the inner times its extent); where it
   does not, the axis has no stride, and then the tensor has none: `reason` says so, and the tensor
   can be seen as its allocation domain, `axes` and `axis_strides`. What a reorder took apart and a
   merge joins in another order has no such view either, and is refused.

Whether parts are adjacent is decided on the expressions: an axis between them that happens to have
extent 1 when the program runs is between them all the same. nvFuser's host programs do likewise,
but allocate a padded split's logical size at padded strides, 42 elements for [3, 10] split by 16;
`elements` here is what the allocation domain indexes, 48.
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

# Of a product that is compared. One with more is equal only to itself, which is no error: then
# parts are not found to be adjacent.
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
    """What a tensor of this shape (indices of expressions) is that has this allocation."""
    allocation = allocation or Allocation()
    empty = [axis for axis, extent in enumerate(shape) if graph.constant(extent) == 0]
    if not empty:
        return _infer(graph, shape, allocation)
    # A tensor without elements has logical strides where one with elements would have some: as if
    # nothing were known of the extents that are 0.
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
    """The offset, in elements, of a logical index (indices of expressions): it goes through the
    steps, so that it needs no logical strides."""
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
    """What is a span divided by a factor without a rest: an exact split's other part."""
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
    """The strides of axes that lie in this order. Both parts of an exact split are together what
    was split: what lies outside them shares its strides with tensors that are not split."""
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
    """Where an axis of some domain lies in memory.

    `stride` is None where it has none, for `reason`. Its innermost positions are `tail` apart, and
    the product `follows` is how far apart positions of a part must be that lies next to it, outside
    it. They may be known where it has no stride itself. `ends` are the axes of the allocation
    domain that hold it."""

    stride: int | None
    follows: tuple[int, ...] | None
    tail: int | None
    ends: frozenset[int]
    reason: str = ""


class _Back:
    """The parts of the logical domain, of those of the allocation domain."""

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
        """The axis that was split, of its parts. `split` has these three axes alone."""
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
        """Whether the next position of the outer part follows the last one of the inner part. What
        is not known is held against neither."""
        if self.empty or outer.tail is None or inner.follows is None:
            return True
        return self._factors(outer.tail) == self._factors(*inner.follows)

    def _follows(self, split: Move, outer: _Part) -> tuple[int, ...] | None:
        """What follows an axis that was split: nothing is adjacent to one that was padded."""
        (axis,), parts = split.before, [part.span for part in split.after]
        padded = self._factors(*parts) != self._factors(axis.span)
        return (self.graph.const(0),) if padded else outer.follows

    def _regular(self, stride: int, span: int, ends: frozenset[int]) -> _Part:
        """A part that lies at one stride. One position is in no axis more than in any other."""
        only = self.graph.constant(span) == 1
        return _Part(stride, (stride, span), stride, frozenset() if only else ends)

    def _factors(self, *product: int) -> tuple[int, int, dict[int, int]]:
        """A product of spans and strides, in whatever order it was made: its constant factor as a
        fraction in lowest terms, and how often it has each other factor, which is less than 0 for
        a divisor."""
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
    """Why an axis has no stride: its parts have something between them, or changed places."""
    if outer.ends & inner.ends:
        raise InputError(
            f"{split}: its parts are not adjacent in memory, and a merge joins them:"
            " the axis that it makes counts no axis of the tensor",
            hint="leave the merge out, or the reorder before it",
        )
    return f"there are no logical strides: the parts of {split} are not adjacent in memory"
