"""Attributes of a cubin's kernels: the sections `.nv.info` and `.nv.info.<kernel>`.

NVIDIA does not document them. The encoding is that of public readers (CuAssembler, cubin tools of
Mesa's NAK), verified with cubins of ptxas 13.0: an attribute is a byte for its form, a byte for its
number, and 16 bits: a value, or in form 4 the number of bytes that follow.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from fly_common.errors import InputError

_HEAD = struct.Struct("<BBH")
_SIZED = 4  # the form of attributes with data behind them

# Numbers of attributes (EIATTR).
MAX_THREADS = 0x05
REQUIRED_THREADS = 0x10
FRAME_SIZE = 0x11
PARAMETER = 0x17
PARAMETER_BYTES = 0x19
REGISTERS = 0x2F
CLUSTER = 0x3D
BARRIERS = 0x4C


@dataclass(frozen=True)
class Attribute:
    """`value` holds the 16 bits of an attribute without data, or its data."""

    number: int
    value: bytes

    def words(self, count: int) -> tuple[int, ...]:
        """Returns the first `count` 32-bit words of the data."""
        if len(self.value) < 4 * count:
            raise InputError(
                f"the attribute 0x{self.number:02x} of .nv.info has {len(self.value)} bytes"
            )
        return struct.unpack_from(f"<{count}I", self.value)


def read(data: bytes) -> list[Attribute]:
    """Returns the attributes in a section. Raises InputError if it is damaged."""
    found: list[Attribute] = []
    at = 0
    while at < len(data):
        if at + _HEAD.size > len(data):
            raise InputError("a section .nv.info is truncated")
        form, number, value = _HEAD.unpack_from(data, at)
        at += _HEAD.size
        if form == _SIZED:
            if at + value > len(data):
                raise InputError("a section .nv.info is truncated")
            found.append(Attribute(number, data[at : at + value]))
            at += value
        else:
            found.append(Attribute(number, value.to_bytes(2, "little")))
    return found


def parameters(attributes: list[Attribute]) -> list[tuple[int, int]]:
    """Returns offset and size of each parameter of a kernel, in order."""
    found: dict[int, tuple[int, int]] = {}
    for one in attributes:
        if one.number == PARAMETER:
            _, place, size = one.words(3)
            found[place & 0xFFFF] = place >> 16, size >> 18
    return [found[ordinal] for ordinal in sorted(found)]


def number(attributes: list[Attribute], wanted: int) -> int | None:
    """Returns the 16-bit value of an attribute; None if it is absent."""
    values = (one.value for one in attributes if one.number == wanted)
    value = next(values, None)
    return None if value is None else int.from_bytes(value[:2], "little")


def triple(attributes: list[Attribute], wanted: int) -> tuple[int, int, int] | None:
    """Returns the three words of an attribute; None if it is absent."""
    found = next((one for one in attributes if one.number == wanted), None)
    if found is None:
        return None
    x, y, z = found.words(3)
    return x, y, z


def of_symbols(attributes: list[Attribute], wanted: int) -> dict[int, int]:
    """Returns the values of an attribute by the number of the symbol that it is for."""
    found = (one.words(2) for one in attributes if one.number == wanted)
    return {words[0]: words[1] for words in found}
