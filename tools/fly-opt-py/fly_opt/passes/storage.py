"""The types in which LLVM holds elements: a float narrower than 16 bits is its bits."""

from __future__ import annotations

from typing import Any

from fly_dialect.bindings import ir
from fly_dialect.dialect import type_of
from fly_dialect.types import bits


def storage_type(element: str) -> Any:
    """The type of an element type in memory and in registers: f32 of f32, i8 of f8E4M3FN."""
    if element.startswith("f") and bits(element) < 16:
        return ir.IntegerType.get_signless(bits(element))
    return type_of(element)
