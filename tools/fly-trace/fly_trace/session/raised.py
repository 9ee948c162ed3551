"""Errors of a trace: what an exception of the program says, and the calls that led to it."""

from __future__ import annotations

import re
from typing import Any

from fly_common.errors import FlyError, InputError

from fly_trace.core import call_chain
from fly_trace.core import locations as places
from fly_trace.memory.tensors import Tensor
from fly_trace.values.scalars import Scalar

# What the names of functions within rewritten ones begin with (fly_trace.rewrite).
_REWRITTEN = re.compile(r"__fly_factory__\.<locals>\.(__fly_function__\.<locals>\.)?")


# What arrays of NumPy and torch have, and tensors and numbers of a kernel don't.
_VIEWS = (
    "make a view of another layout: fx.make_view(fx.get_iter(A), fx.make_layout(shape, stride))"
)
_REDUCTIONS = "loop over A.shape[0]; fx.block.reduce adds what the threads have"
_OF_TENSORS = {
    **dict.fromkeys(
        ("T", "mT", "flatten", "permute", "ravel", "reshape", "transpose", "view"), _VIEWS
    ),
    **dict.fromkeys(("argmax", "max", "mean", "min", "sum"), _REDUCTIONS),
    **dict.fromkeys(("numel", "size"), "multiply the extents, A.shape[k]"),
    **dict.fromkeys(("dim", "ndim"), "it is known while tracing: A.rank"),
    "strides": "A.stride[k], in elements",
}
_OF_NUMBERS = {
    **dict.fromkeys(
        ("astype", "double", "float", "half", "int", "type"), "x.to(fx.Float32) converts"
    ),
    "item": "it is a number already",
    "sqrt": "fx.sqrt(x)",
}


def _hint(error: Exception) -> str | None:
    """What to write instead of an attribute that a tensor or number does not have."""
    if not isinstance(error, AttributeError) or error.name is None:
        return None
    if isinstance(error.obj, Tensor):
        return _OF_TENSORS.get(error.name)
    return _OF_NUMBERS.get(error.name) if isinstance(error.obj, Scalar) else None


def raised(error: Exception) -> InputError:
    """The error of an exception that ends the trace, at the user's line."""
    at = places.place(places.of_traceback(error.__traceback__))
    if isinstance(error, RecursionError):
        what = "the program is nested too deeply, or recurses endlessly"
    else:
        said = _REWRITTEN.sub("", str(error)) or "no message"
        what = f"{type(error).__name__}: {said}"
    made = Raised(what, place=at, hint=_hint(error))
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
