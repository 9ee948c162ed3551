"""The locations of MLIR ops, from the user's frames."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from fly_dialect.bindings import ir

from fly_trace.core import locations as places

if TYPE_CHECKING:
    from types import CodeType, FrameType

DEEPEST = 8  # calls of helpers that a location names; those further inside have the same ones


class Locations:
    """MLIR locations of the user's positions, created once each. In a helper they are CallSiteLocs,
    with the calls that lead there."""

    def __init__(self, context: ir.Context):
        self.context = context
        self.unknown = ir.Location.unknown(context)
        self.known: dict[tuple[int, int], ir.Location] = {}
        self.held: list[CodeType] = []
        self.call: ir.Location | None = None  # of the helper that is running
        self.depth = 0
        # The locations in the helper that is called at a location, by its id; it is kept too.
        self.inside: dict[int, tuple[ir.Location, dict[tuple[int, int], ir.Location]]] = {}

    def enter(self) -> tuple[dict[tuple[int, int], ir.Location], ir.Location | None]:
        """The caller's caller calls a helper. Returns what `leave` takes."""
        before = self.known, self.call
        self.depth += 1
        if self.depth <= DEEPEST:
            self.call = call = self.here()
            self.known = self.inside.setdefault(id(call), (call, {}))[1]
        return before

    def leave(self, before: tuple[dict[tuple[int, int], ir.Location], ir.Location | None]) -> None:
        self.depth -= 1
        self.known, self.call = before

    def here(self) -> ir.Location:
        """The location of the innermost user frame."""
        frame = sys._getframe(2)
        tables = places.TABLES
        while frame is not None:
            code = frame.f_code
            table = tables.get(id(code))
            if table is None or table.user:
                key = id(code), frame.f_lasti
                found = self.known.get(key)
                return self._make(frame, key) if found is None else found
            frame = frame.f_back
        return self.unknown

    def _make(self, frame: FrameType, key: tuple[int, int]) -> ir.Location:
        """The slow path, for a frame of the user's or a code object not seen before."""
        at = places.position(frame)
        found = self.at(at)
        if self.call is not None and at is not None:
            found = ir.Location.callsite(found, [self.call], self.context)
        if places.user_code(frame.f_code):
            self.held.append(frame.f_code)
            self.known[key] = found
        return found

    def at(self, at: places.Position | None) -> ir.Location:
        if at is None:
            return self.unknown
        return ir.Location.file(places.shown(at.file), at.line, at.column + 1, self.context)
