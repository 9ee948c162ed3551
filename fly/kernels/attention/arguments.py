"""Arguments of the functions of attention, checked and made ready for kernels."""

from __future__ import annotations

import math
from typing import Any

from fly_common.errors import UsageError

from fly.kernels.arrays import address, check_types, contiguous, copied, strides, type_name
from fly.kernels.attention.vectors import WIDTH

TYPES = ("float16", "bfloat16")
DIMENSIONS = (64, 128)
ALIGNMENT = 16  # bytes
FARTHEST = 2**22  # elements from row to row: a tile of 128 has less than 2^31 bytes


def check(q: Any, k: Any, v: Any, rank: int) -> None:
    """UsageError for arrays of other ranks, types and shapes than attention's: heads are the second
    dimension, and the last one is d."""
    shapes = of_q, of_k, of_v = [tuple(one.shape) for one in (q, k, v)]
    types = [type_name(one) for one in (q, k, v)]
    if any(len(shape) != rank for shape in shapes) or len(set(types)) > 1:
        given = ", ".join(f"{one}{shape}" for one, shape in zip(types, shapes, strict=True))
        raise UsageError(f"q, k and v are of one type and {rank} dimensions, not {given}")
    check_types(TYPES, q=q)
    if of_q[-1] not in DIMENSIONS:
        raise UsageError(f"heads are of 64 or 128 elements, not {of_q[-1]}: pad q, k and v with 0")
    fits = of_k == of_v and of_q[-1] == of_k[-1] and (rank == 3 or of_q[0] == of_k[0])
    if not fits or of_k[1] < 1 or of_q[1] % of_k[1]:
        raise UsageError(f"the shapes of q, k and v do not fit: {of_q}, {of_k}, {of_v}")


def check_like(q: Any, **arrays: Any) -> None:
    """UsageError for arrays of another type or shape than q."""
    for name, array in arrays.items():
        given, wanted = [(type_name(one), tuple(one.shape)) for one in (array, q)]
        if given != wanted:
            given, wanted = [f"{kind}{shape}" for kind, shape in (given, wanted)]
            raise UsageError(f"{name} is {given}, and must be like q, {wanted}")


def scale_of(scale: float | None, q: Any) -> float:
    """The factor of scores, by default 1/√d."""
    return 1 / math.sqrt(q.shape[-1]) if scale is None else scale


def scaled_up(q: Any, scale: float | None) -> tuple[Any, float]:
    """q and a factor of scores that is not negative: of -q, if it is."""
    factor = scale_of(scale, q)
    return (-q, -factor) if factor < 0 else (q, factor)


def for_loads(x: Any) -> Any:
    """An array whose rows are at multiples of 16 bytes and have adjacent elements: x, or a copy."""
    *steps, step = strides(x)
    moved = [one for one, extent in zip(steps, x.shape, strict=False) if extent > 1]
    if step != 1 or any(one % WIDTH for one in moved):
        return contiguous(x)
    if address(x) % ALIGNMENT:
        return x.clone() if hasattr(x, "clone") else x.copy("K")
    return x


def for_tiles(x: Any, rows: int) -> Any:
    """As `for_loads`, for tiles of rows along dimension `rows`: rows that follow each other in
    memory, so that a buffer ends with the last one. x, or a copy."""
    x = for_loads(x)
    if x.shape[-1] <= strides(x)[rows] <= FARTHEST:
        return x
    return copied(x)


def for_maps(x: Any) -> Any:
    """As `for_tiles`, for tensor maps, which have no steps of 0."""
    return x if min(strides(x)) > 0 else copied(x)


def typed(x: Any, like: Any) -> Any:
    """A result as of the type of `like`: NumPy's of ml_dtypes' bfloat16 are the bits."""
    return x if hasattr(x, "data_ptr") else x.view(like.dtype)
