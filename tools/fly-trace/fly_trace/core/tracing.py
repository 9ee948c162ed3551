"""The current trace and its errors. Does not import MLIR, which only the builder needs."""

from __future__ import annotations

import array
import threading
from typing import TYPE_CHECKING, Any, NoReturn

from fly_common.errors import InputError
from fly_common.quoting import quoted

from fly_trace.core import locations

if TYPE_CHECKING:
    from collections.abc import Callable

    from fly_trace.core.rules import Rules
    from fly_trace.session.builder import Builder


class _State(threading.local):
    """Each thread has its own trace."""

    builder: Builder | None = None


_state = _State()
# How many threads trace, in memory that native code looks at: see `busy_address`.
_busy = array.array("q", [0])
_counting = threading.Lock()


def busy_address() -> int:
    """The address of a 64-bit integer that is not 0 while a thread of this process traces."""
    return _busy.buffer_info()[0]


class _Outside:
    """The rules of numbers while nothing is traced: a frontend may set its own."""

    rules: Rules | None = None


OUTSIDE = _Outside()
# Functions that give a builder while nothing is traced, or None: of a frontend whose programs may
# build MLIR themselves.
AMBIENT: list[Callable[[], Builder | None]] = []


def traced() -> Builder | None:
    """The builder of the function that is being traced, or None: at an insertion point of the
    program's own too."""
    return _state.builder


def active() -> Builder | None:
    """The builder of the function that is being traced, or None."""
    builder = _state.builder
    if builder is None and AMBIENT:
        return AMBIENT[0]()
    return builder


def current(what: str) -> Builder:
    """The current builder. Raises InputError if nothing is being traced."""
    builder = active()
    if builder is None:
        refuse(
            f"{what} has no value outside a kernel",
            "use it in a function decorated with @fly.kernel or @fly.jit",
        )
    return builder


def kernel(what: str) -> Builder:
    """The builder of a kernel. Raises InputError outside kernels."""
    builder = current(what)
    if builder.host and not (builder.rules and builder.rules.is_free):
        refuse(f"{what} can only be used in a kernel, not in the host function")
    return builder


def enter(builder: Builder | None) -> Builder | None:
    """Makes `builder` the current one. Returns the previous one."""
    before = _state.builder
    _state.builder = builder
    with _counting:
        _busy[0] += (builder is not None) - (before is not None)
    return before


def describe(value: Any) -> str:
    """Describes a value in a message. The language's own classes define `described`."""
    if hasattr(type(value), "described"):
        return value.described
    if value is None:
        return "None"
    if isinstance(value, (bool, int, float, str)):
        return f"the Python {type(value).__name__} {quoted(value)}"
    return f"a Python {type(value).__name__}"


def refuse(message: str, hint: str | None = None, at: locations.Position | None = None) -> NoReturn:
    """Raises InputError at `at`, or at the user's current position; in a function that has its own
    rules, the error that these name."""
    builder = active()
    own = OUTSIDE.rules if builder is None else builder.rules
    kind = InputError if own is None else own.error
    raise kind(message, place=locations.place(at or locations.here(2)), hint=hint)
