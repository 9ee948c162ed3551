"""The devices of this process: each is opened once, and caches loaded images.

    opened = runtime.device("auto", "gfx942")       returns the same one each time
    opened.run(bound, image)                        loads the image if necessary

A device whose options make it private (observers, `strict`, a progress bar) belongs to the caller,
who closes it:

    with runtime.device("emulator", "gfx942", options) as opened: …

Threads may share a device: if it does not support concurrency (`Device.concurrent`) they take
turns, a whole call at a time, so that a kernel never sees another call's buffers. The cache is
bounded and evicts the least recently used image. After a fork the devices belong to the parent: the
child opens its own.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from fly_common.environment import Snapshot, watcher
from fly_host.readers import interpreter

from fly_run.devices.options import DEFAULTS, STRICT, Options, in_environment
from fly_run.devices.registry import open_device
from fly_run.launch.arrays.protocol import NUMPY, Arrays
from fly_run.launch.execution import Outcome, Reader, run

if TYPE_CHECKING:
    from fly_host.program import Program
    from fly_image.image import Image

    from fly_run.devices.protocol import Device, Module
    from fly_run.launch.completed import Ran
    from fly_run.launch.launch import KernelCall

MOST_DEVICES = 16
MOST_MODULES = 64  # per device

_listeners: list[Callable[[], None]] = []


def when_closed(listener: Callable[[], None]) -> None:
    """Calls `listener` whenever the shared devices are closed, or left to the parent by a fork."""
    _listeners.append(listener)


_environment = watcher(STRICT)


class Opened:
    """A device, and the images that it has loaded. `shared`: it stays open for others."""

    def __init__(self, device: Device, shared: bool):
        self.device, self.shared = device, shared
        self._modules: OrderedDict[str, Module] = OrderedDict()
        self._loading = threading.RLock()
        self.turn = contextlib.nullcontext() if device.concurrent else self._loading

    def module(self, image: Image) -> Module:
        """Returns the loaded module of the image, identified by its content."""
        with self._loading:
            modules, digest = self._modules, image.digest
            module = modules.get(digest)
            if module is None:
                module = modules[digest] = self.device.load(image)
                while len(modules) > MOST_MODULES:
                    modules.popitem(last=False)[1].unload()
            else:
                modules.move_to_end(digest)
            return module

    def run(
        self,
        program: Program,
        image: Image,
        values: Mapping[str, Any],
        viewed: Mapping[str, Any] | None = None,
        arrays: Arrays = NUMPY,
        reader: Reader = interpreter.run,
    ) -> Outcome:
        """See `fly_run.launch.execution.run`."""
        with self.turn:
            module = self.module(image)
            return run(program, image, module, self.device, values, viewed, arrays, reader)

    def run_kernel(self, call: KernelCall, image: Image) -> list[Ran]:
        """See `fly_run.launch.launch.KernelCall.run`."""
        with self.turn:
            return call.run(self.module(image), self.device)

    def close(self) -> None:
        with self._loading:
            while self._modules:
                self._modules.popitem()[1].unload()
            self.device.close()

    def __enter__(self) -> Opened:
        return self

    def __exit__(self, *_: object) -> None:
        if not self.shared:
            self.close()


_opened: OrderedDict[tuple[str, str, Options | None, Snapshot], Opened] = OrderedDict()
_opening = threading.Lock()


def device(name: str, target: str, options: Options | None = None) -> Opened:
    """Returns the process's device `name` ("auto", "emulator", …) for code of `target`, with these
    options; a new one if the options are private. Raises the errors of
    `devices.registry.open_device`."""
    global _opening
    if options is not None and options.private:
        return Opened(open_device(name, target, options), shared=False)
    # Hashing options takes longer than the rest: the default options are None in the key.
    key = name, target, None if options == DEFAULTS else options, _environment()
    found = _opened.get(key)
    if found is not None:
        return found
    asked = in_environment(options)
    if asked.private:  # FLY_STRICT
        return Opened(open_device(name, target, asked), shared=False)
    with _opening:
        found = _opened.get(key)
        if found is None:
            found = _opened[key] = Opened(open_device(name, target, asked), shared=True)
        oldest = _opened.popitem(last=False)[1] if len(_opened) > MOST_DEVICES else None
    if oldest is not None:
        oldest.close()
    return found


def close_all() -> None:
    """Closes the shared devices. The next call opens new ones."""
    with _opening:
        closing = list(_opened.values())
        _opened.clear()
    for listener in _listeners:
        listener()
    for opened in closing:
        opened.close()


def _after_fork() -> None:
    """Drops the parent's devices, and the lock, whose owner the child may lack."""
    global _opening
    _opening = threading.Lock()
    _opened.clear()
    for listener in _listeners:
        listener()


os.register_at_fork(after_in_child=_after_fork)
