"""Which targets the tests of whole kernels run for.

(nothing said)              a chip of each generation: what `make test` has time for
FLY_TEST_TARGETS=every      all that the emulator runs: `make targets`
FLY_TEST_TARGETS=gfx908,…   these
"""

from __future__ import annotations

import os

from fly_target.registry import EMULATED, find

USUAL = ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201")


def chosen(*traits: str) -> tuple[str, ...]:
    """The targets to run for, of those that have one of `traits` (none: all of them)."""
    wanted = os.environ.get("FLY_TEST_TARGETS", "")
    names = tuple(EMULATED) if wanted == "every" else tuple(wanted.split(",")) if wanted else USUAL
    return having(names, *traits)


def having(names: tuple[str, ...], *traits: str) -> tuple[str, ...]:
    """Those of `names` that have one of `traits`."""
    return tuple(name for name in names if not traits or not find(name).traits.isdisjoint(traits))
