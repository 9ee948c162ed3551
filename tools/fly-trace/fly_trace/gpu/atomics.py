"""Atomic operations on one element of a tensor, and fences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fly_trace.core import tracing
from fly_trace.core.tracing import describe
from fly_trace.memory.pointers import converted
from fly_trace.memory.tensors import Tensor
from fly_trace.values.dtypes import BOOL, I8, I16, DType
from fly_trace.values.scalars import Scalar

if TYPE_CHECKING:
    from fly_trace.session.builder import Builder

# name → llvm.atomicrmw's bin_op for signed, unsigned, float (None: unsupported).
RMW = {
    "add": (1, 1, 11),
    "sub": (2, 2, None),
    "min": (8, 10, 14),
    "max": (7, 9, 13),
    "and": (3, 3, None),
    "or": (5, 5, None),
    "xor": (6, 6, None),
    "xchg": (0, 0, 0),
    "inc": (None, 15, None),
    "dec": (None, 16, None),
}
# LLVM's orderings. Relaxed: atomic, without an order of other accesses.
ORDERS = {"relaxed": 2, "acquire": 4, "release": 5, "acq_rel": 6, "seq_cst": 7}
# Who sees the order → LLVM's scope in a trace; a backend renames it.
SCOPES = {"block": "workgroup", "device": "agent", "system": ""}
_DEFAULT_SCOPES = {"global": "device", "shared": "block"}
_LOADS = ("relaxed", "acquire", "seq_cst")
_STORES = ("relaxed", "release", "seq_cst")
_FENCES = ("acquire", "release", "acq_rel", "seq_cst")
_ON_FAILURE = {"release": "relaxed", "acq_rel": "acquire"}  # a failed exchange stores nothing


def _atomic_target(
    name: str, target: Any, index: Any, kinds: tuple[str, ...]
) -> tuple[Builder, Any]:
    """The builder, and an element's `!llvm.ptr`. `kinds` are those of the types that it supports:
    int, uint, float."""
    from fly_dialect.builders import ops

    builder = tracing.kernel(f"fx.atomic_{name}")
    if not isinstance(target, Tensor):
        tracing.refuse(f"fx.atomic_{name} takes a tensor first, not {describe(target)}")
    dtype = target.dtype
    if dtype in (I8, I16, BOOL) or dtype.bits not in (32, 64) or dtype.kind not in kinds:
        letters = {"int": "i32, i64", "uint": "u32, u64", "float": "f32, f64"}
        allowed = ", ".join(text for kind, text in letters.items() if kind in kinds)
        tracing.refuse(f"fx.atomic_{name} supports {allowed}, but {target.name} has {dtype.name}")
    coordinate = target.coordinate(builder, index)
    layout = builder.fly(ops.get_layout, target.ssa)
    offset = builder.fly(ops.crd2idx, coordinate, layout)
    iterator = builder.fly(ops.get_iter, target.ssa)
    pointer = builder.fly(ops.to_llvm_ptr, builder.fly(ops.add_offset, iterator, offset))
    return builder, pointer


def _ordering(what: str, order: Any, allowed: Any = tuple(ORDERS)) -> int:
    if order not in allowed:
        tracing.refuse(f"the order of {what} is {_list(allowed)}, not {describe(order)}")
    return ORDERS[order]


def _scope(what: str, scope: Any) -> str:
    if scope not in SCOPES:
        tracing.refuse(f"the scope of {what} is {_list(SCOPES)}, not {describe(scope)}")
    return SCOPES[scope]


def _list(names: Any) -> str:
    quoted = [f'"{name}"' for name in names]
    return f"{', '.join(quoted[:-1])} or {quoted[-1]}"


def _attributes(builder: Builder, what: str, target: Tensor, scope: Any) -> dict[str, Any]:
    """The attribute for the scope: by default the device for global memory, the block for shared
    memory. The whole system has none."""
    name = _scope(what, _DEFAULT_SCOPES[target.space] if scope is None else scope)
    return {"syncscope": builder.attribute(f'"{name}"')} if name else {}


def _atomic(name: str, doc: str) -> Any:
    signed, unsigned, floating = RMW[name]
    codes = {"int": signed, "uint": unsigned, "float": floating}
    kinds = tuple(kind for kind, code in codes.items() if code is not None)

    def function(
        target: Any, index: Any, value: Any, order: str = "relaxed", scope: str | None = None
    ) -> Scalar:
        what = f"fx.atomic_{name}"
        builder, pointer = _atomic_target(name, target, index, kinds)
        ordering = builder.integer(_ordering(what, order), "i64")
        target.access.reads = target.access.writes = True
        dtype: DType = target.dtype
        old = builder.one(
            "llvm.atomicrmw",
            dtype.ir,
            pointer,
            builder.ssa(converted(value, target.dtype, target.name)),
            bin_op=builder.integer(codes[dtype.kind], "i64"),
            ordering=ordering,
            **_attributes(builder, what, target, scope),
        )
        return Scalar(dtype, old)

    function.__name__ = function.__qualname__ = f"atomic_{name}"
    function.__doc__ = f"""{doc} as one indivisible step; gives the old value.

    {_TYPES.format(", ".join(_NAMES[kind] for kind in kinds))}"""
    return function


_NAMES = {"int": "i32, i64", "uint": "u32, u64", "float": "f32, f64"}
_TYPES = """target: a tensor of {}, in global or shared memory. order: "relaxed",
    "acquire" (later accesses stay behind it), "release" (earlier ones before it), "acq_rel", or
    "seq_cst" (all of these have one order). scope: the threads that see it as atomic and in order:
    "block", "device" or "system"; by default the device for global memory, the block for shared
    memory. Results depend on the order of threads for "xchg", for floats by rounding, and for the
    old value. Cost: one atomic instruction; acquiring waits and invalidates caches of the scope,
    releasing waits and writes them back."""

atomic_add = _atomic("add", "Adds to an element")
atomic_sub = _atomic("sub", "Subtracts from an element")
atomic_min = _atomic(
    "min", "The lesser of an element and a value (of floats the number, if one is NaN),"
)
atomic_max = _atomic(
    "max", "The greater of an element and a value (of floats the number, if one is NaN),"
)
atomic_and = _atomic("and", "`&` of an element and a value,")
atomic_or = _atomic("or", "`|` of an element and a value,")
atomic_xor = _atomic("xor", "`^` of an element and a value,")
atomic_xchg = _atomic("xchg", "Replaces an element")
atomic_inc = _atomic("inc", "Adds 1 to an element, or makes it 0 if it is `value` or more,")
atomic_dec = _atomic(
    "dec", "Subtracts 1 from an element, or makes it `value` if it is 0 or above that,"
)


def atomic_cas(
    target: Any,
    index: Any,
    expected: Any,
    value: Any,
    order: str = "relaxed",
    scope: str | None = None,
) -> Scalar:
    """Stores `value` if the element equals `expected`. Returns the old value in both cases.

    target, order, scope: as of `atomic_add`, without floats. If it stores nothing, it releases
    nothing."""
    what = "fx.atomic_cas"
    builder, pointer = _atomic_target("cas", target, index, ("int", "uint"))
    success = _ordering(what, order)
    target.access.reads = target.access.writes = True
    dtype = target.dtype
    operands = [
        builder.ssa(converted(operand, target.dtype, target.name)) for operand in (expected, value)
    ]
    pair = builder.one(
        "llvm.cmpxchg",
        f"!llvm.struct<({dtype.ir}, i1)>",
        pointer,
        *operands,
        success_ordering=builder.integer(success, "i64"),
        failure_ordering=builder.integer(ORDERS[_ON_FAILURE.get(order, order)], "i64"),
        **_attributes(builder, what, target, scope),
    )
    first = builder.attribute("array<i64: 0>")
    return Scalar(dtype, builder.one("llvm.extractvalue", dtype.ir, pair, position=first))


def atomic_load(
    target: Any, index: Any, order: str = "relaxed", scope: str | None = None
) -> Scalar:
    """Loads an element: never half of a store, never a value from before the last load of it.

    target, scope: as of `atomic_add`. order: "relaxed", "acquire" or "seq_cst". Cost: a load past
    the caches that the scope does not share."""
    what = "fx.atomic_load"
    builder, pointer = _atomic_target("load", target, index, tuple(_NAMES))
    ordering = _ordering(what, order, _LOADS)
    target.access.reads = True
    loaded = builder.one(
        "llvm.load",
        target.dtype.ir,
        pointer,
        ordering=builder.integer(ordering, "i64"),
        alignment=builder.integer(target.dtype.bytes, "i64"),
        **_attributes(builder, what, target, scope),
    )
    return Scalar(target.dtype, loaded)


def atomic_store(
    target: Any, index: Any, value: Any, order: str = "relaxed", scope: str | None = None
) -> None:
    """Stores an element, as a whole.

    target, scope: as of `atomic_add`. order: "relaxed", "release" or "seq_cst". Cost: a store past
    the caches that the scope does not share."""
    what = "fx.atomic_store"
    builder, pointer = _atomic_target("store", target, index, tuple(_NAMES))
    ordering = _ordering(what, order, _STORES)
    target.access.writes = True
    attributes = {
        "ordering": builder.integer(ordering, "i64"),
        "alignment": builder.integer(target.dtype.bytes, "i64"),
        **_attributes(builder, what, target, scope),
    }
    stored = builder.ssa(converted(value, target.dtype, target.name))
    builder.op("llvm.store", [], [stored, pointer], attributes)


def memory_fence(order: str = "acq_rel", scope: str = "device") -> None:
    """Orders this thread's accesses to memory before the fence and after it, as other threads see
    them that use a fence or an ordered atomic operation too. It waits for no thread.

    order: "acquire", "release", "acq_rel" or "seq_cst". scope: the threads that see it: "block",
    "device" or "system". Cost: a wait for earlier accesses; to acquire, an invalidation of the
    scope's caches, and to release, a write-back of them. As CUDA's __threadfence."""
    what = "fx.memory_fence"
    builder = tracing.kernel(what)
    ordering, name = _ordering(what, order, _FENCES), _scope(what, scope)
    attributes = {"ordering": builder.integer(ordering, "i64")}
    if name:
        attributes["syncscope"] = builder.attribute(f'"{name}"')
    builder.op("llvm.fence", [], [], attributes)
