"""Explicitly static values: `fx.range_constexpr`, `fx.const_expr`."""

from __future__ import annotations

from typing import Any

from fly_trace.core import tracing
from fly_trace.core.tracing import describe
from fly_trace.values.scalars import Scalar

__all__ = ["const_expr", "draw", "range_constexpr"]


def range_constexpr(*bounds: Any) -> range:
    """A range for a loop that Python runs: the body is traced once for each number."""
    given = [getattr(bound, "number", bound) for bound in bounds]
    for bound, number in zip(bounds, given, strict=True):
        if not hasattr(type(number), "__index__") or isinstance(number, Scalar):
            tracing.refuse(
                f"range_constexpr takes numbers known while tracing, not {describe(bound)}",
                "use range(…), or make it an fx.Constexpr",
            )
    return range(*given)


def const_expr(value: Any) -> Any:
    """Returns the value, which must be static."""
    if isinstance(value, Scalar) and value.number is None:
        tracing.refuse("const_expr takes a value that is known while tracing")
    return value.number if isinstance(value, Scalar) else value


def draw(what: Any, **options: Any) -> Any:
    """Draws a static layout, TV layout, tiled copy or multiplication. Takes the options of
    `fly_draw.draw`. A notebook displays the result; `.save(path)` writes SVG."""
    from fly_draw import draw as picture

    try:
        return picture(what, **options)
    except ValueError as error:
        tracing.refuse(f"fx.draw: {error}")
