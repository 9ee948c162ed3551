"""Lowers composite LDS instructions: two accesses, moves between lanes, transposed reads, and
loads from memory straight to LDS (CDNA3 and CDNA4 ISA manuals, "Data Share").
"""

from __future__ import annotations

import re
from collections.abc import Callable

from fly_run.emulator.lowering.memory.accesses import (
    CACHE,
    buffer_access,
    global_access,
    offset_of,
    registers_of,
    scratch_access,
)
from fly_run.emulator.lowering.registers import Unsupported
from fly_run.emulator.lowering.steps import Lowering, Source, modifiers
from fly_run.emulator.lowering.vector import dpp
from fly_run.emulator.semantics.base.access import Access
from fly_run.emulator.state import ROW

# The bits of M0 that hold the place in LDS for instructions without an address; loads into larger
# LDS (that of gfx950) use two more.
BASE_MASK, LARGE_BASE_MASK, SMALL_LDS = 0xFFFF, 0x3FFFF, 64 << 10
TO_LDS = re.compile(r"(global|scratch|buffer)_load_(?:lds_)?(\w+)")


def _pair(single: str, scale: int) -> Callable[[Lowering, str, str], None]:
    """ds_read2, ds_write2: two accesses with offsets in elements (of 64 in the st64 forms)."""

    def run(lowering: Lowering, name: str, encoding: str) -> None:
        found = modifiers(lowering, "offset0", "offset1")
        offsets = [scale * int(found.get(f"offset{n}", 0) or 0) for n in (0, 1)]  # type: ignore[call-overload]
        registers = registers_of(lowering.table[single])
        if "read" in single:
            target, address = lowering.operands(2)
            row = lowering.row_source(address, 1)
            result = lowering.row_source(target, 2 * registers)
            if result <= row < result + 2 * registers * ROW:
                # The first result must not overwrite the second address.
                aside = lowering.temporary()
                lowering.valu("v_mov_b32", (aside,), Source("v", row))
                row = aside
            places = [result, result + registers * ROW]
            if registers == 1:
                # Skips the two reads below if the lanes' addresses are consecutive.
                lowering.add("fly_read_pair", *places, row, immediate=offsets[0], extra=offsets[1])
        else:
            address, *data = lowering.operands(3)
            row = lowering.row_source(address, 1)
            places = [lowering.row_source(operand, registers) for operand in data]
        for place, offset in zip(places, offsets, strict=True):
            lowering.add(f"{single}.v", place, row, 0, immediate=offset, memory=True)

    return run


def _permute(lowering: Lowering, name: str, encoding: str) -> None:
    """ds_bpermute_b32, ds_permute_b32: among the lanes of a wave; on gfx11 among the 32 of a half
    (RDNA3 ISA manual: "MOD 32 regardless of wave size"; LLVM: supportsWaveWideBPermute)."""
    found = modifiers(lowering, "offset")
    target, address, data = lowering.operands(3)
    rows = [lowering.row_source(operand, 1) for operand in (target, address, data)]
    halves = lowering.registers.facts.generation == 11
    group = 32 if halves else lowering.registers.wave_size
    lowering.add(name, *rows, immediate=offset_of(found), extra=group - 1)


def _swizzle(lowering: Lowering, name: str, encoding: str) -> None:
    found = modifiers(lowering, "offset")
    target, source = (lowering.row_source(operand, 1) for operand in lowering.operands(2))
    table = lowering.registers.constants.row(dpp.swizzle(offset_of(found)))
    lowering.add(name, target, source, table)


def _exchange_pair(single: str, scale: int) -> Callable[[Lowering, str, str], None]:
    """ds_wrxchg2: two exchanges with offsets in elements."""

    def run(lowering: Lowering, name: str, encoding: str) -> None:
        found = modifiers(lowering, "offset0", "offset1")
        operation = lowering.table[single]
        size = registers_of(operation)
        target, address, *data = lowering.operands(4)
        row, result = lowering.row_source(address, 1), lowering.row_source(target, 2 * size)
        # The first result must overwrite neither the address nor the second datum.
        aside = lowering.temporary(2 * size)
        for number, operand in enumerate(data):
            offset = scale * int(found.get(f"offset{number}", 0) or 0)  # type: ignore[call-overload]
            places = (
                aside + number * size * ROW,
                row,
                0,
                lowering.row_source(operand, size),
            )
            lowering.add(f"{single}.v", *places, immediate=offset, memory=True)
        for number in range(2 * size):
            at = number * ROW
            lowering.valu("v_mov_b32", (result + at,), Source("v", aside + at))

    return run


def _lane_addresses(lowering: Lowering, size: int, mask: int) -> int:
    """Computes a row of M0 & `mask` + lane · size."""
    row = lowering.temporary()
    lowering.add("fly_lane_address", row, immediate=mask, extra=size)
    return row


def _by_lane(single: str) -> Callable[[Lowering, str, str], None]:
    """ds_read_addtid, ds_write_addtid: access at M0 + offset + 4 · lane."""

    def run(lowering: Lowering, name: str, encoding: str) -> None:
        offset = offset_of(modifiers(lowering, "offset"))
        (data,) = lowering.operands(1)
        row = lowering.row_source(data, 1)
        address = _lane_addresses(lowering, 4, BASE_MASK)
        lowering.add(f"{single}.v", row, address, 0, immediate=offset, memory=True)

    return run


def _counter(lowering: Lowering, name: str, encoding: str) -> None:
    offset = offset_of(modifiers(lowering, "offset"))
    (target,) = lowering.operands(1)
    lowering.add(name, lowering.row_source(target, 1), immediate=offset)


def _transposed(single: str, width: int) -> Callable[[Lowering, str, str], None]:
    """ds_read_tr: a read, then a transposition among 16 lanes."""

    def run(lowering: Lowering, name: str, encoding: str) -> None:
        offset = offset_of(modifiers(lowering, "offset"))
        target, address = lowering.operands(2)
        count = registers_of(lowering.table[single])
        row, result = lowering.row_source(address, 1), lowering.row_source(target, count)
        aside = lowering.temporary(count)
        lowering.add(f"{single}.v", aside, row, 0, immediate=offset, memory=True)
        lowering.add(f"fly_transpose_b{width}", result, aside)

    return run


def _load_to_lds(lowering: Lowering, name: str, encoding: str) -> None:
    """Loads from memory into LDS, at M0 + offset + lane · place, without passing through a register
    of the program. A byte or short is widened to a dword. A place has 4 bytes, 16 if three or four
    dwords are loaded; all but loads through a resource ignore M0's two lowest bits (CDNA4 ISA
    manual, 9.1.9 and 10.3). The constant offset applies to both sides (LLVM: "imm offset, applied
    to both global and LDS address")."""
    match = TO_LDS.fullmatch(name)
    assert match
    space, width = match.groups()
    found = modifiers(lowering, "offset", "offen", "idxen", "lds", *CACHE)
    operation = lowering.table.get(f"{space}_load_{width}")
    if operation is None:
        raise Unsupported("the modifier lds")
    assert isinstance(operation.detail, Access)
    size = max(4, operation.detail.size)
    address = lowering.instruction.operands
    offset = offset_of(found)
    row = lowering.temporary(size // 4)
    if space == "buffer":
        if len(address) != 3:
            raise Unsupported(f"{len(address)} operands")
        buffer_access(lowering, operation, row, address, found)
    elif len(address) != 2:
        raise Unsupported(f"{len(address)} operands")
    elif space == "global":
        global_access(lowering, operation, row, address, 0, offset)
    else:
        scratch_access(lowering, operation, row, address, 0, offset)
    mask = BASE_MASK if lowering.registers.target.lds <= SMALL_LDS else LARGE_BASE_MASK
    place = _lane_addresses(
        lowering, 16 if size > 4 else 4, mask if space == "buffer" else mask & ~3
    )
    lowering.add(f"ds_write_b{8 * size}.v", row, place, 0, immediate=offset, memory=True)


def expansion(name: str, to_lds: bool) -> Callable[[Lowering, str, str], None] | None:
    """Returns the lowering of a composite instruction; `to_lds`: it has the modifier lds."""
    if to_lds or "_load_lds_" in name:
        return _load_to_lds if TO_LDS.fullmatch(name) else None
    return EXPANSIONS.get(name)


EXPANSIONS: dict[str, Callable[[Lowering, str, str], None]] = {
    **{
        f"ds_{kind}2{far}_b{width}": _pair(f"ds_{kind}_b{width}", width // 8 * (64 if far else 1))
        for kind in ("read", "write")
        for far in ("", "st64")
        for width in (32, 64)
    },
    **{
        f"ds_wrxchg2{far}_rtn_b{width}": _exchange_pair(
            f"ds_wrxchg_rtn_b{width}", width // 8 * (64 if far else 1)
        )
        for far in ("", "st64")
        for width in (32, 64)
    },
    **{f"ds_read_b64_tr_b{width}": _transposed("ds_read_b64", width) for width in (16, 8, 4)},
    "ds_read_b96_tr_b6": _transposed("ds_read_b96", 6),
    "ds_read_addtid_b32": _by_lane("ds_read_b32"),
    "ds_write_addtid_b32": _by_lane("ds_write_b32"),
    "ds_append": _counter,
    "ds_consume": _counter,
    "ds_bpermute_b32": _permute,
    "ds_bpermute_fi_b32": _permute,
    "ds_permute_b32": _permute,
    "ds_swizzle_b32": _swizzle,
}
