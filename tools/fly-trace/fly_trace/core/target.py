"""The GPU that a trace is for, where a program asks for it.

A trace is for every target unless the program asks: `fx.rocdl.get_rocm_arch()` and what is chosen
by it (`fx.rocdl.WMMA`, `fx.rocdl.s_waitcnt`). Then the module names its target.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from fly_common.errors import UsageError
from fly_common.quoting import quoted
from fly_image.elf import PROCESSORS

from fly_trace.core import tracing

__all__ = ["get_rocm_arch"]

# What processors are called before the numbers that do not matter here → their generation.
GENERATIONS = {"gfx9": "cdna3", "gfx11": "rdna3", "gfx120": "rdna4", "gfx125": "gfx1250"}
HINT = "say which: fly-trace --target gfx1201 (@fly.jit knows its own)"

T = TypeVar("T")


@dataclass
class Target:
    """`chip` is LLVM's name of a processor, None where nobody said one. `asked`: whether the
    program looked, so that its trace is for this target alone."""

    chip: str | None = None
    asked: bool = False

    def __post_init__(self) -> None:
        known = PROCESSORS.values()
        if self.chip is not None and self.chip not in known:
            near = difflib.get_close_matches(self.chip, known, n=3)
            hint = f"did you mean {' or '.join(near)}?" if near else "as in gfx942 or gfx1201"
            raise UsageError(f"unknown target {quoted(self.chip)}", hint=hint)


def chip(what: str) -> str:
    """The target that `what` asks for. InputError where the trace has none."""
    target = tracing.current(what).target
    if target.chip is None:
        tracing.refuse(f"{what} depends on the target, and this trace is for every one", HINT)
    target.asked = True
    return target.chip


def chosen(what: str, by_generation: Mapping[str, T]) -> T:
    """What the target's generation has. InputError where it has none, or the trace no target."""
    name = chip(what)
    for prefix, generation in GENERATIONS.items():
        if name.startswith(prefix) and generation in by_generation:
            return by_generation[generation]
    known = ", ".join(f"{prefix}…" for prefix, one in GENERATIONS.items() if one in by_generation)
    tracing.refuse(f"{name} has no {what}", f"the targets that have it: {known}")


def get_rocm_arch() -> str:
    """The name of the target, as "gfx942". The trace is for it alone then."""
    return chip("fx.rocdl.get_rocm_arch")
