"""Warps with roles: `with fx.warp_group(…):`.

The rewriting makes such a `with` an `if` (`fly_trace.rewrite.roles`), so that variables have the
meaning that they have in an `if`.
"""

from __future__ import annotations

import math
from typing import Any, NoReturn

from fly_trace.core import tracing
from fly_trace.core.tracing import describe
from fly_trace.gpu.device import known_block_size, thread_idx
from fly_trace.pipelines.mechanisms import GROUP, rings

__all__ = ["warp_group"]

MOST_GROUPS = 8


class WarpGroups:
    """The warp groups of a role. In the `with`:

    index    which of them this thread is in, from 0; the same in all threads of a warp
    thread   the number of this thread among theirs, from 0
    threads  how many threads they have
    """

    def __init__(
        self, number: Any, first: int, count: int, registers: int | None, lead: bool = False
    ):
        """`number` is the thread's `group_number`. With `lead` the body is for one thread only."""
        self._rings, self._number = rings(), number
        self._first, self._count, self._registers, self._lead = first, count, registers, lead
        self.threads = count * GROUP

    @property
    def index(self) -> Any:
        return self._number - self._first

    @property
    def thread(self) -> Any:
        return thread_idx.x - self._first * GROUP

    def barrier(self) -> None:
        """Waits for the threads of this role. Roles that begin with different warp groups have
        different barriers."""
        self._rings.barrier(1 + self._first, self.threads)

    def __fly_members__(self) -> Any:
        """Whether this thread is one of them."""
        if self._count == 1:
            return self._number == self._first
        return (self._number >= self._first) & (self._number < self._first + self._count)

    def __fly_enter__(self) -> Any:
        """Begins the role; whether this thread executes its body."""
        if self._registers is not None:
            self._rings.set_registers(self._registers, block_threads("fx.warp_group"))
        return self.thread == 0 if self._lead else True

    def __enter__(self) -> NoReturn:
        tracing.refuse(
            "roles of warps are entered by the call itself",
            "write `with fx.warp_group(0) as own:`, with nothing else in the `with`",
        )

    def __exit__(self, *error: Any) -> None:
        """Never called: see `__enter__`."""


class Everyone:
    """A role of all threads, where none are specialised."""

    index = 0

    def __init__(self, threads: int):
        self.threads = threads

    @property
    def thread(self) -> Any:
        return thread_idx.x

    def barrier(self) -> None:
        from fly_trace.gpu.device import barrier

        barrier()

    def __fly_members__(self) -> bool:
        return True

    __fly_enter__ = __fly_members__
    __enter__, __exit__ = WarpGroups.__enter__, WarpGroups.__exit__


def warp_group(groups: Any, registers: int | None = None) -> WarpGroups:
    """The role of one or several warp groups, of 128 threads each: `groups` is a number, or a range
    such as range(1, 3). Only their threads execute the body of

        with fx.warp_group(range(1, 3), registers=232) as own:

    On Hopper their threads then have `registers`, a multiple of 8, and the block begins with as
    many as fit: 168 for three warp groups. On other targets that changes nothing. `own` is a
    `WarpGroups`."""
    what = "fx.warp_group"
    if isinstance(groups, range) and groups.step == 1 and len(groups):
        first, count = groups.start, len(groups)
    elif type(groups) is int:
        first, count = groups, 1
    else:
        tracing.refuse(f"{what} takes a number or a range of numbers, not {describe(groups)}")
    if first < 0 or first + count > MOST_GROUPS:
        tracing.refuse(f"{what}: a block has warp groups 0 to {MOST_GROUPS - 1}")
    threads = block_threads(what)
    if (first + count) * GROUP > threads:
        tracing.refuse(
            f"{what}: a block of {threads} threads has no warp group {first + count - 1}",
            f"launch with {(first + count) * GROUP} threads at least",
        )
    return WarpGroups(group_number(), first, count, registers)


def block_threads(what: str) -> int:
    """The threads of the block, which must have one dimension: they are told apart by
    `thread_idx.x`."""
    threads, *others = known_block_size()
    if math.prod(others) > 1:
        tracing.refuse(
            f"{what} is for blocks of one dimension, not of {(threads, *others)}",
            f"launch with block={threads * math.prod(others)}",
        )
    return threads


def group_number() -> Any:
    """The number of the thread's warp group, known to be the same in a wave. All threads of a wave
    execute it."""
    return rings().uniform(thread_idx.x // GROUP)
