"""Allocations: how the axes of a tensor are transformed into the axes of its memory layout.

    Allocation().split(3, 4).reorder(0, 3, 1, 2, 4)      NHWC as N, C/4, H, W, 4

An `Allocation` is a chain of steps. Each step replaces axes of the current domain; positions refer
to the current axes, as in nvFuser, and -1 is the last axis. The first domain is the tensor's shape;
the last one is the *allocation domain*, which is contiguous in row-major order.

    split(axis, factor)      an axis as two: outer of ceildiv(extent, factor), inner of factor;
                             inner=False: outer of factor, inner of ceildiv(extent, factor);
                             exact (the factor must divide the extent), or padded=True
    merge(axis)              axis and the next one as one, of the product of their extents
    reorder(*permutation)    the axis at position i is the one that was at permutation[i]
    broadcast(axis)          a new axis of extent 1 at this position
    expand(axis, extent)     an axis of extent 1 gets another extent, with stride 0

The domain before the first split, merge or reorder is the *logical domain*: the shape that users of
the tensor see. Earlier broadcasts and expands are part of it; a later broadcast only adds an axis
to the allocation domain.

Factors and extents can be expressions of a graph, `Dynamic(index)`. `str` of an allocation is its
canonical text, `split(3, 4) reorder(0, 3, 1, 2, 4)`; `parse` reads it.
"""

from __future__ import annotations

import re

from fly_common.errors import InputError
from fly_common.quoting import quoted, shortened
from fly_common.record import record

LARGEST = (1 << 63) - 1
MOST_AXES = 64  # of a domain; torch's and NumPy's tensors have no more


@record
class Dynamic:
    """An expression of the graph in which the allocation is inferred; its text is `%index`."""

    index: int

    def __post_init__(self) -> None:
        _integer("the index of an expression", self.index, 0)

    def __str__(self) -> str:
        return f"%{self.index}"


Size = int | Dynamic


@record
class Split:
    axis: int
    factor: Size
    inner: bool = True  # the factor is the extent of the inner part, or else of the outer one
    padded: bool = False

    def __post_init__(self) -> None:
        _integer("an axis", self.axis)
        _size("a factor", self.factor, 1)

    def __str__(self) -> str:
        how = ("" if self.inner else ", inner=False") + (", padded=True" if self.padded else "")
        return f"split({self.axis}, {self.factor}{how})"


@record
class Merge:
    axis: int

    def __post_init__(self) -> None:
        _integer("an axis", self.axis)

    def __str__(self) -> str:
        return f"merge({self.axis})"


@record
class Reorder:
    permutation: tuple[int, ...]

    def __post_init__(self) -> None:
        """Negative positions are counted here: a permutation tells how many axes there are."""
        for axis in self.permutation:
            _integer("an axis", axis)
        rank = len(self.permutation)
        axes = tuple(axis + rank if axis < 0 else axis for axis in self.permutation)
        if sorted(axes) != list(range(rank)):
            raise InputError(
                f"{shortened(self)}: not a permutation of {_many(rank, 'axis')}",
                hint="each position of the current domain is named once",
            )
        object.__setattr__(self, "permutation", axes)

    def __str__(self) -> str:
        return f"reorder({', '.join(map(str, self.permutation))})"


@record
class Broadcast:
    axis: int

    def __post_init__(self) -> None:
        _integer("an axis", self.axis)

    def __str__(self) -> str:
        return f"broadcast({self.axis})"


@record
class Expand:
    axis: int
    extent: Size

    def __post_init__(self) -> None:
        _integer("an axis", self.axis)
        _size("an extent", self.extent, 0)

    def __str__(self) -> str:
        return f"expand({self.axis}, {self.extent})"


Step = Split | Merge | Reorder | Broadcast | Expand


@record
class Allocation:
    """A chain of steps from a tensor's shape to its allocation domain."""

    steps: tuple[Step, ...] = ()

    def split(
        self, axis: int, factor: Size, inner: bool = True, padded: bool = False
    ) -> Allocation:
        return self._with(Split(axis, factor, inner, padded))

    def merge(self, axis: int) -> Allocation:
        return self._with(Merge(axis))

    def reorder(self, *permutation: int) -> Allocation:
        return self._with(Reorder(permutation))

    def broadcast(self, axis: int) -> Allocation:
        return self._with(Broadcast(axis))

    def expand(self, axis: int, extent: Size) -> Allocation:
        return self._with(Expand(axis, extent))

    def _with(self, step: Step) -> Allocation:
        return Allocation((*self.steps, step))

    def __str__(self) -> str:
        return " ".join(map(str, self.steps))

    @property
    def logical(self) -> int:
        """How many steps at the beginning make the logical domain out of the shape."""
        changes = (isinstance(step, Split | Merge | Reorder) for step in self.steps)
        return next((at for at, change in enumerate(changes) if change), len(self.steps))

    def resolved(self, rank: int) -> Allocation:
        """The same chain for a shape of `rank` extents: every axis exists and counts from 0."""
        steps: list[Step] = []
        for step in self.steps:
            step, rank = _resolved(step, rank)
            steps.append(step)
        return Allocation(tuple(steps))

    def ranks(self, rank: int) -> tuple[int, ...]:
        """How many axes each domain has, from the shape's to the allocation domain's."""
        counts = [rank]
        for step in self.steps:
            counts.append(_resolved(step, counts[-1])[1])
        return tuple(counts)


def _resolved(step: Step, rank: int) -> tuple[Step, int]:
    """The step on a domain of `rank` axes, and how many there are afterwards."""
    if isinstance(step, Split | Broadcast) and rank >= MOST_AXES:
        raise InputError(f"{step}: the domain has {rank} axes here, and can't have more")
    match step:
        case Split(axis, factor, inner, padded):
            return Split(_position(step, axis, rank), factor, inner, padded), rank + 1
        case Expand(axis, extent):
            return Expand(_position(step, axis, rank), extent), rank
        case Broadcast(axis):
            return Broadcast(_position(step, axis, rank + 1, new=True)), rank + 1
        case Merge(axis):
            position = _position(step, axis, rank)
            if position == rank - 1:
                raise InputError(f"{step}: axis {position} is the last one, none follows it")
            return Merge(position), rank - 1
        case Reorder(permutation):
            if len(permutation) != rank:
                names = f"it names {_many(len(permutation), 'axis')}"
                raise InputError(f"{shortened(step)}: {names}, the domain has {rank} here")
            return step, rank


def _position(step: Step, axis: int, rank: int, new: bool = False) -> int:
    if not -rank <= axis < rank:
        what = f"no axis can be put at {axis}" if new else f"there is no axis {axis}"
        raise InputError(f"{step}: {what}, the domain has {_many(rank - new, 'axis')} here")
    return axis % rank


def _many(count: int, noun: str) -> str:
    plurals = {"axis": "axes", "number": "numbers"}
    return f"{count} {noun if count == 1 else plurals[noun]}"


def _integer(what: str, value: object, low: int = -LARGEST) -> None:
    if type(value) is not int:
        raise InputError(f"{what} is an integer, not {quoted(value)}")
    if not low <= value <= LARGEST:
        raise InputError(f"{what} is from {low} to {LARGEST}, not {quoted(value)}")


def _size(what: str, value: object, low: int) -> None:
    if not isinstance(value, Dynamic):
        _integer(what, value, low)


# text   = [step {" " step}]
# step   = name "(" [value {", " value}] ")"
# value  = integer | "%" digits | ("inner" | "padded") "=" ("True" | "False")
_STEP = re.compile(r"([a-z]+)\(([^()]*)\)\s*")
_NUMBER = re.compile(r"-?[0-9]{1,19}")
_DYNAMIC = re.compile(r"%[0-9]{1,18}")
_OPTION = re.compile(r"(inner|padded)=(True|False)")
# What each step takes: the least and the most numbers, and whether options.
_STEPS = {
    "split": (2, 2, True),
    "merge": (1, 1, False),
    "reorder": (0, None, False),
    "broadcast": (1, 1, False),
    "expand": (2, 2, False),
}


def parse(text: str) -> Allocation:
    """The allocation of a text, such as `split(1, 4) reorder(0, 2, 1)`."""
    text, end = text.strip(), 0
    steps: list[Step] = []
    while end < len(text):
        found = _STEP.match(text, end)
        if not found:
            raise InputError(
                f"no step of an allocation: {quoted(text[end:])}",
                hint="a step is written split(1, 4), merge(0), reorder(1, 0), broadcast(0) or"
                " expand(0, 8)",
            )
        steps += _parsed(*found.groups()).steps
        end = found.end()
    return Allocation(tuple(steps))


def _parsed(name: str, inside: str) -> Allocation:
    """The allocation of one step."""
    written = shortened(f"{name}({inside})")
    if name not in _STEPS:
        raise InputError(f"{written}: unknown step; there are {', '.join(_STEPS)}")
    least, most, optional = _STEPS[name]
    numbers: list[Size] = []
    options: dict[str, bool] = {}
    for value in (part.strip() for part in inside.split(",")) if inside.strip() else ():
        if optional and (option := _OPTION.fullmatch(value)) and option[1] not in options:
            options[option[1]] = option[2] == "True"
        elif not options and _NUMBER.fullmatch(value):
            numbers.append(int(value))
        elif not options and _DYNAMIC.fullmatch(value):
            numbers.append(Dynamic(int(value[1:])))
        else:
            raise InputError(f"{written}: {quoted(value)} is no argument of {name}")
    if len(numbers) < least or (most is not None and len(numbers) > most):
        takes = f"{name} takes {_many(least, 'number')}"
        raise InputError(f"{written}: {takes}, not {len(numbers)}")
    return getattr(Allocation(), name)(*numbers, **options)
