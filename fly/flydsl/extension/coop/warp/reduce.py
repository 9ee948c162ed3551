"""Reductions of a wave's lanes, for any target."""

from __future__ import annotations

from typing import Any

from fly.flydsl.expr.gpu import shuffle_xor
from fly.flydsl.extension.coop._common import combine, number, resolve_warp_width

__all__ = ["warp_reduce"]


def warp_reduce(value: Any, op: str, *, width: int | None = None) -> Any:
    """Combines the values of groups of `width` lanes, by default of the wave; all lanes of a group
    get the result. The operation is commutative. log2(width) shuffles."""
    width = resolve_warp_width(width, "warp_reduce width")
    found = number(value)
    offset = 1
    while offset < width:
        found = combine(op, found, shuffle_xor(found, offset, width))
        offset *= 2
    return found
