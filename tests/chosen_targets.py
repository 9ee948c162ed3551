"""Which targets tests run for.

(nothing said)              what `make test` has time for: `USUAL`, or one of each family
FLY_TEST_TARGETS=every      all that the emulator runs: `make targets`
FLY_TEST_TARGETS=gfx908,…   these
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Mapping
from operator import attrgetter

from fly_target.registry import EMULATED, find
from fly_target.target import Target

USUAL = ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201")


def chosen(*traits: str) -> tuple[str, ...]:
    """The targets to run for, of those that have one of `traits` (none: all of them)."""
    wanted = os.environ.get("FLY_TEST_TARGETS", "")
    names = tuple(EMULATED) if wanted == "every" else tuple(wanted.split(",")) if wanted else USUAL
    return having(names, *traits)


def one_of_each(
    rows: Mapping[str, Target], key: Callable[[Target], Hashable] = attrgetter("family")
) -> tuple[str, ...]:
    """A chip of each family among `rows`, or of whatever `key` gives; USUAL ones where there are
    any. All of them with FLY_TEST_TARGETS=every."""
    if os.environ.get("FLY_TEST_TARGETS") == "every":
        return tuple(rows)
    found: dict[Hashable, str] = {}
    for name in (*USUAL, *rows):
        if name in rows:
            found.setdefault(key(rows[name]), name)
    return tuple(name for name in rows if name in found.values())


def having(names: tuple[str, ...], *traits: str) -> tuple[str, ...]:
    """Those of `names` that have one of `traits`."""
    return tuple(name for name in names if not traits or not find(name).traits.isdisjoint(traits))
