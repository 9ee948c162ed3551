"""The interface of an image, as used by binding and launching.

Formats implement these protocols (see `fly_image.amd.code_object`). What is specific to a vendor,
such as AMD's hidden arguments and register counts, is in that format's own types.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeVar

from fly_common.errors import InputError, Place
from fly_host.program import Program

Triple = tuple[int, int, int]

# The kinds of arguments that callers pass. Any other `Argument.kind` is the format's own name for
# an argument that launchers cannot pass.
POINTER = "pointer"  # the device address of global memory
VALUE = "value"  # bytes, unchanged
SHARED = "shared"  # the offset of a dynamic array in shared memory (AMD: LDS)


class Argument(Protocol):
    """An argument that the caller passes: `size` bytes at `offset` of the packed arguments. `name`
    and `type_name` are those in the source, or "" if the image does not record them. `description`
    is the format's own description, for messages: "a global_buffer (float*)"."""

    @property
    def name(self) -> str: ...
    @property
    def offset(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def kind(self) -> str: ...
    @property
    def type_name(self) -> str: ...
    @property
    def description(self) -> str: ...


class KernelInterface(Protocol):
    """A kernel, as needed to launch it.

    `argument_bytes` is the size of the packed arguments. `shared_bytes` is the static shared memory
    of a workgroup; a launch may add to it. A workgroup has at most `max_threads` work items, and
    exactly `required_block` if that is not None. `cluster` is the size of the clusters that the
    kernel was compiled for, of which grids are made; None if there are none.
    """

    @property
    def name(self) -> str: ...
    @property
    def arguments(self) -> Sequence[Argument]: ...
    @property
    def argument_bytes(self) -> int: ...
    @property
    def shared_bytes(self) -> int: ...
    @property
    def max_threads(self) -> int: ...
    @property
    def required_block(self) -> Triple | None: ...
    @property
    def cluster(self) -> Triple | None: ...

    def details(self) -> list[tuple[str, str]]:
        """Returns registers, memory and limits in the vendor's terms, as (label, text) rows."""
        ...

    def argument_rows(self) -> list[tuple[int, int, str]]:
        """Returns offset, size and description of all packed arguments, including hidden ones."""
        ...


class Image(Protocol):
    """Linked kernels for one target. `digest` identifies the image by its contents."""

    @property
    def data(self) -> bytes: ...
    @property
    def digest(self) -> str: ...
    @property
    def target(self) -> str: ...
    @property
    def kernels(self) -> Mapping[str, KernelInterface]: ...
    @property
    def program(self) -> Program | None: ...
    @property
    def variant(self) -> str:
        """The target with the features that the code was compiled for: "gfx942:xnack+"."""
        ...

    def kernel(self, name: str | None) -> KernelInterface:
        """Returns the kernel `name`, or with None the only one. InputError lists the kernels."""
        ...

    def document(self) -> dict[str, Any]:
        """Returns the image's contents except the program, as data for JSON."""
        ...

    def same_code(self, other: Image) -> bool:
        """Returns whether another image has the same machine code at the same addresses."""
        ...

    def line(self, pc: int) -> Place | None:
        """Returns the source line of the instruction at an address relative to the image, or None
        if the image does not record it."""
        ...


Kernel = TypeVar("Kernel", bound=KernelInterface)


def find_kernel(kernels: Mapping[str, Kernel], name: str | None) -> Kernel:
    """See `Image.kernel`."""
    if name is None and len(kernels) == 1:
        return next(iter(kernels.values()))
    if name is not None and name in kernels:
        return kernels[name]
    what = f"no kernel {name!r}" if name else "several kernels"
    listed = ", ".join(kernels) or "none at all"
    raise InputError(f"{what} in the code object", hint=f"its kernels: {listed}")
