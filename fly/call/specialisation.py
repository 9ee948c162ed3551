"""Which extents of its arguments a function is compiled for: the policy of `specialize=`.

    @fly.jit(specialize=fly.specialized("N"))
    def scale(X: fx.Tensor[fx.Float32, "M", fx.sym_int32("N")], factor: fx.Float32):
        ...

Code for one N needs no argument for it, computes the distances of rows while it is compiled, and
does not test for ends that it has not. Calls are compiled for the values of the named extents, up
to `most` combinations of values in a process. What comes after these gets the general code, whose
extents are arguments: a process that sees many shapes does not compile forever.

General code is also for extents of 0 and those that do not fit 32 bits; for arguments that do not
fit the annotations, whose launch then says what is wrong; on other targets than `targets`; and
under FLY_SPECIALIZE=0.

Both are right. Results may differ in rounding, as where LLVM computes a factor exactly that the GPU
approximates. Under FLY_SPECIALIZE=0 they do not depend on what a process has called before.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from fly_common.errors import UsageError
from fly_common.quoting import quoted
from fly_common.record import field, record

VARIABLE = "FLY_SPECIALIZE"
MOST = 8  # combinations of extents of one function
WIDEST = 2**31 - 1

Extents = tuple[int, ...]
Steps = tuple[int | None, ...]
Known = tuple[Extents, tuple[Steps | None, ...]]  # extents by name, strides by parameter


@record
class Specialized:
    """`fly.specialized("heads", "d")`: the names of extents in the annotations of a function that
    it is compiled for, for at most so many combinations of values. `targets`: only on these."""

    names: tuple[str, ...]
    most: int = MOST
    targets: tuple[str, ...] | None = None


def specialized(*names: str, most: int = MOST, targets: Sequence[str] | None = None) -> Specialized:
    """What `@fly.jit(specialize=…)` takes. UsageError for names and numbers that make no sense."""
    if not names or not all(isinstance(one, str) and one.isidentifier() for one in names):
        raise UsageError(
            f"fly.specialized takes names of extents, not {quoted(names)}",
            hint='as in fly.specialized("N")',
        )
    if type(most) is not int or most < 1:
        raise UsageError(f"most={quoted(most)}: a number from 1 on is wanted")
    return Specialized(names, most, None if targets is None else tuple(targets))


def checked(given: Any) -> Specialized | None:
    """The option of a decorator. UsageError for anything else."""
    if given is not None and not isinstance(given, Specialized):
        raise UsageError(f"specialize={quoted(given)}: fly.specialized(…) is wanted")
    return given


@record(frozen=False, eq=False)
class Shapes:
    """The combinations of extents that a function has code for in this process."""

    wanted: Specialized
    _known: dict[Extents, None] = field(default_factory=dict)

    def active(self, target: str) -> bool:
        """Whether code for this target is specialized."""
        if os.environ.get(VARIABLE) == "0":
            return False
        return self.wanted.targets is None or target in self.wanted.targets

    @property
    def is_full(self) -> bool:
        """Whether there are as many combinations as there may be."""
        return len(self._known) >= self.wanted.most

    def take(self, extents: Extents) -> bool:
        """Whether there is code for a combination, or may be."""
        known = self._known
        if extents in known:
            return True
        if self.is_full or not all(0 < one <= WIDEST for one in extents):
            return False
        known[extents] = None
        return True


class Places:
    """Where a function's annotations have the extents that are specialized."""

    def __init__(self, title: str, parameters: Mapping[str, Any], shapes: Shapes):
        from fly_trace.signatures.annotations import TensorAnnotation
        from fly_trace.signatures.extents import symbol_of

        self._shapes = shapes
        names = shapes.wanted.names
        # By parameter: the dimensions, and of each that is specialized the place of its name.
        self._at: dict[str, tuple[int | None, ...]] = {}
        for name, parameter in parameters.items():
            annotation = parameter.annotation
            if isinstance(annotation, TensorAnnotation) and annotation.shape:
                symbols = map(symbol_of, annotation.shape)
                at = tuple(names.index(one) if one in names else None for one in symbols)
                if any(place is not None for place in at):
                    self._at[name] = at
        found = {place for at in self._at.values() for place in at}
        if missing := [one for place, one in enumerate(names) if place not in found]:
            raise UsageError(
                f"{title} has no extent {', '.join(missing)} to specialize",
                hint='extents are named in annotations: fx.Tensor[fx.Float32, "M", "N"]',
            )

    @property
    def are_all_taken(self) -> bool:
        """Whether other extents get no code of their own any more."""
        return self._shapes.is_full

    def of(self, arrays: Mapping[str, Any]) -> Known | None:
        """What the code for a call with these arrays may know; None if that is general code."""
        extents = [0] * len(self._shapes.wanted.names)
        for name, at in self._at.items():
            shape = getattr(arrays.get(name), "shape", ())
            if len(shape) != len(at):
                return None  # what is wrong is told by the launch
            for place, extent in zip(at, shape, strict=True):
                if place is not None:
                    if extents[place] not in (0, extent):
                        return None
                    extents[place] = extent
        found = tuple(extents)
        if not self._shapes.take(found):
            return None
        strides = [
            None
            if (array := arrays[name]).flags.c_contiguous
            else known_strides(array, [None if place is None else found[place] for place in at])
            for name, at in self._at.items()
        ]
        return found, tuple(strides)

    def layouts(self, known: Known) -> dict[str, tuple[Steps, Steps | None]]:
        """The extents and strides by parameter, and None for those that are not known. No strides
        are those of a contiguous array."""
        extents, strides = known
        return {
            name: (tuple(None if place is None else extents[place] for place in at), steps)
            for (name, at), steps in zip(self._at.items(), strides, strict=True)
        }


def known_strides(array: Any, extents: Sequence[int | None]) -> Steps:
    """The strides of an array that follow from extents, as those of a transposed matrix do: each is
    the product of the extents of the dimensions that are nearer in memory."""
    strides = [step // array.itemsize for step in array.strides]
    found: list[int | None] = [None] * len(strides)
    step = 1
    for at in sorted(range(len(strides)), key=strides.__getitem__):
        if array.shape[at] == 1 or strides[at] <= 0:
            continue  # nothing is that far away; or elements are repeated, or backward
        if strides[at] != step:
            break
        found[at] = step
        if (extent := extents[at]) is None:
            break
        step *= extent
    return tuple(found)
