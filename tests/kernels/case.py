"""The rows of the OpenCL suite: a kernel, its arguments, and the expected results."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from chosen_targets import chosen

Triple = tuple[int, int, int]
TARGETS = chosen()
# Targets on which sums of f16 and bf16 products are off by units of a grid even if no rounding is
# needed (docs/emulator.md), and the others.
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
    Near, or a function that raises AssertionError. Other arrays must not change."""

    arguments: list[Any]
    grid: Triple
    block: Triple
    expected: Mapping[int, Any]

    def arrays(self) -> dict[int, np.ndarray]:
        return {i: a for i, a in enumerate(self.arguments) if isinstance(a, np.ndarray)}


@dataclass(frozen=True)
class Case:
    """`name`: the kernel's, unless a kernel has several cases. `source`: the name of a file in
    opencl/ without its suffix. `host`: whether it can also run on the host. `portable`: whether all
    targets and levels must agree bit for bit; if not, results must only be within NumPy's bound."""

    name: str
    kernel: str
    source: str
    make: Callable[[np.random.Generator], Launch] = field(repr=False)
    targets: tuple[str, ...] = TARGETS
    host: bool = True
    portable: bool = True

    def launch(self) -> Launch:
        """Makes the launch, with the same inputs each time."""
        return self.make(np.random.default_rng(zlib.crc32(self.name.encode())))


CASES: list[Case] = []


def case(source: str, kernel: str | None = None, **more: Any) -> Callable[[Callable], Callable]:
    """Adds a case: the decorated function makes the launch; its name is the kernel's by default."""

    def add(make: Callable) -> Callable:
        CASES.append(Case(make.__name__, kernel or make.__name__, source, make, **more))
        return make

    return add


def blocks(n: int, size: int) -> dict[str, Triple]:
    """Returns Launch's grid and block for at least `n` work items in workgroups of `size`."""
    return {"grid": (-(-n // size), 1, 1), "block": (size, 1, 1)}


def canonical(array: np.ndarray) -> np.ndarray:
    """Returns the bits as unsigned integers, with a single NaN: the sign and payload of a NaN
    result are unspecified."""
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
