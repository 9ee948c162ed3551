"""The dynamic sizes of an allocation that stands apart from a graph: in an operation's attribute,
where `%0`, `%1`, … are its operands."""

from __future__ import annotations

from collections.abc import Sequence

from fly_common.errors import InputError
from fly_common.record import replace

from fly_host.domains.domain import Allocation, Dynamic, Expand, Size, Split, Step


def placed(allocation: Allocation, indices: Sequence[int]) -> Allocation:
    """The allocation in a graph: `%k` becomes the expression `indices[k]`."""

    def size(of: Size) -> Size:
        if not isinstance(of, Dynamic):
            return of
        if of.index >= len(indices):
            raise InputError(f"{of}: there are {len(indices)} dynamic sizes")
        return Dynamic(indices[of.index])

    def step(of: Step) -> Step:
        if isinstance(of, Split):
            return replace(of, factor=size(of.factor))
        return replace(of, extent=size(of.extent)) if isinstance(of, Expand) else of

    return Allocation(tuple(map(step, allocation.steps)))
