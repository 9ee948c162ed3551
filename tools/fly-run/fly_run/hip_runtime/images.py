"""Code objects at an address: ELF files, clang's bundles, and the wrapper that compilers embed.

`hipModuleLoadData` gets an address without a size. The size follows from the headers.
"""

from __future__ import annotations

import ctypes
import struct

from fly_run.hip_runtime.errors import Failure, need

ELF = b"\x7fELF"
BUNDLE = b"__CLANG_OFFLOAD_BUNDLE__"
COMPRESSED = b"CCOB"
WRAPPER = b"FPIH"  # 0x48495046: version, pointer to a bundle, a null pointer
PROCESSOR = "amdgcn-amd-amdhsa--"
NO_BITS = 8  # SHT_NOBITS
MOST = 1 << 32  # bytes; more is a damaged header


def code_at(address: int, target: str) -> bytes:
    """Returns the code object at an address: itself, or the one for `target` in a bundle.
    hipErrorInvalidImage if there is none, hipErrorNoBinaryForGpu if none is for the target."""
    need(address, reason="a null pointer")
    if ctypes.string_at(address, 4) == WRAPPER:
        address = ctypes.c_uint64.from_address(address + 8).value
        need(address, "hipErrorInvalidImage", "the wrapper holds no bundle")
    begins = ctypes.string_at(address, 4)
    if begins == ELF:
        return ctypes.string_at(address, elf_size(address))
    need(begins != COMPRESSED, "hipErrorNotSupported", "a compressed bundle")
    need(begins == BUNDLE[:4], "hipErrorInvalidImage", f"it begins with {begins!r}")
    need(ctypes.string_at(address, len(BUNDLE)) == BUNDLE, "hipErrorInvalidImage")
    found = []
    (count,) = struct.unpack("<Q", ctypes.string_at(address + 24, 8))
    need(count < 1 << 16, "hipErrorInvalidImage", f"{count} entries")
    at = address + 32
    for _ in range(count):
        offset, size, length = struct.unpack("<QQQ", ctypes.string_at(at, 24))
        need(max(offset, size, length) < MOST, "hipErrorInvalidImage", "a damaged bundle")
        name = ctypes.string_at(at + 24, length).decode(errors="replace")
        at += 24 + length
        chip = name.partition(PROCESSOR)[2].partition(":")[0]
        if chip == target:
            return ctypes.string_at(address + offset, size)
        found.append(name)
    raise Failure("hipErrorNoBinaryForGpu", f"{target}; the bundle has {', '.join(found)}")


def elf_size(address: int) -> int:
    """Returns the size of the 64-bit ELF file at an address."""
    header = struct.unpack("<16sHHIQQQIHHHHHH", ctypes.string_at(address, 64))
    need(header[0][4:6] == b"\x02\x01", "hipErrorInvalidImage", "not a little-endian ELF64 file")
    segments, sections = header[5], header[6]
    segment_size, segment_count, section_size, section_count = header[9:13]
    need(max(segments, sections) < MOST, "hipErrorInvalidImage", "damaged ELF headers")
    size = max(64, segments + segment_size * segment_count, sections + section_size * section_count)
    for number in range(segment_count):
        _, _, offset, _, _, length = struct.unpack(
            "<IIQQQQ", ctypes.string_at(address + segments + number * segment_size, 40)
        )
        size = max(size, offset + length)
    for number in range(section_count):
        _, kind, _, _, offset, length = struct.unpack(
            "<IIQQQQ", ctypes.string_at(address + sections + number * section_size, 40)
        )
        size = max(size, offset + length * (kind != NO_BITS))
    need(size < MOST, "hipErrorInvalidImage", "damaged ELF headers")
    return size
