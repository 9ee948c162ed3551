"""What the functions share: devices, memory, modules, streams, events, and each thread's state."""

from __future__ import annotations

import contextlib
import itertools
import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

from fly_target.target import Target

from fly_run.devices.options import Options
from fly_run.emulator.engine.loading import Loaded, Prepared
from fly_run.emulator.machine import Emulator
from fly_run.hip_runtime import errors, injected, settings
from fly_run.hip_runtime.errors import Failure, need
from fly_run.hip_runtime.memory import Allocation, Memory

HANDLES = 0x5F1E_0000_0000  # the first handle; handles are no addresses

Kind = TypeVar("Kind")


@dataclass(eq=False)
class Context:
    """A context of a device. The first of each device is its primary one."""

    handle: int
    device: int
    flags: int = 0


@dataclass(eq=False)
class Module:
    """A loaded code object. `functions` has the handles of its kernels by name."""

    handle: int
    loaded: Loaded
    device: int
    functions: dict[str, int] = field(default_factory=dict)
    globals: dict[str, Allocation] = field(default_factory=dict)


@dataclass(eq=False)
class Function:
    handle: int
    module: Module
    prepared: Prepared


@dataclass(eq=False)
class Stream:
    handle: int
    device: int
    flags: int = 0
    priority: int = 0


@dataclass(eq=False)
class Event:
    """`seconds` is the time when it was last recorded."""

    handle: int
    flags: int
    seconds: float | None = None


class Thread(threading.local):
    """The state of a thread: its device, contexts that were pushed, and the last error."""

    device: int = 0
    error: int = errors.SUCCESS
    capture_mode: int = 0

    def __init__(self) -> None:
        self.contexts: list[Context] = []


class Device:
    """A device. Its emulator is opened by the first use."""

    def __init__(self, ordinal: int, target: Target, options: Options):
        self.ordinal, self.target, self._options = ordinal, target, options
        self.flags = 0
        self.limits: dict[int, int] = {}
        self.active = False
        self._emulator: Emulator | None = None

    @property
    def opened(self) -> Emulator | None:
        return self._emulator

    def emulator(self, memory: Memory) -> Emulator:
        if self._emulator is None:
            made = Emulator(self.target.name, self._options)
            for one in memory:
                made.map(one.start, one.size, label=one.name)
            self._emulator = made
        return self._emulator


class Runtime:
    """A process's state. Functions hold `lock`, so only one executes at a time, and launches are
    complete when they return."""

    def __init__(self, environment: dict[str, str] | None = None):
        chosen = settings.read(dict(os.environ) if environment is None else environment)
        options = Options(max_instructions=chosen.limit)
        self.devices = [Device(n, target, options) for n, target in enumerate(chosen.targets)]
        self.injected = injected.Injected(chosen.failures)
        self.logs, self.defers = chosen.logs, chosen.defers
        self.memory = Memory()
        self.thread = Thread()
        self.lock = threading.RLock()
        self._next = itertools.count(HANDLES, 16)
        self.contexts: dict[int, Context] = {}
        self.modules: dict[int, Module] = {}
        self.functions: dict[int, Function] = {}
        self.streams: dict[int, Stream] = {}
        self.events: dict[int, Event] = {}
        self.exports: dict[str, int] = {}  # the library's functions by name
        self.fault = errors.SUCCESS  # of a launch that has not been reported yet
        self.primary = [
            self.keep(self.contexts, Context, device=n) for n in range(len(self.devices))
        ]

    def keep(self, table: dict[int, Kind], kind: Callable[..., Kind], **fields: Any) -> Kind:
        """Makes an object with a new handle, and puts it into its table."""
        handle = next(self._next)
        table[handle] = made = kind(handle, **fields)
        return made

    def find(self, table: dict[int, Kind], handle: int, error: str) -> Kind:
        """Returns the object of a handle; fails with `error` if there is none."""
        found = table.get(handle)
        if found is None:
            raise Failure(error, f"0x{handle:x} is no handle of that kind")
        return found

    # -- devices

    def ordinal(self, number: int) -> int:
        need(0 <= number < len(self.devices), "hipErrorInvalidDevice", f"there is no {number}")
        return number

    @property
    def device(self) -> Device:
        """The device of this thread."""
        contexts = self.thread.contexts
        return self.devices[contexts[-1].device if contexts else self.thread.device]

    @property
    def emulator(self) -> Emulator:
        return self.device.emulator(self.memory)

    # -- memory

    def allocate(self, size: int, kind: str, flags: int = 0) -> int:
        """Allocates memory that all devices can access. Returns 0 for no bytes, as HIP does."""
        if size == 0:
            return 0
        made = self.memory.allocate(size, kind, self.device.ordinal, flags)
        self.show(made)
        return made.start

    def show(self, one: Allocation) -> None:
        """Maps memory into the devices that are in use."""
        for device in self.devices:
            if device.opened is not None:
                device.opened.map(one.start, one.size, label=one.name)

    def free(self, one: Allocation) -> None:
        for device in self.devices:
            if device.opened is not None:
                device.opened.release(one.start)
        self.memory.remove(one)

    # -- order

    def stream(self, handle: int) -> Stream:
        """Returns the stream of a handle; 0, 1 and 2 are the default streams."""
        if handle in (0, 1, 2):
            return Stream(handle, self.device.ordinal)
        return self.find(self.streams, handle, "hipErrorContextIsDestroyed")

    def report_fault(self) -> None:
        """Fails with the error of an earlier launch, once."""
        fault, self.fault = self.fault, errors.SUCCESS
        if fault:
            raise Failure(errors.NAMES[fault], "of an earlier launch")

    @contextlib.contextmanager
    def unlocked(self) -> Iterator[None]:
        """Releases the lock for a function of the caller, which may wait for other threads' calls.
        A function that is called within such a function keeps it."""
        self.lock.release()
        try:
            yield
        finally:
            self.lock.acquire()
