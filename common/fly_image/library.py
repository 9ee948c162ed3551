"""Shared libraries of `fly-link --host shared`: the images that they hold, in the section
`.fly.images`. Their host functions are for processes without Python; here the images are read.

The section: the magic number, the number of images, then offset and size of each from the section's
beginning, all in 64 bits, then the images, each followed by a zero.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from fly_common import artifact
from fly_common.errors import InputError, Place

from fly_image.elf import Elf
from fly_image.image import Image

SECTION = ".fly.images"
MAGIC = b"FLYLIB\0\1"
ALIGNMENT = 64


def packed(images: Sequence[bytes]) -> tuple[bytes, list[int]]:
    """The section, and where each image is in it."""
    at = -(-(16 + 16 * len(images)) // ALIGNMENT) * ALIGNMENT
    places: list[int] = []
    for image in images:
        places.append(at)
        at += -(-(len(image) + 1) // ALIGNMENT) * ALIGNMENT
    content = bytearray(at)
    struct.pack_into("<8sQ", content, 0, MAGIC, len(images))
    for number, (place, image) in enumerate(zip(places, images, strict=True)):
        struct.pack_into("<QQ", content, 16 + 16 * number, place, len(image))
        content[place : place + len(image)] = image
    return bytes(content), places


def images(data: bytes, name: str = "<stdin>") -> list[Image]:
    """The images of a library. InputError for another ELF file, and for damaged data."""
    try:
        section = Elf.parse(data).section(SECTION)
    except InputError as error:
        raise InputError(error.message, place=Place(name), hint=error.hint) from None
    if section is None:
        artifact.refuse(artifact.identify(data), artifact.HSACO, name)
    content = section.data
    if content[:8] != MAGIC or len(content) < 16:
        raise InputError("the library's images can't be read", place=Place(name))
    (count,) = struct.unpack_from("<Q", content, 8)
    found: list[Image] = []
    for number in range(min(count, len(content) // 16)):
        if 32 + 16 * number > len(content):
            break
        at, size = struct.unpack_from("<QQ", content, 16 + 16 * number)
        if at + size > len(content):
            raise InputError("the library's images are damaged", place=Place(name))
        found.append(_image(content[at : at + size], name))
    if not found:
        raise InputError("the library holds no image", place=Place(name))
    return found


def _image(data: bytes, name: str) -> Image:
    """An image by its own format; a library holds no library."""
    import fly_image

    if artifact.identify(data) not in (artifact.HSACO, artifact.CUBIN, artifact.PTX):
        raise InputError("the library's images are damaged", place=Place(name))
    return fly_image.read(data, name)


def read(data: bytes, name: str = "<stdin>") -> Image:
    """The first image of a library."""
    return images(data, name)[0]
