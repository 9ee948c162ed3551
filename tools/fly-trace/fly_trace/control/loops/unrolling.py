"""Loops over static ranges whose bodies need the number of the iteration while they are traced: to
index a list, to append to one, or for a variable that has another type after the first iteration.

The loop is traced as scf.for at first. If that is refused, all that it changed is undone, and its
iterations are traced one after another, as Python runs them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fly_common.errors import InputError

from fly_trace.control.carried.discarded import TracedAgain, discard

if TYPE_CHECKING:
    from fly_trace.control.branches import Put
    from fly_trace.effects.snapshots import Entry
    from fly_trace.session.builder import Builder

MOST = 64  # iterations of such a loop
MOST_IN_ALL = 1024  # of all such loops of a function, those within others counted each time


def attempt(
    builder: Builder,
    build: Callable[[], None],
    iterations: range,
    body: Callable[[Any], None],
    get: Callable[[], Any],
    put: Put,
) -> None:
    """Calls `build`, or `body` for each iteration if `build` is refused."""
    if len(iterations) > MOST:
        build()
        return
    before, exits, allocated = get(), builder.exits, len(builder.allocations)
    present, generators = builder.frozen.present(), list(builder.generators)
    builder.failed = None
    try:
        build()
        return
    except TracedAgain:
        raise  # a loop or branch around this one is traced in another way
    except InputError:
        builder.unrolled += len(iterations)
        if builder.unrolled > MOST_IN_ALL or not _undone(builder, present, allocated):
            raise
    builder.exits = exits
    builder.generators[:] = generators  # others hold values of what was discarded
    put(before)
    for item in iterations:
        body(item)


def _undone(builder: Builder, present: dict[int, Entry], allocated: int) -> bool:
    """Removes the loop that failed, and undoes its changes. `present` has the states of objects
    that branches and loops around it have changed, such as a list whose items they carry. Returns
    False if that is not possible: an iterator has moved, or the loop was refused for its bounds."""
    if builder.failed is None:
        return False
    loop, objects = builder.failed
    if not objects.restore(present):
        return False
    discard(builder, loop, allocated)
    return True
