"""The calls that led to an instruction, by DWARF's inlined subroutines: helpers of a kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from io import BytesIO
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from elftools.dwarf.compileunit import CompileUnit
    from elftools.dwarf.die import DIE
    from elftools.dwarf.dwarfinfo import DWARFInfo
    from elftools.dwarf.lineprogram import LineProgram

MOST_DEPTH = 64  # nested calls
INLINED = "DW_TAG_inlined_subroutine"
# clang compiles an OpenCL kernel to a function, and a stub with the kernel's name that calls it.
STUBS_BODY = b"__clang_ocl_kern_imp_"


class Call(NamedTuple):
    """A call: the addresses of its code, and where it is."""

    ranges: tuple[tuple[int, int], ...]
    depth: int
    file: str
    line: int
    column: int


FilesOf = Callable[["LineProgram"], dict[int, str]]


def read(data: bytes, files_of: FilesOf) -> list[Call]:
    """Returns the inlined calls of an ELF file. Damaged debug information gives none. `files_of`
    gives the files of a unit by their numbers."""
    found: list[Call] = []
    # pyelftools trusts its input, so a damaged file may raise any exception.
    try:
        from elftools.elf.elffile import ELFFile

        elf = ELFFile(BytesIO(data))
        dwarf = elf.get_dwarf_info(relocate_dwarf_sections=False, follow_links=False)
        if elf.has_dwarf_info(strict=True):
            for unit in dwarf.iter_CUs():
                found += _of_unit(dwarf, unit, files_of)
    except Exception:
        pass
    return found


def _of_unit(dwarf: DWARFInfo, unit: CompileUnit, files_of: FilesOf) -> Iterator[Call]:
    program = dwarf.line_program_for_CU(unit)
    if program is None:
        return
    files = files_of(program)
    waiting = [(unit.get_top_DIE(), 0)]
    while waiting:
        die, depth = waiting.pop()
        if die.tag == INLINED and depth <= MOST_DEPTH:
            numbers = [
                die.attributes[f"DW_AT_call_{name}"].value
                if f"DW_AT_call_{name}" in die.attributes
                else 0
                for name in ("file", "line", "column")
            ]
            if numbers[0] in files and numbers[1] and not _is_stubs_body(die):
                ranges = tuple(_ranges(dwarf, unit, die))
                yield Call(ranges, depth, files[numbers[0]], numbers[1], numbers[2])
        waiting += [(child, depth + 1) for child in die.iter_children()]


def _is_stubs_body(die: DIE) -> bool:
    """Whether a call is that of a kernel's stub, which is nowhere in the source."""
    origin = die.get_DIE_from_attribute("DW_AT_abstract_origin")
    name = origin.attributes.get("DW_AT_linkage_name")
    return name is not None and name.value.startswith(STUBS_BODY)


def _ranges(dwarf: DWARFInfo, unit: CompileUnit, die: DIE) -> Iterator[tuple[int, int]]:
    """The addresses of a subroutine's code."""
    from elftools.dwarf.ranges import BaseAddressEntry

    if "DW_AT_low_pc" in die.attributes:
        low, high = die.attributes["DW_AT_low_pc"].value, die.attributes["DW_AT_high_pc"]
        # An address, or an offset from the lower one.
        yield low, high.value if high.form == "DW_FORM_addr" else low + high.value
    elif "DW_AT_ranges" in die.attributes:
        top = unit.get_top_DIE().attributes
        base = top["DW_AT_low_pc"].value if "DW_AT_low_pc" in top else 0
        lists = dwarf.range_lists()
        if lists is None:
            return
        at = die.attributes["DW_AT_ranges"].value
        for entry in lists.get_range_list_at_offset(at, cu=unit):
            if isinstance(entry, BaseAddressEntry):
                base = entry.base_address
            else:
                start = 0 if getattr(entry, "is_absolute", False) else base
                yield start + entry.begin_offset, start + entry.end_offset
