"""`flydsl.expr.meta`: the locations and options of a trace. Locations are recorded without it."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any

from fly_trace import rewrite
from fly_trace.core import tracing
from fly_trace.values.functions.fast_math import fastmath

_plain: set[CodeType] = set()
rewrite.PLAIN.append(lambda code, _: code in _plain)


def dsl_loc_tracing(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function itself: each operation has the location of the user's line anyway. As in FlyDSL,
    it is not rewritten: its loops and conditions are Python's."""
    if hasattr(function, "__code__"):
        _plain.add(function.__code__)
    return function


def dsl_wrap_result(target: Any = None) -> Any:
    """Values of MLIR as values of the language: so are the results of builders already."""
    return (
        target if callable(target) and not isinstance(target, type) else lambda function: function
    )


def capture_user_location() -> Any:
    """The location in MLIR of the user's line."""
    return tracing.current("a location").locations.here()


class _Options(threading.local):
    """The options of the blocks around, the innermost last."""

    found: tuple[dict[str, Any], ...] = ()


_options = _Options()


@contextlib.contextmanager
def tracing_context(function: Any = None, **options: Any) -> Iterator[None]:
    """Options for what is traced in the block, by any name; `fastmath` are the flags of operations
    on floats. One that is None hides that of a block around."""
    before = _options.found
    _options.found = (*before, options)
    flags = options.get("fastmath")
    is_traced = tracing.active() is not None
    try:
        with contextlib.nullcontext() if flags is None or not is_traced else fastmath(flags):
            yield
    finally:
        _options.found = before


def tracing_option(key: str, default: Any = None) -> Any:
    """The value of an option in the innermost block that has it."""
    for options in reversed(_options.found):
        if key in options:
            return default if options[key] is None else options[key]
    builder = tracing.active()
    found = getattr(builder, "fastmath", None) if key == "fastmath" else None
    return default if found is None else found
