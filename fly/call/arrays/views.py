"""Views an application's arrays as NumPy arrays of the same memory, without a copy.

Accepts NumPy arrays, torch tensors, and anything with `__array_interface__` or `__dlpack__`.
Tensors on a GPU become descriptions of its memory (`fly_run.launch.arrays.device_arrays`).
torch is never imported: a tensor can only come from a process that has already imported it.
"""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

from fly_common.errors import UsageError
from fly_common.quoting import shortened
from fly_numerics.element_types import ELEMENT_TYPES

_HELD = {name: row for name, row in ELEMENT_TYPES.items() if row.long_name}
# torch dtype name → our name. Types that NumPy lacks are passed as unsigned integers.
_TORCH = {f"torch.{row.long_name}": name for name, row in _HELD.items()}
# ml_dtypes name, as registered with NumPy → our name.
_ML_DTYPES = {row.long_name: name for name, row in _HELD.items() if not row.is_numpys}
# NumPy (kind, bytes) → our name.
_NUMPY = {(row.numpy[1], row.bytes): name for name, row in _HELD.items() if row.is_numpys}


class Array(NamedTuple):
    """`data` is a numpy.ndarray of the argument's memory. `dtype` names its elements: `data` is
    uint16 for an array of bf16 and uint8 for one of an fp8 type."""

    data: Any
    dtype: str


def is_array(value: Any) -> bool:
    """Returns whether `value` is an array, as opposed to a number."""
    kind = type(value)
    if kind in (int, float, bool):
        return False
    if kind.__module__ == "numpy" and kind.__name__ != "ndarray":
        return False  # NumPy's scalars have __array_interface__ too
    try:
        return hasattr(value, "__array_interface__") or hasattr(kind, "__dlpack__")
    except Exception:  # a property of the object raised; `view` reports it
        return True


def is_numpy_scalar(value: Any) -> bool:
    """Whether `value`, which is not an array, is a number of one of NumPy's types."""
    return type(value).__module__ == "numpy" and hasattr(value, "dtype")


# Array types that need no conversion, filled in as arrays are passed.
_plain: dict[Any, str] = {}


def as_array(value: Any, name: str) -> Array | None:
    """Returns the `view` of an array, or None if `value` is not an array. Fast for calls: the dtype
    of an ndarray is looked up among those seen before."""
    numpy = sys.modules.get("numpy")
    if numpy is not None and type(value) is numpy.ndarray:
        dtype = value.dtype
        ours = _plain.get(dtype)
        if ours is not None:
            return Array(value, ours)
        array = view(value, name)
        if array.data is value:
            _plain[dtype] = array.dtype
        return array
    return view(value, name) if is_array(value) else None


def view(value: Any, name: str) -> Array:
    """Returns the memory of argument `name`. Raises UsageError if it cannot be passed."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        try:
            return _of_torch(torch, value, name)
        except UsageError:
            raise
        except Exception as error:  # tensors of vmap and grad, and tensors without storage
            raise _view_error(value, name, error) from None
    import numpy

    if isinstance(value, numpy.ndarray):
        data = value
    else:
        # This calls the object's own code, which may raise anything.
        try:
            seen = hasattr(value, "__array_interface__")
            data = numpy.asarray(value) if seen else numpy.from_dlpack(value)
        except Exception as error:
            raise _view_error(value, name, error) from None
    if type(data) is not numpy.ndarray:
        if isinstance(data, numpy.ma.MaskedArray):
            raise UsageError(
                f"argument {name}: a masked array's mask would be ignored",
                hint=f"pass {name}.data or {name}.filled()",
            )
        data = data.view(numpy.ndarray)
    dtype = dtype_of(data, name)
    if data.dtype.name in _ML_DTYPES:
        data = data.view(f"u{data.itemsize}")
    return Array(data, dtype)


def _view_error(value: Any, name: str, error: Exception) -> UsageError:
    reason = (str(error) or type(error).__name__).splitlines()[0]
    return UsageError(
        f"argument {name}: {shortened(type(value).__name__)} can't be seen as an array on the CPU:"
        f" {shortened(reason)}"
    )


def is_of_ml_dtypes(value: Any) -> bool:
    """Whether a value is an array of a type of the package ml_dtypes, which NumPy lacks."""
    return getattr(getattr(value, "dtype", None), "name", None) in _ML_DTYPES


def dtype_of(data: Any, name: str) -> str:
    """Returns our name of a NumPy array's element type. Raises UsageError if there is none."""
    dtype = data.dtype
    if dtype.name in _ML_DTYPES:
        return _ML_DTYPES[dtype.name]
    ours = _NUMPY.get((dtype.kind, dtype.itemsize))
    if ours is None:
        raise UsageError(
            f"argument {name}: elements of type {dtype} are not supported",
            hint=f"kernels support {', '.join(dict.fromkeys(_TORCH.values()))}",
        )
    if not dtype.isnative:
        raise UsageError(
            f"argument {name}: its byte order is not this machine's ({dtype.str})",
            hint=f"pass {name}.astype({name}.dtype.newbyteorder('='))",
        )
    return ours


def _of_torch(torch: Any, tensor: Any, name: str) -> Array:
    if tensor.device.type not in ("cpu", "cuda"):
        raise UsageError(
            f"argument {name} is on {tensor.device}, but kernels read host memory, or that of"
            " torch's device cuda",
            hint=f"pass {name}.cpu()",
        )
    if tensor.layout is not torch.strided or tensor.is_conj() or tensor.is_neg():
        raise UsageError(
            f"argument {name}: a sparse, conjugated or negated tensor has no addressable elements",
            hint=f"pass {name}.to_dense() or {name}.resolve_conj().resolve_neg()",
        )
    dtype = _TORCH.get(str(tensor.dtype))
    if dtype is None:
        raise UsageError(
            f"argument {name}: elements of type {tensor.dtype} are not supported",
            hint=f"kernels support {', '.join(_TORCH.values())}",
        )
    if tensor.device.type == "cuda":
        return _on_device(tensor, dtype)
    plain = tensor.detach()  # shares memory; autograd does not track what kernels write
    if dtype in _ML_DTYPES.values():
        size = plain.element_size()
        bits = torch.int16 if size == 2 else torch.int8
        return Array(plain.view(bits).numpy().view(f"u{size}"), dtype)
    return Array(plain.numpy(), dtype)


def _on_device(tensor: Any, dtype: str) -> Array:
    """A tensor of CUDA, or of HIP, which torch calls cuda too."""
    from fly_run.launch.arrays.device_arrays import device_array

    place, row = ("cuda", tensor.device.index), ELEMENT_TYPES[dtype]
    shape, strides = tuple(tensor.shape), tuple(tensor.stride())
    return Array(device_array(place, tensor.data_ptr(), shape, strides, row.numpy), dtype)


def as_value(value: Any, name: str) -> Any:
    """Converts an argument to what `fly_run` accepts: arrays to NumPy arrays of the same memory,
    NumPy scalars to Python numbers. Other values are returned unchanged."""
    if (array := as_array(value, name)) is not None:
        return array.data
    if is_numpy_scalar(value):
        return value.item()
    return value
