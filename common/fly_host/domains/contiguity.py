"""Checks that the extents and strides of an input match an allocation.

    checks = check_layout(graph, "A", 4, Allocation().reorder(0, 2, 3, 1))       # NHWC

Strides are propagated from the logical domain to the allocation domain: the inner part of a split
has the stride of the axis, the outer part that stride times the inner extent; merged axes must be
contiguous with each other. Then each axis of the allocation domain must be contiguous with the next
one. As in torch, the stride of an axis of extent 1 is ignored, and a tensor without elements is
contiguous.

The factor of a padded split must divide the extent, as in nvFuser: strides do not show whether the
memory of an input includes the padding.
"""

from __future__ import annotations

from collections.abc import Sequence

from fly_common.errors import InputError

from fly_host.domains.axes import Axes, Axis, Check, forward, named
from fly_host.domains.domain import Allocation, Broadcast, Expand, Merge, Reorder, Split
from fly_host.domains.inference import infer
from fly_host.graph import Graph


def check_layout(
    graph: Graph,
    tensor: str,
    rank: int,
    allocation: Allocation,
    contiguous: Sequence[bool] | None = None,
) -> tuple[Check, ...]:
    """Returns the checks that a tensor parameter of `rank` axes has this allocation.

    `contiguous` selects the axes of the allocation domain that must be contiguous with the next
    one; by default all must be."""
    extents = [graph.extent(tensor, axis) for axis in range(rank)]
    shape = _given(graph, extents, allocation)
    if contiguous is None:
        _refuse_without_strides(graph, tensor, shape, allocation)
    axes = forward(graph, shape, allocation)
    walk = _Walk(graph, tensor, extents)
    for axis, (found, wanted) in enumerate(zip(extents, axes.logical, strict=True)):
        same = graph.eq(found, wanted.extent)
        walk.check(same, f"extent {axis} is ", found, ", and has to be ", wanted.extent)
    for condition, message in axes.checks:
        walk.check(condition, *message)
    strides = walk.forward(axes, [graph.stride(tensor, axis) for axis in range(rank)])
    flags = [True] * len(strides) if contiguous is None else list(contiguous)
    if len(flags) != len(strides):
        what = f"{len(flags)} flags for an allocation domain of rank {len(strides)}"
        raise InputError(f"{tensor}: {what}")
    walk.contiguity(axes.allocated, strides, flags)
    return tuple(walk.checks)


def _given(graph: Graph, extents: Sequence[int], allocation: Allocation) -> list[int]:
    """The shape from which the steps of the logical domain make a tensor of these extents."""
    made = allocation.steps[: allocation.logical]
    rank = len(extents) - sum(isinstance(step, Broadcast) for step in made)
    if rank < 0:
        raise InputError(f"{allocation}: too many new axes for a tensor of rank {len(extents)}")
    of: list[int | None] = list(range(rank))  # which given axis a logical one is
    expanded: set[int | None] = set()
    for step in allocation.resolved(rank).steps[: len(made)]:
        match step:
            case Broadcast(axis):
                of.insert(axis, None)
            case Expand(axis):
                expanded.add(of[axis])
    one = graph.const(1)
    return [one if axis in expanded else extents[of.index(axis)] for axis in range(rank)]


def _refuse_without_strides(
    graph: Graph, tensor: str, shape: Sequence[int], allocation: Allocation
) -> None:
    reason = infer(graph, shape, allocation).reason
    if reason:
        raise InputError(
            f"{tensor}: {reason}",
            hint="pass the tensor in the shape of its allocation domain",
        )


class _Walk:
    """Strides of an input from its logical domain to the allocation domain, and the checks."""

    def __init__(self, graph: Graph, tensor: str, extents: Sequence[int]):
        self.graph = graph
        self.tensor = tensor
        self.checks: list[Check] = []
        self.empty = graph.const(0)
        for extent in extents:
            self.empty = graph.logical_or(self.empty, graph.eq(extent, graph.const(0)))

    def check(self, condition: int, *message: str | int) -> None:
        """A check, unless it always holds."""
        if self.graph.constant(condition) != 1:
            self.checks.append(Check(condition, (f"{self.tensor}: ", *message)))

    def forward(self, axes: Axes, strides: list[int]) -> list[int]:
        graph = self.graph
        for at, axis in enumerate(axes.logical):
            self._shared(axis, strides[at], at)
        for step, before, after in axes.moves:
            match step:
                case Split(axis):
                    inner = after[axis + 1].extent
                    if step.padded:
                        self._divides(step, before[axis].extent, (after[axis], after[axis + 1]))
                    strides[axis : axis + 1] = [graph.mul(strides[axis], inner), strides[axis]]
                case Merge(axis):
                    pair = before[axis], before[axis + 1]
                    strides[axis : axis + 2] = [self._merged(step, pair, *strides[axis : axis + 2])]
                case Reorder(permutation):
                    strides = [strides[axis] for axis in permutation]
                case Broadcast(axis):
                    strides.insert(axis, graph.const(0))
        return strides

    def _shared(self, axis: Axis, stride: int, at: int) -> None:
        if axis.shared:
            once = self._once(axis.extent, self.graph.eq(stride, self.graph.const(0)))
            self.check(once, f"stride {at} is ", stride, ", and an expanded axis has stride 0")

    def _once(self, extent: int, condition: int) -> int:
        """The condition, or true if the axis has extent 1 or the tensor has no elements."""
        graph = self.graph
        free = graph.logical_or(graph.lt(extent, graph.const(2)), self.empty)
        return graph.logical_or(free, condition)

    def _divides(self, step: Split, extent: int, parts: tuple[Axis, Axis]) -> None:
        graph = self.graph
        factor = parts[1 if step.inner else 0].extent
        divides = graph.eq(graph.mod(extent, factor), graph.const(0))
        message = (": the extent ", extent, " is not a multiple of ", factor)
        self.check(divides, *named(step), *message, ", and an input is not padded")

    def _merged(self, step: Merge, pair: tuple[Axis, Axis], outer: int, inner: int) -> int:
        """The stride of two axes as one."""
        graph = self.graph
        first, second = (axis.extent for axis in pair)
        adjacent = graph.eq(outer, graph.mul(inner, second))
        condition = self._once(first, self._once(second, adjacent))
        message = (": axes of strides ", outer, " and ", inner, " are not contiguous")
        self.check(condition, *named(step), *message)
        return graph.select(graph.lt(second, graph.const(2)), outer, inner)

    def contiguity(self, axes: Sequence[Axis], strides: Sequence[int], flags: list[bool]) -> None:
        graph, expected = self.graph, self.graph.const(1)
        for at in reversed(range(len(axes))):
            axis, stride = axes[at], strides[at]
            if axis.shared:
                continue
            if flags[at]:
                condition = self._once(axis.extent, graph.eq(stride, expected))
                where = f"axis {at} of the allocation domain has stride "
                self.check(condition, where, stride, ", and has to have ", expected)
                expected = graph.mul(expected, axis.extent)
            else:
                whole = graph.mul(stride, axis.extent)
                one = graph.lt(axis.extent, graph.const(2))
                expected = graph.select(one, expected, whole)
