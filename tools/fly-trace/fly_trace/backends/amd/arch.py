"""Which of AMD's chips a trace is for, and what its generation has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from fly_trace.core import tracing
from fly_trace.core.target import chip

__all__ = ["get_rocm_arch"]

# What processors are called before the numbers that do not matter here → their generation.
GENERATIONS = {"gfx9": "cdna3", "gfx11": "rdna3", "gfx120": "rdna4", "gfx125": "gfx1250"}

T = TypeVar("T")


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
