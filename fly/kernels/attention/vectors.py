"""Eight adjacent elements of a row, which a thread moves at a time."""

from __future__ import annotations

from typing import Any

import fly.expr as fx

WIDTH = 8
ACCESS = 128  # bits: eight elements of f16, or four of f32


def load_stored(row: Any, first: Any, width: int = WIDTH) -> Any:
    """The elements of a row from `first` on, of its type. `width`, a power of two, are taken, in
    accesses of up to 16 bytes; they are at a multiple of so many."""
    held = fx.make_rmem_tensor(_shape(row.dtype, width), row.dtype)
    _copy(_part(row, first, width), held)
    return held.load().reshape(width)


def load_vector(row: Any, first: Any) -> Any:
    """As `load_stored`, as f32."""
    return load_stored(row, first).to(fx.Float32)


def store_vector(row: Any, first: Any, numbers: Any) -> None:
    """Stores elements of a row, from `first` on, rounded to its type: as many as there are."""
    width = numbers.numel
    shape = _shape(row.dtype, width)
    held = fx.make_rmem_tensor(shape, row.dtype)
    held.store(numbers.to(row.dtype).reshape(shape))
    _copy(held, _part(row, first, width))


def _shape(dtype: Any, width: int) -> tuple[int, int]:
    """Elements of an access, and accesses."""
    count = min(width, ACCESS // dtype.bits)
    return count, width // count


def _part(row: Any, first: Any, width: int) -> Any:
    shape = _shape(row.dtype, width)
    return fx.make_view(fx.get_iter(row) + first, fx.make_layout(shape, (1, shape[0])))


def _copy(source: Any, target: Any) -> None:
    bits = source.layout.shape[0] * source.dtype.bits
    fx.copy(fx.make_copy_atom(fx.UniversalCopy(bits), source.dtype), source, target)
