"""Calls: `f(…)` of rewritten code, which calls the rewritten function of a helper.

A function that is not traced must not change an object from outside the trace (`objects`).
"""

from __future__ import annotations

import functools
import inspect
import itertools
import operator
from collections.abc import Callable
from types import BuiltinMethodType, FunctionType, GeneratorType, MethodType, ModuleType
from typing import Any, NoReturn

from fly_common.quoting import quoted

from fly_trace.control import generators
from fly_trace.control.calls import python_calls
from fly_trace.control.objects import check_change, check_entries, refuse_change, target_attribute
from fly_trace.core import call_chain, locations, tracing
from fly_trace.effects.snapshots import Entry
from fly_trace.rewrite import is_rewritten, is_users, rewritten, stand_ins

_REFUSED = {
    print: ("print() runs while the kernel is traced, not on the GPU", "use fx.printf"),
    input: ("input() has no meaning in a kernel", None),
    locals: ("locals() has no meaning in a kernel", None),
    globals: ("globals() has no meaning in a kernel", None),
    vars: ("vars() has no meaning in a kernel", None),
    dir: ("dir() has no meaning in a kernel", None),
    eval: ("eval() has no meaning in a kernel", "write the expression out"),
    exec: ("exec() has no meaning in a kernel", "write the statements out"),
}
# Frequently called functions without side effects of their own. (Effects of a user's `__len__` are
# found at the end of the branch or trace.)
_HARMLESS = frozenset(
    (len, isinstance, issubclass, callable, id, abs, round, divmod, getattr, hasattr)
)
_HARMLESS_TYPES = frozenset((range, int, float, bool, type, slice))
# Functions in C that call their arguments.
_CALLING = frozenset((map, functools.reduce, itertools.accumulate, itertools.starmap))
# Builtin functions of dynamic values → what is called instead.
TRACED: dict[Any, Callable[..., Any]] = {}
TRACED_METHODS: dict[str, Callable[..., Any]] = {}  # the same for methods of lists, by name
_DEPTH = 64  # nested calls; more are taken for infinite recursion


def call(function: Any, /, *arguments: Any, **named: Any) -> Any:
    """`function(…)`. The user's helper functions are rewritten as well."""
    kind = type(function)
    if kind is FunctionType or (kind is MethodType and type(function.__func__) is FunctionType):
        return _call_python(function, arguments, named)
    if kind is BuiltinMethodType:
        if function in _HARMLESS:
            return function(*arguments, **named)
        if function in _REFUSED:
            tracing.refuse(*_REFUSED[function])
        if function.__name__ in TRACED_METHODS and type(function.__self__) is list:
            return TRACED_METHODS[function.__name__](function.__self__, *arguments, **named)
        if function in TRACED and tracing.active() is not None:
            for argument in arguments:
                if hasattr(type(argument), "__next__"):
                    check_change(argument, _name(function))
            return TRACED[function](*arguments, **named)
        if function in (setattr, delattr) and arguments:
            target_attribute(*arguments[:2])
    elif kind is type and function in _HARMLESS_TYPES:
        return TRACED.get(function, function)(*arguments, **named)
    elif kind is functools.partial:
        return call(function.func, *function.args, *arguments, **{**function.keywords, **named})
    elif hasattr(kind, "as_helper"):
        return call(function.as_helper, *arguments, **named)
    elif kind not in python_calls.PLAIN and (method := _call_method(kind)) is not None:
        return _call_python(MethodType(method, function), arguments, named)
    return _checked(function, arguments, named)


def item(container: Any, key: Any) -> Any:
    """`container[key]`, which may add an item to a `defaultdict`."""
    if isinstance(container, dict) and type(container) is not dict:
        return _checked(operator.getitem, (container, key), {}, f"reading [{quoted(key, 40)}]")
    return container[key]


def _call_method(kind: type) -> FunctionType | None:
    """The function that a call of an object of the user's runs."""
    method = inspect.getattr_static(kind, "__call__", None)
    return method if type(method) is FunctionType and is_users(method) else None


def _checked(function: Any, arguments: Any, named: Any, name: str = "") -> Any:
    """Calls a function that is not traced, and refuses it if it changed anything outside."""
    builder = tracing.active()
    if builder is None:
        return function(*arguments, **named)
    for argument in arguments:
        if hasattr(type(argument), "__next__"):
            check_change(argument, _name(function))
    for value in (function, *arguments, *named.values()):
        if type(value) not in python_calls.PLAIN:
            builder.python_calls.add(value)
    if type(function).__hash__ is not None and function in _CALLING:
        arguments = [_stand_in(one) for one in arguments]
    watched = builder.frozen.reached_by((function, _owner(function), *arguments, *named.values()))
    result = function(*arguments, **named)
    changed = [entry for entry in watched if entry.changed]
    if changed:
        check_entries(
            builder, changed, name or _name(function), refuse_change, _rearranged(function, changed)
        )
    return result


def _stand_in(function: Any) -> Any:
    """What is called instead of a builtin function that another one calls."""
    return TRACED.get(function, function) if type(function) is BuiltinMethodType else function


def _owner(function: Any) -> Any:
    """The list or other object of which `function` is a method; None if it is not a method."""
    owner = function.__self__ if type(function) is BuiltinMethodType else None
    return None if type(owner) is ModuleType else owner  # of a function in C


def _rearranged(function: Any, changed: list[Entry]) -> Any:
    """The list or dictionary of which `function` is a method, if it has as many items, or the same
    keys, as before: a branch or loop may carry such a change."""
    owner = _owner(function)
    before = next((entry.state for entry in changed if entry.value is owner), None)
    if before is None or type(owner) not in (list, dict):
        return None
    if type(owner) is dict:  # its state has the keys first
        same = list(owner) == before[: len(before) // 2]
    else:
        same = len(owner) == len(before)
    return owner if same else None


def _name(function: Any) -> str:
    name = getattr(function, "__name__", None)
    return f"{name}()" if isinstance(name, str) else "the call"


_is_ours = functools.lru_cache(maxsize=1024)(locations.is_ours)


def _call_python(function: Any, arguments: Any, named: Any) -> Any:
    plain = function.__func__ if isinstance(function, MethodType) else function
    builder = tracing.active()
    if builder is None:
        return function(*arguments, **named)
    if is_rewritten(plain.__code__):
        return _registered(_traced(builder, plain, function, arguments, named))
    if not is_users(plain):
        if _is_ours(plain.__code__.co_filename):
            return function(*arguments, **named)
        return _checked(function, arguments, named)
    if isinstance(function, MethodType):
        arguments = (function.__self__, *arguments)
    new = rewritten(plain)
    before = builder.locations.enter()
    try:
        return _registered(_traced(builder, plain, new, arguments, named))
    finally:
        builder.locations.leave(before)


def _traced(builder: tracing.Builder, plain: Any, new: Any, arguments: Any, named: Any) -> Any:
    """Calls `new`, which is a rewritten form of `plain`, unless that is an endless recursion."""
    if len(builder.calls) >= _DEPTH:
        _refuse_recursion(plain)
    outermost = plain.__code__ not in builder.calls
    builder.calls.append(plain.__code__)
    try:
        return new(*arguments, **named)
    except RecursionError as error:
        # Under dynamic conditions Python's limit may come before _DEPTH: that depends on how deep
        # the caller's stack is.
        again = _recursion(new, error) if outermost else None
        if again is not None:
            _refuse_recursion(plain, again)
        raise
    finally:
        builder.calls.pop()


def _refuse_recursion(function: Any, at: locations.Position | None = None) -> NoReturn:
    tracing.refuse(
        f"{function.__name__} recurses endlessly: a GPU has no call stack, so every call is traced",
        "use a loop; a recursion must end on values that are known while tracing",
        at or locations.here(2),
    )


def _recursion(function: Any, error: RecursionError) -> locations.Position | None:
    """Where a function first calls itself, if the error was raised within several calls of it."""
    found = call_chain.frames(error.__traceback__)
    calls = [i for i, frame in enumerate(found) if frame.code is function.__code__]
    return found[calls[1] - 1].at if len(calls) > 2 else None


def _registered(result: Any) -> Any:
    if type(result) is GeneratorType:
        generators.register(result)
    return result


stand_ins.HANDLER.cell_contents = _call_python
