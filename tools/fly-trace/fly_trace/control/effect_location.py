"""Finds the line that changes an object outside a trace.

Such a change is detected after a dynamic branch, a loop or the whole function has been traced.
Calls are checked individually, but operators, attributes and methods of the user's classes are not.
To find the line, the function is traced once more, line by line. This is slow and only done for
errors.
"""

from __future__ import annotations

import linecache
import sys
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any, NoReturn

from fly_common.errors import FlyError

from fly_trace.control import objects
from fly_trace.core import locations, tracing


def relocate(error: objects.ChangedSomewhere, trace: Callable[[], Any]) -> NoReturn:
    """Calls `trace` again, and raises `error` at the line after which a change is found, or
    unchanged if no such line is found."""
    if sys.gettrace() is not None:  # a debugger uses the trace function
        raise error from None
    last: list[tuple[CodeType, int]] = []

    def line(frame: FrameType, event: str, _: Any) -> Any:
        builder = tracing.active()
        if builder is None or not locations.user_code(frame.f_code):
            return line
        if last and any(objects.changed_at_all(builder)):
            sys.settrace(None)
            objects.refuse_changed(builder, _line(*last[-1]))
        if event == "line":
            last[:] = [(frame.f_code, frame.f_lineno)]
        return line

    sys.settrace(line)
    try:
        trace()
    except objects.ChangedSomewhere as found:
        raise (found if found.is_located else error) from None
    except FlyError:
        raise error from None
    finally:
        sys.settrace(None)
    raise error


def _line(code: CodeType, number: int) -> locations.Position:
    text = linecache.getline(code.co_filename, number).rstrip("\n")
    start = len(text) - len(text.lstrip())
    return locations.Position(
        code.co_filename, number, len(text[:start].encode()), number, len(text.encode())
    )
