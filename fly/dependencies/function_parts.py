"""The parts of functions, cells and namespaces that determine their behavior."""

from __future__ import annotations

import sys
import types
from collections.abc import Mapping
from typing import Any

from fly_common.code_tables import code_of

MISSING: Any = object()


def contents_of(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not yet assigned
        return MISSING


def parts_of(function: types.FunctionType) -> tuple[Any, ...]:
    """Returns the parts that determine a function's behavior, to be compared by identity."""
    return (
        code_of(function),
        function.__name__,
        function.__qualname__,
        function.__defaults__,
        *keys_and_values(function.__kwdefaults__),
        *keys_and_values(function.__annotations__),
        *keys_and_values(function.__dict__),
    )


def keys_and_values(items: Mapping[str, Any] | None) -> tuple[Any, ...]:
    return (*items, *items.values()) if items else ()


def builtins_of(space: dict[str, Any]) -> dict[str, Any]:
    """Returns the builtins that code with these globals uses."""
    made = space.get("__builtins__", sys.modules["builtins"])
    return made if isinstance(made, dict) else vars(made)


def flat(items: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(part for item in items.items() for part in item)
