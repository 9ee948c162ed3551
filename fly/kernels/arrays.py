"""What NumPy arrays and torch tensors have in common, and what they spell differently."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from fly_common.errors import UsageError

SMALL_FLOATS = ("float16", "bfloat16", "float32")
FLOATS = (*SMALL_FLOATS, "float64")
SMALL_INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32")
INTEGERS = (*SMALL_INTEGERS, "int64", "uint64")


def along(dim: int, function: Callable[..., Any], *arrays: Any) -> Any:
    """Calls a function of matrices, whose rows are slices of `arrays` along a dimension, and gives
    the matrix that it returns the arrays' shape, contiguous. Copies what can't be seen as such a
    matrix.

    UsageError for arrays of no dimension or of different shapes, and for other dimensions.
    """
    shape = tuple(arrays[0].shape)
    if not -len(shape) <= dim < len(shape):
        raise UsageError(f"dim is {dim}, and the array has {len(shape)} dimensions")
    check_shapes(*arrays)
    turned = [array.swapaxes(dim, -1) for array in arrays]
    made = function(*map(as_matrix, turned))
    return contiguous(made.reshape(turned[0].shape).swapaxes(dim, -1))


def type_name(x: Any) -> str:
    """The name of an array's element type, without the library's."""
    return str(x.dtype).removeprefix("torch.")


def check_types(allowed: tuple[str, ...], **arrays: Any) -> None:
    """Raises UsageError for arrays other than None whose elements are of other types."""
    for name, array in arrays.items():
        if array is not None and (given := type_name(array)) not in allowed:
            *most, last = allowed
            known = f"{', '.join(most)} or {last}" if most else last
            raise UsageError(f"{name} is of {given}, and must be of {known}")


def check_shapes(*arrays: Any) -> None:
    """Raises UsageError for arrays of different shapes."""
    shapes = [tuple(array.shape) for array in arrays]
    if len(set(shapes)) > 1:
        raise UsageError(f"the arrays have different shapes: {', '.join(map(str, shapes))}")


def as_vectors(x: Any, **vectors: Any) -> list[Any]:
    """Vectors that are as long as an array's rows, or None: with adjacent elements. UsageError for
    other shapes, and for elements that are no floats."""
    check_types(FLOATS, **vectors)
    for name, vector in vectors.items():
        if vector is not None and tuple(vector.shape) != tuple(x.shape[-1:]):
            row = f"a row {x.shape[-1]} elements" if x.ndim else "x no dimension"
            raise UsageError(f"{name} has the shape {tuple(vector.shape)}, and {row}")
    return [None if one is None else contiguous(one) for one in vectors.values()]


def as_matrix(x: Any) -> Any:
    """An array of one or more dimensions as a matrix, whose rows are along the last dimension and
    have adjacent elements. UsageError for an array without dimensions."""
    if x.ndim == 0:
        raise UsageError("the array has no dimension")
    x = x.reshape(math.prod(x.shape[:-1]), x.shape[-1])
    return x if x.shape[1] < 2 or strides(x)[-1] == 1 else contiguous(x)


def contiguous(x: Any) -> Any:
    """An array with its elements in C order, copied if it isn't so."""
    if hasattr(x, "contiguous"):  # torch's
        return x.contiguous()
    return x if x.flags.c_contiguous else x.copy("C")


def strides(x: Any) -> list[int]:
    """An array's strides in elements."""
    if hasattr(x, "stride"):  # torch's
        return list(x.stride())
    return [step // x.itemsize for step in x.strides]


def address(x: Any) -> int:
    """The address of an array's first element."""
    return x.data_ptr() if hasattr(x, "data_ptr") else x.ctypes.data


def aligned(x: Any) -> Any:
    """An array whose addresses and strides are multiples of its element's size: a copy of one that
    has others, as a field of packed records has. Another object is returned as it is."""
    flags = getattr(x, "flags", None)
    if hasattr(flags, "aligned"):  # NumPy's, where elements of ml_dtypes are aligned to their size
        return x if flags.aligned else copied(x)
    if hasattr(x, "element_size") and x.data_ptr() % x.element_size():
        return copied(x)
    return x


def broadcast(x: Any, shape: tuple[int, ...]) -> Any:
    """A view of an array that repeats its elements to a shape, to be read only. UsageError if the
    shape does not admit it."""
    try:
        if hasattr(x, "expand"):  # torch's
            return x.expand(shape)
        import numpy as np

        return np.broadcast_to(x, shape)
    except (RuntimeError, ValueError):
        raise UsageError(f"an array of shape {tuple(x.shape)} is not one of {shape}") from None


def filled(like: Any, shape: Any, number: float, kind: str | None = None) -> Any:
    """An array of equal numbers, of the library and on the device of another one; `kind` names its
    type, by default the other one's."""
    if hasattr(like, "new_full"):  # torch's
        import torch

        return like.new_full(shape, number, dtype=getattr(torch, kind) if kind else None)
    import numpy as np

    return np.full(shape, number, kind or like.dtype)


def copied(x: Any) -> Any:
    """A copy, with the strides of a contiguous array also for dimensions of 1."""
    if hasattr(x, "new_empty"):  # torch's
        return x.new_empty(x.shape).copy_(x)
    import numpy as np

    return np.array(x, order="C")
