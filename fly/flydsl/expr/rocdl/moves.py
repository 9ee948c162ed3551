"""Instructions that FlyDSL gives another form than MLIR's dialect has."""

from __future__ import annotations

from typing import Any

from fly_trace.core import tracing
from fly_trace.expr.types import Int32, Uint32

from fly.flydsl._mlir.dialects import llvm
from fly.flydsl._mlir.dialects import rocdl as _dialect
from fly.flydsl.expr.rocdl.universal import known
from fly.flydsl.numbers.raw import is_value, lift, lower

__all__ = [
    "buffer_load_to_lds",
    "perm_b32",
    "raw_ptr_buffer_atomic_fadd",
    "raw_ptr_buffer_load_lds",
    "s_nop",
    "s_setprio",
    "s_wait_asynccnt",
    "wave_id",
]


def s_setprio(priority: Any) -> None:
    """Sets the wave's priority, 0 to 3."""
    _dialect.s_setprio(int(known(priority)))


def raw_ptr_buffer_atomic_fadd(
    vdata: Any, rsrc: Any, offset: Any, soffset: Any, aux: Any = None, **named: Any
) -> None:
    """Adds floats to memory behind a buffer descriptor."""
    value = lower(lift(vdata))
    _dialect.raw_ptr_buffer_atomic_fadd(
        value.type, value, rsrc, offset, soffset, aux=immediate(aux), **named
    )


def raw_ptr_buffer_load_lds(
    rsrc: Any,
    lds_ptr: Any,
    size: Any,
    voffset: Any,
    soffset: Any,
    offset: Any,
    aux: Any = None,
    **named: Any,
) -> Any:
    """Copies memory behind a buffer descriptor to LDS."""
    operands = (rsrc, lds_ptr, size, voffset, soffset, offset)
    return _dialect.raw_ptr_buffer_load_lds(*operands, aux=immediate(aux), **named)


def buffer_load_to_lds(
    rsrc: Any,
    lds_ptr: Any,
    voffset: Any,
    size_bytes: Any = 4,
    soffset: Any = 0,
    offset: Any = 0,
    **named: Any,
) -> Any:
    """Copies `size_bytes` bytes a lane from memory behind a buffer descriptor to LDS. Numbers of
    Python are 32-bit constants."""
    voffset, size, soffset, offset = (
        Int32(one) if isinstance(one, int) else one
        for one in (voffset, size_bytes, soffset, offset)
    )
    return raw_ptr_buffer_load_lds(rsrc, lds_ptr, size, voffset, soffset, offset, 0, **named)


def perm_b32(high: Any, low: Any, selector: Any) -> Any:
    """Four bytes of eight: byte i is the one that byte i of `selector` numbers, from 0 in `low` to
    7 in `high`."""
    operands = [Uint32(one) for one in (high, low, selector)]
    return llvm.call_intrinsic(Uint32, "llvm.amdgcn.perm", operands, [], [])


def immediate(value: Any) -> Any:
    """A number that is known while tracing as an attribute of MLIR; what is one already as such.
    FlyDSL passes some as constants, of which it is the value."""
    found = known(value)
    if isinstance(found, int):
        return tracing.kernel("an instruction").integer(found, "i32")
    if is_value(found):
        owner = lower(found).owner
        if getattr(owner, "name", "") != "arith.constant":
            tracing.refuse("an immediate operand must be known while tracing")
        return owner.attributes["value"]
    return found


def s_nop(count: Any) -> None:
    """Waits `count` + 1 cycles."""
    _dialect.s_nop(int(known(count)))


def s_wait_asynccnt(count: Any = 0) -> None:
    """Waits until at most `count` asynchronous accesses are under way."""
    _dialect.s_wait_asynccnt(int(known(count)))


def wave_id() -> Any:
    """The number of the wave in its workgroup, of gfx1250."""
    from fly.flydsl.expr.typing import T

    return _dialect.wave_id(T.i32)
