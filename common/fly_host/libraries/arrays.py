"""Arrays of one library as those of another that share their memory: NumPy's and torch's.

Neither is imported here: an array's class says where it is from.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

NUMPY, TORCH = "numpy", "torch"
# NumPy has these types from the package ml_dtypes, torch itself.
_ML_DTYPES = ("bfloat16", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz")


def kind_of(name: str) -> str | None:
    """The library whose arrays a function takes, by its name; None takes any."""
    package = name.partition(".")[0]
    return package if package in (NUMPY, TORCH) else None


def kind_among(values: Iterable[Any]) -> str | None:
    """The library of the first array among the values."""
    return next((kind for kind in map(_kind, values) if kind), None)


def as_kind(value: Any, kind: str | None) -> Any:
    """An array as one of the library `kind`, in the same memory. Other values stay as they are."""
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


def _kind(value: Any) -> str | None:
    for kind, name in ((TORCH, "Tensor"), (NUMPY, "ndarray")):
        module = sys.modules.get(kind)
        if module is not None and isinstance(value, getattr(module, name)):
            return kind
    return None


def _to_torch(array: Any) -> Any:
    import torch

    name = array.dtype.name
    if name in _ML_DTYPES:
        bits = torch.from_numpy(array.view(f"i{array.itemsize}"))
        return bits.view(getattr(torch, name))
    return torch.from_numpy(array)


def _to_numpy(tensor: Any) -> Any:
    import torch

    name = str(tensor.dtype).removeprefix("torch.")
    if name in _ML_DTYPES:
        import ml_dtypes

        bits = tensor.view(torch.int16 if tensor.element_size() == 2 else torch.int8)
        return bits.numpy().view(getattr(ml_dtypes, name))
    return tensor.detach().numpy()
