"""Roles of warps, which `with fx.warp_group(…):` enters (`rewrite.roles`)."""

from __future__ import annotations

from typing import Any

from fly_trace.core import tracing
from fly_trace.core.tracing import describe


def members(role: Any) -> Any:
    """Whether this thread is one of a role's."""
    return _method(role, "__fly_members__")()


def entered(role: Any) -> Any:
    """Begins a role, in its branch; whether this thread executes the body."""
    return _method(role, "__fly_enter__")()


def _method(role: Any, name: str) -> Any:
    found = getattr(role, name, None)
    if found is None:
        tracing.refuse(
            "a `with` of warp_group, producer_warps or consumer_warps takes a role of fx.warp_group"
            f" or of a ring of fx.pipeline, not {describe(role)}",
            "give a context manager of your own another name",
        )
    return found
