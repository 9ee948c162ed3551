"""Fills the library's table with callbacks, which call the functions of `calls`.

Each callback counts the call for injected failures, holds the runtime's lock, converts exceptions
to error codes and remembers the thread's last error. A message of the emulator, such as a fault,
goes to stderr.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import importlib
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from typing import Any

from fly_common.errors import FlyError

from fly_run.hip_runtime import errors, interface, registered
from fly_run.hip_runtime.errors import Failure
from fly_run.hip_runtime.prototypes import Prototype, prototypes
from fly_run.hip_runtime.runtime import Runtime

TOOL = "fly-run: HIP"
GROUPS = (
    *("contexts", "copies", "devices", "errors", "events", "launches", "memory", "modules"),
    *("pointers", "streams"),
)
# Functions that tell about errors do not set the last one.
QUIET = frozenset(["hipGetLastError", "hipPeekAtLastError", "hipExtGetLastError"])

INTERRUPT_AFTER = 0.05  # seconds

_lock = threading.Lock()
_filled: dict[int, list[Any]] = {}  # table → its callbacks, which must stay


def fill(table: int, state: int, exports: int, digest: str) -> None:
    """Fills the table at this address, unless another thread has done so (`bootstrap`)."""
    with _lock:
        if table in _filled:
            return
        if digest != interface.digest():
            raise ImportError(
                f"{interface.NAME} was built by another version of fly-run; print its folder again"
                " with fly-run --hip-runtime"
            )
        runtime = Runtime()
        made = callbacks(runtime)
        Pointers = ctypes.c_void_p * len(made)
        runtime.exports = dict(zip(prototypes(), Pointers.from_address(exports), strict=True))
        entries = Pointers.from_address(table)
        entries[:] = [ctypes.cast(one, ctypes.c_void_p).value for one in made]
        ctypes.c_int32.from_address(state).value = interface.STARTED
        _filled[table] = made

        def end() -> None:
            ctypes.memset(table, 0, ctypes.sizeof(entries))
            ctypes.c_int32.from_address(state).value = interface.ENDED

        atexit.register(end)
        # A fork waits for calls of other threads, so that the child's state is whole.
        lock = runtime.lock
        os.register_at_fork(
            before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release
        )


def callbacks(runtime: Runtime) -> list[Any]:
    """Returns a ctypes callback for each function, in the order of the prototypes."""
    for name in GROUPS:
        importlib.import_module(f"fly_run.hip_runtime.calls.{name}")
    made = []
    for one in prototypes().values():
        function = registered.FUNCTIONS[one.name]
        call = _text(runtime, function) if one.returns_text else _code(runtime, one, function)
        made.append(one.callback(call))
    return made


def _code(runtime: Runtime, one: Prototype, function: Callable[..., Any]) -> Callable[..., int]:
    """The callback of a function that returns an error code."""
    name, code, quiet = one.name, runtime.injected.code, one.name in QUIET

    def counted(*arguments: int) -> int:
        with runtime.lock:
            reason = ""
            result = code(name)
            if result:
                reason = "injected"
            else:
                result, reason = _result(name, function, runtime, arguments)
            if result not in (errors.SUCCESS, errors.NOT_READY) and not quiet:
                runtime.thread.error = result
            if runtime.logs:
                _log(one, arguments, result, reason)
            return result

    def call(*arguments: int) -> int:
        # An exception can't pass through the caller, which would get a random number. Ctrl-C may
        # raise one anywhere.
        try:
            return counted(*arguments)
        except KeyboardInterrupt:
            # Raised again once this has returned, in code of the program.
            main = threading.main_thread().ident, signal.SIGINT
            threading.Timer(INTERRUPT_AFTER, signal.pthread_kill, main).start()
        except BaseException:
            _print(f"{TOOL}: {name}: {traceback.format_exc()}")
        return errors.UNKNOWN

    return call


def _result(
    name: str, function: Callable[..., Any], runtime: Runtime, arguments: tuple[int, ...]
) -> tuple[int, str]:
    try:
        return function(runtime, *arguments) or errors.SUCCESS, ""
    except Failure as failure:
        return failure.code, failure.reason
    except FlyError as error:
        _print(error.render(f"{TOOL}: {name}"))
        return errors.UNKNOWN, error.message
    except Exception as error:
        _print(f"{TOOL}: {name}: {traceback.format_exc()}")
        return errors.UNKNOWN, repr(error)


def _text(runtime: Runtime, function: Callable[..., int]) -> Callable[..., int]:
    def call(*arguments: int) -> int:
        with runtime.lock:
            return function(runtime, *arguments)

    return call


def _log(one: Prototype, arguments: tuple[int, ...], result: int, reason: str) -> None:
    shown = ", ".join(
        f"{parameter.name}={value:#x}" if parameter.is_pointer else f"{parameter.name}={value}"
        for parameter, value in zip(one.parameters, arguments, strict=True)
    )
    more = f": {reason}" if reason else ""
    _print(f"{TOOL}: {one.name}({shown}) → {errors.NAMES.get(result, result)}{more}")


def _print(text: str) -> None:
    with contextlib.suppress(OSError, ValueError, AttributeError):  # stderr is closed, or None
        print(text, file=sys.stderr, flush=True)
