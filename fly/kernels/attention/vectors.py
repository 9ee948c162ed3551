"""Eight adjacent elements of a row, which a thread moves at a time."""

from __future__ import annotations

from typing import Any

import fly.expr as fx

WIDTH = 8
ACCESS = 128  # bits: eight elements of f16, or four of f32


def load_stored(row: Any, first: Any) -> Any:
    """The elements of a row from `first` on, of its type. They are at a multiple of 16 bytes."""
    held = fx.make_rmem_tensor(_shape(row.dtype), row.dtype)
    _copy(_part(row, first), held)
    return held.load().reshape(WIDTH)


def load_vector(row: Any, first: Any) -> Any:
    """As `load_stored`, as f32."""
    return load_stored(row, first).to(fx.Float32)


def store_vector(row: Any, first: Any, numbers: Any) -> None:
    """Stores elements of a row, from `first` on, rounded to its type."""
    shape = _shape(row.dtype)
    held = fx.make_rmem_tensor(shape, row.dtype)
    held.store(numbers.to(row.dtype).reshape(shape))
    _copy(held, _part(row, first))


def _shape(dtype: Any) -> tuple[int, int]:
    """Elements of an access, and accesses."""
    return ACCESS // dtype.bits, WIDTH * dtype.bits // ACCESS


def _part(row: Any, first: Any) -> Any:
    shape = _shape(row.dtype)
    return fx.make_view(fx.get_iter(row) + first, fx.make_layout(shape, (1, shape[0])))


def _copy(source: Any, target: Any) -> None:
    fx.copy(fx.make_copy_atom(fx.UniversalCopy(ACCESS), source.dtype), source, target)
