"""The GPU that a trace is for, where a program asks for it.

A trace is for every target unless the program asks: `fx.rocdl.get_rocm_arch()` and what is chosen
by it (`fx.rocdl.WMMA`, `fx.rocdl.s_waitcnt`). Then the module names its target.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from fly_target import registry

from fly_trace.core import tracing

__all__ = ["get_rocm_arch"]

HINT = "say which: fly-trace --target gfx1201 (@fly.jit knows its own)"

T = TypeVar("T")


@dataclass
class Target:
    """`chip` is LLVM's name of a processor, None where nobody said one. `asked`: whether the
    program looked, so that its trace is for this target alone."""

    chip: str | None = None
    asked: bool = False

    def __post_init__(self) -> None:
        if self.chip is not None:
            registry.find(self.chip)


def chip(what: str) -> str:
    """The target that `what` asks for. InputError where the trace has none."""
    target = tracing.current(what).target
    if target.chip is None:
        tracing.refuse(f"{what} depends on the target, and this trace is for every one", HINT)
    target.asked = True
    return target.chip


def chosen(what: str, by_trait: Mapping[str, T]) -> T:
    """What the target has, by a word of `Target.traits`. InputError where it has none, or the trace
    no target."""
    row = registry.find(chip(what))
    for trait, found in by_trait.items():
        if trait in row.traits:
            return found
    known = ", ".join(registry.with_trait(*by_trait))
    tracing.refuse(f"{row.name} has no {what}", f"the targets that have it: {known}")


def get_rocm_arch() -> str:
    """The name of the target, as "gfx942". The trace is for it alone then."""
    return chip("fx.rocdl.get_rocm_arch")
