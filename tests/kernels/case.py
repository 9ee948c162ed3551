"""A kernel, what it is given, and what it must give: the rows of the OpenCL suite."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from chosen_targets import chosen

Triple = tuple[int, int, int]
TARGETS = chosen()
# Where sums of f16 and bf16 products are off by units of a grid, though nothing would be rounded
# (docs/emulator.md), and where they are not.
INEXACT = chosen("complements")
EXACT = tuple(target for target in TARGETS if target not in INEXACT)


@dataclass(frozen=True)
class Near:
    """`value` ± `bound` (an array or a number). NaN is near NaN, an infinity near itself."""

    value: np.ndarray
    bound: Any


@dataclass(frozen=True)
class Launch:
    """`arguments`: arrays are bound in place, NumPy scalars and records passed by value.
    `expected`: what the array at that position must hold afterwards: an array of the same bits, a
    Near, or a function that raises AssertionError. Arrays that are not named must not change."""

    arguments: list[Any]
    grid: Triple
    block: Triple
    expected: Mapping[int, Any]

    def arrays(self) -> dict[int, np.ndarray]:
        return {i: a for i, a in enumerate(self.arguments) if isinstance(a, np.ndarray)}


@dataclass(frozen=True)
class Case:
    """`name`: the kernel's, unless a kernel has several cases. `source`: a file's name in opencl/
    without its ending. `host`: whether the host can run it
    too. `portable`: whether all targets and levels must agree bit for bit; if not, NumPy's bound is
    all that is asked."""

    name: str
    kernel: str
    source: str
    make: Callable[[np.random.Generator], Launch] = field(repr=False)
    targets: tuple[str, ...] = TARGETS
    host: bool = True
    portable: bool = True

    def launch(self) -> Launch:
        """The same inputs each time."""
        return self.make(np.random.default_rng(zlib.crc32(self.name.encode())))


CASES: list[Case] = []


def case(source: str, kernel: str | None = None, **more: Any) -> Callable[[Callable], Callable]:
    """Adds a case: the decorated function makes the launch, and has the kernel's name unless that
    is given."""

    def add(make: Callable) -> Callable:
        CASES.append(Case(make.__name__, kernel or make.__name__, source, make, **more))
        return make

    return add


def blocks(n: int, size: int) -> dict[str, Triple]:
    """Launch's grid and block of workgroups of `size` for at least `n` work items."""
    return {"grid": (-(-n // size), 1, 1), "block": (size, 1, 1)}


def canonical(array: np.ndarray) -> np.ndarray:
    """The bits as unsigned integers; every NaN as the same one, since the sign and payload of a
    result that is NaN are nobody's promise."""
    if array.dtype.kind == "f":
        array = np.where(np.isnan(array), array.dtype.type(np.nan), array)
    elif array.dtype.kind == "V":
        return np.ascontiguousarray(array).view("u1")
    return np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}")


def assert_same_bits(found: np.ndarray, wanted: np.ndarray, what: str) -> None:
    wanted = np.asarray(wanted)
    assert found.dtype == wanted.dtype, f"{what}: the reference is {wanted.dtype}"
    a, b = canonical(found.ravel()), canonical(wanted.ravel())
    assert a.shape == b.shape, f"{what}: the reference has {wanted.shape}, not {found.shape}"
    wrong = np.flatnonzero(a != b)
    if wrong.size:
        at = wrong[0] * a.itemsize // found.itemsize
        raise AssertionError(
            f"{what}: {wrong.size} of {a.size} differ, first at {at}:"
            f" {found.ravel()[at]!r}, not {wanted.ravel()[at]!r}"
        )


def assert_near(found: np.ndarray, wanted: Near, what: str) -> None:
    value, bound = (np.broadcast_to(a, found.shape) for a in (wanted.value, wanted.bound))
    with np.errstate(all="ignore"):
        off = np.abs(found.astype("f8") - value)
    same = (np.isnan(found) & np.isnan(value)) | (found == value)
    wrong = np.flatnonzero(~(same | (off <= bound)))
    if wrong.size:
        at = wrong[np.argmax((off / np.maximum(bound, 1e-300)).ravel()[wrong])]
        raise AssertionError(
            f"{what}: {wrong.size} of {found.size} too far, the worst at {at}:"
            f" {found.ravel()[at]!r}, not {value.ravel()[at]!r} ± {bound.ravel()[at]:.3g}"
        )


def check(
    launch: Launch, before: Mapping[int, np.ndarray], after: Mapping[int, np.ndarray]
) -> None:
    """`before`, `after`: the arrays by position."""
    for position, found in after.items():
        wanted = launch.expected.get(position, before[position])
        what = f"argument {position}"
        if callable(wanted):
            wanted(found)
        elif isinstance(wanted, Near):
            assert_near(found, wanted, what)
        else:
            assert_same_bits(found, wanted, what)
