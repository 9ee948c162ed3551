"""The axes of each domain of an allocation: their extents, as expressions, and what must hold.

    axes = forward(graph, shape, Allocation().split(1, 4, padded=True))
    axes.logical, axes.allocated, axes.checks

Extents and checks put expressions into the graph; strides are `fly_host.domains.inference`'s.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from fly_common.errors import InputError
from fly_common.record import record

from fly_host.domains.domain import (
    Allocation,
    Broadcast,
    Expand,
    Merge,
    Reorder,
    Size,
    Split,
    Step,
)
from fly_host.graph import Graph


class Check(NamedTuple):
    """A condition that must hold when the program runs, and the error message: texts, and indices
    of expressions whose values are inserted. Checks are evaluated in order: a condition need only
    be defined if the conditions before it hold."""

    condition: int
    message: tuple[str | int, ...]


class Axis(NamedTuple):
    """An axis of a domain. `span` is the extent used for strides: the extent that the axis has if
    all zeros of the shape are replaced by ones. A `shared` axis has stride 0, because it was
    broadcast or expanded. A `fixed` axis cannot be expanded."""

    extent: int
    span: int
    shared: bool = False
    fixed: bool = False


class Move(NamedTuple):
    """A step, and the domains before and after it."""

    step: Step
    before: tuple[Axis, ...]
    after: tuple[Axis, ...]


@record
class Axes:
    """The logical domain, and the moves from there to the allocation domain."""

    logical: tuple[Axis, ...]
    moves: tuple[Move, ...]
    checks: tuple[Check, ...]

    @property
    def allocated(self) -> tuple[Axis, ...]:
        return self.moves[-1].after if self.moves else self.logical


def forward(graph: Graph, shape: Sequence[int], allocation: Allocation) -> Axes:
    """The axes of a tensor of this shape (indices of expressions) under an allocation."""
    walk = _Walk(graph)
    zero, one = graph.const(0), graph.const(1)
    for axis, extent in enumerate(shape):
        walk.check(graph.le(zero, extent), f"extent {axis} is ", extent, ", less than 0")
    domain = tuple(Axis(extent, graph.maximum(extent, one)) for extent in shape)
    steps, first = allocation.resolved(len(shape)).steps, allocation.logical
    for step in steps[:first]:
        domain = walk.step(step, domain)
    logical = domain = tuple(axis._replace(fixed=True) for axis in domain)
    moves: list[Move] = []
    for step in steps[first:]:
        after = walk.step(step, domain)
        moves.append(Move(step, domain, after))
        domain = after
    return Axes(logical, tuple(moves), tuple(walk.checks))


class _Walk:
    """From one domain to the next, and the checks on the way."""

    def __init__(self, graph: Graph):
        self.graph = graph
        self.given = len(graph.expressions)  # what a `Dynamic` may name
        self.checks: list[Check] = []

    def check(self, condition: int, *message: str | int) -> None:
        """A check, unless it always holds. What never does is refused now."""
        known = self.graph.constant(condition)
        if known == 0:
            pieces = (p if isinstance(p, str) else self.graph.text(p) for p in message)
            raise InputError("".join(pieces))
        if known is None:
            self.checks.append(Check(condition, message))

    def step(self, step: Step, domain: tuple[Axis, ...]) -> tuple[Axis, ...]:
        one = self.graph.const(1)
        match step:
            case Reorder(permutation):
                return tuple(domain[axis] for axis in permutation)
            case Broadcast(axis):
                return (*domain[:axis], Axis(one, one, shared=True), *domain[axis:])
            case Expand(axis):
                return (*domain[:axis], self._expanded(step, domain[axis]), *domain[axis + 1 :])
            case Merge(axis):
                merged = self._merged(step, *domain[axis : axis + 2])
                return (*domain[:axis], merged, *domain[axis + 2 :])
            case Split(axis):
                return (*domain[:axis], *self._split(step, domain[axis]), *domain[axis + 1 :])

    def _size(self, size: Size) -> int:
        if isinstance(size, int):
            return self.graph.const(size)
        if size.index >= self.given:
            raise InputError(f"{size}: the graph has no such expression")
        return size.index

    def _expanded(self, step: Expand, axis: Axis) -> Axis:
        graph, name = self.graph, named(step)
        if axis.fixed:
            raise InputError(
                f"{step}: the logical axes have their extents by now",
                hint="expand them before the first split, merge or reorder",
            )
        one, extent = graph.const(1), self._size(step.extent)
        only = ", and only an axis of extent 1 can be expanded"
        self.check(graph.eq(axis.extent, one), *name, ": the axis has extent ", axis.extent, only)
        self.check(graph.le(graph.const(0), extent), *name, ": the extent is less than 0")
        return Axis(extent, graph.maximum(extent, one), shared=True)

    def _merged(self, step: Merge, outer: Axis, inner: Axis) -> Axis:
        graph, shared = self.graph, outer.shared and inner.shared
        for axis in (outer, inner):
            if axis.shared and not shared and graph.constant(axis.extent) != 1:
                raise InputError(
                    f"{step}: one of the axes is expanded, its elements are one in memory",
                    hint="an expanded axis can be merged with another expanded one",
                )
        extent, span = graph.mul(outer.extent, inner.extent), graph.mul(outer.span, inner.span)
        return Axis(extent, span, shared, fixed=True)

    def _split(self, step: Split, axis: Axis) -> tuple[Axis, Axis]:
        graph, factor, name = self.graph, self._size(step.factor), named(step)
        self.check(graph.le(graph.const(1), factor), *name, ": the factor is less than 1")
        if not step.padded:
            divides = graph.eq(graph.mod(axis.extent, factor), graph.const(0))
            message = (": the extent ", axis.extent, " is not a multiple of ", factor)
            self.check(divides, *name, *message)
        given = Axis(factor, factor, axis.shared, fixed=True)
        extent, span = graph.ceildiv(axis.extent, factor), graph.ceildiv(axis.span, factor)
        other = Axis(extent, span, axis.shared, fixed=True)
        return (other, given) if step.inner else (given, other)


def named(step: Step) -> tuple[str | int, ...]:
    """A step's text as pieces of a message: it shows the values of its expressions."""
    pieces = re.split(r"%([0-9]+)", str(step))
    return tuple(int(piece) if at % 2 else piece for at, piece in enumerate(pieces))
