"""Dependent launches: where one function launches two kernels, and the second one reads what the
first one has written, the second one begins, on NVIDIA from sm_90 on, while the first one ends.

    first_kernel:   dependent.let_next_begin()      at its start
    second_kernel:  dependent.wait_for_previous()   before anything else, in all threads

A block of the first kernel promises nothing by its call: once all its blocks have begun, those of
the second one are launched where there is room, and wait for the end of the whole first one. As
they all wait, a launch behind the second one finds both complete. On other targets there is nothing
to do: a launch begins when the one before it has ended. See "Dependent launches" in docs/nvidia.md.

On an H200 calls are about half a microsecond shorter (`benchmarks/h200/dependent.py`). It is not
used where they were not: for parts of groups of rows, histograms, and norms of rows on the chip.
"""

from __future__ import annotations

from fly_target.registry import find
from fly_trace.core.target import chip

import fly.expr as fx


def let_next_begin() -> None:
    """Lets the next launch begin, if its kernel calls `wait_for_previous`."""
    if _exist():
        fx.nvvm.griddepcontrol_launch_dependents()


def wait_for_previous() -> None:
    """Waits until the launch before this one has ended, and all can see what it has written."""
    if _exist():
        fx.nvvm.griddepcontrol_wait()


def _exist() -> bool:
    """Whether the target that is traced for has dependent launches."""
    return "sm_90+" in find(chip("dependent launches")).traits
