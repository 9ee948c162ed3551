"""Lowers loads, stores, atomics and lane moves through LDS hardware."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from fly_run.emulator.isa.instruction import Immediate, Name, Operand, Register
from fly_run.emulator.lowering.registers import Unsupported
from fly_run.emulator.lowering.steps import Lowering, Source, modifiers
from fly_run.emulator.semantics.base.access import (
    BUFFER_INDEX,
    BUFFER_OFFSET,
    BUFFER_WIDE,
    Access,
    Atomic,
    ScalarAccess,
)
from fly_run.emulator.semantics.base.operation import Operation
from fly_run.emulator.state import ROW

# Modifiers that select caches, which have no effect on a single memory.
CACHE = ("glc", "slc", "dlc", "nv", "scc", "sc0", "sc1", "nt", "th", "scope")
# gfx1250: the vector offset (SMEM: the offset register) counts accesses.
SCALED = "scale_offset"


def lower_memory(lowering: Lowering, operation: Operation, encoding: str) -> None:
    LOWERINGS[operation.form](lowering, operation)


# A variant of a handler, and the places of its address and of its base.
AccessPlace = tuple[str, int, int]


def is_off(operand: Operand) -> bool:
    return isinstance(operand, Name) and operand.text == "off"


def registers_of(operation: Operation) -> int:
    """Returns the number of data registers."""
    detail = operation.detail
    if isinstance(detail, Access):
        return detail.dwords
    return detail.size // 4 * detail.values


def _arrange(
    lowering: Lowering, operation: Operation, operands: tuple[Operand, ...]
) -> tuple[int, tuple[Operand, ...], int]:
    """Returns the data row, the address operands, and the row of an atomic's result, from the
    operand order of GLOBAL, FLAT, SCRATCH and DS instructions."""
    detail = operation.detail
    if isinstance(detail, Access):
        if detail.kind == "load":
            data, *address = operands
        else:
            first, data, *rest = operands
            address = [first, *rest]
        row = lowering.row_source(data, detail.dwords)
        return row, tuple(address), 0
    result, rest = 0, list(operands)
    if detail.returns:
        result = lowering.row_source(rest.pop(0), detail.size // 4)
    first, data, *more = rest
    return lowering.row_source(data, registers_of(operation)), (first, *more), result


def offset_of(found: Mapping[str, object]) -> int:
    value = found.get("offset", 0)
    assert isinstance(value, int)
    return value


def add_access(
    lowering: Lowering,
    operation: Operation,
    place: AccessPlace,
    data: int,
    result: int,
    offset: int,
) -> None:
    """Adds the step: operand 0 of an atomic is its result, operand 3 its data."""
    variant, address, base = place
    places = (data, address, base)
    if isinstance(operation.detail, Atomic):
        places = (result, address, base, data)
    lowering.add(f"{operation.name}.{variant}", *places, immediate=offset, memory=True)


def size_of(operation: Operation) -> int:
    """Returns the number of bytes that a lane accesses."""
    detail = operation.detail
    assert isinstance(detail, Access | Atomic)
    return detail.size


def _lower_global(lowering: Lowering, operation: Operation) -> None:
    found = modifiers(lowering, "offset", SCALED, *CACHE)
    data, address, result = _arrange(lowering, operation, lowering.instruction.operands)
    if operation.form == "flat" and len(address) == 1:
        address = (*address, Name("off"))
    global_access(lowering, operation, data, address, result, offset_of(found))


def global_access(
    lowering: Lowering,
    operation: Operation,
    data: int,
    address: tuple[Operand, ...],
    result: int,
    offset: int,
) -> None:
    place = global_place(lowering, operation, address)
    add_access(lowering, operation, place, data, result, offset)


def global_place(
    lowering: Lowering, operation: Operation, address: tuple[Operand, ...]
) -> AccessPlace:
    if len(address) != 2:
        raise Unsupported(f"an address of {len(address)} operands")
    vector, scalar = address
    if is_off(scalar):
        return "v", lowering.row_source(vector, 2), 0
    base = lowering.scalar_source(scalar, "i64")
    row = lowering.row_source(vector, 1)
    variant = "g" if lowering.registers.facts.signed_offsets else "s"
    if lowering.instruction.modifiers.get(SCALED):
        variant = "h"
    if f"{operation.name}.{variant}" not in operation.handlers:
        raise Unsupported("a scalar base")
    return variant, row, base


def _lower_scratch(lowering: Lowering, operation: Operation) -> None:
    found = modifiers(lowering, "offset", SCALED, *CACHE)
    data, address, result = _arrange(lowering, operation, lowering.instruction.operands)
    scratch_access(lowering, operation, data, address, result, offset_of(found))


def scratch_access(
    lowering: Lowering,
    operation: Operation,
    data: int,
    address: tuple[Operand, ...],
    result: int,
    offset: int,
) -> None:
    place = scratch_place(lowering, operation, address)
    add_access(lowering, operation, place, data, result, offset)


def scratch_place(
    lowering: Lowering, operation: Operation, address: tuple[Operand, ...]
) -> AccessPlace:
    vector, scalar = address
    zero = lowering.word(0).offset
    base = zero if is_off(scalar) else lowering.scalar_source(scalar, "i32")
    if is_off(vector):
        return "s", 0, base
    row = lowering.row_source(vector, 1)
    if lowering.instruction.modifiers.get(SCALED):
        scaled = lowering.temporary()
        size = lowering.word(size_of(operation))
        lowering.valu("v_mul_lo_u32", (scaled,), Source("v", row), size)
        row = scaled
    return "v", row, base


def _lower_buffer(lowering: Lowering, operation: Operation) -> None:
    """Operands: vdata, vaddr or off, the resource, the scalar offset. Atomics return in vdata."""
    found = modifiers(lowering, "offset", "offen", "idxen", *CACHE)
    data, *address = lowering.operands(4)
    row = lowering.row_source(data, registers_of(operation))
    buffer_access(lowering, operation, row, tuple(address), found)


def buffer_access(
    lowering: Lowering,
    operation: Operation,
    row: int,
    address: tuple[Operand, ...],
    found: Mapping[str, object],
) -> None:
    """Adds the step of a buffer access whose data are in `row`. The extra word describes the vector
    addresses: the index first, then the offset."""
    vector, resource, scalar = address
    if not isinstance(resource, Register) or resource.bank != "s":
        raise Unsupported("a resource that is not in scalar registers")
    words = lowering.registers.scalar(resource, 4, lowering.instruction)
    soffset = lowering.scalar_source(scalar, "i32")
    kinds = (BUFFER_INDEX if found.get("idxen") else 0) | (
        BUFFER_OFFSET if found.get("offen") else 0
    )
    wide = BUFFER_WIDE if lowering.registers.facts.wide_resources else 0
    place = 0
    if kinds:
        count = 2 if kinds == BUFFER_INDEX | BUFFER_OFFSET else 1
        place = lowering.row_source(vector, count)
    elif not is_off(vector):
        raise Unsupported("a vector address without offen or idxen")
    lowering.add(
        operation.name,
        row,
        place,
        words,
        soffset,
        immediate=offset_of(found),
        extra=kinds | wide,
        memory=True,
    )


def _lower_lds(lowering: Lowering, operation: Operation) -> None:
    found = modifiers(lowering, "offset")
    operands = lowering.instruction.operands
    detail = operation.detail
    if isinstance(detail, Atomic) and detail.values == 2:
        # Copy the two data into consecutive rows, the last first.
        *first, address, former, last = operands
        if lowering.instruction.mnemonic.startswith("ds_cmpstore"):
            # gfx11 and later have the new value first.
            former, last = last, former
        size = detail.size // 4
        pair = lowering.temporary(2 * size)
        move = "v_mov_b64" if size == 2 else "v_mov_b32"
        for place, operand in ((pair, last), (pair + size * ROW, former)):
            row = lowering.row_source(operand, size)
            lowering.valu(move, (place,), Source("v", row))
        result = lowering.row_source(first[0], size) if detail.returns else 0
        row = lowering.row_source(address, 1)
        add_access(lowering, operation, ("v", row, 0), pair, result, offset_of(found))
        return
    data, (address, *more), result = _arrange(lowering, operation, operands)
    if more:
        raise Unsupported(f"{len(operands)} operands")
    row = lowering.row_source(address, 1)
    add_access(lowering, operation, ("v", row, 0), data, result, offset_of(found))


def _lower_smem(lowering: Lowering, operation: Operation) -> None:
    """Operands: sdata, the base (an address or a resource), the offset."""
    found = modifiers(lowering, "offset", "glc", "dlc", "th", "scope", "nv", SCALED)
    data, base, offset = lowering.operands(3)
    detail = operation.detail
    assert isinstance(detail, ScalarAccess)
    place = lowering.scalar_target(data, detail.dwords)
    count = 4 if detail.buffer else 2
    if not isinstance(base, Register) or base.bank != "s":
        raise Unsupported("a base that is not a scalar register")
    pointer = lowering.registers.scalar(base, count, lowering.instruction)
    immediate, register = offset_of(found), lowering.word(0).offset
    if isinstance(offset, Immediate):
        immediate += offset.value
    else:
        register = lowering.scalar_source(offset, "i32")
    if found.get(SCALED):
        register = _scaled(lowering, register, detail)
        if not detail.buffer:
            # The product has more than 32 bits: it goes to the base.
            whole = lowering.scalar_temporary()
            lowering.add("s_add_nc_u64", whole, pointer, register)
            pointer, register = whole, lowering.word(0).offset
    sign = 1 << lowering.registers.facts.smem_offset_bits - 1
    immediate = (immediate & sign - 1) - (immediate & sign)
    wide = BUFFER_WIDE if lowering.registers.facts.wide_resources else 0
    lowering.add(
        operation.name, place, pointer, register, immediate=immediate, extra=wide, memory=True
    )


def _scaled(lowering: Lowering, register: int, detail: ScalarAccess) -> int:
    """Returns the place of the unsigned offset register times the size of the access, 64 bits."""
    wide, size = lowering.scalar_temporary(), lowering.word(detail.size)
    lowering.add("s_mov_b64", wide, lowering.word(0).offset)
    lowering.add("s_mov_b32", wide, register)
    product = lowering.scalar_temporary()
    lowering.add("s_mul_u64", product, wide, size.offset)
    return product


LOWERINGS: dict[str, Callable[[Lowering, Operation], None]] = {
    "global": _lower_global,
    "flat": _lower_global,
    "scratch": _lower_scratch,
    "buffer": _lower_buffer,
    "lds": _lower_lds,
    "smem": _lower_smem,
}
