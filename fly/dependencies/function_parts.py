"""What functions, cells and namespaces are made of, for those who compare them."""

from __future__ import annotations

import sys
import types
from collections.abc import Mapping
from typing import Any

MISSING: Any = type("Missing", (), {"__repr__": lambda self: "missing"})()


def contents_of(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not assigned yet
        return MISSING


def parts_of(function: types.FunctionType) -> tuple[Any, ...]:
    """What makes a function what it is; compared by identity."""
    return (
        function.__code__,
        function.__defaults__,
        *(function.__kwdefaults__ or {}).values(),
        *function.__annotations__.values(),
        *function.__dict__.values(),
    )


def builtins_of(space: dict[str, Any]) -> dict[str, Any]:
    made = space.get("_builtins_of__", sys.modules["builtins"])
    return made if isinstance(made, dict) else vars(made)


def flat(items: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(part for item in items.items() for part in item)
