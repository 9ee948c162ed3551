"""What went wrong in a wave, in words: kernel, place, instruction, wave, lane, address, and the
nearest buffer."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

from fly_common.errors import Fault

from fly_run.emulator import state
from fly_run.emulator.arena import Arena
from fly_run.emulator.instruction import Instruction


@dataclass(frozen=True)
class Record:
    """A fault as the handlers left it in the wave state."""

    kind: str
    lane: int
    size: int
    address: int
    group: tuple[int, int, int]
    wave: int

    @staticmethod
    def read(wave: int) -> Record:
        """From the wave state at host address `wave`."""

        def word(offset: int) -> int:
            return ctypes.c_uint32.from_address(wave + offset).value

        x, y, z = (word(state.GROUP + 4 * axis) for axis in range(3))
        return Record(
            state.FAULTS[min(word(state.FAULT_KIND), len(state.FAULTS) - 1)],
            word(state.FAULT_LANE),
            word(state.FAULT_SIZE),
            ctypes.c_uint64.from_address(wave + state.FAULT_ADDRESS).value,
            (x, y, z),
            word(state.WAVE),
        )


HINTS = {
    "unmapped": "check the index against the buffer's size before the access",
    "read-only": "bind the buffer as writable, or do not store to it",
    "misaligned": "atomics need an address that is a multiple of their size",
    "lds": "check the LDS index; --lds sets the dynamic part",
    "scratch": "the stack or a private array is indexed out of range",
    "trap": "the kernel asked for it: an assertion, or unreachable code",
}


def describe(
    record: Record,
    kernel: str,
    instruction: Instruction | None,
    arena: Arena,
    lds: int,
    scratch: int,
) -> Fault:
    """The fault to raise. `lds` and `scratch` are the sizes of those memories."""
    where = place(kernel, instruction, record.group, record.wave)
    access = f"{record.size} bytes at 0x{record.address:x}, lane {record.lane}"
    kind = record.kind
    if kind == "unmapped":
        what = f"memory fault: {access}: {arena.nearest(record.address, record.size)}"
    elif kind == "read-only":
        name = next(
            (r.name for r in arena if 0 <= record.address - r.low < r.length), "this memory"
        )
        what = f"write to read-only memory: {access}: `{name}` may only be read"
    elif kind == "misaligned":
        what = f"misaligned access: {access}"
    elif kind == "lds":
        what = f"LDS fault: {access}: the workgroup has {lds} bytes of LDS"
    elif kind == "scratch":
        what = f"private memory fault: {access}: each work item has {scratch} bytes"
    elif kind == "register index":
        what = "a relative register number is beyond the allocated registers"
    elif kind == "resource":
        what = "the buffer resource is structured or swizzled, which the emulator does not have"
    elif kind == "end of code":
        what = "control ran past the end of the code"
    else:
        what = f"{kind}"
    return Fault(f"{what}; {where}", hint=HINTS.get(kind))


def place(
    kernel: str, instruction: Instruction | None, group: tuple[int, int, int], wave: int
) -> str:
    at = f" pc 0x{instruction.pc:x} '{instruction.text}'" if instruction else ""
    x, y, z = group
    return f"kernel {kernel}{at} workgroup ({x}, {y}, {z}) wave {wave}"
