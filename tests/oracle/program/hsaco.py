"""Reads code objects for the oracle: kernels and instructions from an AMDGPU ELF file.

Nothing here is shared with fly_common or fly_run: symbols are read from the file's own tables, the
instructions' text comes from the program `llvm-objdump`.
"""

from __future__ import annotations

import functools
import glob
import os
import re
import shutil
import struct
import subprocess
import tempfile
from dataclasses import dataclass, field

MACHINES = {
    0x3F: "gfx90a",
    0x4C: "gfx942",
    0x4F: "gfx950",
    0x41: "gfx1100",
    0x4E: "gfx1201",
    0x49: "gfx1250",
}


@dataclass(frozen=True)
class Line:
    """One instruction: its address, its text and its encoding (little-endian dwords)."""

    address: int
    text: str
    words: tuple[int, ...]

    @property
    def size(self) -> int:
        return 4 * len(self.words)


@dataclass(frozen=True)
class Kernel:
    """The kernel descriptor's fields that a launch needs (AMDGPUUsage, "Kernel Descriptor")."""

    name: str
    entry: int
    lds_bytes: int
    scratch_bytes: int
    kernarg_bytes: int
    rsrc1: int
    rsrc2: int
    rsrc3: int
    properties: int
    preload: int
    arguments: tuple[dict, ...]

    @property
    def vgprs(self) -> int:
        """Allocated vector registers, including AGPRs: granules of 8 on gfx90a and later."""
        return ((self.rsrc1 & 0x3F) + 1) * 8

    @property
    def lanes(self) -> int:
        """Wave size: ENABLE_WAVEFRONT_SIZE32 is bit 10 of the code properties, from gfx10 on."""
        return 32 if self.properties >> 10 & 1 else 64

    @property
    def first_agpr(self) -> int:
        return ((self.rsrc3 & 0x3F) + 1) * 4

    @property
    def float_mode(self) -> int:
        """Round mode in bits 3:0, denormal mode in bits 7:4, DX10 clamp in bit 8, IEEE in bit 9,
        FP16_OVFL in bit 23."""
        mode = (self.rsrc1 >> 12) & 0xFF | ((self.rsrc1 >> 26) & 1) << 23
        return mode | ((self.rsrc1 >> 21) & 1) << 8 | ((self.rsrc1 >> 23) & 1) << 9


@dataclass(frozen=True)
class CodeObject:
    target: str
    kernels: dict[str, Kernel]
    segments: tuple[tuple[int, bytes], ...] = field(repr=False)
    data: bytes = field(repr=False)

    @property
    def lines(self) -> dict[int, Line]:
        """The instructions by their addresses."""
        wide = all(kernel.lanes == 64 for kernel in self.kernels.values())
        return _disassemble(self.data, self.target, wide)


def llvm_program(name: str) -> str:
    """Finds `name` of LLVM 22 or newer: FLY_LLVM_DIR's, else the newest Debian install's."""
    if chosen := os.environ.get("FLY_LLVM_DIR"):
        return os.path.join(chosen, "bin", name)
    found = glob.glob(f"/usr/lib/llvm-*/bin/{name}")
    if found:
        return max(found, key=lambda path: int(re.search(r"llvm-(\d+)", path)[1]))
    return next(filter(None, map(shutil.which, (f"{name}-22", name))))


@functools.lru_cache(maxsize=1024)
def read(data: bytes) -> CodeObject:
    """Reads an HSACO. ValueError if it is for an unsupported target."""
    flags, sections, segments = _headers(data)
    symbols = _symbols(data, sections)
    metadata = _metadata(data, sections)
    kernels = {}
    for name, address in symbols.items():
        if name.endswith(".kd"):
            raw = _bytes_at(segments, address, 64)
            kernels[name[:-3]] = _kernel(name[:-3], address, raw, metadata)
    target = MACHINES[flags & 0xFF]
    return CodeObject(target, kernels, segments, data)


def _headers(data: bytes):
    if data[:4] != b"\x7fELF" or data[4] != 2:
        raise ValueError("not an ELF64 file")
    (machine,) = struct.unpack_from("<H", data, 18)
    if machine != 224:
        raise ValueError("not an AMDGPU code object")
    program_at, section_at, flags = struct.unpack_from("<QQI", data, 32)
    program_size, program_count, section_size, section_count = struct.unpack_from("<4H", data, 54)
    segments = []
    for index in range(program_count):
        kind, _, offset, address, _, in_file, in_memory, _ = struct.unpack_from(
            "<IIQQQQQQ", data, program_at + index * program_size
        )
        if kind == 1:
            content = data[offset : offset + in_file] + bytes(in_memory - in_file)
            segments.append((address, content))
    sections = [
        struct.unpack_from("<IIQQQQIIQQ", data, section_at + index * section_size)
        for index in range(section_count)
    ]
    return flags, sections, tuple(segments)


def _symbols(data: bytes, sections) -> dict[str, int]:
    dynsym = next(section for section in sections if section[1] == 11)
    strings = sections[dynsym[6]][4]
    symbols = {}
    for at in range(dynsym[4], dynsym[4] + dynsym[5], 24):
        name, _, _, _, value, _ = struct.unpack_from("<IBBHQQ", data, at)
        end = data.index(b"\0", strings + name)
        symbols[data[strings + name : end].decode()] = value
    return symbols


def _metadata(data: bytes, sections) -> dict[str, dict]:
    import msgpack

    note = next(section for section in sections if section[1] == 7)
    name_size, size, _ = struct.unpack_from("<3I", data, note[4])
    start = note[4] + 12 + (name_size + 3) // 4 * 4
    content = msgpack.unpackb(data[start : start + size], strict_map_key=False)
    return {kernel[".name"]: kernel for kernel in content["amdhsa.kernels"]}


def _bytes_at(segments, address: int, size: int) -> bytes:
    for start, content in segments:
        if start <= address < start + len(content):
            return content[address - start : address - start + size]
    raise ValueError(f"no segment holds {address:#x}")


def _kernel(name: str, address: int, raw: bytes, metadata: dict[str, dict]) -> Kernel:
    lds, scratch, kernarg = struct.unpack_from("<3I", raw, 0)
    (entry,) = struct.unpack_from("<q", raw, 16)
    rsrc3, rsrc1, rsrc2, properties, preload = struct.unpack_from("<IIIHH", raw, 44)
    return Kernel(
        name=name,
        entry=address + entry,
        lds_bytes=lds,
        scratch_bytes=scratch,
        kernarg_bytes=kernarg,
        rsrc1=rsrc1,
        rsrc2=rsrc2,
        rsrc3=rsrc3,
        properties=properties,
        preload=preload,
        arguments=tuple(metadata[name].get(".args", ())),
    )


_LINE = re.compile(r"^\t(?P<text>.+?)\s*// (?P<address>[0-9A-F]{12}):(?P<words>( [0-9A-F]{8})+)")


@functools.lru_cache(maxsize=16)
def _disassemble(data: bytes, target: str, wide: bool) -> dict[int, Line]:
    """`wide`: waves have 64 lanes, so that a lane mask is printed as a pair of registers."""
    # gfx12's text only distinguishes the halves of a register with this option.
    features = ["+real-true16"] if target.startswith("gfx12") else []
    if wide and target.startswith("gfx1"):
        features.append("+wavefrontsize64")
    options = [f"--mattr={','.join(features)}"] if features else []
    with tempfile.NamedTemporaryFile(suffix=".hsaco") as file:
        file.write(data)
        file.flush()
        done = subprocess.run(
            [llvm_program("llvm-objdump"), "-d", *options, file.name],
            capture_output=True,
            text=True,
            check=True,
        )
    lines = {}
    for row in done.stdout.splitlines():
        if match := _LINE.match(row):
            address = int(match["address"], 16)
            words = tuple(int(word, 16) for word in match["words"].split())
            lines[address] = Line(address, match["text"], words)
    return lines
