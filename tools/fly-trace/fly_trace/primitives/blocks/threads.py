"""The threads of a block, their groups, and shared memory by which they exchange values.

A block of whole waves of any target, a multiple of 64 threads, is divided into waves. Any other one
is divided into groups of 32 threads, of which the last one may have fewer.
"""

from __future__ import annotations

from typing import Any

from fly_trace import expr as fx
from fly_trace.control.carried import trees
from fly_trace.core import tracing
from fly_trace.core.tracing import describe
from fly_trace.gpu import scratch

LEAST_WAVE, MOST_WAVE = 32, 64


def size(what: str) -> int:
    """The number of threads of the block."""
    builder = tracing.kernel(what)
    if builder.known_block is None:
        tracing.refuse(
            f"{what} needs a block whose size is known while tracing",
            "launch the kernel with Python ints as its block, or give it known_block_size",
        )
    x, y, z = builder.known_block
    return x * y * z


def index() -> Any:
    """The number of the thread in its block, x first, then y and z."""
    width, height, depth = fx.known_block_size()
    number = fx.thread_idx.x
    if height * depth > 1:
        row = fx.thread_idx.y if depth == 1 else fx.thread_idx.z * height + fx.thread_idx.y
        number = row * width + number
    return number


def group_width(threads: int) -> int | None:
    """The lanes of a group, None for the whole wave."""
    return None if threads % MOST_WAVE == 0 else LEAST_WAVE


def most_groups(threads: int) -> int:
    """The number of groups, on the target that has the most."""
    return -(-threads // LEAST_WAVE)


def group_count(threads: int) -> Any:
    """The number of groups."""
    if threads % MOST_WAVE == 0:
        wave: Any = fx.num_warp_threads()
        return threads // wave
    return most_groups(threads)


def group() -> Any:
    """The number of the thread's group."""
    threads = size("a primitive of a block")
    lanes = fx.num_warp_threads() if threads % MOST_WAVE == 0 else LEAST_WAVE
    return (index().to(fx.Uint32) // fx.Uint32(lanes)).to(fx.Int32)


def lane() -> Any:
    """The number of the thread in its group."""
    threads = size("a primitive of a block")
    return fx.lane_id() if threads % MOST_WAVE == 0 else fx.lane_id() % LEAST_WAVE


def last_lane(threads: int) -> Any:
    """The last lane of the thread's group."""
    if threads % MOST_WAVE == 0:
        return fx.num_warp_threads() - 1
    if threads % LEAST_WAVE == 0:
        return LEAST_WAVE - 1
    is_last = group() == most_groups(threads) - 1
    return fx.where(is_last, threads % LEAST_WAVE - 1, LEAST_WAVE - 1)


def valid_lanes(threads: int) -> Any:
    """How many lanes the thread's group has, or None if all groups are whole."""
    return None if threads % LEAST_WAVE == 0 else last_lane(threads) + 1


def arrays(role: str, like: Any, count: int) -> list[Any]:
    """Shared arrays for `count` values like this one: one for each of its numbers."""
    found = trees.scalars(like, "the value of a primitive")
    return [scratch.array(role, one.dtype, count, i) for i, one in enumerate(found)]


def partials(like: Any, threads: int) -> list[Any]:
    """Shared arrays for one value of each group, like this one."""
    found = trees.scalars(like, "the value of a primitive")
    of_waves = threads % MOST_WAVE == 0
    count = most_groups(threads)
    return [
        scratch.array("partial", one.dtype, count, i, of_waves=of_waves)
        for i, one in enumerate(found)
    ]


def put(shared: list[Any], place: Any, value: Any) -> None:
    """Stores a value in shared arrays."""
    for one, part in zip(shared, trees.scalars(value, "the value"), strict=True):
        one[place] = part


def got(shared: list[Any], place: Any, like: Any) -> Any:
    """Loads the value at a place of shared arrays."""
    return trees.of_scalars(like, [one[place] for one in shared])


def items_of(value: Any, what: str) -> list[Any]:
    """The items of a thread: those of a list, or one."""
    found = list(value) if isinstance(value, list) else [value]
    if not found:
        tracing.refuse(f"{what} takes at least one item of each thread, not {describe(value)}")
    return found
