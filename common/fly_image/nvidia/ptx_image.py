"""PTX as an image, which the driver compiles for the GPU that it finds.

Implements `fly_image.image`. Kernels and limits are those that the text declares; registers and
spills are only known when it has been compiled.
"""

from __future__ import annotations

import functools
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import Any

from fly_common.errors import InputError, Place
from fly_host.program import Program
from fly_host.section import SECTION

from fly_image.image import Image, find_kernel
from fly_image.nvidia import entries, ptx
from fly_image.nvidia.kernel import Argument, Kernel
from fly_image.nvidia.program import read_program
from fly_image.nvidia.resources import Resources


@dataclass(frozen=True)
class PtxImage:
    """See `fly_image.image.Image`. `sections` are those in the text's comments."""

    data: bytes
    target: str
    kernels: dict[str, Kernel]
    program: Program | None
    sections: dict[str, bytes]

    def kernel(self, name: str | None) -> Kernel:
        """See `Image`."""
        return find_kernel(self.kernels, name)

    @functools.cached_property
    def digest(self) -> str:
        return sha256(self.data).hexdigest()

    @property
    def variant(self) -> str:
        return f"PTX for {self.target}"

    def document(self) -> dict[str, Any]:
        """See `Image`."""
        return {
            "format": "ptx",
            "target": self.target,
            "size": len(self.data),
            "kernels": [asdict(kernel) for kernel in self.kernels.values()],
        }

    @functools.cached_property
    def code(self) -> str:
        """The text without comments."""
        return entries.without_comments(self.data.decode(errors="replace"))

    def same_code(self, other: Image) -> bool:
        """See `Image`. Compares the text without comments and white space."""
        return isinstance(other, PtxImage) and other.code.split() == self.code.split()

    def line(self, pc: int) -> Place | None:
        """See `Image`. Text has no addresses."""
        return None


def read(data: bytes, name: str = "<stdin>") -> PtxImage:
    """Parses PTX. Raises InputError, located at `name`, if it is invalid."""
    try:
        return _parse(data)
    except InputError as error:
        error.place = error.place or Place(name)
        raise


def _parse(data: bytes) -> PtxImage:
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise InputError(f"byte {error.start} is not UTF-8: this is not PTX") from None
    held = ptx.sections(text)
    code = entries.without_comments(text)
    target = entries.target(code)
    if target is None:
        raise InputError("the PTX names no .target")
    # A variable of a module counts for each kernel, as if all used it: an upper bound.
    shared = entries.shared_bytes(code)
    kernels = {one.name: _kernel(one, shared) for one in entries.entries(code)}
    if not kernels:
        raise InputError("the PTX contains no kernel")
    program = read_program(held.get(SECTION, b""), target, kernels)
    return PtxImage(data, target, kernels, program, held)


def _kernel(entry: entries.Entry, shared: int) -> Kernel:
    return Kernel(
        name=entry.name,
        arguments=tuple(map(Argument.of, entry.parameters)),
        argument_bytes=entry.argument_bytes,
        shared_bytes=shared,
        max_threads=entry.max_threads,
        required_block=entry.required_block,
        resources=Resources(),
        cluster=entry.cluster,
        dependent=entry.dependent,
    )
