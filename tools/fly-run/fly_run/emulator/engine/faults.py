"""Describes a fault in a wave: source line, kernel, instruction, workgroup, wave, lane, address,
the nearest buffer, and how many lanes faulted at once."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fly_common.errors import Fault
from fly_image.dwarf import Line

from fly_run.devices import memory_faults
from fly_run.emulator import state
from fly_run.emulator.engine.arena import Arena, Region
from fly_run.emulator.isa.instruction import Instruction

if TYPE_CHECKING:
    from fly_run.emulator.engine.loading import Prepared


@dataclass(frozen=True)
class Record:
    """A fault as the handlers recorded it in the wave state. `others` are the addresses of the
    active lanes above the first faulting one, which no handler has checked yet."""

    kind: str
    lane: int
    size: int
    address: int
    group: tuple[int, int, int]
    wave: int
    others: tuple[int, ...] = field(default=(), repr=False)

    @staticmethod
    def read(wave: int, lanes: int = state.LANES) -> Record:
        """Reads the record from the wave state at host address `wave`, of a wave of `lanes`."""

        def word(offset: int) -> int:
            return ctypes.c_uint32.from_address(wave + offset).value

        x, y, z = (word(state.GROUP + 4 * axis) for axis in range(3))
        lane = word(state.FAULT_LANE)
        mask = ctypes.c_uint64.from_address(wave + state.EXEC).value
        addresses = (ctypes.c_uint64 * state.LANES).from_address(wave + state.ADDRESS)
        later = range(lane + 1, lanes)
        return Record(
            state.FAULTS[min(word(state.FAULT_KIND), len(state.FAULTS) - 1)],
            lane,
            word(state.FAULT_SIZE),
            ctypes.c_uint64.from_address(wave + state.FAULT_ADDRESS).value,
            (x, y, z),
            word(state.WAVE),
            tuple(addresses[number] for number in later if mask >> number & 1),
        )


HINTS = {
    **memory_faults.HINTS,
    "misaligned": "atomics need an address that is a multiple of their size",
    "lds": "check the LDS index; --lds sets the dynamic part",
    "scratch": "the stack overflows, or a private array is indexed out of range",
    "register index": "s_set_gpr_idx_on or M0 contains an unexpected number",
    "cluster deadlock": "one wave of every workgroup must signal the cluster's barrier each time",
    "end of code": "a kernel ends with s_endpgm on every path",
}


def describe(
    record: Record,
    prepared: Prepared,
    instruction: Instruction | None,
    arena: Arena,
    lds: int,
    scratch: int,
) -> Fault:
    """Returns the fault to raise. `lds` and `scratch` are the sizes of those memories."""
    access = f"{record.size} bytes at 0x{record.address:x}"
    if instruction is None or not instruction.mnemonic.startswith("s_"):
        more = sum(_lanes_faulting_alike(record, arena, lds, scratch))
        access += f", lane {record.lane}" + (f" and {more} more" if more else "")
    kind = record.kind
    if kind == "unmapped":
        what = f"memory fault: {access}: {arena.nearest(record.address, record.size)}"
    elif kind == "read-only":
        holder = _region(arena, record.address, record.size)
        name = f"`{holder.name}`" if holder else "this memory"
        what = f"write to read-only memory: {access}: {name} may only be read"
    elif kind == "misaligned":
        what = f"misaligned access: {access}"
    elif kind == "lds":
        what = f"LDS fault: {access}: the workgroup has {lds} bytes of LDS"
    elif kind == "scratch":
        what = f"private memory fault: {access}: each work item has {scratch} bytes"
    elif kind == "register index":
        what = "a relative register number is beyond the allocated registers"
    elif kind == "block register":
        what = "M0 selects a register of the block that the kernel does not allocate"
    elif kind == "inactive lanes":
        what = "with bound_ctrl, this instruction is supported only with all lanes active"
    elif kind == "tensor":
        what = "a tensor descriptor of another type than 2"
    elif kind == "named barrier":
        what = (
            f"a named barrier whose number is not 1 to {state.NAMED_BARRIERS}, that expects no"
            " signals, or that the wave has not joined"
        )
    elif kind == "deadlock":
        what = "deadlock: every wave of the workgroup that has not ended waits at a barrier"
    elif kind == "cluster deadlock":
        what = "deadlock: no workgroup of the cluster goes on, and its barrier is not complete"
    elif kind == "swizzled":
        what = "a swizzled buffer resource: its layout is not documented for this processor"
    elif kind == "end of code":
        what = "control ran past the end of the code"
    else:
        what = f"{kind}"
    return fault(what, prepared, instruction, record, hint=HINTS.get(kind))


def fault(
    what: str,
    prepared: Prepared,
    instruction: Instruction | None,
    record: Record,
    hint: str | None = None,
) -> Fault:
    """Returns a fault with its location: kernel, instruction, workgroup, wave, and the source line
    if the code object has line tables."""
    where = place(prepared.kernel.name, instruction, record.group, record.wave)
    pc = instruction.pc if instruction else None
    at = prepared.loaded.code_object.line(pc) if pc is not None else None
    return Fault(f"{what}; {where}", hint=hint, place=at, pc=pc)


def line_of(prepared: Prepared, instruction: Instruction | None) -> Line | None:
    return prepared.loaded.code_object.lines.find(instruction.pc) if instruction else None


def place(
    kernel: str, instruction: Instruction | None, group: tuple[int, int, int], wave: int
) -> str:
    at = f" pc 0x{instruction.pc:x} '{instruction.text}'" if instruction else ""
    x, y, z = group
    return f"kernel {kernel}{at} workgroup ({x}, {y}, {z}) wave {wave}"


def _region(arena: Arena, address: int, size: int) -> Region | None:
    """Returns the region that contains the whole access."""
    inside = (r for r in arena if r.low <= address and address + size <= r.low + r.length)
    return next(inside, None)


def _lanes_faulting_alike(record: Record, arena: Arena, lds: int, scratch: int) -> Iterator[bool]:
    """Yields, for each later lane, whether its access faults in the same way."""

    def writable(address: int) -> bool:
        region = _region(arena, address, record.size)
        return region is None or region.writable

    good: dict[str, Callable[[int], bool]] = {
        "unmapped": lambda address: _region(arena, address, record.size) is not None,
        "read-only": writable,
        "misaligned": lambda address: address % record.size == 0,
        "lds": lambda address: (address & 0xFFFF_FFFF) + record.size <= lds,
        "scratch": lambda address: (address & 0xFFFF_FFFF) + record.size <= scratch,
    }
    check = good.get(record.kind)
    if check is not None:
        flat = {state.SHARED_APERTURE: "lds", state.PRIVATE_APERTURE: "scratch"}
        for address in record.others:
            if address >> state.GLOBAL_SCRATCH_SHIFT:
                address %= state.GLOBAL_SCRATCH_WAVE
            # A flat access: the aperture selects each lane's memory.
            space = flat.get(address >> 32)
            if space in (None, record.kind) or record.kind == "misaligned":
                yield not check(address)
