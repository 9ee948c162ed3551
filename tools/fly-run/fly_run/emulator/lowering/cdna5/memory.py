"""Lowers memory instructions that only gfx1250 has: copies between memory and LDS, transposed
loads, loads that watch a line or serve a cluster, prefetches, the tensor data mover.

Every copy is complete before the next instruction: the counters that programs wait for matter only
to `--strict`. Sources: LLVM's definitions (FLATInstructions.td, DSInstructions.td, MIMG's VTensor)
and AMDGPUUsage.rst, "Memory Model GFX125x".
"""

from __future__ import annotations

import re
from collections.abc import Callable

from fly_run.emulator import state
from fly_run.emulator.isa.instruction import Name, Operand, Register
from fly_run.emulator.lowering.memory.accesses import (
    CACHE,
    SCALED,
    global_access,
    offset_of,
    registers_of,
)
from fly_run.emulator.lowering.registers import Unsupported
from fly_run.emulator.lowering.steps import NULL, Lowering, Source, modifiers
from fly_run.emulator.semantics.cdna5.tensor import EXTENDED, STORES
from fly_run.emulator.semantics.cdna5.transposed import REGISTERS

Lower = Callable[[Lowering, str, str], None]

_TO_LDS = re.compile(r"(?:global|cluster)_load_async_to_lds_b(\d+)")
_FROM_LDS = re.compile(r"global_store_async_from_lds_b(\d+)")
_TRANSPOSED = re.compile(r"(global|ds)_load_tr(16|8|6|4)_b(?:128|96|64)")
_PLAIN = re.compile(r"(?:(global|flat)_load_monitor|cluster_load)_b(\d+)")
_PREFETCH = re.compile(r"(?:global|flat)_prefetch_b8")
_ARRIVE = re.compile(r"ds_atomic_async_barrier_arrive_b64")
_TENSOR = re.compile(r"tensor_(?:load_to|store_from)_lds")
# bits → names of the accesses of memory and of LDS
_SIZES = {
    8: ("ubyte", "b8"),
    32: ("dword", "b32"),
    64: ("dwordx2", "b64"),
    128: ("dwordx4", "b128"),
}
_STORES = {
    8: ("byte", "u8"),
    32: ("dword", "b32"),
    64: ("dwordx2", "b64"),
    128: ("dwordx4", "b128"),
}
_WIDTHS = {1: "dword", 2: "dwordx2", 3: "dwordx3", 4: "dwordx4"}
GROUPS = (4, 8, 4, 4)  # scalar registers of a tensor's descriptor


def expansion(name: str) -> Lower | None:
    return next((lower for pattern, lower in LOWERINGS if pattern.fullmatch(name)), None)


def _to_lds(lowering: Lowering, name: str, encoding: str) -> None:
    """Operands: the address in LDS, the address in memory. The constant offset is added to both.
    Lanes that are masked by their address in LDS read no memory."""
    match = _TO_LDS.fullmatch(name)
    assert match
    memory, lds = _SIZES[int(match[1])]
    found = modifiers(lowering, "offset", SCALED, *CACHE)
    place, *address = lowering.operands(3)
    operation = lowering.table[f"global_load_{memory}"]
    aside = lowering.temporary(registers_of(operation))
    row, saved = lowering.row_source(place, 1), lowering.scalar_temporary()
    lowering.add("s_mov_b64", saved, state.EXEC)
    lowering.valu("v_cmp_ne_u32", (state.EXEC,), Source("v", row), lowering.word(state.LDS_MASKED))
    global_access(lowering, operation, aside, tuple(address), 0, offset_of(found))
    lowering.add(f"ds_write_{lds}.v", aside, row, 0, immediate=offset_of(found), memory=True)
    lowering.add("s_mov_b64", state.EXEC, saved)


def _from_lds(lowering: Lowering, name: str, encoding: str) -> None:
    """Operands: the address in memory, the address in LDS, the scalar base."""
    match = _FROM_LDS.fullmatch(name)
    assert match
    memory, lds = _STORES[int(match[1])]
    found = modifiers(lowering, "offset", SCALED, *CACHE)
    vector, place, scalar = lowering.operands(3)
    operation = lowering.table[f"global_store_{memory}"]
    aside = lowering.temporary(registers_of(operation))
    row = lowering.row_source(place, 1)
    lowering.add(f"ds_read_{lds}.v", aside, row, 0, immediate=offset_of(found), memory=True)
    global_access(lowering, operation, aside, (vector, scalar), 0, offset_of(found))


def _transposed(lowering: Lowering, name: str, encoding: str) -> None:
    match = _TRANSPOSED.fullmatch(name)
    assert match
    space, width = match[1], int(match[2])
    registers = REGISTERS[width]
    target, *address = lowering.instruction.operands
    result, aside = lowering.row_source(target, registers), lowering.temporary(registers)
    if space == "ds":
        found = modifiers(lowering, "offset")
        (place,) = address
        row = lowering.row_source(place, 1)
        single = f"ds_read_b{32 * registers}.v"
        lowering.add(single, aside, row, 0, immediate=offset_of(found), memory=True)
    else:
        found = modifiers(lowering, "offset", SCALED, *CACHE)
        operation = lowering.table[f"global_load_{_WIDTHS[registers]}"]
        global_access(lowering, operation, aside, tuple(address), 0, offset_of(found))
    lowering.add(f"fly_transpose_columns_b{width}", result, aside)


def _plain(lowering: Lowering, name: str, encoding: str) -> None:
    """Loads that also watch a line (until S_MONITOR_SLEEP), or are served to a cluster at once."""
    match = _PLAIN.fullmatch(name)
    assert match
    space, width = match[1] or "global", int(match[2])
    operation = lowering.table[f"{space}_load_{_SIZES[width][0]}"]
    found = modifiers(lowering, "offset", SCALED, *CACHE)
    target, *address = lowering.instruction.operands
    if len(address) == 1:
        address.append(Name("off"))
    row = lowering.row_source(target, registers_of(operation))
    global_access(lowering, operation, row, tuple(address), 0, offset_of(found))


def _prefetch(lowering: Lowering, name: str, encoding: str) -> None:
    """Prefetches have no effect: an address that is not mapped is ignored (LLVM's llvm.prefetch may
    have any address)."""
    modifiers(lowering, "offset", SCALED, *CACHE)


def _arrive(lowering: Lowering, name: str, encoding: str) -> None:
    """Arrives once a lane at a barrier in LDS, after the wave's earlier copies."""
    found = modifiers(lowering, "offset")
    (place,) = lowering.operands(1)
    row, one = lowering.row_source(place, 1), lowering.temporary(2)
    lowering.valu("v_mov_b32", (one,), lowering.word(1))
    lowering.valu("v_mov_b32", (one + state.ROW,), lowering.word(0))
    lowering.add("fly_arrive_in_lds.v", 0, row, 0, one, immediate=offset_of(found), memory=True)


def _tensor(lowering: Lowering, name: str, encoding: str) -> None:
    modifiers(lowering, "r128", *CACHE)
    given = lowering.instruction.operands
    if len(given) not in (2, 4):
        raise Unsupported(f"{len(given)} operands")
    zeros = lowering.registers.constants.place(bytes(16))
    places = [
        _group(lowering, operand, count, zeros)
        for operand, count in zip(given, GROUPS, strict=False)
    ]
    flags = STORES if "store" in name else 0
    if len(given) == 4:
        flags |= EXTENDED
    else:
        places += [zeros, zeros]
    lowering.add("fly_tensor_copy", *places, extra=flags)


def _group(lowering: Lowering, operand: Operand, count: int, zeros: int) -> int:
    if isinstance(operand, Register) and operand.bank == "s":
        return lowering.registers.scalar(operand, count, lowering.instruction)
    if isinstance(operand, Name) and operand.text == NULL:
        return zeros
    raise Unsupported("a descriptor that is not in scalar registers")


LOWERINGS: tuple[tuple[re.Pattern[str], Lower], ...] = (
    (_TO_LDS, _to_lds),
    (_FROM_LDS, _from_lds),
    (_TRANSPOSED, _transposed),
    (_PLAIN, _plain),
    (_PREFETCH, _prefetch),
    (_ARRIVE, _arrive),
    (_TENSOR, _tensor),
)
