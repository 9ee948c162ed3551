"""The formats of images, detected by content.

A format is a row: a predicate on the first bytes of a file, and the function that reads it, as
"module:function", which is imported on first use. Other packages add formats by entry points of the
group `fly.images`, each a `Format`. They are searched only if no row here matches.
"""

from __future__ import annotations

from collections.abc import Callable

from fly_common import artifact
from fly_common.record import record
from fly_common.resolve import entry_points, resolve

from fly_image.elf import EM_AMDGPU, EM_CUDA, ET_DYN
from fly_image.image import Image

GROUP = "fly.images"
HOSTS = (62, 183)  # EM_X86_64, EM_AARCH64


@record
class Format:
    """`recognises` tests a file's first bytes. `reader` names a function of (data, name) that
    returns the Image, or raises InputError located at `name`."""

    name: str
    recognises: Callable[[bytes], bool]
    reader: str


def _is_elf_for(machine: int) -> Callable[[bytes], bool]:
    """Also accepts a file that is truncated before e_machine; the reader then reports that."""
    mark = machine.to_bytes(2, "little")
    return lambda data: data[:4] == b"\x7fELF" and data[18:20] in (mark, mark[:1], b"")


def _is_ptx(data: bytes) -> bool:
    return artifact.identify(data) == artifact.PTX


def is_library(data: bytes) -> bool:
    """Whether a file may be a library of fly-link: a shared object for a processor that has some.
    Other shared objects are refused where they are read."""
    header = int.from_bytes(data[16:18], "little"), int.from_bytes(data[18:20], "little")
    return data[:4] == b"\x7fELF" and header[0] == ET_DYN and header[1] in HOSTS


FORMATS: tuple[Format, ...] = (
    Format("AMD code object", _is_elf_for(EM_AMDGPU), "fly_image.amd.code_object:read"),
    Format("cubin", _is_elf_for(EM_CUDA), "fly_image.nvidia.cubin:read"),
    Format("library", is_library, "fly_image.library:read"),
    Format("PTX", _is_ptx, "fly_image.nvidia.ptx_image:read"),
)


def read(data: bytes, name: str = "<stdin>") -> Image:
    """Returns the image in `data`. Raises InputError, located at `name`, if it is invalid."""
    for known in FORMATS:
        if known.recognises(data):
            return resolve(known.reader)(data, name)
    for found in entry_points(GROUP):
        guest: Format = found.load()
        if guest.recognises(data):
            return resolve(guest.reader)(data, name)
    artifact.refuse(artifact.identify(data), artifact.HSACO, name)
