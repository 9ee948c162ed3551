"""Errors of a trace: what an exception of the program says, and the calls that led to it."""

from __future__ import annotations

import re
from typing import Any

from fly_common.errors import FlyError, InputError

from fly_trace.core import call_chain
from fly_trace.core import locations as places

# What the names of functions within rewritten ones begin with (fly_trace.rewrite).
_REWRITTEN = re.compile(r"__fly_factory__\.<locals>\.(__fly_function__\.<locals>\.)?")


def raised(error: Exception) -> InputError:
    """The error of an exception that ends the trace, at the user's line."""
    at = places.place(places.of_traceback(error.__traceback__))
    if isinstance(error, RecursionError):
        what = "the program is nested too deeply, or recurses endlessly"
    else:
        said = _REWRITTEN.sub("", str(error)) or "no message"
        what = f"{type(error).__name__}: {said}"
    made = Raised(what, place=at)
    made.frames = call_chain.frames(error.__traceback__)
    return made


class Raised(InputError):
    """The error of an exception, with the user's frames that the exception has left."""

    frames: list[Any]


def with_calls(error: FlyError) -> FlyError:
    """Adds the calls that lead to an error. Called where the function that is traced was called."""
    if error.related is None:
        found = call_chain.frames(error.__traceback__)
        if isinstance(error, Raised):
            found += error.frames
        error.related = call_chain.calls(found, error.place)
    return error
