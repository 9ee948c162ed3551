"""The device: a GPU behind a driver.

Its memory is its own: `adopt` refuses, and `fly_run.launch` copies host arrays to it and back.
Tensors of torch that lie on it are used where they are. Launches do not wait; a kernel's fault is
reported by the launch, or by the next call that waits. Work without a stream goes to torch's
current stream where torch uses the GPU, else to the default stream.
"""

from __future__ import annotations

import ctypes
import functools
import sys
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from fly_common.errors import FlyError, InputError, MissingError, UsageError
from fly_host.tiles import Tile
from fly_image.image import Image

from fly_run.devices.gpu import driver as drivers
from fly_run.devices.gpu.context import Context
from fly_run.devices.gpu.dependent import configuration, is_dependent
from fly_run.devices.gpu.driver import OUT_OF_MEMORY, Driver
from fly_run.devices.gpu.modules import GpuFunction, GpuModule
from fly_run.devices.gpu.order import GpuEvent, GpuStream, handle_of
from fly_run.devices.options import Options
from fly_run.devices.protocol import FROM_DEVICE, ON_DEVICE, TO_DEVICE, Function, Stream, Triple

if TYPE_CHECKING:
    from fly_host.native.specialisation import DriverEntry

_BUFFER_POINTER, _BUFFER_SIZE = 1, 2  # CU_LAUNCH_PARAM_*, HIP_LAUNCH_PARAM_*
_COPIES = {
    TO_DEVICE: "copy to device",
    FROM_DEVICE: "copy from device",
    ON_DEVICE: "copy on device",
}
_USUAL_SHARED = 48 << 10  # bytes of dynamic shared memory that need no permission


class Gpu:
    """Device number `ordinal` of a driver. It is a `devices.protocol.Device`, for threads too."""

    concurrent = True
    own_memory = True
    instructions = None
    remarks: tuple[str, ...] = ()

    def __init__(self, driver: Driver, target: str, ordinal: int | None = None):
        self.driver, self.target = driver, target
        count = driver.devices()
        if ordinal is not None and ordinal >= count:
            has = f"{count} device{'' if count == 1 else 's'}"
            raise MissingError(f"there is no {driver.NAME}:{ordinal}: {driver.PRODUCT} has {has}")
        found = [driver.architecture(number) for number in range(count)]
        numbers = range(count) if ordinal is None else [ordinal]
        fitting = [number for number in numbers if driver.runs(found[number], target)]
        if not fitting:
            named = ", ".join(f"{driver.NAME}:{number} is {found[number]}" for number in numbers)
            raise MissingError(
                f"no device runs code for {target}: {named or 'there is no device'}",
                hint="compile for the device: --target, or FLY_TARGET"
                if named
                else f"{driver.PRODUCT} is there, but sees no device",
            )
        self.ordinal = fitting[0]
        self.architecture = found[self.ordinal]
        self.name = f"{driver.NAME}:{self.ordinal} ({driver.product(self.ordinal)})"
        self.context = Context(driver, self.ordinal)
        self._own: dict[int, str] = {}
        self._guard = threading.Lock()

    @property
    def place(self) -> tuple[str, int]:
        """Where tensors are that it sees, in torch's words: torch calls HIP's devices cuda."""
        return "cuda", self.ordinal

    # -- memory

    def alloc(self, nbytes: int, label: str = "") -> int:
        """See Device."""
        size = max(1, nbytes)
        made = ctypes.c_void_p()
        with self.context:
            status = self.driver.status("alloc", ctypes.byref(made), size)
            if status == OUT_OF_MEMORY:
                raise self._no_memory(size, label)
        if status:
            raise self.context.error("alloc", status, label)
        address = made.value or 0
        try:
            self.context.call("fill", address, 0, size, self._handle(None), doing=label)
        except FlyError:
            self.context.driver.status("free", address)
            raise
        with self._guard:
            self._own[address] = label
        return address

    def _no_memory(self, nbytes: int, label: str) -> MissingError:
        try:
            free, total = self.driver.free_memory()
            told = f"{free} of {total} bytes are free"
        except FlyError:
            told = None
        call = self.driver.CALLS["alloc"].name
        text = self.driver.text(OUT_OF_MEMORY)
        what = f" for {label}" if label else ""
        return MissingError(
            f"there is no memory for {nbytes} bytes{what}: {call} failed: {text}", hint=told
        )

    def free(self, address: int) -> None:
        """See Device. UsageError for an address that `alloc` did not return."""
        with self._guard:
            if address not in self._own:
                raise UsageError(f"no memory was allocated at 0x{address:x}")
            del self._own[address]
        self.context.call("free", address)

    def copy(
        self,
        destination: int,
        source: int,
        nbytes: int,
        direction: str,
        stream: Stream | None = None,
    ) -> None:
        """See Device. The host's memory must stay until the stream is synchronized."""
        if nbytes:
            handle = self._handle(stream)
            self.context.call(_COPIES[direction], destination, source, nbytes, handle)

    def adopt(self, pointer: int, nbytes: int, *, writable: bool = True, label: str = "") -> int:
        """See Device."""
        raise MissingError(
            f"{self.name} does not see host memory",
            hint="allocate memory of the device, and copy: alloc, copy",
        )

    def adopt_all(self, spans: Sequence[tuple[str, int, int, bool]]) -> list[int]:
        """See Device."""
        return [
            self.adopt(at, size, writable=write, label=label) for label, at, size, write in spans
        ]

    def release(self, address: int) -> None:
        """See Device."""
        raise UsageError(f"no buffer begins at 0x{address:x}")

    def release_all(self, addresses: Sequence[int]) -> None:
        """See Device."""
        for address in addresses:
            self.release(address)

    # -- code

    def load(self, image: Image) -> GpuModule:
        """See Device."""
        if not self.driver.runs(self.architecture, image.target):
            raise InputError(
                f"the code is for {image.target}, but {self.name} is {self.architecture}",
                hint="compile for the device: --target, or FLY_TARGET",
            )
        return GpuModule(self.context, image, self.architecture)

    def launch(
        self,
        function: Function,
        grid: Triple,
        block: Triple,
        packed: bytes,
        shared: int = 0,
        stream: Stream | None = None,
        cluster: Triple | None = None,
    ) -> None:
        """See Device."""
        assert isinstance(function, GpuFunction)
        if 0 in grid:
            return
        name = function.interface.name
        if shared + function.interface.shared_bytes > _USUAL_SHARED:
            function.allow_shared()
        content = ctypes.create_string_buffer(packed, max(1, len(packed)))
        size = ctypes.c_size_t(len(packed))
        words = (
            _BUFFER_POINTER,
            ctypes.addressof(content),
            _BUFFER_SIZE,
            ctypes.addressof(size),
            self.driver.END,
        )
        extra = (ctypes.c_void_p * 5)(*words)
        # A kernel without arguments gets no buffer.
        given = ctypes.addressof(extra) if packed else None
        handle = self._handle(stream)
        dependent = is_dependent(function.interface)
        role = self.driver.extended_launch() if dependent or cluster else None
        if role is None and cluster:
            raise UsageError(
                f"{self.driver.PRODUCT} launches no clusters that a kernel does not say"
            )
        if role is not None:
            made, _attributes = configuration(grid, block, shared, handle, dependent, cluster)
            told = ctypes.addressof(made)
            self.context.call(role, told, function.handle, None, given, kernel=name)
        else:
            self.context.call(
                "launch", function.handle, *grid, *block, shared, handle, None, given,
                kernel=name,
            )  # fmt: skip
        self.context.launched(name)

    def describe(self, tile: Tile) -> bytes:
        """See Device."""
        with self.context:
            return self.driver.describe(tile)

    def driver_entry(self, functions: Sequence[Function]) -> DriverEntry:
        """See Device."""
        from fly_run.devices.gpu.entry import entry_of

        mine = [one for one in functions if isinstance(one, GpuFunction)]
        assert len(mine) == len(functions)
        return entry_of(self.context, mine, self.current_stream())

    def current_stream(self) -> Callable[[], int] | None:
        """What tells torch's current stream of this device; None without torch's GPU part."""
        torch: Any = sys.modules.get("torch")
        told = getattr(getattr(torch, "_C", None), "_cuda_getCurrentRawStream", None)
        return None if told is None else functools.partial(told, self.ordinal)

    # -- order

    def _handle(self, stream: object) -> int | None:
        """A stream's handle; None for the driver's default stream. Work without a stream goes to
        the current one of torch."""
        if stream is None:
            current = self.current_stream()
            return current() or None if current is not None else None
        return handle_of(stream) or None

    def stream(self) -> GpuStream:
        """See Device."""
        return GpuStream(self.context)

    def event(self, stream: Stream | None = None) -> GpuEvent:
        """See Device."""
        return GpuEvent(self.context, self._handle(stream) or 0)

    def elapsed(self, start: Any, end: Any) -> float:
        """See Device."""
        milliseconds = ctypes.c_float()
        self.context.call("elapsed", ctypes.byref(milliseconds), start.handle, end.handle)
        return milliseconds.value / 1000

    def synchronize(self, what: Any = None) -> None:
        """See Device."""
        if what is None:
            self.context.call("wait")
            self.context.waited()
        elif isinstance(what, GpuEvent):
            self.context.call("wait for event", what.handle)
        else:
            self.context.call("wait for stream", handle_of(what) or None)

    def limits(self) -> dict[str, float]:
        """What the device can do at most in a second: bytes, flops; see `Driver.limits`."""
        return self.driver.limits(self.ordinal)

    def close(self) -> None:
        """See Device. The context stays as long as something of it is held."""
        with self._guard:
            own, self._own = list(self._own), {}
        if not own:
            return
        with self.context:
            self.driver.status("wait")
            for address in own:
                self.driver.status("free", address)


_drivers: dict[type[Driver], Driver] = {}
_opening = threading.Lock()


def driver(kind: type[Driver]) -> Driver:
    """The process's driver of a kind. MissingError if there is none."""
    with _opening:
        found = _drivers.get(kind)
        if found is None:
            library = drivers.find(kind.LIBRARIES)
            if library is None:
                names = ", ".join(kind.LIBRARIES)
                raise MissingError(f"{kind.PRODUCT} is not here: no {names}", hint=kind.MISSING)
            found = _drivers[kind] = kind(library)
        return found


def open_gpu(kind: type[Driver], target: str, options: Options, ordinal: int | None) -> Gpu:
    """Opens a device of a driver. UsageError for options that only the emulator has."""
    option = options.emulators
    if option is not None:
        others = "the emulator and of cpu" if options.strict else "the emulator"
        raise UsageError(
            f"{option} is an option of {others}, which {kind.NAME} does not have",
            hint=f"add --device {'cpu' if options.strict and kind.NAME == 'cuda' else 'emulator'}",
        )
    return Gpu(driver(kind), target, ordinal)
