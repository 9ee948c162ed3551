"""The functions that the library exports, as `calls` defines them.

    @function
    def hipMalloc(runtime, ptr, size): ...

A function has the name and the parameters of its prototype, after the runtime. Pointers and handles
are integers. It returns None for hipSuccess, or an error code, or raises `errors.Failure`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

FUNCTIONS: dict[str, Callable[..., Any]] = {}


def function(defined: Callable[..., Any]) -> Callable[..., Any]:
    """Exports a function by its name."""
    FUNCTIONS[defined.__name__] = defined
    return defined


def alias(name: str, defined: Callable[..., Any]) -> None:
    """Exports a function by another name, too."""
    FUNCTIONS[name] = defined
