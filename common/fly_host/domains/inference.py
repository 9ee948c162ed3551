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
from itertools import product
from math import gcd
from typing import NamedTuple

from fly_common.errors import InputError
from fly_common.record import field, record, replace

from fly_host.domains.axes import Axis, Check, Move, forward
from fly_host.domains.domain import Allocation, Broadcast, Merge, Reorder, Split, Step
from fly_host.graph import Graph

# The maximum number of factors of a product that is compared. Larger products may compare unequal,
# which is safe: the parts are then treated as not adjacent.
MOST_FACTORS = 1000


@record
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


class _Piece(NamedTuple):
    """Adjacent parts of an axis, which lie at one stride; None where it is not known. The product
    of `follows` is the stride that an adjacent outer piece must have. `ends` are the axes of the
    allocation domain that contain the piece."""

    stride: int | None
    follows: tuple[int, ...] | None
    ends: frozenset[int]


class _Part(NamedTuple):
    """The memory layout of an axis: its pieces, outermost first. An axis has a stride if it is one
    piece; otherwise `reason` says why it has none."""

    pieces: tuple[_Piece, ...]
    reason: str = ""

    @property
    def stride(self) -> int | None:
        return self.pieces[0].stride if len(self.pieces) == 1 else None

    @property
    def ends(self) -> frozenset[int]:
        return frozenset[int]().union(*(piece.ends for piece in self.pieces))


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
            return [_Part((_Piece(None, None, merged.ends),), merged.reason)] * 2
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
        if 1 in spans:
            joined = _of_one(spans[0] == 1, outer, inner)
        else:
            joined = self._joined(split.step, outer, inner)
        if joined.stride is not None:
            return self._regular(joined.stride, axis.span, ends)
        first, *others = joined.pieces
        if self._padded(split):  # no stride is adjacent
            first = first._replace(follows=(self.graph.const(0),))
        return _Part((first, *others), joined.reason)

    def _joined(self, step: Step, outer: _Part, inner: _Part) -> _Part:
        """The pieces of both parts. Those between which the split was are one if they are adjacent.
        Refuses a split of which a merge has joined pieces that are not adjacent."""
        last, first = outer.pieces[-1], inner.pieces[0]
        adjacent = self._adjacent(last, first)
        for one, other in product(outer.pieces, inner.pieces):
            may = (one is last and other is first) or None in (one.stride, other.stride)
            if one.ends & other.ends and (adjacent is False or not may):
                raise InputError(
                    f"{step}: its parts are not adjacent in memory, and a merge joins them:"
                    " the axis that it makes counts no axis of the tensor",
                    hint="leave the merge out, or the reorder before it",
                )
        if adjacent is False:
            reason = f"there are no logical strides: the parts of {step} are not adjacent in memory"
            return _Part((*outer.pieces, *inner.pieces), reason)
        both = (last, first)
        if adjacent:
            both = (_Piece(first.stride, last.follows, last.ends | first.ends),)
        reason = outer.reason or inner.reason
        return _Part((*outer.pieces[:-1], *both, *inner.pieces[1:]), reason)

    def _adjacent(self, outer: _Piece, inner: _Piece) -> bool | None:
        """None if it is not known."""
        if self.empty:
            return True
        if outer.stride is None or inner.follows is None:
            return None
        return self._factors(outer.stride) == self._factors(*inner.follows)

    def _padded(self, split: Move) -> bool:
        """Whether the parts may have more positions than the axis."""
        (axis,), parts = split.before, [part.span for part in split.after]
        return self._factors(*parts) != self._factors(axis.span)

    def _regular(self, stride: int, span: int, ends: frozenset[int]) -> _Part:
        """An axis that has a stride. An axis of extent 1 is contained in no axis."""
        only = self.graph.constant(span) == 1
        return _Part((_Piece(stride, (stride, span), frozenset() if only else ends),))

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


def _of_one(first: bool, outer: _Part, inner: _Part) -> _Part:
    """Parts of which one, the first or the last, has a single position: the other one is all of the
    axis. With padding a single position may be in several pieces; then the axis is, too."""
    single, rest = (outer, inner) if first else (inner, outer)
    if single.stride is not None:
        return rest
    return _Part((*outer.pieces, *inner.pieces), outer.reason or inner.reason)
