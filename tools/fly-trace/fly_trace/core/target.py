"""The GPU that a trace is for, where a program asks for it.

A trace is for every target unless the program asks for one, by a function of a backend's. Then the
module names its target.
"""

from __future__ import annotations

from dataclasses import dataclass

from fly_backend.registry import default
from fly_target import registry

from fly_trace.core import tracing

HINT = f"specify it: fly-trace --target {default().default_target} (@fly.jit knows its own)"


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
        tracing.refuse(f"{what} depends on the target, but this trace is for all targets", HINT)
    target.asked = True
    return target.chip
