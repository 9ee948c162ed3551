"""The variables that assignment expressions (`:=`) set in an expression with dynamic branches."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fly_common.record import record

from fly_trace.control.carried import mismatches
from fly_trace.control.carried.carried_values import Mismatch, Undefined
from fly_trace.core import locations, tracing

if TYPE_CHECKING:
    from fly_trace.control.branches import Thunk
    from fly_trace.control.carried.merging import Merging


@record
class Named:
    """The variables `names`, which `get` reads and `put` writes."""

    get: Callable[[], Any]
    put: Callable[[Any], None]
    names: tuple[str, ...]

    def side(self, body: Thunk) -> Thunk:
        """A side of a branch. Returns its value, and the variables behind it."""
        before = self.get()

        def run() -> Any:
            self.put(before)
            value = body()
            return value, self.get()

        return run

    def join(
        self, join: Callable[[Any, Any, Merging], Any], what: str
    ) -> Callable[[Any, Any, Merging], Any]:
        """Merges the values of two sides, and the variables."""

        def joined(a: Any, b: Any, merging: Merging) -> Any:
            merged = join(a[0], b[0], merging)
            pairs = zip(self.names, a[1], b[1], strict=True)
            self.put([_merged(name, x, y, merging, what) for name, x, y in pairs])
            return merged

        return joined


def _merged(name: str, x: Any, y: Any, merging: Merging, what: str) -> Any:
    """A variable behind a branch. Most are not read behind it, so that a difference is an error
    only where they are."""
    if x is y:
        return x
    at = locations.here(2)
    line = at.line if at else 0
    why = f"`{name}` is assigned in a part of the {what} on line {line} that may not be computed"
    if not (isinstance(x, Undefined) or isinstance(y, Undefined)):
        try:
            return merging.join(x, y)
        except Mismatch as mismatch:
            kinds = [mismatches.shape_of(one) for one in (mismatch.a, mismatch.b)]
            why = f"`{name}{mismatch.path}` is {' or '.join(kinds)} after the {what} on line {line}"
    return Undefined(name, why, f"assign {name} in a statement before")


def carrying(
    body: Callable[[], Any],
    get: Callable[[], Any],
    put: Callable[[Any], None],
    names: tuple[str, ...],
) -> Any:
    """The value of an expression, whose dynamic branches carry these variables."""
    builder = tracing.active()
    if builder is None:
        return body()
    before, builder.named = builder.named, Named(get, put, names)
    try:
        return body()
    finally:
        builder.named = before
