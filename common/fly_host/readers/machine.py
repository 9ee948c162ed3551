"""What a host program runs on: the protocol between the readers of programs and a device.

A tensor is whatever the machine takes for one (an array, a piece of device memory); readers only
hand it on. Extents, strides and offsets are in elements.
"""

from __future__ import annotations

from typing import Any, Protocol

from fly_host.program import Buffer, Call, Launch, Triple
from fly_host.readers.values import Extents

Tensor = Any  # the machine's own


class Services(Protocol):
    """What native code leaves to Python: library calls, and the words for what is refused behind
    the first step."""

    def allocate(
        self, buffer: Buffer, shape: tuple[int, ...], strides: tuple[int, ...], elements: int
    ) -> Tensor:
        """A new tensor with room for `elements` elements, which are not initialised."""
        ...

    def look_at(
        self,
        launch: Launch,
        grid: Triple,
        block: Triple,
        shared: int,
        integers: list[list[int | None]],
    ) -> None:
        """Raises what `launch` would raise for these sizes and for these integers among the
        arguments (None for other words). It is asked before anything runs."""
        ...

    def call(
        self, call: Call, arguments: list[Any], keywords: dict[str, Any]
    ) -> tuple[Tensor, ...]:
        """Calls a library function; the tensors that it returns, as many as `call.results`."""
        ...

    def check_made(
        self, buffer: Buffer, tensor: Tensor, shape: tuple[int, ...], strides: tuple[int, ...]
    ) -> None:
        """InputError where a library call returned another tensor than its shape rule says."""
        ...


class Machine(Services, Protocol):
    """Allocates, launches, calls. Errors are the machine's; a reader lets them through."""

    def free(self, tensor: Tensor) -> None:
        """No later step uses the tensor."""
        ...

    def view(
        self, tensor: Tensor, shape: tuple[int, ...], strides: tuple[int, ...], offset: int
    ) -> Tensor:
        """Elements of a tensor."""
        ...

    def extents(self, tensor: Tensor) -> Extents:
        """The shape and strides of a tensor."""
        ...

    def launch(
        self,
        launch: Launch,
        grid: Triple,
        block: Triple,
        shared: int,
        arguments: list[list[Any]],
        stream: Any,
    ) -> None:
        """Launches a kernel. `arguments` holds a value for each word of `launch.arguments`: an
        integer, a scalar argument, for a pointer (tensor, offset in bytes), or for a descriptor
        (tensor, shape, strides), as in its `TileDescriptor`. `stream` is what the
        caller gave for the launch's stream; None is the current one."""
        ...
