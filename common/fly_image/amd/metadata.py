"""Reads the metadata note of AMD GPU code objects, and checks its fields.

Source: LLVM's "User Guide for AMDGPU Backend", "Code Object V5 Metadata".
"""

from __future__ import annotations

import struct
from typing import Any

from fly_common.errors import InputError

from fly_image.elf import SHT_NOTE, Elf

NOTE_METADATA = 32  # NT_AMDGPU_METADATA


def metadata(elf: Elf) -> dict[str, Any]:
    """Returns the metadata of an object or a code object, as described by LLVM's AMDGPU guide
    ("Code Object V6 Metadata"). Raises InputError if it is missing or malformed."""
    for section in elf.sections:
        if section.type == SHT_NOTE:
            found = _note(section.data)
            if found is not None:
                return _unpack(found)
    raise InputError(
        "the code object has no AMD GPU metadata (a note of type 32)",
        hint="link with fly-link or ld.lld -shared, and do not strip notes",
    )


def _note(data: bytes) -> bytes | None:
    """Returns the contents of the metadata note. A note consists of the sizes of name and contents,
    a type, the name and the contents; the last two are padded to 4 bytes."""
    at = 0
    while at + 12 <= len(data):
        name_size, size, type = struct.unpack_from("<III", data, at)
        start = at + 12 + (name_size + 3 & ~3)
        if start + size > len(data):
            raise InputError("a note extends past the end of its section")
        name = data[at + 12 : at + 12 + name_size].rstrip(b"\0")
        if type == NOTE_METADATA and name == b"AMDGPU":
            return data[start : start + size]
        at = start + (size + 3 & ~3)
    return None


def _unpack(data: bytes) -> dict[str, Any]:
    import msgpack

    try:
        made = msgpack.unpackb(data, strict_map_key=True)
    except (ValueError, msgpack.UnpackException, RecursionError) as error:
        reason = str(error) or type(error).__name__
        raise InputError(f"the metadata is damaged: {reason}") from None
    return as_map(made, "the metadata")


def as_map(value: Any, what: str) -> dict[str, Any]:
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        raise InputError(f"the metadata is damaged: {what} is not a map")
    return value


def as_list(value: Any, what: str) -> list[Any]:
    if not isinstance(value, list):
        raise InputError(f"the metadata is damaged: {what} is not a list")
    return value


def number(
    source: dict[str, Any], key: str, most: int, default: int | None = None, least: int = 0
) -> int:
    value = source.get(key, default)
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise InputError(f"the metadata is damaged: {key} is {shown(value)}")
    return value


def word(source: dict[str, Any], key: str, default: str | None = None) -> str:
    value = source.get(key, default)
    if not isinstance(value, str):
        raise InputError(f"the metadata is damaged: {key} is {shown(value)}")
    return value


def shown(value: Any) -> str:
    text = "missing" if value is None else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
