"""`flydsl.expr.llvm`: atomic operations through pointers, and fences.

The first argument is a pointer: `fx.atomic_add(ptr, value)`. With a tensor, an index and a value,
these are the language's own functions.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any

from fly_trace import expr as _language
from fly_trace.control.branches import value_of
from fly_trace.core import tracing
from fly_trace.memory.pointers import Pointer, recast_iter
from fly_trace.values.dtypes import BOOL, F32, F64, I32, I64, U32, U64, DType
from fly_trace.values.scalars import Scalar

from fly.flydsl.numbers.operators import typed
from fly.flydsl.numbers.raw import lift

if TYPE_CHECKING:
    from fly_trace.session.builder import Builder

__all__ = [
    "AtomicOrdering",
    "atomic_add",
    "atomic_and",
    "atomic_cas",
    "atomic_fmax",
    "atomic_fmin",
    "atomic_max",
    "atomic_min",
    "atomic_or",
    "atomic_sub",
    "atomic_xchg",
    "atomic_xor",
    "memory_fence",
]


class AtomicOrdering(enum.Enum):
    """LLVM's orderings."""

    NotAtomic = "not_atomic"
    Unordered = "unordered"
    Monotonic = "monotonic"
    Acquire = "acquire"
    Release = "release"
    AcqRel = "acq_rel"
    SeqCst = "seq_cst"


_Order = AtomicOrdering
# MLIR's numbers of orderings.
_ORDERS = {_Order.Monotonic: 2, _Order.Acquire: 4, _Order.Release: 5} | {
    _Order.AcqRel: 6,
    _Order.SeqCst: 7,
}
# name → llvm.atomicrmw's operation for signed, unsigned and floats; None: there is none.
_OPERATIONS = {
    "add": (1, 1, 11),
    "sub": (2, 2, 12),
    "min": (8, 10, 14),
    "max": (7, 9, 13),
    "and": (3, 3, None),
    "or": (5, 5, None),
    "xor": (6, 6, None),
    "xchg": (0, 0, 0),
}
_KINDS = ("int", "uint", "float")


def _ordering(builder: Builder, what: str, ordering: Any) -> Any:
    if ordering not in _ORDERS:
        allowed = ", ".join(one.name for one in _ORDERS)
        raise TypeError(f"the ordering of {what} is one of {allowed}, not {ordering!r}")
    return builder.integer(_ORDERS[ordering], "i64")


def _scope(builder: Builder, syncscope: Any) -> dict[str, Any]:
    """The attribute for a scope; the whole system has none."""
    name = getattr(syncscope, "value", syncscope)
    return {"syncscope": builder.attribute(f'"{name}"')} if name else {}


def _address(builder: Builder, what: str, ptr: Any) -> Any:
    from fly_dialect.builders import ops

    if not isinstance(ptr, Pointer):
        raise TypeError(f"{what} takes a pointer first, not {type(ptr).__name__}")
    ptr.access.reads = ptr.access.writes = True
    return builder.fly(ops.to_llvm_ptr, ptr.value(builder))


def _operand(value: Any, dtype: DType) -> Any:
    """A value of the pointer's type, if it is a number of Python; else in its own."""
    found = typed(lift(value)) if isinstance(value, Scalar) or not _is_plain(value) else None
    return dtype(value) if found is None else found


def _is_plain(value: Any) -> bool:
    return isinstance(value, (bool, int, float))


def _rmw(name: str) -> Any:
    def function(
        ptr: Any,
        value: Any,
        *more: Any,
        syncscope: Any = None,
        ordering: Any = AtomicOrdering.Monotonic,
        **named: Any,
    ) -> Any:
        if more or named:
            return getattr(_language, f"atomic_{name}")(ptr, value, *more, **named)
        what = f"fx.atomic_{name}"
        builder = tracing.kernel(what)
        address = _address(builder, what, ptr)
        held = _operand(value, ptr.dtype)
        code = dict(zip(_KINDS, _OPERATIONS[name], strict=True)).get(held.dtype.kind)
        if code is None or held.dtype is BOOL:
            raise TypeError(f"{what} has no form for {held.dtype.__name__}")
        old = builder.one(
            "llvm.atomicrmw",
            held.dtype.ir,
            address,
            builder.ssa(held),
            bin_op=builder.integer(code, "i64"),
            ordering=_ordering(builder, what, ordering),
            **_scope(builder, syncscope),
        )
        return Scalar(held.dtype, old)

    function.__name__ = function.__qualname__ = f"atomic_{name}"
    function.__doc__ = f"""`{name}` as one indivisible step; returns the old value. The value's type
    selects the operation. Without `syncscope`, all threads of the system see it as one."""
    return function


atomic_add, atomic_sub = _rmw("add"), _rmw("sub")
atomic_min, atomic_max = _rmw("min"), _rmw("max")
atomic_and, atomic_or = _rmw("and"), _rmw("or")
atomic_xor, atomic_xchg = _rmw("xor"), _rmw("xchg")


def atomic_cas(
    ptr: Any,
    cmp: Any,
    val: Any,
    *more: Any,
    syncscope: Any = None,
    success_ordering: Any = AtomicOrdering.Monotonic,
    failure_ordering: Any = AtomicOrdering.Monotonic,
    weak: bool = False,
    **named: Any,
) -> Any:
    """Stores `val` if the integer at the pointer is `cmp`. Returns the old value, and whether it
    was."""
    if more or named:
        return _language.atomic_cas(ptr, cmp, val, *more, **named)
    what = "fx.atomic_cas"
    builder = tracing.kernel(what)
    address = _address(builder, what, ptr)
    expected, value = _operand(cmp, ptr.dtype), _operand(val, ptr.dtype)
    dtype = expected.dtype
    if dtype is not value.dtype or dtype.is_float:
        raise TypeError(f"{what} takes two integers of one type")
    flags = {"weak": builder.attribute("unit")} if weak else {}
    pair = builder.one(
        "llvm.cmpxchg",
        f"!llvm.struct<({dtype.ir}, i1)>",
        address,
        builder.ssa(expected),
        builder.ssa(value),
        success_ordering=_ordering(builder, what, success_ordering),
        failure_ordering=_ordering(builder, what, failure_ordering),
        **_scope(builder, syncscope),
        **flags,
    )
    parts = [
        builder.one(
            "llvm.extractvalue", kind.ir, pair, position=builder.attribute(f"array<i64: {at}>")
        )
        for at, kind in enumerate((dtype, BOOL))
    ]
    return Scalar(dtype, parts[0]), Scalar(BOOL, parts[1])


def _of_bits(is_max: bool) -> Any:
    def function(
        ptr: Any,
        value: Any,
        *,
        is_positive: bool | None = None,
        syncscope: Any = None,
        ordering: Any = AtomicOrdering.Monotonic,
    ) -> Any:
        held = _operand(value, ptr.dtype)
        words = {F32: (I32, U32), F64: (I64, U64)}.get(held.dtype)
        if words is None:
            raise TypeError(f"fx.{function.__name__} takes f32 or f64, not {held.dtype.__name__}")
        signed, unsigned = words
        named = {"syncscope": syncscope, "ordering": ordering}
        # Floats without a sign order as integers, those with one the other way round.
        plain, other = (atomic_max, atomic_min) if is_max else (atomic_min, atomic_max)

        def positive() -> Any:
            old = plain(recast_iter(signed, ptr), held.bitcast(signed), **named)
            return old.bitcast(held.dtype)

        def negative() -> Any:
            old = other(recast_iter(unsigned, ptr), held.bitcast(unsigned), **named)
            return old.bitcast(held.dtype)

        if is_positive is not None:
            return positive() if is_positive else negative()
        return value_of(held.bitcast(signed) >= 0, positive, negative, "old", "an old value")

    function.__name__ = function.__qualname__ = f"atomic_f{'max' if is_max else 'min'}"
    function.__doc__ = """As `atomic_max` and `atomic_min` of floats, by those of integers. A NaN is
    ordered by its bits. `is_positive`: whether the value's sign bit is known to be clear."""
    return function


atomic_fmax, atomic_fmin = _of_bits(True), _of_bits(False)


def memory_fence(
    order: str | None = None,
    scope: str | None = None,
    *,
    syncscope: Any = None,
    ordering: Any = AtomicOrdering.SeqCst,
) -> None:
    """LLVM's fence. With `order` or `scope`, the language's own one."""
    if order is not None or scope is not None:
        _language.memory_fence(order or "acq_rel", scope or "device")
        return
    what = "fx.memory_fence"
    if ordering is AtomicOrdering.Monotonic:
        raise TypeError(f"{what} acquires, releases, or both")
    builder = tracing.kernel(what)
    attributes = {"ordering": _ordering(builder, what, ordering), **_scope(builder, syncscope)}
    builder.op("llvm.fence", [], [], attributes)
