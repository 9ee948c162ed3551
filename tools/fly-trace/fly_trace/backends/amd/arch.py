"""Which of AMD's chips a trace is for, and what its generation has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from fly_target import registry

from fly_trace.core import tracing
from fly_trace.core.target import chip

__all__ = ["get_rocm_arch"]

T = TypeVar("T")


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
