"""Errors as a caller sees them: of the library's frames none but the one that was called."""

from __future__ import annotations

from fly_common.errors import FlyError


def hide_frames(error: FlyError) -> None:
    """Takes the frames that led to `error` inside this library from it, and what caused it: its
    message says what is wrong, and where. With FLY_DEBUG=1 they stay. The caller raises it."""
    from fly_common.filter import debugging

    if not debugging():
        error.__traceback__ = None
        error.__cause__ = None  # and with it what it was raised amid
