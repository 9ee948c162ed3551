"""What runs kernels: the protocol of devices.

    module = device.load(image)                          code, in the device's memory
    function = module.function("saxpy_kernel")           a kernel, ready to launch
    a = device.adopt(pointer, nbytes, label="A")         host memory that the device can see, or
    b = device.alloc(nbytes); device.copy(b, pointer, nbytes, TO_DEVICE)
    device.launch(function, grid, block, packed, shared)
    device.synchronize()
    device.release(a); device.free(b)

Addresses are integers, of the device's address space or of the host's. Packed arguments hold device
addresses already. Errors of a kernel while it runs are fly_common.errors.Fault, raised by `launch`
or by the `synchronize` after it. A built-in device implements this the way one from outside does
(`registry`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from fly_image.image import Image, KernelInterface

if TYPE_CHECKING:
    from fly_host.native.specialisation import DriverEntry

Triple = tuple[int, int, int]

# What `copy` copies.
TO_DEVICE, FROM_DEVICE, ON_DEVICE = "to device", "from device", "on device"


class Function(Protocol):
    """A kernel of a module that is loaded. It is good as long as its module."""

    @property
    def interface(self) -> KernelInterface: ...


class Module(Protocol):
    """An image that a device has loaded."""

    @property
    def image(self) -> Image: ...

    def function(self, name: str | None) -> Function:
        """The kernel `name`; for None the only one. InputError for a kernel that is not there, or
        that the device can't run. The same function each time."""
        ...

    def unload(self) -> None:
        """Gives the module's memory back. Its functions are gone."""
        ...


class Stream(Protocol):
    """Work in order. Work of different streams is in no order."""


class Event(Protocol):
    """A moment in a stream."""


class Device(Protocol):
    """A GPU, or what stands for one, that runs images for `target`.

    `name` is shown to users. `concurrent` tells whether threads may use it at the same time: with
    one that is not, they take turns (`fly_run.launch.runtime`). `instructions` counts the wave
    instructions executed so far, None where the device can't tell.
    """

    name: str
    target: str
    concurrent: bool

    @property
    def instructions(self) -> int | None: ...

    @property
    def remarks(self) -> tuple[str, ...]:
        """What users should know of how the launches so far were computed, a line each."""
        ...

    def load(self, image: Image) -> Module:
        """InputError for an image that is not for this device."""
        ...

    def alloc(self, nbytes: int, label: str = "") -> int:
        """Memory of the device's own, zeroed; its address. `label` is what faults call it."""
        ...

    def free(self, address: int) -> None:
        """Gives back what `alloc` gave."""
        ...

    def copy(
        self,
        destination: int,
        source: int,
        nbytes: int,
        direction: str,
        stream: Stream | None = None,
    ) -> None:
        """Copies bytes: TO_DEVICE from a host address to the device's, FROM_DEVICE back, ON_DEVICE
        within the device. In order with the stream's other work."""
        ...

    def adopt(self, pointer: int, nbytes: int, *, writable: bool = True, label: str = "") -> int:
        """Makes `nbytes` bytes of host memory from the address `pointer` on visible to kernels, and
        returns their device address. The memory must live until `release`. A device that can't see
        host memory raises MissingError: it wants `alloc` and `copy`."""
        ...

    def release(self, address: int) -> None:
        """Ends what `adopt` began. The memory stays."""
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
    ) -> None:
        """Runs `grid` workgroups of `block` work items. `packed` holds the arguments at the offsets
        of the kernel's interface; what else the kernel finds there the device fills in. `shared` is
        the bytes of dynamic shared memory."""
        ...

    def driver_entry(self, functions: Sequence[Function]) -> DriverEntry | None:
        """What native code launches these functions by, one for each launch of a program, with
        tensors that the device sees where they are; None where launches go through `launch`."""
        ...

    def stream(self) -> Stream:
        """A stream of the caller's own. Without one, work is in the device's default stream."""
        ...

    def event(self, stream: Stream | None = None) -> Event:
        """An event, recorded behind what the stream was given so far."""
        ...

    def elapsed(self, start: Event, end: Event) -> float:
        """Seconds between two events; both must be over."""
        ...

    def synchronize(self, what: Stream | Event | None = None) -> None:
        """Returns when a stream's work, or that before an event, has ended; for None all work. Host
        memory that was adopted holds the results then."""
        ...

    def close(self) -> None:
        """Gives back all memory. The device is not used any more."""
        ...
