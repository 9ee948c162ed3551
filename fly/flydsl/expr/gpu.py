"""`flydsl.expr.gpu`: the language's ids, barriers and shuffles, and ids as MLIR has them."""

from __future__ import annotations

from typing import Any

from fly_trace.core import tracing
from fly_trace.expr import gpu as _language
from fly_trace.expr.gpu import *  # noqa: F403  # type: ignore[assignment]
from fly_trace.values.dtypes import I32
from fly_trace.values.scalars import Scalar
from fly_trace.values.vector.vectors import Vector

from fly.flydsl._mlir.dialects import gpu as _dialect
from fly.flydsl.numbers.operators import typed
from fly.flydsl.numbers.raw import RawScalar, lift

__all__ = [
    "barrier",
    "known_block_size",
    "num_warp_threads",
    "shuffle",
    "shuffle_down",
    "shuffle_idx",
    "shuffle_up",
    "shuffle_xor",
]


def thread_id(dimension: Any = "x") -> Any:
    """The work item's number in its block along "x", "y" or "z", as an index."""
    return _id("gpu.thread_id", dimension)


def block_id(dimension: Any = "x") -> Any:
    """The block's number along "x", "y" or "z", as an index."""
    return _id("gpu.block_id", dimension)


def _id(op: str, dimension: Any) -> Any:
    builder = tracing.kernel(op)
    axis = dimension if isinstance(dimension, str) else str(dimension)
    return lift(builder.one(op, "index", dimension=builder.attribute(f"#gpu<dim {axis}>")))


def barrier(address_spaces: Any = None, named_barrier: Any = None, scope: Any = None) -> None:
    """Waits for all threads of the block; with `scope=gpu.BarrierScope.Subgroup` for the lanes of
    the wave. Earlier accesses to shared memory are then done."""
    if address_spaces is None and named_barrier is None and scope is None:
        _language.barrier()
        return
    tracing.kernel("fx.barrier")
    _dialect.barrier(address_spaces=address_spaces, named_barrier=named_barrier, scope=scope)


_SHUFFLES = {
    "xor": _language.shuffle_xor,
    "up": _language.shuffle_up,
    "down": _language.shuffle_down,
    "idx": _language.shuffle_idx,
}


def shuffle(value: Any, offset: Any, width: Any, mode: str = "xor") -> Any:
    """The value of another lane, among groups of `width` lanes: xor, up, down or idx."""
    if mode not in _SHUFFLES:
        raise ValueError(f"invalid shuffle mode {mode!r}; expected one of {', '.join(_SHUFFLES)}")
    held = typed(lift(value))
    count = width if isinstance(width, int) else getattr(width, "number", width)
    by = offset if isinstance(offset, int) else I32(offset)
    move = _SHUFFLES[mode]
    if isinstance(held, Vector):
        moved = [move(one, by, count) for one in held]
        return Vector.from_elements(moved, held.dtype).reshape(held.shape)
    plain = Scalar(held.dtype, held.value, held.number)
    found = move(plain, by, count)
    return held.with_value(found.value) if isinstance(held, RawScalar) else found


def _mode(mode: str) -> Any:
    def function(value: Any, offset: Any, width: Any = None) -> Any:
        return shuffle(value, offset, width, mode)

    function.__name__ = function.__qualname__ = f"shuffle_{mode}"
    return function


shuffle_xor, shuffle_up, shuffle_down, shuffle_idx = map(_mode, _SHUFFLES)


def num_warp_threads() -> int:
    """Lanes of a wave on the target that is compiled for."""
    from fly.flydsl.runtime.device import get_warp_size

    return get_warp_size()


def known_block_size() -> tuple[int, int, int]:
    """The block's size, of a launch that gives it as numbers of Python."""
    builder = tracing.active()
    if builder is None or builder.host or builder.known_block is None:
        tracing.refuse("the launch has no compile-time block size", "use fx.block_dim")
    return builder.known_block


def smem_space(int: bool = False) -> Any:
    """The address space of shared memory: MLIR's attribute, or its number."""
    from fly_dialect.bindings import ir

    return 3 if int else ir.Attribute.parse("#gpu.address_space<workgroup>")


lds_space = smem_space


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    if name == "SharedAllocator":
        from fly.flydsl.expr.struct import SharedAllocator

        return SharedAllocator
    return getattr(_dialect, name)
