"""The formats of images, told by content.

A format is a row: what its first bytes look like, and the function that reads it, as
"module:function", imported when a file is one. Formats from outside are entry points of the group
`fly.images`, each a `Format`; they are looked at only for a file that no row here knows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fly_common import artifact
from fly_common.resolve import entry_points, resolve

from fly_image.elf import EM_AMDGPU
from fly_image.image import Image

GROUP = "fly.images"


@dataclass(frozen=True)
class Format:
    """`recognises` looks at a file's first bytes. `reader` names a function of (data, name) that
    gives the Image, or raises InputError with `name` as the place."""

    name: str
    recognises: Callable[[bytes], bool]
    reader: str


def _is_elf_for(machine: int) -> Callable[[bytes], bool]:
    """A file that is cut off before it names its machine counts: the reader says that it is."""
    mark = machine.to_bytes(2, "little")
    return lambda data: data[:4] == b"\x7fELF" and data[18:20] in (mark, mark[:1], b"")


FORMATS: tuple[Format, ...] = (
    Format("AMD code object", _is_elf_for(EM_AMDGPU), "fly_image.amd.code_object:read"),
)


def read(data: bytes, name: str = "<stdin>") -> Image:
    """The image in `data`. InputError, with `name` as its place, says what is wrong with it, or
    what it is instead of an image."""
    for known in FORMATS:
        if known.recognises(data):
            return resolve(known.reader)(data, name)
    for found in entry_points(GROUP):
        guest: Format = found.load()
        if guest.recognises(data):
            return resolve(guest.reader)(data, name)
    artifact.refuse(artifact.identify(data), artifact.HSACO, name)
