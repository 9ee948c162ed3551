"""Selects by the AMD chip that a trace is for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from fly_target import registry

from fly_trace.core import tracing
from fly_trace.core.target import chip

__all__ = ["get_rocm_arch"]

T = TypeVar("T")


def chosen(what: str, by_trait: Mapping[str, T]) -> T:
    """Returns the entry of the target, by `Target.traits`. Raises InputError if there is none, or
    if the trace has no target."""
    row = registry.find(chip(what))
    for trait, found in by_trait.items():
        if trait in row.traits:
            return found
    known = ", ".join(registry.with_trait(*by_trait))
    tracing.refuse(f"{row.name} has no {what}", f"the targets that have it: {known}")


def get_rocm_arch() -> str:
    """The name of the target, such as "gfx942". The trace is then specific to that target."""
    return chip("fx.rocdl.get_rocm_arch")
