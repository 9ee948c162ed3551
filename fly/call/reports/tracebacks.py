"""Removes the library's own frames from the tracebacks that a caller sees."""

from __future__ import annotations

from fly_common.errors import FlyError


def hide_frames(error: FlyError) -> None:
    """Removes this library's frames and the cause from `error`: its message already says what is
    wrong, and where. FLY_DEBUG=1 keeps them. The caller raises the error."""
    from fly_common.filter import debugging

    if not debugging():
        error.__traceback__ = None
        error.__cause__ = None  # also hides the context
