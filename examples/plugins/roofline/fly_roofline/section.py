"""The section `.fly.roofline` of objects and images: the kernels' programs.

The section has a text for each compiled module, each ended by ";": compressed JSON as base64. The
machine pass adds it to the module's assembly; the linker appends the sections of several objects.

A kernel is a dictionary. Blocks are numbered in the order of the program, the entry is 0. Values
are numbered too; constants are lists of one number.

    kernel, target, wave   the name, the chip, the lanes of a wave
    unknown                why its counts are unknown, or ""
    values                 the number of values
    steps                  by block: [value, operation, bits, operands]
    ends                   by block: [], the next block, or [condition, yes, no]
    costs                  by block: a `Cost`, or null
    edges                  [block, block, cost]
"""

from __future__ import annotations

import base64
import binascii
import json
import zlib
from typing import TYPE_CHECKING, Any

from fly_common.errors import InputError
from fly_image.amd.code_object import CodeObject
from fly_image.elf import Elf

if TYPE_CHECKING:
    from fly_image.image import Image

NAME = ".fly.roofline"
_LINE = 1024  # characters of a directive


def assembly(kernels: list[dict[str, Any]]) -> str:
    """Returns the lines of LLVM IR that make the section."""
    packed = zlib.compress(json.dumps(kernels, separators=(",", ":")).encode(), 9)
    text = base64.b64encode(packed).decode() + ";"
    pieces = [text[at : at + _LINE] for at in range(0, len(text), _LINE)]
    lines = [rf".pushsection {NAME},\22\22,@progbits"]
    lines += [rf".ascii \22{piece}\22" for piece in pieces]
    lines.append(".popsection")
    return "".join(f'  module asm "{line}"\n' for line in lines)


def kernels_of(image: Image) -> dict[str, dict[str, Any]]:
    """Returns the kernels of an image by name; {} if it was made without the plugin."""
    if not isinstance(image, CodeObject):
        return {}
    section = Elf.parse(image.data).section(NAME)
    return {} if section is None else read(section.data)


def read(data: bytes) -> dict[str, dict[str, Any]]:
    """Returns the kernels of a section's bytes by name. InputError if they are damaged."""
    found: dict[str, dict[str, Any]] = {}
    try:
        for part in data.decode().split(";")[:-1]:
            for kernel in json.loads(zlib.decompress(base64.b64decode(part, validate=True))):
                found[kernel["kernel"]] = kernel
    except (ValueError, KeyError, TypeError, binascii.Error, zlib.error):
        raise InputError(f"the section {NAME} is damaged") from None
    return found
