"""A device's context: the one that CUDA's runtime, torch and others share in this process.

    with context:        it is this thread's inside, whatever was before it is again afterwards

What holds a context (modules, streams, prepared calls) keeps it alive.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import threading
import weakref
from collections import OrderedDict
from collections.abc import Iterable
from typing import Any

from fly_common.errors import Fault, FlyError

from fly_run.devices.gpu.driver import FAULTS, Driver

MOST_NAMES = 8  # of kernels in a message


class Context:
    """The shared context of device number `device`."""

    def __init__(self, driver: Driver, device: int):
        self.driver, self.device = driver, device
        self.handle = driver.retain(device)
        self._before = threading.local()
        self._guard = threading.Lock()
        self._running: OrderedDict[str, None] = OrderedDict()  # kernels, since the last wait
        self._native: dict[str, None] = {}  # kernels that native code may launch at any time
        self._lost = ""
        self._release = weakref.finalize(self, _release, driver, device, os.getpid())
        self._release.atexit = False

    def __enter__(self) -> Context:
        stack: list[int | None] = self._before.__dict__.setdefault("stack", [])
        current = self.driver.current()
        if current == self.handle:
            stack.append(None)
        else:
            self.driver.switch(self.handle)
            stack.append(current)
        return self

    def __exit__(self, *_: object) -> None:
        before = self._before.stack.pop()
        if before is not None:
            self.driver.switch(before)

    # -- calls, in the context

    def call(self, role: str, *arguments: Any, doing: str = "", kernel: str | None = None) -> None:
        """`Driver.call`, for a kernel or for what `doing` says. A fault names the kernels that may
        have caused it."""
        with self:
            status = self.driver.status(role, *arguments)
        if status:
            raise self.error(role, status, doing, kernel)

    def handle_of(self, role: str, *arguments: Any, kernel: str | None = None) -> int:
        """`Driver.handle`, in the context."""
        made = ctypes.c_void_p()
        self.call(role, ctypes.byref(made), *arguments, kernel=kernel)
        return made.value or 0

    # -- faults

    def launched(self, kernel: str) -> None:
        """A kernel was launched: errors from now on may be its."""
        with self._guard:
            self._running[kernel] = None
            self._running.move_to_end(kernel)
            if len(self._running) > MOST_NAMES:
                self._running.popitem(last=False)

    def launches_natively(self, kernels: Iterable[str]) -> None:
        """Native code launches these, and tells nobody."""
        with self._guard:
            self._native |= dict.fromkeys(kernels)

    def waited(self) -> None:
        """All work until now has ended well."""
        with self._guard:
            self._running.clear()
            self._lost = ""

    def error(self, role: str, status: int, doing: str = "", kernel: str | None = None) -> FlyError:
        """The exception for a status; a kernel's fault is reported where the driver next says so,
        which may be a later call."""
        driver, name = self.driver, self.driver.CALLS[role].name
        doing = doing if kernel is None else f"kernel {kernel}"
        if status not in FAULTS:
            found = driver.error(name, status, doing)
            found.kernel = kernel
            return found
        if self._lost:
            return Fault(
                f"{driver.NAME}:{self.device} is unusable since {self._lost}:"
                f" {name} failed: {driver.text(status)}",
                hint="the process has to be started anew; all that uses this device in it, torch"
                " too, shares the context",
            )
        with self._guard:
            names = list(dict.fromkeys((*self._running, *self._native)))
            self._running.clear()
        what = f"kernel {names[0]}" if len(names) == 1 else doing
        if len(names) > 1:
            more = " and others" if len(names) > MOST_NAMES else ""
            what = f"one of the kernels {', '.join(names[:MOST_NAMES])}{more}"
        found = driver.error(name, status, what)
        found.kernel = kernel if not names else names[0] if len(names) == 1 else None
        if len(names) > 1 and driver.NAME == "cuda":
            found.hint = "with CUDA_LAUNCH_BLOCKING=1 in the environment the error names one kernel"
        self._lost = f"a fault of {what}" if what else "a fault"
        return found


def undo(context: Context, process: int, *calls: tuple[str, int]) -> None:
    """Calls functions by role for what is not needed any more, in the process that made it. What
    they return is ignored: after a fault nothing can be undone."""
    if os.getpid() != process:
        return
    with contextlib.suppress(FlyError), context:
        for role, handle in calls:
            context.driver.status(role, *([handle] if handle else []))


def _release(driver: Driver, device: int, process: int) -> None:
    if os.getpid() == process:
        with contextlib.suppress(FlyError):
            driver.release(device)
