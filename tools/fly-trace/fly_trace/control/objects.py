"""Python's own objects while tracing: containers that a branch must not change, calls.

A list that a dynamic branch appends to would grow while tracing, whichever way the kernel goes. So
each list, dictionary, set and iterator that the user's code makes is noted with the region it is
made in, and only there it may be changed.
"""

from __future__ import annotations

import builtins
import functools
import operator
from types import BuiltinMethodType, FunctionType, MethodType, MethodWrapperType
from typing import Any

from fly_trace.control import carried_values
from fly_trace.core import tracing
from fly_trace.core.tracing import describe
from fly_trace.memory.tensors import Tensor
from fly_trace.rewrite import is_users, rewritten
from fly_trace.values.scalars import Scalar


def made(container: Any) -> Any:
    """A list, dictionary, set or iterator that the user's code makes here."""
    builder = tracing.active()
    if builder is not None:
        builder.made[id(container)] = container, builder.region
    return container


def _check_change(container: Any, how: str) -> None:
    """Refuses to change a Python object in a branch or loop that it was not made in: the change
    would happen while tracing, whichever way the kernel goes."""
    builder = tracing.active()
    if builder is None:
        return
    known = builder.made.get(id(container))
    kind = type(container).__name__
    if known is not None and known[1] == carried_values.JOINED:
        tracing.refuse(
            f"{how} changes a Python {kind} that a dynamic branch or loop carries",
            f"change a copy: x = {kind}(x); or assign a new one",
        )
    if builder.region == 0:
        return
    if known is None or known[1] != builder.region:
        tracing.refuse(
            f"{how} changes a Python {kind} made outside this dynamic branch or loop",
            "assign a new one to the variable, or keep the values in fx.shared_array",
        )


def target(container: Any) -> Any:
    """The `x` of `x[i] = …`."""
    if not isinstance(container, Tensor):
        _check_change(container, "the assignment")
    return container


def target_attribute(thing: Any) -> Any:
    """The `x` of `x.a = …`."""
    if isinstance(thing, (Tensor, Scalar)):
        tracing.refuse(f"{describe(thing)} has no attribute that can be set")
    _check_change(thing, "the assignment")
    return thing


def augmented(word: str, value: Any, other: Any) -> Any:
    """`value word= other` of a variable; a list would be changed in place."""
    if not carried_values.is_number(value) and hasattr(type(value), f"__{word}__"):
        _check_change(value, "the augmented assignment")
    return getattr(operator, word)(value, other)


def items(iterable: Any) -> Any:
    """What a `for` that Python runs goes through."""
    if hasattr(type(iterable), "__next__"):
        _check_change(iterable, "the loop")
    return iterable


_CHANGES = frozenset(
    (
        *("append", "extend", "insert", "remove", "pop", "clear", "sort", "reverse", "update"),
        *("setdefault", "popitem", "add", "discard", "difference_update", "intersection_update"),
        *("symmetric_difference_update", "appendleft", "popleft", "extendleft", "rotate"),
    )
)
_CHANGING = frozenset(("__setitem__", "__delitem__", "__iadd__", "__imul__", "__setattr__"))
_MAKES = frozenset((list, dict, set, sorted, zip, map, filter, enumerate, reversed, iter))
_REFUSED = {
    print: ("print() runs while the kernel is traced, not on the GPU", "write to a tensor"),
    input: ("input() has no meaning in a kernel", None),
    locals: ("locals() has no meaning in a kernel", None),
    globals: ("globals() has no meaning in a kernel", None),
    vars: ("vars() has no meaning in a kernel", None),
    dir: ("dir() has no meaning in a kernel", None),
    eval: ("eval() has no meaning in a kernel", "write the expression out"),
    exec: ("exec() has no meaning in a kernel", "write the statements out"),
}
_DEPTH = 64  # of calls: beyond it, a helper calls itself for ever


def call(function: Any, /, *arguments: Any, **named: Any) -> Any:
    """`function(…)`: helpers of the user's are rewritten too."""
    kind = type(function)
    if kind is FunctionType or kind is MethodType:
        return _call_python(function, arguments, named)
    if kind is BuiltinMethodType:
        if function in _REFUSED:
            tracing.refuse(*_REFUSED[function])
        owner = function.__self__
        if owner is not builtins and function.__name__ in _CHANGES:
            _check_change(owner, f"{function.__name__}()")
        if function in (next, setattr, delattr) and arguments:
            _check_change(arguments[0], f"{function.__name__}()")
    if kind is MethodWrapperType and function.__name__ in _CHANGING:
        _check_change(function.__self__, f"{function.__name__}()")
    if kind is functools.partial:
        return call(function.func, *function.args, *arguments, **{**function.keywords, **named})
    for argument in arguments:
        if hasattr(type(argument), "__next__"):
            _check_change(argument, "the call")
    if hasattr(kind, "as_helper"):
        return _call_python(function.as_helper, arguments, named)
    result = function(*arguments, **named)
    makes = (kind is type or kind is BuiltinMethodType) and function in _MAKES
    return made(result) if makes else result


def _call_python(function: Any, arguments: Any, named: Any) -> Any:
    plain = function.__func__ if isinstance(function, MethodType) else function
    if not is_users(plain):
        return function(*arguments, **named)
    builder = tracing.active()
    if builder is None:
        return function(*arguments, **named)
    if isinstance(function, MethodType):
        arguments = (function.__self__, *arguments)
    new = rewritten(plain)
    if len(builder.calls) >= _DEPTH:
        tracing.refuse(
            f"{plain.__name__} calls itself without end: a GPU has no call stack, so every call is"
            " traced",
            "use a loop; a recursion must end on values that are known while tracing",
        )
    builder.calls.append(plain.__code__)
    try:
        return new(*arguments, **named)
    finally:
        builder.calls.pop()
