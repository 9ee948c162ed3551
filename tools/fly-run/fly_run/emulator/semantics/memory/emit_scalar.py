"""The emitter of scalar memory: loads, stores and atomics of an address or a buffer.

Operands are the data, the base (a pair of registers, or a resource of four), and the offset
register; the immediate is the constant offset. For dwords, the low two bits of both parts of an
address are ignored (CDNA3 ISA manual, "SMEM"). A buffer's dwords out of range read as 0 and are
not written: NUM_RECORDS counts bytes, or strides if there is one.
"""

from __future__ import annotations

from fly_run.emulator import state
from fly_run.emulator.irgen import Value
from fly_run.emulator.semantics.base.access import (
    ALIGNED,
    BUFFER_WIDE,
    WRITES,
    Atomic,
    ScalarAccess,
)
from fly_run.emulator.semantics.base.emit import Handler
from fly_run.emulator.semantics.base.operation import Operation
from fly_run.emulator.semantics.memory.emit import host_of, starts
from fly_run.emulator.semantics.memory.resolve_buffer import WideResource
from fly_run.emulator.semantics.memory.transfer import SHORTCUT, exchange, shortcut


def emit_scalar_memory(operation: Operation, name: str) -> Handler:
    handler = Handler(name)
    access = operation.detail
    assert isinstance(access, ScalarAccess)
    offset = handler.operand(2).load("i32").zext("i64") + handler.immediate()
    if access.buffer:
        _buffer(handler, access, _aligned(access, offset))
    else:
        base = _aligned(access, handler.operand(1).load("i64"))
        _whole(handler, access, base + _aligned(access, offset))
    handler.next()
    return handler


def _aligned(access: ScalarAccess, part: Value) -> Value:
    """Returns a part of an address without the ignored bits."""
    return part if access.size < 4 else part & ~3


def _whole(h: Handler, access: ScalarAccess, address: Value) -> None:
    """Accesses all the data at once."""
    if access.kind == "load":
        pointer = _readable(h, address, access.size)
        count = access.size // 4
        if count == 0:
            part = pointer.load(f"i{8 * access.size}", align=1)
            data = part.sext("i32") if access.signed else part.zext("i32")
        else:
            data = pointer.load("i32", count if count > 1 else 0, align=4)
        h.operand(0).store(data, align=4)
    elif access.kind == "store":
        pointer = _checked(h, address, access.size, WRITES)
        for number in range(access.dwords):
            pointer.at(4 * number).store(h.operand(0).at(4 * number).load("i32"), align=4)
    else:
        assert access.atomic is not None
        _atomic(h, access.atomic, address)


def _buffer(h: Handler, access: ScalarAccess, offset: Value) -> None:
    """Accesses the data whose offset is in range, dword by dword if not all are."""
    resource = h.operand(1)
    base = resource.load("i64") & 0xFFFF_FFFF_FFFC
    stride = (resource.at(4).load("i32").lshr(16) & 0x3FFF).zext("i64")
    records = resource.at(8).load("i32").zext("i64")
    limit = stride.compare("eq", 0).select(records, records * stride)
    if access.kind == "load":  # targets with such resources have no other
        is_wide, wide = (h.extra() & BUFFER_WIDE).compare("ne", 0), WideResource.read(resource)
        base = is_wide.select(wide.base & ~3, base)
        limit = is_wide.select(wide.records, limit)
    size = access.size if access.atomic is None else access.atomic.size

    def holds(place: Value, length: int) -> Value:
        """A negative offset is out of range: the comparison is unsigned."""
        return place.compare("ult", starts(h, limit, length))

    by_dwords = access.atomic is None and size > 4
    inside = shortcut(h) if by_dwords else f"inside{h.fresh()}"
    partly, end = (f"{word}{h.fresh()}" for word in ("partly", "end"))
    h.branch_if(holds(offset, size), inside, partly)
    h.block(inside)
    _whole(h, access, base + offset)
    h.branch(end)
    h.block(partly)
    if not by_dwords:
        if access.kind == "load" or (access.atomic and access.atomic.returns):
            h.operand(0).store(h.constant("i64" if size == 8 else "i32", 0), align=4)
    else:

        def turn(carried: list[Value]) -> tuple[list[Value], Value]:
            (place,) = carried
            here = offset + place
            datum = h.operand(0).at(place)
            yes, no, after = (f"{word}{h.fresh()}" for word in ("yes", "no", "after"))
            h.branch_if(holds(here, 4), yes, no)
            h.block(yes)
            if access.kind == "load":
                datum.store(_readable(h, base + here, 4).load("i32", align=4))
            else:
                _checked(h, base + here, 4, WRITES).store(datum.load("i32"), align=4)
            h.branch(after)
            h.block(no)
            if access.kind == "load":
                datum.store(h.constant("i32", 0))
            h.branch(after)
            h.block(after)
            following = place + 4
            return [following], following.compare("ult", size)

        h.loop([h.constant("i64", 0)], turn)
    h.branch(end)
    h.block(end)


def _readable(h: Handler, address: Value, size: int) -> Value:
    """Returns the host pointer of an address to read; uses this site's last region if that contains
    the address."""
    host, inside = host_of(h, "global", address, h.constant("i64", size))
    return h.choose(inside, lambda: host(address), lambda: _checked(h, address, size, 0), SHORTCUT)


def _checked(h: Handler, address: Value, size: int, flags: int) -> Value:
    found = h.call(
        "fly_resolve_scalar",
        "ptr",
        h.wave,
        h.op,
        address,
        h.constant("i64", size),
        h.constant("i64", flags),
    )
    missing = found.compare("eq", h.named("ptr", "null"))
    h.when(missing, lambda: h.stop(state.STATUS_FAULT, h.op))
    return found


def _atomic(h: Handler, atomic: Atomic, address: Value) -> None:
    host = _checked(h, address, atomic.size, WRITES | ALIGNED)
    element = atomic.element
    data = h.operand(0).load(element, align=4)
    expected = h.operand(0).at(atomic.size).load(element, align=4) if atomic.compares else None

    def new_value(old: Value) -> Value:
        if expected is not None:
            return old.compare("eq", expected).select(data, old)
        return atomic.combine(h, old, data)

    old = exchange(h, host, element, new_value)
    if atomic.returns:
        h.operand(0).store(old, align=4)
