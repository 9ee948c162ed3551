"""`flydsl.expr.llvm`: loads, stores, atomic operations and fences through pointers.

FlyDSL's `fx.atomic_add(pointer, value)` has a pointer where the language's has a tensor and an
index. Both are taken here: what comes first tells which.
"""

from __future__ import annotations

from enum import Enum
from typing import Any, NoReturn

import fly_trace.expr as _language
from fly_trace.control import branches
from fly_trace.core import tracing
from fly_trace.gpu.atomics import RMW
from fly_trace.memory.pointers import Pointer
from fly_trace.memory.tensors import Tensor
from fly_trace.values.dtypes import BOOL, F32, F64, I8, I32, I64, U32, U64, DType
from fly_trace.values.scalars import Scalar
from fly_trace.values.vector.vectors import Vector, VectorType
from fly_trace.values.vector_shapes import vector_ir

from fly.flydsl.expr.primitive import element, to_llvm_ptr
from fly.flydsl.numbers.operators import typed
from fly.flydsl.numbers.raw import escape, lift, lower

_NAMES = ("add", "sub", "min", "max", "and", "or", "xor", "xchg")
__all__ = [*(f"atomic_{name}" for name in _NAMES), "atomic_cas", "atomic_fmax", "atomic_fmin"]
__all__ += ["AtomicOrdering", "generic_load", "generic_store", "memory_fence"]


class AtomicOrdering(Enum):
    """The orderings of LLVM's memory model."""

    NotAtomic = "not_atomic"
    Unordered = "unordered"
    Monotonic = "monotonic"
    Acquire = "acquire"
    Release = "release"
    AcqRel = "acq_rel"
    SeqCst = "seq_cst"


_ORDERINGS = {kind: at + (at > 2) for at, kind in enumerate(AtomicOrdering)}  # LLVM has no 3
# The float forms of LLVM's read-modify-writes.
_FLOATS = {"add": 11, "sub": 12, "max": 13, "min": 14, "xchg": 0}
_ATOMIC_BITS = (8, 16, 32, 64)


def _refuse(what: str) -> NoReturn:
    raise TypeError(what)


def _ordering(builder: Any, ordering: Any, least: int = 0) -> Any:
    """LLVM's number of an ordering, which for a read-modify-write is at least Monotonic."""
    if _ORDERINGS.get(ordering, least) < least:
        raise ValueError(f"the ordering is at least Monotonic here, not {ordering}")
    if not isinstance(ordering, AtomicOrdering):
        code = getattr(ordering, "value", None)
        if not isinstance(code, int):  # of MLIR's enumeration
            _refuse(f"ordering must be an fx.AtomicOrdering, not {ordering!r}")
        return builder.integer(code, "i64")
    return builder.integer(_ORDERINGS[ordering], "i64")


def _scope(builder: Any, syncscope: Any) -> dict[str, Any]:
    return {"syncscope": builder.attribute(f'"{syncscope}"')} if syncscope else {}


def _address(ptr: Any) -> Any:
    """`ptr` as a `!llvm.ptr`."""
    escape(ptr)
    if isinstance(ptr, Pointer):
        return lower(to_llvm_ptr(ptr))
    found = lower(lift(ptr))
    if not str(getattr(found, "type", "")).startswith("!llvm.ptr"):
        _refuse(f"the pointer must be an fx.Pointer or an !llvm.ptr, not {tracing.describe(ptr)}")
    return found


def _aligned(builder: Any, ptr: Any, size: int) -> dict[str, Any]:
    """The alignment of an atomic operation on so many bytes, which is at least that."""
    known = ptr.spec.align if isinstance(ptr, Pointer) else None
    return {"alignment": builder.integer(max(known or 0, size), "i64")}


def _operand(value: Any, ptr: Any) -> Any:
    """A number or vector; a number of Python gets the pointer's element type."""
    if isinstance(value, (bool, int, float)) and isinstance(ptr, Pointer):
        value = ptr.dtype(value)
    value = typed(lift(value))
    if not isinstance(value, (Scalar, Vector)):
        _refuse(f"an atomic operation takes a number or a vector, not {tracing.describe(value)}")
    if isinstance(ptr, Pointer) and value.dtype.ir != ptr.dtype.ir:
        _refuse(
            f"atomic value type {value.dtype.title} must match pointer element type "
            f"{ptr.dtype.title}: fx.{ptr.dtype.title}(…), or fx.recast_iter of the pointer"
        )
    return value


def _like(value: Any, made: Any) -> Any:
    """A result of the value's type."""
    if isinstance(value, Vector):
        return Vector(made, value.shape, value.dtype)
    return Scalar(value.dtype, made)


def _ssa(builder: Any, value: Any) -> Any:
    return value.value if isinstance(value, Vector) else builder.ssa(value)


def _modify(name: str, ptr: Any, value: Any, syncscope: Any, ordering: Any) -> Any:
    builder = tracing.kernel(f"fx.atomic_{name}")
    value = _operand(value, ptr)
    dtype = value.dtype
    if dtype.is_float:
        code = _FLOATS.get(name) if dtype.bits >= 16 else None
        if code is None:
            _refuse(f"fx.atomic_{name} has no form for {dtype.title}")
    elif dtype is BOOL or dtype.bits not in _ATOMIC_BITS:
        _refuse(f"fx.atomic_{name} takes integers of 8 to 64 bits, not {dtype.title}")
    else:
        code = RMW[name][0 if dtype.is_signed else 1]
    if isinstance(value, Vector) and (not dtype.is_float or name == "xchg"):
        _refuse(f"fx.atomic_{name} takes no vector of {dtype.title}")
    held = _ssa(builder, value)
    size = dtype.bytes * (value.numel if isinstance(value, Vector) else 1)
    old = builder.one(
        "llvm.atomicrmw",
        str(held.type),
        _address(ptr),
        held,
        bin_op=builder.integer(code, "i64"),
        ordering=_ordering(builder, ordering, 2),
        **_aligned(builder, ptr, size),
        **_scope(builder, syncscope),
    )
    return _like(value, old)


def _atomic(name: str) -> Any:
    def function(
        ptr: Any,
        *values: Any,
        syncscope: Any = None,
        ordering: Any = AtomicOrdering.Monotonic,
        **named: Any,
    ) -> Any:
        if isinstance(ptr, Tensor):  # the language's: a tensor, an index, a value
            return getattr(_language, f"atomic_{name}")(ptr, *values, **named)
        values = (*values, *(named.pop(one) for one in ("value",) if one in named))
        if len(values) != 1 or named:
            _refuse(f"fx.atomic_{name} takes a pointer and a value, or a tensor, an index and one")
        return _modify(name, ptr, values[0], syncscope, ordering)

    function.__name__ = function.__qualname__ = f"atomic_{name}"
    function.__doc__ = (
        f"`{name}` of the element at a pointer and a value, in one step; gives the old value."
        " syncscope: LLVM's, by default the system. ordering: an AtomicOrdering."
    )
    return function


atomic_add, atomic_sub, atomic_min, atomic_max = map(_atomic, _NAMES[:4])
atomic_and, atomic_or, atomic_xor, atomic_xchg = map(_atomic, _NAMES[4:])


def _float_extremum(
    name: str, ptr: Any, value: Any, is_positive: Any, syncscope: Any, ordering: Any
) -> Any:
    """A float's bits have the order of signed integers if it is not negative, and the reverse order
    of unsigned ones if it is: one atomic operation on integers, of the value's sign. NaN has the
    order of its bits."""
    value = _operand(value, ptr)
    if value.dtype not in (F32, F64) or isinstance(value, Vector):
        _refuse(f"fx.atomic_f{name} takes an fx.Float32 or fx.Float64, not {value.dtype.title}")
    signed, unsigned = (I32, U32) if value.dtype is F32 else (I64, U64)
    other = "min" if name == "max" else "max"

    def modify(op: str, dtype: DType) -> Any:
        at = _language.recast_iter(dtype, ptr) if isinstance(ptr, Pointer) else ptr
        old = _modify(op, at, value.bitcast(dtype), syncscope, ordering)
        return old.bitcast(signed)

    if is_positive is None:
        negative, what = value.bitcast(signed) < signed(0), f"fx.atomic_f{name}"
        found = branches.value_of(
            negative,
            lambda: modify(other, unsigned),
            lambda: modify(name, signed),
            what,
            what,
        )
    else:
        found = modify(name, signed) if is_positive else modify(other, unsigned)
    return found.bitcast(value.dtype)


def atomic_fmax(
    ptr: Any,
    value: Any,
    *,
    is_positive: bool | None = None,
    syncscope: Any = None,
    ordering: Any = AtomicOrdering.Monotonic,
) -> Any:
    """The greater of the float at a pointer and a value, in one step; gives the old value. NaN has
    the order of its bits. `is_positive` declares the value's sign."""
    return _float_extremum("max", ptr, value, is_positive, syncscope, ordering)


def atomic_fmin(
    ptr: Any,
    value: Any,
    *,
    is_positive: bool | None = None,
    syncscope: Any = None,
    ordering: Any = AtomicOrdering.Monotonic,
) -> Any:
    """The lesser of the float at a pointer and a value, as `atomic_fmax`."""
    return _float_extremum("min", ptr, value, is_positive, syncscope, ordering)


def atomic_cas(
    ptr: Any,
    *operands: Any,
    syncscope: Any = None,
    success_ordering: Any = AtomicOrdering.Monotonic,
    failure_ordering: Any = AtomicOrdering.Monotonic,
    weak: bool = False,
    **named: Any,
) -> Any:
    """Stores `val` at a pointer if the integer there equals `cmp`. Gives the old value, and whether
    it was stored."""
    if isinstance(ptr, Tensor):
        return _language.atomic_cas(ptr, *operands, **named)
    operands = (*operands, *(named.pop(one) for one in ("cmp", "val") if one in named))
    if len(operands) != 2 or named:
        _refuse("fx.atomic_cas takes a pointer, cmp and val, or a tensor, an index and these")
    builder = tracing.kernel("fx.atomic_cas")
    expected = _operand(operands[0], ptr)
    dtype = expected.dtype
    if dtype.is_float or dtype is BOOL or isinstance(expected, Vector):
        _refuse(f"fx.atomic_cas takes integers, not {dtype.title}: reinterpret them by bitcast")
    value = operands[1] if isinstance(operands[1], Scalar) else dtype(operands[1])
    if value.dtype is not dtype:
        _refuse(f"cmp and val must have one type, not {dtype.title} and {value.dtype.title}")
    pair = builder.one(
        "llvm.cmpxchg",
        f"!llvm.struct<({dtype.ir}, i1)>",
        _address(ptr),
        builder.ssa(expected),
        builder.ssa(value),
        success_ordering=_ordering(builder, success_ordering, 2),
        failure_ordering=_ordering(builder, failure_ordering, 2),
        **({"weak": builder.attribute("unit")} if weak else {}),
        **_aligned(builder, ptr, dtype.bytes),
        **_scope(builder, syncscope),
    )
    at = [builder.attribute(f"array<i64: {index}>") for index in range(2)]
    old = builder.one("llvm.extractvalue", dtype.ir, pair, position=at[0])
    stored = builder.one("llvm.extractvalue", "i1", pair, position=at[1])
    return Scalar(dtype, old), Scalar(BOOL, stored)


def _accessed(
    builder: Any,
    ptr: Any,
    order: Any,
    syncscope: Any,
    wrong: tuple[AtomicOrdering, ...],
    flags: dict[str, bool],
) -> dict[str, Any]:
    """The attributes of a load or store."""
    if not isinstance(ptr, Pointer):
        _refuse(f"an fx.Pointer is needed, not {tracing.describe(ptr)}")
    if order in wrong:
        raise ValueError(
            f"a {'load' if AtomicOrdering.Release in wrong else 'store'} can't be {order}"
        )
    plain = order is AtomicOrdering.NotAtomic
    if plain and syncscope is not None:
        raise ValueError("syncscope requires an atomic memory order")
    found = {} if plain else {"ordering": _ordering(builder, order), **_scope(builder, syncscope)}
    found |= {name: builder.attribute("unit") for name, on in flags.items() if on}
    align = ptr.spec.align or ptr.dtype.bytes
    return found | {"alignment": builder.integer(align, "i64")}


def generic_load(
    ptr: Any,
    *,
    dtype: Any = None,
    count: int | None = None,
    memory_order: Any = AtomicOrdering.NotAtomic,
    syncscope: Any = None,
    nontemporal: bool = False,
    volatile: bool = False,
) -> Any:
    """The number at a pointer, or a vector: `count` elements, or of a vector's type."""
    builder = tracing.kernel("fx.generic_load")
    kind = element(dtype) if dtype is not None else getattr(ptr, "dtype", None)
    if count is not None and (type(count) is not int or count < 1):
        raise ValueError(f"count must be a positive integer or None, not {count!r}")
    flags = {"nontemporal": nontemporal, "volatile_": volatile}
    wrong = (AtomicOrdering.Release, AtomicOrdering.AcqRel)
    attributes = _accessed(builder, ptr, memory_order, syncscope, wrong, flags)
    lanes = count if count is not None and count > 1 else None
    if isinstance(kind, VectorType):
        if count is not None:
            raise ValueError("count must be None where dtype is a vector type")
        kind, lanes = kind.dtype, kind.lanes
    if not isinstance(kind, DType):
        _refuse("dtype must be a number's type or a vector type")
    result = kind.memory if lanes is None else vector_ir(kind, lanes)
    made = builder.one("llvm.load", result, _address(ptr), **attributes)
    if lanes is not None:
        return Vector(made, (lanes,), kind)
    return Scalar(I8, made).to(BOOL) if kind is BOOL else Scalar(kind, made)


def generic_store(
    ptr: Any,
    value: Any,
    *,
    memory_order: Any = AtomicOrdering.NotAtomic,
    syncscope: Any = None,
    nontemporal: bool = False,
    volatile: bool = False,
) -> None:
    """Stores a number or a vector at a pointer."""
    builder = tracing.kernel("fx.generic_store")
    flags = {"nontemporal": nontemporal, "volatile_": volatile}
    wrong = (AtomicOrdering.Acquire, AtomicOrdering.AcqRel)
    attributes = _accessed(builder, ptr, memory_order, syncscope, wrong, flags)
    value = typed(lift(value))
    held = _ssa(builder, value)
    if getattr(value, "dtype", None) is BOOL:
        held = builder.one("arith.extui", "i8", held)
    builder.op("llvm.store", [], [held, _address(ptr)], attributes)


def memory_fence(*language: Any, syncscope: Any = None, ordering: Any = None, **named: Any) -> None:
    """Orders accesses before it and behind it: `ordering` for those that see `syncscope`."""
    if language or named:
        _language.memory_fence(*language, **named)
        return
    builder = tracing.kernel("fx.memory_fence")
    order = AtomicOrdering.SeqCst if ordering is None else ordering
    if order in (AtomicOrdering.NotAtomic, AtomicOrdering.Unordered, AtomicOrdering.Monotonic):
        raise ValueError(f"a fence is at least Acquire, not {order}")
    attributes = {"ordering": _ordering(builder, order), **_scope(builder, syncscope)}
    builder.op("llvm.fence", [], [], attributes)
