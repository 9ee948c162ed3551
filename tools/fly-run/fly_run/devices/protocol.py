"""The protocol of devices, which run kernels.

    module = device.load(image)                          loads code into the device's memory
    function = module.function("saxpy_kernel")           returns a kernel, ready to launch
    a = device.adopt(pointer, nbytes, label="A")         maps host memory into the device, or
    b = device.alloc(nbytes); device.copy(b, pointer, nbytes, TO_DEVICE)
    device.launch(function, grid, block, packed, shared)
    device.synchronize()
    device.release(a); device.free(b)

Addresses are integers, in the device's address space or the host's. Packed arguments contain
device addresses. Errors of a running kernel are fly_common.errors.Fault, raised by `launch` or by
the following `synchronize`. Built-in devices and those of other packages implement the same
protocol (`registry`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from fly_host.tiles import Tile
from fly_image.image import Image, KernelInterface

if TYPE_CHECKING:
    from fly_host.native.specialisation import DriverEntry

Triple = tuple[int, int, int]

# Directions of `copy`.
TO_DEVICE, FROM_DEVICE, ON_DEVICE = "to device", "from device", "on device"


class Function(Protocol):
    """A kernel of a loaded module. Valid as long as its module."""

    @property
    def interface(self) -> KernelInterface: ...
    @property
    def module(self) -> object:
        """The `Module` that it is of."""
        ...


class Variable(Protocol):
    """A variable of a loaded module in global memory: `nbytes` bytes at the device's `address`.
    Valid as long as its module. The caller waits for kernels that use it."""

    @property
    def address(self) -> int: ...
    @property
    def nbytes(self) -> int: ...

    def read(self, nbytes: int | None = None) -> bytes:
        """Returns the first `nbytes` bytes; all of them for None."""
        ...

    def write(self, data: bytes) -> None:
        """Overwrites the first bytes. InputError if there are not so many."""
        ...

    def clear(self, nbytes: int | None = None) -> None:
        """Sets the first `nbytes` bytes to zero; all of them for None."""
        ...


class Module(Protocol):
    """An image that a device has loaded."""

    @property
    def image(self) -> Image: ...

    def function(self, name: str | None) -> Function:
        """Returns the kernel `name`; for None the only one. InputError if the kernel does not exist
        or the device can't run it. Returns the same object each time."""
        ...

    def variable(self, name: str) -> Variable | None:
        """Returns the variable `name` of global memory, which the module exports; None if there is
        none. MissingError if the device can't tell."""
        ...

    def unload(self) -> None:
        """Frees the module's memory. Its functions become invalid."""
        ...


class Stream(Protocol):
    """A sequence of work that runs in order. Different streams are unordered."""


class Event(Protocol):
    """A point in a stream."""


class Device(Protocol):
    """A GPU, or an emulation of one, that runs images for `target`.

    `name` is shown to users. `concurrent` tells whether threads may use the device simultaneously;
    otherwise they take turns (`fly_run.launch.runtime`). `own_memory` tells that kernels see the
    device's memory only: `adopt` refuses host memory, and `place` is where tensors are that need no
    copy, as torch calls it. `instructions` counts the wave instructions executed so far; None if
    the device does not count them.
    """

    name: str
    target: str
    concurrent: bool
    own_memory: bool

    @property
    def place(self) -> tuple[str, int] | None:
        """("cuda", 0), or None for a device of host memory."""
        ...

    @property
    def instructions(self) -> int | None: ...

    @property
    def remarks(self) -> tuple[str, ...]:
        """Remarks for users on how the launches so far were computed, one line each."""
        ...

    def load(self, image: Image) -> Module:
        """Loads an image. InputError if it is not for this device."""
        ...

    def alloc(self, nbytes: int, label: str = "") -> int:
        """Allocates zeroed device memory and returns its address. Faults refer to it by `label`."""
        ...

    def free(self, address: int) -> None:
        """Frees memory that `alloc` returned."""
        ...

    def copy(
        self,
        destination: int,
        source: int,
        nbytes: int,
        direction: str,
        stream: Stream | None = None,
    ) -> None:
        """Copies bytes: TO_DEVICE from a host address to the device, FROM_DEVICE back, ON_DEVICE
        within the device. Ordered with the stream's other work."""
        ...

    def adopt(self, pointer: int, nbytes: int, *, writable: bool = True, label: str = "") -> int:
        """Makes `nbytes` bytes of host memory at `pointer` accessible to kernels and returns their
        device address. The memory must live until `release`. A device that can't access host memory
        raises MissingError; use `alloc` and `copy` there."""
        ...

    def release(self, address: int) -> None:
        """Ends the mapping made by `adopt`. The host memory remains."""
        ...

    def adopt_all(self, spans: Sequence[tuple[str, int, int, bool]]) -> list[int]:
        """`adopt` for each span, as (label, pointer, nbytes, writable); the addresses."""
        ...

    def release_all(self, addresses: Sequence[int]) -> None:
        """`release` for each of these addresses."""
        ...

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
        """Runs `grid` workgroups of `block` work items. `packed` holds the arguments at the offsets
        of the kernel's interface; the device fills in the hidden ones. `shared` is the size in
        bytes of dynamic shared memory. `cluster` is the size of a cluster in workgroups, where the
        launch says it and not the kernel: only then is it passed, and a device that launches no
        such clusters raises UsageError."""
        ...

    def describe(self, tile: Tile) -> bytes:
        """Returns the descriptor of a tensor, of which kernels copy tiles. MissingError if the
        device has none."""
        ...

    def driver_entry(self, functions: Sequence[Function]) -> DriverEntry | None:
        """What native code launches these functions by, one for each launch of a program, with
        tensors that the device sees where they are; None where launches go through `launch`."""
        ...

    def stream(self) -> Stream:
        """Creates a stream. Work without a stream goes to the device's default stream."""
        ...

    def event(self, stream: Stream | None = None) -> Event:
        """Creates an event, recorded after the work submitted to the stream so far."""
        ...

    def elapsed(self, start: Event, end: Event) -> float:
        """Returns the seconds between two events, which must have completed."""
        ...

    def synchronize(self, what: Stream | Event | None = None) -> None:
        """Waits for a stream's work, or for the work before an event; for None, for all work.
        Afterwards adopted host memory holds the results."""
        ...

    def close(self) -> None:
        """Frees all memory. The device must not be used afterwards."""
        ...
