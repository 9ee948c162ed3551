"""Times of several ways to do one thing, measured in turn."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping

import torch

Call = Callable[[], object]
WARM_UP, REPEATS, EACH = 10, 40, 4


def seconds(calls: Mapping[str, Call], place: str = "cuda") -> dict[str, list[float]]:
    """Seconds of a call, for each way and repeat. A repeat is `EACH` calls in a row between two
    events of the device; the ways take turns in each repeat, so that what changes with time meets
    all of them. On the CPU it is one call, and there are two of them."""
    warm_up, repeats = (WARM_UP, REPEATS) if place == "cuda" else (1, 2)
    for call in calls.values():
        for _ in range(warm_up):
            call()
    found: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(repeats):
        for name, call in calls.items():
            found[name].append(_by_events(call) if place == "cuda" else _by_clock(call))
    return found


def _by_events(call: Call) -> float:
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    call()  # the device is busy when the first event is recorded
    start.record()
    for _ in range(EACH):
        call()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / 1e3 / EACH


def _by_clock(call: Call) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def rate(moved: int, times: list[float]) -> float:
    """GB/s, the median."""
    return moved / statistics.median(times) / 1e9


def spread(moved: int, times: list[float]) -> tuple[float, float]:
    """GB/s of the quartiles."""
    low, _, high = statistics.quantiles(times, n=4)
    return moved / high / 1e9, moved / low / 1e9
