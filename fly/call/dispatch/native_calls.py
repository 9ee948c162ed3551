"""Calls of a compiled function by native code.

A `KnownCalls` that has seen a kind of call before gets a launcher for it, and a
dispatcher in front of its launchers. What native code does not take, it declines, and the Python
way goes on; why there is none for a function is told by `reasons`.
"""

from __future__ import annotations

import gc
import os
import time
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fly_common import diagnostics
from fly_common.record import field, record
from fly_host.native.unavailable import NotCompiled, Unavailable
from fly_run.launch import runtime
from fly_trace.core import tracing

from fly.call.dispatch.dispatcher import Dispatcher, State
from fly.dependencies.function_parts import MISSING

if TYPE_CHECKING:
    from fly.call.arguments import Reader
    from fly.call.compiled import Compiled
    from fly.call.host_options import CompileOptions
    from fly.dependencies.hashing import DependencyHash


_every: weakref.WeakSet[NativeCalls] = weakref.WeakSet()


@record(frozen=False, eq=False)
class NativeCalls:
    """The native code for the calls of one function, as long as its dependencies hold."""

    dependencies: DependencyHash
    reader: Reader
    variables: tuple[str, ...]  # of the environment, which the code depends on
    reasons: list[str] = field(default_factory=list)
    dispatcher: Dispatcher | None = None
    _tried: set[Any] = field(default_factory=set)

    def __post_init__(self) -> None:
        _every.add(self)

    def add(
        self,
        key: Any,
        compiled: Compiled,
        arguments: tuple[Any, ...],
        device: str,
        host: CompileOptions,
    ) -> Callable[..., Any] | None:
        """Makes native code for calls of this key, if that was not tried before. The builtin to
        call, None where there is none."""
        if key in self._tried:
            return None
        self._tried.add(key)
        try:
            dispatcher = self.dispatcher
            if dispatcher is None:
                dispatcher = Dispatcher(self._state(), tracing.busy_address())
            rules = self.reader.rules(arguments, compiled.parameter_names)
            passed = tuple(arguments[position] for position in rules.passed)
            if not dispatcher.add(compiled.native(passed, device, host).call, rules):
                raise Unavailable("the function is called with too many kinds of arguments")
        except Unavailable as why:
            self.reasons.append(str(why))
            if isinstance(why, NotCompiled):
                _tell_once(compiled, str(why))
            return None
        self.dispatcher = dispatcher
        return dispatcher.call

    def renew(self, seconds: float) -> None:
        """Lets native code take calls for this long without a further look."""
        if self.dispatcher is not None:
            self.dispatcher.until(time.monotonic_ns() + int(seconds * 1e9))

    def stop(self) -> None:
        """Something has changed: native code takes no call any more."""
        if self.dispatcher is not None:
            self.dispatcher.until(0)

    def _state(self) -> State:
        found = self.dependencies
        if found.mutables or found.caches:
            raise Unavailable("the function reaches mutable values")
        registered = (found.registrations,)
        if registered != (None,):
            raise Unavailable("the function reaches an abstract class")
        names: list[tuple[dict[Any, Any], Any, Any]] = []
        for space, name, value in found.names:
            if type(space) is not dict:
                raise Unavailable("the function reaches a namespace that is no plain dictionary")
            names.append((space, name, value))
        names += _variables(self.variables)
        functions = [function for function, _ in found.functions]
        whole: list[dict[Any, Any]] = []
        for function in functions:
            spaces = (function.__kwdefaults__, function.__annotations__, function.__dict__)
            whole += [space for space in spaces if space is not None]
        whole += [_namespace(made) for made, _ in found.classes]
        whole += [held for held, _ in found.dictionaries]
        names += [(space, key, value) for space in whole for key, value in space.items()]
        state = State(names, whole, found.cells, functions, MISSING)
        if not state.fits:
            raise Unavailable("the function reaches too many names")
        return state


def _namespace(made: type) -> dict[Any, Any]:
    """The dictionary behind the attributes of a class, of which `vars` gives a view."""
    (space,) = gc.get_referents(vars(made))
    if type(space) is not dict or space.keys() != vars(made).keys():
        raise Unavailable("this Python keeps the attributes of classes elsewhere")
    return space


_told: set[str] = set()


def _tell_once(compiled: Compiled, why: str) -> None:
    """Says on stderr that something can't be compiled, once for each reason."""
    if why in _told:
        return
    _told.add(why)
    diagnostics.warner("fly")(
        f"the host side of {compiled.program_name} runs as Python, which is slower: {why}"
    )


def _forget() -> None:
    """Devices were closed: launchers may hold their kernels."""
    for calls in list(_every):
        calls.stop()
        calls.dispatcher = None
        calls._tried.clear()


runtime.when_closed(_forget)


def _variables(names: tuple[str, ...]) -> list[tuple[dict[Any, Any], Any, Any]]:
    """The environment's variables as names in the dictionary behind `os.environ`."""
    held: Any = getattr(os.environ, "_data", None)
    encode = getattr(os.environ, "encodekey", None)
    if type(held) is not dict or encode is None:
        raise Unavailable("this Python's environment is no plain dictionary")
    return [(held, encode(name), held.get(encode(name), MISSING)) for name in names]
