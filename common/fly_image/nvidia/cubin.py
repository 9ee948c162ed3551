"""A cubin: NVIDIA's linked machine code, an ELF file.

Implements `fly_image.image`. Kernels are the functions that are marked as entries; parameters,
limits and registers come from `.nv.info` (`nv_info`), spills from what ptxas said (`resources`),
and which parameters are pointers from the kernels' declarations in PTX, which fly-link keeps in the
section `.fly.entries`. A cubin of other tools has neither of the two.
"""

from __future__ import annotations

import functools
import math
import re
import struct
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from fly_common import artifact
from fly_common.errors import InputError, Place
from fly_common.quoting import quoted
from fly_host.program import Program
from fly_host.section import SECTION

from fly_image.elf import EM_CUDA, SHT_NOBITS, SHT_RELA, SHT_SYMTAB, Elf, Section, Symbol
from fly_image.image import VALUE, Image, Triple, find_kernel
from fly_image.nvidia import entries, nv_info, resources
from fly_image.nvidia.kernel import Argument, Kernel
from fly_image.nvidia.program import read_program
from fly_image.nvidia.resources import Resources

if TYPE_CHECKING:
    from fly_image.dwarf import LineTable

ET_EXEC = 2
ENTRIES = ".fly.entries"
STO_CUDA_ENTRY = 0x10  # of st_other
MOST_SHARED = 1 << 20  # bytes; no GPU has as much
_ARCH = re.compile(rb"-arch[= ]+(sm_\w+)")
_RESERVED = 1024  # bytes of shared memory for the system, where a section says that there are any


@dataclass(frozen=True)
class Cubin:
    """See `fly_image.image.Image`. `sections` are those that fly-link has appended."""

    data: bytes
    target: str
    kernels: dict[str, Kernel]
    program: Program | None
    sections: dict[str, bytes]
    code: dict[str, Section]  # by function

    def kernel(self, name: str | None) -> Kernel:
        """See `Image`."""
        return find_kernel(self.kernels, name)

    @functools.cached_property
    def digest(self) -> str:
        return sha256(self.data).hexdigest()

    @property
    def variant(self) -> str:
        return self.target

    def document(self) -> dict[str, Any]:
        """See `Image`."""
        return {
            "format": "cubin",
            "target": self.target,
            "size": len(self.data),
            "kernels": [asdict(kernel) for kernel in self.kernels.values()],
        }

    def same_code(self, other: Image) -> bool:
        """See `Image`. Functions have no common addresses; each is in a section of its own."""
        if not isinstance(other, Cubin) or other.target != self.target:
            return False
        return self._instructions() == other._instructions()

    def _instructions(self) -> dict[str, bytes]:
        return {name: section.data for name, section in self.code.items()}

    def address(self, kernel: str, offset: int = 0) -> int:
        """Returns the address, for `line`, of an offset in a kernel's code: its place in the file,
        because all functions begin at 0."""
        return self.code[kernel].offset + offset

    def line(self, pc: int) -> Place | None:
        """See `Image`."""
        return self.lines.place(pc)

    @functools.cached_property
    def lines(self) -> LineTable:
        """The source lines by `address`, read on first use."""
        from fly_image import dwarf

        return dwarf.table_of(_relocated(self.data))


def read(data: bytes, name: str = "<stdin>") -> Cubin:
    """Parses a cubin. Raises InputError, located at `name`, if it is invalid."""
    try:
        return _parse(data, name)
    except InputError as error:
        error.place = error.place or Place(name)
        raise


def _parse(data: bytes, name: str) -> Cubin:
    elf = Elf.parse(data)
    if elf.machine != EM_CUDA or elf.type != ET_EXEC:
        artifact.refuse(artifact.identify(data), artifact.CUBIN, name)
    code = {
        one.name.removeprefix(".text."): one
        for one in elf.sections
        if one.name.startswith(".text.") and one.type != SHT_NOBITS
    }
    held = {one.name: one.data for one in elf.sections if one.name.startswith(".fly.")}
    symbols = [(n, one) for table in _tables(elf) for n, one in enumerate(elf.table(table))]
    text = held.get(ENTRIES, b"").decode(errors="replace")
    declared = {one.name: one for one in entries.entries(text)}
    said = resources.read(held.get(resources.SECTION, b"").decode(errors="replace"))
    kernels = {
        symbol.name: _kernel(elf, number, symbol, declared.get(symbol.name), said)
        for number, symbol in symbols
        if symbol.other & STO_CUDA_ENTRY and symbol.section and symbol.name in code
    }
    if not kernels:
        raise InputError("the cubin contains no kernel")
    target = _target(elf)
    program = read_program(held.get(SECTION, b""), target, kernels)
    return Cubin(data, target, kernels, program, held, code)


def _tables(elf: Elf) -> list[Section]:
    return [one for one in elf.sections if one.type == SHT_SYMTAB]


def _target(elf: Elf) -> str:
    """Returns the target: ptxas's `-arch`, which it notes in the file, else that of e_flags, which
    lack the suffix."""
    note = elf.section(".note.nv.tkinfo")
    if note is not None and (match := _ARCH.search(note.data)):
        return match[1].decode()
    return f"sm_{elf.flags >> 8 & 0xFF}"


def _kernel(
    elf: Elf,
    number: int,
    symbol: Symbol,
    declared: entries.Entry | None,
    said: dict[str, Resources],
) -> Kernel:
    name = symbol.name
    own = elf.section(f".nv.info.{name}")
    attributes = nv_info.read(own.data) if own else []
    places = nv_info.parameters(attributes)
    arguments = tuple(Argument(offset, size, VALUE, "") for offset, size in places)
    if declared is not None:
        if not _same_places(declared, places):
            raise InputError(f"the declaration of kernel {quoted(name)} does not match its code")
        arguments = tuple(
            Argument.of(replace(one, offset=offset))
            for one, (offset, _) in zip(declared.parameters, places, strict=True)
        )
    required = nv_info.triple(attributes, nv_info.REQUIRED_THREADS)
    bound = required or nv_info.triple(attributes, nv_info.MAX_THREADS)
    numbers = said.get(name, Resources())
    general = elf.section(".nv.info")
    every = nv_info.read(general.data) if general else []
    if numbers.registers is None:
        registers = nv_info.of_symbols(every, nv_info.REGISTERS).get(number)
        stack = nv_info.of_symbols(every, nv_info.FRAME_SIZE).get(number)
        barriers = nv_info.number(attributes, nv_info.BARRIERS)
        numbers = replace(
            numbers,
            registers=registers,
            stack=stack,
            barriers=None if barriers is None else barriers & 0xFF,
        )
    return Kernel(
        name=name,
        arguments=arguments,
        argument_bytes=nv_info.number(attributes, nv_info.PARAMETER_BYTES)
        or max((offset + size for offset, size in places), default=0),
        shared_bytes=_shared(elf, name),
        max_threads=min(entries.MOST_THREADS, _product(bound)),
        required_block=required,
        resources=numbers,
        dependent=declared is not None and declared.dependent,
        cluster=nv_info.triple(attributes, nv_info.CLUSTER),
    )


def _same_places(declared: entries.Entry, places: list[tuple[int, int]]) -> bool:
    """Whether parameters lie as PTX declares them. They begin behind what the system keeps in front
    of them, so that where one has a large alignment all may lie further behind."""
    own = [(one.offset, one.size) for one in declared.parameters]
    if len(own) != len(places):
        return False
    begin = places[0][0] if places else 0
    return [(begin + offset, size) for offset, size in own] == places


def _product(block: Triple | None) -> int:
    return math.prod(block) if block else entries.MOST_THREADS


def _shared(elf: Elf, kernel: str) -> int:
    """Returns a kernel's static shared memory, without what the system reserves from sm_90 on."""
    section = elf.section(f".nv.shared.{kernel}")
    if section is None:
        return 0
    reserved = _RESERVED if elf.section(".nv.shared.reserved.0") else 0
    size = max(0, section.size - reserved)
    if size > MOST_SHARED:
        raise InputError(f"kernel {quoted(kernel)} requests {size} bytes of shared memory")
    return size


def _relocated(data: bytes) -> bytes:
    """Returns the file with addresses in `.debug_line` that tell functions apart: places in the
    file, instead of 0 for the start of each function."""
    elf = Elf.parse(data)
    made = bytearray(data)
    numbers = {one.name: number for number, one in enumerate(elf.sections)}
    for section in elf.sections:
        if section.type != SHT_RELA or section.info != numbers.get(".debug_line"):
            continue
        lines, symbols = elf.sections[section.info], elf.table(elf.sections[section.link])
        for at, info, addend in struct.iter_unpack("<QQq", section.data):
            symbol = symbols[info >> 32] if info >> 32 < len(symbols) else None
            if symbol is None or symbol.section >= len(elf.sections) or at + 8 > lines.size:
                continue
            place = elf.sections[symbol.section].offset + symbol.value + addend
            struct.pack_into("<Q", made, lines.offset + at, place & (1 << 64) - 1)
    return bytes(made)
