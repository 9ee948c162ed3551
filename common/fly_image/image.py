"""The interface of an image: all that binding and launching know of one.

Formats implement these protocols (`fly_image.amd.code_object` does). What only one vendor has, as
AMD's hidden arguments and register counts, is in its own types, for the devices of that vendor.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeVar

from fly_common.errors import InputError, Place
from fly_host.program import Program

Triple = tuple[int, int, int]

# What a caller gives for an argument. Anything else in `Argument.kind` is the format's own word for
# what launchers can't pass.
POINTER = "pointer"  # the device address of global memory
VALUE = "value"  # bytes as they are
SHARED = "shared"  # an offset into shared memory (AMD: LDS), of a dynamic array


class Argument(Protocol):
    """An argument that the caller gives: `size` bytes at `offset` of the packed arguments. `name`
    and `type_name` are as in the source, "" where the image does not say. `description` is how the
    format calls it, for messages: "a global_buffer (float*)"."""

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
    """A kernel as a launch sees it.

    `argument_bytes` is the size of the packed arguments. `shared_bytes` of shared memory belong to
    each workgroup, beside what a launch adds. A workgroup has at most `max_threads` work items, and
    is `required_block` where that is not None.
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

    def details(self) -> list[tuple[str, str]]:
        """Registers, memory and limits in the vendor's words: (label, text) rows for people."""
        ...

    def argument_rows(self) -> list[tuple[int, int, str]]:
        """All that the packed arguments hold, hidden ones too: offset, size, description."""
        ...


class Image(Protocol):
    """Linked kernels for one target. `digest` tells images apart by content."""

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
        """The kernel `name`; for None the only one. InputError lists what there is."""
        ...

    def document(self) -> dict[str, Any]:
        """What the image holds, but for its program, as data for JSON."""
        ...

    def same_code(self, other: Image) -> bool:
        """Whether another image has the same machine code at the same places."""
        ...

    def line(self, pc: int) -> Place | None:
        """The source line of the instruction at an address, as the image counts them; None where
        the image does not say."""
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
