"""Selects the targets that tests run for.

FLY_TEST_TARGETS unset      the subset for `make test`: `USUAL`, or one of each family
FLY_TEST_TARGETS=every      all that the emulator supports: `make targets`
FLY_TEST_TARGETS=gfx908,…   these
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Mapping, Sequence
from operator import attrgetter
from typing import Any

import pytest
from fly_target.registry import BUILT_IN, EMULATED, find
from fly_target.target import Target

AMD: dict[str, Target] = {name: row for name, row in BUILT_IN.items() if row.amd is not None}
NVIDIA: dict[str, Target] = {name: row for name, row in BUILT_IN.items() if row.nvidia is not None}
USUAL_NVIDIA = ("sm_80", "sm_90a")
USUAL = ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201", "gfx1250")


def chosen(*traits: str) -> tuple[str, ...]:
    """Returns the targets to run for that have one of `traits` (none: all of them)."""
    wanted = os.environ.get("FLY_TEST_TARGETS", "")
    names = tuple(EMULATED) if wanted == "every" else tuple(wanted.split(",")) if wanted else USUAL
    return having(names, *traits)


def chosen_nvidia() -> tuple[str, ...]:
    """Returns NVIDIA's targets to compile for: all of them with FLY_TEST_TARGETS=every."""
    return tuple(NVIDIA) if os.environ.get("FLY_TEST_TARGETS") == "every" else USUAL_NVIDIA


def one_of_each(
    rows: Mapping[str, Target], key: Callable[[Target], Hashable] = attrgetter("family")
) -> tuple[str, ...]:
    """Returns a chip of each family among `rows`, or of each value of `key`, preferring those of
    USUAL. Returns all of them with FLY_TEST_TARGETS=every."""
    if os.environ.get("FLY_TEST_TARGETS") == "every":
        return tuple(rows)
    found: dict[Hashable, str] = {}
    for name in (*USUAL, *rows):
        if name in rows:
            found.setdefault(key(rows[name]), name)
    return tuple(name for name in rows if name in found.values())


def some(usual: tuple[str, ...], *more: str) -> tuple[str, ...]:
    """Returns `usual`; with FLY_TEST_TARGETS=every also `more`. For tests that take long and say
    nearly the same for each chip."""
    return (*usual, *more) if os.environ.get("FLY_TEST_TARGETS") == "every" else usual


def having(names: tuple[str, ...], *traits: str) -> tuple[str, ...]:
    """Returns those of `names` that have one of `traits`."""
    return tuple(name for name in names if not traits or not find(name).traits.isdisjoint(traits))


def first(names: Sequence[str], count: int = 1) -> list[Any]:
    """Returns parameters for a test that takes long: all but the first `count` are heavy."""
    return [*names[:count], *(pytest.param(one, marks=pytest.mark.heavy) for one in names[count:])]
