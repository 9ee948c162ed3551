"""Arrays of one library as those of another that share their memory: NumPy's and torch's.

Neither is imported here: an array's class says where it is from.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

from fly_common.errors import MissingError
from fly_common.record import record

NUMPY, TORCH = "numpy", "torch"
# NumPy has these types from the package ml_dtypes, torch itself.
_ML_DTYPES = ("bfloat16", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz")


@record
class Bits:
    """A NumPy array of integers or raw bytes that holds the bits of a type that NumPy lacks:
    `dtype` is its name in torch and ml_dtypes."""

    array: Any
    dtype: str


def kind_of(name: str) -> str | None:
    """The library whose arrays a function takes, by its name; None takes any."""
    package = name.partition(".")[0]
    return package if package in (NUMPY, TORCH) else None


def kind_among(values: Iterable[Any]) -> str | None:
    """The library of the first array among the values."""
    return next((kind for kind in map(_kind, values) if kind), None)


def as_kind(value: Any, kind: str | None) -> Any:
    """An array as one of the library `kind`, in the same memory. Other values stay as they are."""
    if isinstance(value, Bits):
        return _bits_to_torch(value.array, value.dtype) if kind == TORCH else _typed(value)
    own = _kind(value)
    if own is None or kind is None or own == kind:
        return value
    return _to_torch(value) if kind == TORCH else _to_numpy(value)


def whole(made: Any) -> Any:
    """A result that is an array: NumPy gives a number for one of no dimensions."""
    numpy = sys.modules.get(NUMPY)
    is_number = numpy is not None and isinstance(made, numpy.generic)
    return numpy.asarray(made) if numpy is not None and is_number else made


def copy(made: Any, out: Any) -> None:
    """Copies a result to a tensor of the same kind."""
    if _kind(out) == TORCH:
        out.copy_(made)
    else:
        out[...] = made


def as_bits(value: Any) -> Any:
    """An array of a type that NumPy lacks as its bits, in the same memory. Others stay."""
    kind = _kind(value)
    if kind == TORCH:
        import torch

        name = str(value.dtype).removeprefix("torch.")
        if name not in _ML_DTYPES:
            return _to_numpy(value)
        size = value.element_size()
        bits = value.detach().view(torch.int16 if size == 2 else torch.int8)
        return bits.numpy().view(f"u{size}")
    if kind == NUMPY and value.dtype.name in _ML_DTYPES:
        return value.view(f"u{value.itemsize}")
    return value


def _typed(bits: Bits) -> Any:
    """The array of ml_dtypes' type."""
    try:
        import ml_dtypes
    except ImportError:
        raise MissingError(
            f"an array holds {bits.dtype} as its bits, which NumPy can't compute with",
            hint="install ml_dtypes, call a function of torch, or pass tensors of torch",
        ) from None
    return bits.array.view(getattr(ml_dtypes, bits.dtype))


def _kind(value: Any) -> str | None:
    if isinstance(value, Bits):
        return NUMPY
    for kind, name in ((TORCH, "Tensor"), (NUMPY, "ndarray")):
        module = sys.modules.get(kind)
        if module is not None and isinstance(value, getattr(module, name)):
            return kind
    return None


def _to_torch(array: Any) -> Any:
    import torch

    name = array.dtype.name
    return _bits_to_torch(array, name) if name in _ML_DTYPES else torch.from_numpy(array)


def _bits_to_torch(array: Any, name: str) -> Any:
    import torch

    kind = getattr(torch, name, None)
    if kind is None:
        raise MissingError(f"torch has no type {name}")
    return torch.from_numpy(array.view(f"i{array.itemsize}")).view(kind)


def _to_numpy(tensor: Any) -> Any:
    import torch

    name = str(tensor.dtype).removeprefix("torch.")
    if name in _ML_DTYPES:
        import ml_dtypes

        bits = tensor.view(torch.int16 if tensor.element_size() == 2 else torch.int8)
        return bits.numpy().view(getattr(ml_dtypes, name))
    return tensor.detach().numpy()
