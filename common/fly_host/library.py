"""The library functions that programs may call: a registry by name.

A program names functions, and a file may hold any name; so only what is registered is ever called:
the functions built in here, those that a process has registered (`register`), and those of
installed packages (entry points of the group `fly.calls`, each a `Registered`, under the function's
name). Nothing is imported for a name that is none of these.

A shape rule says what a function makes, before it is called: it gets what stands for the arguments
(`Like` for tensors) and gives a `Made`, or raises ValueError where they do not fit. Extents may be
symbolic: a rule computes with them, and names those that have to be equal instead of comparing
them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fly_common.errors import FlyError, InputError, MissingError
from fly_common.quoting import quoted, shortened
from fly_common.resolve import entry_points

from fly_host.libraries import arrays
from fly_host.libraries.function import Like, Made, Registered, Rule
from fly_host.libraries.rules import BUILT_IN

__all__ = ["GROUP", "Like", "Made", "Registered", "call", "find", "name_of", "register", "unknown"]

GROUP = "fly.calls"

registered: dict[str, Registered] = {}  # by this process


def register(
    name: str,
    *,
    shape: Rule,
    function: Callable[..., Any] | None = None,
    takes_out: bool = True,
) -> Registered:
    """Makes a function callable by programs of this process, under `name`; without `function`, the
    one that the name imports. It takes the place of one that was registered under it before."""
    made = registered[name] = Registered(name, shape, function, takes_out)
    return made


def find(name: str) -> Registered | None:
    """What is registered under a name."""
    found = registered.get(name) or BUILT_IN.get(name)
    if found is None:
        entry = next((one for one in entry_points(GROUP) if one.name == name), None)
        if entry is not None:
            found = entry.load()
            if not isinstance(found, Registered):
                raise MissingError(f"the entry point {name} of {GROUP} is no Registered")
    return found


def name_of(function: Any) -> str | None:
    """The name that a function is registered under. What its module has not imported yet can't be
    the function, so nothing is imported."""
    for name, one in {**BUILT_IN, **registered}.items():
        if one.function is function:
            return name
        if one.function is None and one.package in sys.modules and _is(one, function):
            return name
    return None


def _is(one: Registered, function: Any) -> bool:
    try:
        return one.resolve() is function
    except MissingError:
        return False


def unknown(name: str) -> MissingError:
    """The error for a function that is not registered."""
    return MissingError(
        f"the program calls {quoted(name)}, which is not registered here",
        hint='register it before: fly.register_call("name", shape=rule, function=f)',
    )


def call(name: str, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
    """Calls a registered function on arrays, and gives what it makes: arrays of the kind that it
    was given. A function of torch gets tensors that share the memory of NumPy arrays, and one of
    NumPy arrays that share the memory of tensors. An argument that is `Bits` stands for an array of
    a type that NumPy lacks; results of such types are bits then too.

    MissingError where it is not registered; InputError with what the function raised."""
    found = find(name)
    if found is None:
        raise unknown(name)
    function = found.resolve()
    kind = arrays.kind_of(name)
    given = [arrays.as_kind(value, kind) for value in arguments]
    named = {key: arrays.as_kind(value, kind) for key, value in keywords.items()}
    out = None if found.takes_out else named.pop("out", None)
    try:
        made = function(*given, **named)
    except FlyError:
        raise
    except Exception as error:
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise InputError(f"{name}: {shortened(reason)}") from error
    if out is not None:
        arrays.copy(made, out)
    every = (*arguments, *keywords.values())
    back = arrays.kind_among(every) or kind
    has_bits = any(isinstance(one, arrays.Bits) for one in every)

    def returned(one: Any) -> Any:
        return (
            arrays.as_bits(arrays.whole(one))
            if has_bits
            else arrays.as_kind(arrays.whole(one), back)
        )

    return tuple(map(returned, made)) if isinstance(made, tuple | list) else returned(made)
