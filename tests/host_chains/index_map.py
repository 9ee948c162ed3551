"""What a chain means, by enumeration: no stride is computed here, coordinates are followed.

Every coordinate of the logical domain goes through the steps, one after the other, to a coordinate
of the allocation domain. The coordinates of that domain, counted in order with the last axis
fastest, are the memory. Strides are differences of what comes out; they exist where every domain on
the way, with its padding, lies in memory at a sum of coordinate times stride.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import groupby, product

from host_chains.chain import Chain, Step

Coordinate = tuple[int, ...]


class Wrong(Exception):
    """A chain that must be refused, whatever its strides."""


@dataclass
class Domain:
    """Axes: how many positions each has, whether they are one element, whether it may still be
    expanded, whether a merge made it."""

    extents: list[int]
    shared: list[bool]
    free: list[bool]
    merged: list[bool]

    def coordinates(self) -> list[Coordinate]:
        return list(product(*(range(extent) for extent in self.extents)))


@dataclass
class Meaning:
    """`moves` lead from the logical domain to the allocation domain."""

    logical: Domain
    moves: list[tuple[Step, Domain, Domain]] = field(default_factory=list)

    @property
    def allocated(self) -> Domain:
        return self.moves[-1][2] if self.moves else self.logical

    def domains(self) -> list[Domain]:
        return [self.logical, *(after for _, _, after in self.moves)]

    def memory(self) -> dict[Coordinate, int]:
        """The place of each coordinate, with 0 for axes that are one element."""
        axes = self.allocated
        pairs = zip(axes.extents, axes.shared, strict=True)
        places = product(*(range(1 if shared else extent) for extent, shared in pairs))
        return {place: number for number, place in enumerate(places)}

    def end(self, at: int, coordinate: Coordinate) -> Coordinate:
        """Where a coordinate of domain `at` is in the allocation domain."""
        for step, before, after in self.moves[at:]:
            coordinate = follow(step, before, after, coordinate)
        return coordinate

    def offsets(self, at: int) -> dict[Coordinate, int]:
        memory, shared = self.memory(), self.allocated.shared
        found = {}
        for coordinate in self.domains()[at].coordinates():
            end = zip(self.end(at, coordinate), shared, strict=True)
            found[coordinate] = memory[tuple(0 if one else place for place, one in end)]
        return found


def meaning(chain: Chain, ones: bool = False) -> Meaning:
    """Raises Wrong. With `ones`, zeros of the shape count as ones, and nothing is checked."""
    shape = [max(extent, 1) if ones else extent for extent in chain.shape]
    no = [False] * len(shape)
    domain = Domain(shape, no, [True] * len(shape), no)
    steps = list(chain.steps)
    while steps and steps[0][0] in ("broadcast", "expand"):
        domain = moved(steps.pop(0), domain, ones)
    no = [False] * len(domain.extents)
    found = Meaning(Domain(domain.extents, domain.shared, no, no))
    for step in steps:
        before = found.allocated
        found.moves.append((step, before, moved(step, before, ones)))
    return found


def moved(step: Step, domain: Domain, ones: bool) -> Domain:
    name, *values = step
    fields = (domain.extents, domain.shared, domain.free, domain.merged)
    if name == "reorder":
        (order,) = values
        return Domain(*([one[axis] for axis in order] for one in fields))
    extents, shared, free, merged = (list(one) for one in fields)
    axis = position(step, len(extents))
    if name == "broadcast":
        extents.insert(axis, 1)
        shared.insert(axis, True)
        free.insert(axis, True)
        merged.insert(axis, False)
    elif name == "expand":
        if not free[axis]:
            raise Wrong("a logical axis is expanded too late")
        if extents[axis] != 1 and not ones:
            raise Wrong("an axis of another extent than 1 is expanded")
        extents[axis], shared[axis] = max(values[1], 1) if ones else values[1], True
    elif name == "merge":
        both = shared[axis] and shared[axis + 1]
        for one in (axis, axis + 1):
            if shared[one] and not both and extents[one] != 1:
                raise Wrong("an expanded axis is merged with another one")
        extents[axis : axis + 2] = [len(range(extents[axis])) * len(range(extents[axis + 1]))]
        shared[axis : axis + 2], free[axis : axis + 2] = [both], [False]
        merged[axis : axis + 2] = [True]
    else:
        _, factor, inner, padded = values
        if extents[axis] % factor and not padded and not ones:
            raise Wrong("a factor does not divide its extent")
        pieces = len(range(0, extents[axis], factor))
        extents[axis : axis + 1] = [pieces, factor] if inner else [factor, pieces]
        shared[axis : axis + 1], free[axis : axis + 1] = [shared[axis]] * 2, [False] * 2
        merged[axis : axis + 1] = [False] * 2
    return Domain(extents, shared, free, merged)


def position(step: Step, count: int) -> int:
    axis = step[1]
    return axis if axis >= 0 else axis + count + (step[0] == "broadcast")


def follow(step: Step, before: Domain, after: Domain, coordinate: Coordinate) -> Coordinate:
    name = step[0]
    if name == "reorder":
        return tuple(coordinate[axis] for axis in step[1])
    axis = position(step, len(before.extents))
    left, here, right = coordinate[:axis], coordinate[axis : axis + 1], coordinate[axis + 1 :]
    if name == "broadcast":
        return (*left, 0, *here, *right)
    if name == "expand":
        return coordinate
    if name == "merge":
        return (*left, here[0] * before.extents[axis + 1] + right[0], *right[1:])
    return (*left, *divmod(here[0], after.extents[axis + 1]), *right)


def regular(offsets: dict[Coordinate, int]) -> tuple[int, ...] | None:
    """The strides at which a domain lies; None where it lies at none. 0 where an axis has but one
    position."""
    rank = len(next(iter(offsets)))
    units = (tuple(int(at == axis) for at in range(rank)) for axis in range(rank))
    strides = tuple(offsets.get(unit, 0) for unit in units)
    for coordinate, offset in offsets.items():
        if offset != sum(c * s for c, s in zip(coordinate, strides, strict=True)):
            return None
    return strides


def strides_of(found: Meaning) -> tuple[int, ...] | None:
    """The strides of the logical domain, if every domain has some."""
    every = [regular(found.offsets(at)) for at in range(len(found.moves) + 1)]
    return None if None in every else every[0]


def joined(found: Meaning) -> bool | None:
    """Whether an axis of the allocation domain holds both parts of a split, and counts them in
    another way than the split axis does. None where this can't be told: a merged axis was split
    again, whose parts may be those of the first split, or padding leaves positions of an outer part
    that no position of the split axis uses."""
    for step, before, after in found.moves:
        if step[0] == "split":
            axis = position(step, len(before.extents))
            used = len(range(0, before.extents[axis], max(after.extents[axis + 1], 1)))
            if before.merged[axis] or used < after.extents[axis]:
                return None
    return any(_joins(found, at) for at, move in enumerate(found.moves) if move[0][0] == "split")


def _walk(found: Meaning, at: int, axis: int) -> list[Coordinate]:
    """Where the positions of one axis of domain `at` end, all others being 0."""
    domain = found.domains()[at]
    zeros = [0] * len(domain.extents)
    ends = []
    for place in range(domain.extents[axis]):
        zeros[axis] = place
        ends.append(found.end(at, tuple(zeros)))
    return ends


def _joins(found: Meaning, at: int) -> bool:
    step, before, _ = found.moves[at]
    axis = position(step, len(before.extents))
    whole = _walk(found, at, axis)
    outer, inner = (_walk(found, at + 1, axis + part) for part in (0, 1))
    for one, shared in enumerate(found.allocated.shared):
        held = all(any(end[one] for end in part) for part in (outer, inner))
        if held and not shared and not _counts([end[one] for end in whole]):
            return True
    return False


def _counts(line: list[int]) -> bool:
    """Whether it counts: each value stays for as many places, then comes the next one, a constant
    more, or 0 again, before which a value may stay for less."""
    runs = [(value, len(list(places))) for value, places in groupby(line)]
    following = [value for value, _ in runs[1:]]
    if not following:
        return True
    return all(
        next_value == 0 or (next_value == value + following[0] and places == runs[0][1])
        for (value, places), next_value in zip(runs, following, strict=False)
    )
