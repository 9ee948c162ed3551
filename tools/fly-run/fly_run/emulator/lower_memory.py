"""Lowering of loads, stores, atomics and lane moves through LDS hardware."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from fly_run.emulator import dpp
from fly_run.emulator.instruction import Immediate, Name, Operand, Register
from fly_run.emulator.lower import Lowering, Source, modifiers
from fly_run.emulator.registers import Unsupported
from fly_run.emulator.semantics.access import Access, Atomic
from fly_run.emulator.semantics.operation import Operation
from fly_run.emulator.state import ROW

# They say which caches an access goes through; here there is one memory.
CACHE = ("glc", "slc", "dlc", "nv", "scc", "sc0", "sc1", "nt", "th", "scope")


def lower_memory(lowering: Lowering, operation: Operation, encoding: str) -> None:
    LOWERINGS[operation.form](lowering, operation)


def _is_off(operand: Operand) -> bool:
    return isinstance(operand, Name) and operand.text == "off"


def _registers(operation: Operation) -> int:
    """How many registers the data take."""
    detail = operation.detail
    if isinstance(detail, Access):
        return detail.dwords
    return detail.size // 4 * (2 if detail.compares else 1)


def _arrange(
    lowering: Lowering, operation: Operation, operands: tuple[Operand, ...]
) -> tuple[int, tuple[Operand, ...], int]:
    """The data row, the operands that make the address, and the row of an atomic's result, from
    the order in which GLOBAL, FLAT, SCRATCH and DS instructions are written."""
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
    return lowering.row_source(data, _registers(operation)), (first, *more), result


def _offset(found: Mapping[str, object]) -> int:
    value = found.get("offset", 0)
    assert isinstance(value, int)
    return value


def _add(
    lowering: Lowering,
    operation: Operation,
    variant: str,
    data: int,
    address: int,
    base: int,
    result: int,
    offset: int,
) -> None:
    """The step: an atomic's operand 0 is its result, operand 3 its data."""
    places = (data, address, base)
    if isinstance(operation.detail, Atomic):
        places = (result, address, base, data)
    lowering.add(f"{operation.name}.{variant}", *places, immediate=offset, memory=True)


def _lower_global(lowering: Lowering, operation: Operation) -> None:
    found = modifiers(lowering, "offset", *CACHE)
    data, address, result = _arrange(lowering, operation, lowering.instruction.operands)
    if operation.form == "flat":
        (vector,) = address
        scalar: Operand = Name("off")
    else:
        vector, scalar = address
    if _is_off(scalar):
        row = lowering.row_source(vector, 2)
        _add(lowering, operation, "v", data, row, 0, result, _offset(found))
        return
    base = lowering.scalar_source(scalar, "i64")
    row = lowering.row_source(vector, 1)
    _add(lowering, operation, "s", data, row, base, result, _offset(found))


def _lower_scratch(lowering: Lowering, operation: Operation) -> None:
    found = modifiers(lowering, "offset", *CACHE)
    data, (vector, scalar), result = _arrange(lowering, operation, lowering.instruction.operands)
    zero = lowering.word(0).offset
    base = zero if _is_off(scalar) else lowering.scalar_source(scalar, "i32")
    if _is_off(vector):
        _add(lowering, operation, "s", data, 0, base, result, _offset(found))
    else:
        row = lowering.row_source(vector, 1)
        _add(lowering, operation, "v", data, row, base, result, _offset(found))


def _lower_buffer(lowering: Lowering, operation: Operation) -> None:
    """vdata, vaddr or off, the resource, the scalar offset. Atomics return in vdata."""
    found = modifiers(lowering, "offset", "offen", *CACHE)
    data, vector, resource, scalar = lowering.operands(4)
    row = lowering.row_source(data, _registers(operation))
    if not isinstance(resource, Register) or resource.bank != "s":
        raise Unsupported("a resource that is not in scalar registers")
    words = lowering.registers.scalar(resource, 4, lowering.instruction)
    soffset = lowering.scalar_source(scalar, "i32")
    variant, address = "s", 0
    if found.get("offen"):
        variant, address = "v", lowering.row_source(vector, 1)
    elif not _is_off(vector):
        raise Unsupported("a vector address without offen")
    lowering.add(
        f"{operation.name}.{variant}",
        row,
        address,
        words,
        soffset,
        immediate=_offset(found),
        memory=True,
    )


def _lower_lds(lowering: Lowering, operation: Operation) -> None:
    found = modifiers(lowering, "offset")
    operands = lowering.instruction.operands
    detail = operation.detail
    if isinstance(detail, Atomic) and detail.compares:
        # DS writes the expected value first, and the two may be anywhere: bring them together.
        *first, address, expected, new = operands
        if lowering.instruction.mnemonic.startswith("ds_cmpstore"):
            # gfx11 and later write the new value first.
            expected, new = new, expected
        size = detail.size // 4
        pair = lowering.temporary(2 * size)
        move = "v_mov_b64" if size == 2 else "v_mov_b32"
        for place, operand in ((pair, new), (pair + size * ROW, expected)):
            row = lowering.row_source(operand, size)
            lowering.valu(move, (place,), Source("v", row))
        result = lowering.row_source(first[0], size) if detail.returns else 0
        row = lowering.row_source(address, 1)
        _add(lowering, operation, "v", pair, row, 0, result, _offset(found))
        return
    data, (address, *more), result = _arrange(lowering, operation, operands)
    if more:
        raise Unsupported(f"{len(operands)} operands")
    row = lowering.row_source(address, 1)
    _add(lowering, operation, "v", data, row, 0, result, _offset(found))


def _lower_smem(lowering: Lowering, operation: Operation) -> None:
    found = modifiers(lowering, "offset", "glc", "dlc", "th", "scope")
    target, base, offset = lowering.operands(3)
    count = operation.detail.dwords
    place = lowering.scalar_target(target, count)
    pointer = lowering.scalar_source(base, "i64")
    immediate, register = _offset(found), lowering.word(0).offset
    if isinstance(offset, Immediate):
        immediate += offset.value
    else:
        register = lowering.scalar_source(offset, "i32")
    sign = 1 << lowering.registers.target.smem_bits - 1
    immediate = (immediate & sign - 1) - (immediate & sign)
    lowering.add(operation.name, place, pointer, register, immediate=immediate, memory=True)


LOWERINGS: dict[str, Callable[[Lowering, Operation], None]] = {
    "global": _lower_global,
    "flat": _lower_global,
    "scratch": _lower_scratch,
    "buffer": _lower_buffer,
    "lds": _lower_lds,
    "smem": _lower_smem,
}


# -- instructions made of others --------------------------------------------------------------


def _pair(single: str, scale: int) -> Callable[[Lowering, str, str], None]:
    """ds_read2, ds_write2: two accesses, whose offsets count elements (of 64 in the st64 forms)."""

    def run(lowering: Lowering, name: str, encoding: str) -> None:
        found = modifiers(lowering, "offset0", "offset1")
        offsets = [scale * int(found.get(f"offset{n}", 0) or 0) for n in (0, 1)]  # type: ignore[call-overload]
        registers = _registers(lowering.table[single])
        if "read" in single:
            target, address = lowering.operands(2)
            row = lowering.row_source(address, 1)
            result = lowering.row_source(target, 2 * registers)
            if result <= row < result + 2 * registers * ROW:
                # The first result must not change the second address.
                aside = lowering.temporary()
                lowering.valu("v_mov_b32", (aside,), Source("v", row))
                row = aside
            places = [result, result + registers * ROW]
            if registers == 1:
                # Skips the two reads below where the lanes' addresses follow each other.
                lowering.add("fly_read_pair", *places, row, immediate=offsets[0], extra=offsets[1])
        else:
            address, *data = lowering.operands(3)
            row = lowering.row_source(address, 1)
            places = [lowering.row_source(operand, registers) for operand in data]
        for place, offset in zip(places, offsets, strict=True):
            lowering.add(f"{single}.v", place, row, 0, immediate=offset, memory=True)

    return run


def _permute(lowering: Lowering, name: str, encoding: str) -> None:
    """ds_bpermute_b32, ds_permute_b32."""
    found = modifiers(lowering, "offset")
    target, address, data = lowering.operands(3)
    rows = [lowering.row_source(operand, 1) for operand in (target, address, data)]
    lowering.add(lowering.table[name].name, *rows, immediate=_offset(found))


def _swizzle(lowering: Lowering, name: str, encoding: str) -> None:
    found = modifiers(lowering, "offset")
    target, source = (lowering.row_source(operand, 1) for operand in lowering.operands(2))
    table = lowering.registers.constants.row(dpp.swizzle(_offset(found)))
    lowering.add(name, target, source, table)


EXPANSIONS: dict[str, Callable[[Lowering, str, str], None]] = {
    **{
        f"ds_{kind}2{far}_b{width}": _pair(f"ds_{kind}_b{width}", width // 8 * (64 if far else 1))
        for kind in ("read", "write")
        for far in ("", "st64")
        for width in (32, 64)
    },
    "ds_bpermute_b32": _permute,
    "ds_permute_b32": _permute,
    "ds_swizzle_b32": _swizzle,
}
