"""A driver's library: its functions by role, and its statuses as exceptions.

CUDA's driver API and HIP have functions of the same shapes under different names. `Driver.CALLS`
of a subclass names the function of each role, with its parameters; a status that is not 0 becomes
an exception with the function's name and the driver's own text.

Fork: a driver that was initialised does not work in a forked child; it says "not initialized"
there, which becomes a message of its own.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping, Sequence
from ctypes import c_int, c_size_t, c_ubyte, c_uint, c_void_p
from typing import Any, ClassVar, NamedTuple

from fly_common.errors import Fault, FlyError, InputError, MissingError
from fly_host.native.specialisation import Describing
from fly_host.tiles import Tile

# Statuses, whose numbers CUDA and HIP share (cuda.h, "CUresult"; hip_runtime_api.h, "hipError_t").
OUT_OF_MEMORY, NOT_INITIALIZED, NO_DEVICE, NO_BINARY, NOT_FOUND = 2, 3, 100, 209, 500
# The driver, the device or its permissions are not there.
_MISSING = frozenset((3, 34, 35, 36, 46, 100, 101, 102, 221, 223, 800, 802, 803, 804, 805))
# A kernel did something invalid, or did not end. CUDA's context is unusable afterwards.
FAULTS = frozenset((214, 220, 226, 700, 702, 710, 714, 715, 716, 717, 718, 719, 721))
UNKNOWN = 999

POINTER = c_void_p  # also of handles and device addresses
OUT = ctypes.POINTER(c_void_p)
OUT_INT = ctypes.POINTER(c_int)
OUT_SIZE = ctypes.POINTER(c_size_t)
OUT_FLOAT = ctypes.POINTER(ctypes.c_float)
TEXT = ctypes.c_char_p


class Call(NamedTuple):
    """A function of a driver: its name and the types of its parameters. It returns a status."""

    name: str
    parameters: tuple[Any, ...]


LAUNCH = (POINTER, *(c_uint,) * 7, POINTER, POINTER, POINTER)

# The parameters of the functions that have the same ones in both interfaces.
PARAMETERS: dict[str, tuple[Any, ...]] = {
    "init": (c_uint,),
    "count": (OUT_INT,),
    "name": (TEXT, c_int, c_int),
    "attribute": (OUT_INT, c_int, c_int),
    "memory": (OUT_SIZE, OUT_SIZE),
    "unload": (POINTER,),
    "function": (OUT, POINTER, TEXT),
    "variable": (OUT, OUT_SIZE, POINTER, TEXT),
    "function attribute": (OUT_INT, c_int, POINTER),
    "launch": LAUNCH,
    "free": (POINTER,),
    "copy to device": (POINTER, POINTER, c_size_t, POINTER),
    "copy from device": (POINTER, POINTER, c_size_t, POINTER),
    "copy on device": (POINTER, POINTER, c_size_t, POINTER),
    "fill": (POINTER, c_ubyte, c_size_t, POINTER),
    "alloc": (OUT, c_size_t),
    "stream": (OUT, c_uint),
    "destroy stream": (POINTER,),
    "wait for stream": (POINTER,),
    "event": (OUT, c_uint),
    "record": (POINTER, POINTER),
    "wait for event": (POINTER,),
    "elapsed": (OUT_FLOAT, POINTER, POINTER),
    "destroy event": (POINTER,),
    "wait": (),
}


class Driver:
    """A driver. `library` has its functions as attributes, as a `ctypes.CDLL` has."""

    NAME: ClassVar[str]  # of the device: "cuda"
    PRODUCT: ClassVar[str]  # in messages: "CUDA's driver"
    LIBRARIES: ClassVar[tuple[str, ...]]
    MISSING: ClassVar[str]  # a hint where there is no library
    CALLS: ClassVar[Mapping[str, Call]]
    ATTRIBUTES: ClassVar[Mapping[str, int]]  # of a device
    END: ClassVar[int]  # the last word of a launch's `extra`

    def __init__(self, library: Any):
        self._library = library
        self._functions: dict[str, Any] = {}
        self._process = os.getpid()
        self._initialised = False

    # -- calls

    def function(self, role: str) -> Any:
        """The function of a role. MissingError if the library lacks it."""
        found = self._functions.get(role)
        if found is None:
            call = self.CALLS[role]
            try:
                found = getattr(self._library, call.name)
            except AttributeError:
                raise MissingError(
                    f"{self.PRODUCT} has no function {call.name}", hint="install a newer driver"
                ) from None
            found.argtypes, found.restype = call.parameters, c_int
            self._functions[role] = found
        return found

    def status(self, role: str, *arguments: Any) -> int:
        """Calls the function of a role; its status."""
        return self.function(role)(*arguments)

    def call(self, role: str, *arguments: Any, doing: str = "") -> None:
        """Calls the function of a role. Raises `error` for a status that is not 0."""
        status = self.function(role)(*arguments)
        if status:
            raise self.error(self.CALLS[role].name, status, doing)

    def address(self, role: str) -> int:
        """The address of the function of a role."""
        return ctypes.cast(self.function(role), c_void_p).value or 0

    def integer(self, role: str, *arguments: Any) -> int:
        """Calls a function whose first parameter is for the integer that it finds."""
        found = c_int()
        self.call(role, ctypes.byref(found), *arguments)
        return found.value

    def handle(self, role: str, *arguments: Any, doing: str = "") -> int:
        """Calls a function whose first parameter is for the handle or address that it makes."""
        made = c_void_p()
        self.call(role, ctypes.byref(made), *arguments, doing=doing)
        return made.value or 0

    # -- errors

    def error(self, call: str, status: int, doing: str = "") -> FlyError:
        """The exception for a status that `call` returned. `doing` says what for."""
        during = f"{doing}: " if doing else ""
        message = f"{during}{call} failed: {self.text(status)}"
        if status == NOT_INITIALIZED and os.getpid() != self._process:
            return MissingError(
                f"{message}: this process was forked from one that uses {self.PRODUCT}",
                hint="start such processes anew: multiprocessing's start method 'spawn'",
            )
        if status in FAULTS or status == UNKNOWN:
            return Fault(message)
        if status in _MISSING or status == OUT_OF_MEMORY:
            return MissingError(message)
        return InputError(message)

    def text(self, status: int) -> str:
        """The driver's words for a status: its name, and a description."""
        raise NotImplementedError

    # -- what differs between drivers

    def initialise(self) -> None:
        """Initialises the driver, once in a process."""
        if not self._initialised:
            self.call("init", 0)
            self._initialised = True

    def architecture(self, device: int) -> str:
        """The device's architecture, as its targets are called."""
        raise NotImplementedError

    def runs(self, architecture: str, target: str) -> bool:
        """Whether a device of this architecture runs code for a target."""
        raise NotImplementedError

    def retain(self, device: int) -> int:
        """The context that all users of a device in this process share; `switch` takes it."""
        raise NotImplementedError

    def release(self, device: int) -> None:
        """Gives the context back."""
        raise NotImplementedError

    def current(self) -> int:
        """The context of this thread."""
        raise NotImplementedError

    def switch(self, context: int) -> None:
        """Makes a context this thread's."""
        raise NotImplementedError

    def load(self, data: bytes, doing: str) -> tuple[int, object]:
        """Loads code; the module's handle, and what has to live as long as the module."""
        raise NotImplementedError

    def allow_shared(self, function: int, device: int) -> None:
        """Lets a kernel have as much dynamic shared memory as the device has."""

    def extended_launch(self) -> str | None:
        """The role of the function that launches a kernel with attributes, such as a dependent one
        (`dependent`); None where the driver has none. Its parameters: a `LaunchConfiguration`, the
        kernel, and the last two of "launch"."""
        return None

    def describe(self, tile: Tile) -> bytes:
        """The descriptor of a tensor, of which kernels copy tiles."""
        raise MissingError(f"{self.PRODUCT} has no descriptors for copies of tiles")

    def describing(self) -> Describing | None:
        """How native code makes descriptors; None where the driver has none."""
        return None

    # -- devices

    def devices(self) -> int:
        """How many devices there are."""
        self.initialise()
        found = c_int()
        status = self.status("count", ctypes.byref(found))
        if status == NO_DEVICE:  # HIP's way to say 0
            return 0
        if status:
            raise self.error(self.CALLS["count"].name, status)
        return found.value

    def attribute(self, name: str, device: int) -> int:
        """An attribute of a device, by our name."""
        return self.integer("attribute", self.ATTRIBUTES[name], device)

    def product(self, device: int) -> str:
        """The device's name: "NVIDIA H200"."""
        room = ctypes.create_string_buffer(256)
        self.call("name", room, len(room), device)
        return room.value.decode(errors="replace")

    def limits(self, device: int) -> dict[str, float]:
        """What the device can do at most in a second: "bytes" to and from its memory, whose clock
        moves data at both edges, and "flops" in f32 without matrix instructions. What the driver
        does not tell is left out."""
        clock = 1000.0 * self.attribute("memory clock", device)
        bandwidth = 2 * clock * self.attribute("memory width", device) / 8
        lanes = self.lanes(self.architecture(device))
        rate = 2000.0 * self.attribute("clock", device) * lanes
        found = {"bytes": bandwidth, "flops": rate * self.attribute("processors", device)}
        return {name: limit for name, limit in found.items() if limit}

    def lanes(self, architecture: str) -> int:
        """How many multiply-adds in f32 a processor starts in a clock; 0 if that is not known."""
        raise NotImplementedError

    def free_memory(self) -> tuple[int, int]:
        """Free and total bytes of the current device's memory."""
        free, total = c_size_t(), c_size_t()
        self.call("memory", ctypes.byref(free), ctypes.byref(total))
        return free.value, total.value


def find(libraries: Sequence[str]) -> ctypes.CDLL | None:
    """The first library that can be loaded; before that, one that this process has loaded."""
    for mode in (os.RTLD_NOLOAD | os.RTLD_LAZY, os.RTLD_LAZY):
        for name in libraries:
            try:
                return ctypes.CDLL(name, mode=mode)
            except OSError:
                continue
    return None


def calls(names: Mapping[str, str], **others: tuple[str, tuple[Any, ...]]) -> dict[str, Call]:
    """A table of calls: names of the functions that both interfaces have, and `others` with their
    parameters. Roles of several words have underscores in `others`."""
    found = {role: Call(name, PARAMETERS[role]) for role, name in names.items()}
    return found | {role.replace("_", " "): Call(*call) for role, call in others.items()}
