"""Lowers memory instructions that only gfx11 and gfx12 have: addresses of the lane's number, blocks
of registers, and transposed loads (RDNA4 ISA manual, 11.1.2, 11.5 and 11.6.2)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from fly_run.emulator import state
from fly_run.emulator.isa.instruction import Register
from fly_run.emulator.lowering.memory.accesses import (
    CACHE,
    add_access,
    global_access,
    global_place,
    is_off,
    offset_of,
    scratch_place,
)
from fly_run.emulator.lowering.registers import Unsupported
from fly_run.emulator.lowering.steps import Lowering, Source, modifiers
from fly_run.emulator.semantics.rdna.blocks import REGISTERS


def _by_lane(kind: str) -> Callable[[Lowering, str, str], None]:
    """global_load_addtid, global_store_addtid: an access at the scalar address plus the constant
    offset plus 4 · lane; `off` stands for the address 0."""

    def run(lowering: Lowering, name: str, encoding: str) -> None:
        found = modifiers(lowering, "offset", *CACHE)
        data, scalar = lowering.operands(2)
        base = lowering.word(0).offset if is_off(scalar) else lowering.scalar_source(scalar, "i64")
        variant = "g" if lowering.registers.facts.signed_offsets else "s"
        lanes = lowering.registers.constants.row([4 * lane for lane in range(state.LANES)])
        operation = lowering.table[f"global_{kind}_dword"]
        place = variant, lanes, base
        add_access(lowering, operation, place, lowering.row_source(data, 1), 0, offset_of(found))

    return run


def _block(space: str, kind: str) -> Callable[[Lowering, str, str], None]:
    """global_load_block and similar: an access of a dword for each of 32 registers that M0's mask
    selects, at an offset that grows by 4 for each register, selected or not. A load may overwrite
    its own address, which is read before."""

    def run(lowering: Lowering, name: str, encoding: str) -> None:
        found = modifiers(lowering, "offset", *CACHE)
        operation = lowering.table[f"{space}_{kind}_dword"]
        first, second, scalar = lowering.operands(3)
        data, vector = (first, second) if kind == "load" else (second, first)
        if not isinstance(data, Register) or data.bank != "v" or data.count != REGISTERS:
            raise Unsupported("an operand that is not 32 vector registers")
        variant, address, base = (global_place if space == "global" else scratch_place)(
            lowering, operation, (vector, scalar)
        )
        row = lowering.row_source(replace(data, count=1), 1)
        lowering.registers.name_all()
        if kind == "load" and not is_off(vector):
            address = _aside(lowering, vector, address)
        lowering.add("fly_block_begins")
        allocated = lowering.registers.allocation.vector - data.index
        for number in range(REGISTERS):
            missing = number >= allocated
            lowering.add("fly_block_register", immediate=int(missing), extra=number)
            if not missing:
                place, offset = (variant, address, base), offset_of(found) + 4 * number
                add_access(lowering, operation, place, row + number * state.ROW, 0, offset)
        lowering.add("fly_restore_exec")

    return run


def _aside(lowering: Lowering, vector: object, address: int) -> int:
    """Copies an address to temporary rows."""
    assert isinstance(vector, Register)
    copied = lowering.temporary(vector.count)
    for number in range(vector.count):
        at = number * state.ROW
        lowering.valu("v_mov_b32", (copied + at,), Source("v", address + at))
    return copied


def _transposed(size: int, width: int) -> Callable[[Lowering, str, str], None]:
    """gfx12's global_load_tr: a load of `size` bytes a lane, transposed as elements of `width`
    bits (`cdna5.transposed`). In waves of 64 lanes a lane gets half as much: no source tells of
    which elements."""

    def run(lowering: Lowering, name: str, encoding: str) -> None:
        if lowering.registers.wave_size != state.LANES // 2:
            raise Unsupported("waves of 64 lanes")
        found = modifiers(lowering, "offset", *CACHE)
        target, *address = lowering.instruction.operands
        registers = size // 4
        result, aside = lowering.row_source(target, registers), lowering.temporary(registers)
        operation = lowering.table[f"global_load_dwordx{registers}"]
        global_access(lowering, operation, aside, tuple(address), 0, offset_of(found))
        lowering.add(f"fly_transpose_columns_b{width}", result, aside)

    return run


EXPANSIONS: dict[str, Callable[[Lowering, str, str], None]] = {
    **{f"global_{kind}_addtid_b32": _by_lane(kind) for kind in ("load", "store")},
    **{
        f"{space}_{kind}_block": _block(space, kind)
        for space in ("global", "scratch")
        for kind in ("load", "store")
    },
    "global_load_tr_b128": _transposed(16, 16),
    "global_load_tr_b64": _transposed(8, 8),
}
