"""`flydsl.expr.meta`: the locations and options of a trace. Locations are recorded without it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from fly_trace.core import tracing
from fly_trace.values.fast_math import fastmath


def dsl_loc_tracing(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function itself: each operation has the location of the user's line anyway."""
    return function


def dsl_wrap_result(target: Any = None) -> Any:
    """Values of MLIR as values of the language: so are the results of builders already."""
    return (
        target if callable(target) and not isinstance(target, type) else lambda function: function
    )


def capture_user_location() -> Any:
    """The location in MLIR of the user's line."""
    return tracing.current("a location").locations.here()


@contextlib.contextmanager
def tracing_context(function: Any = None, **options: Any) -> Iterator[None]:
    """Options for what is traced in the block: `fastmath`."""
    unknown = set(options) - {"fastmath"}
    if unknown:
        raise TypeError(f"tracing_context takes fastmath, not {', '.join(sorted(unknown))}")
    if options.get("fastmath") is None:
        yield
        return
    with fastmath(options["fastmath"]):
        yield


def tracing_option(key: str, default: Any = None) -> Any:
    """The value of an option in the current block."""
    builder = tracing.active()
    found = getattr(builder, "fastmath", None) if key == "fastmath" else None
    return default if found is None else found
