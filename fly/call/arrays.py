"""The arrays an application may pass, seen as NumPy arrays of the same memory. Nothing is copied.

NumPy's own, torch's CPU tensors, and anything with `__array_interface__` or `__dlpack__`. torch is
never imported: a tensor can only come from a process that has it.
"""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

from fly_common.errors import UsageError

# torch's dtypes by name → ours. What NumPy lacks travels as its bits.
_TORCH = {
    "torch.float16": "f16",
    "torch.bfloat16": "bf16",
    "torch.float32": "f32",
    "torch.float64": "f64",
    "torch.int8": "i8",
    "torch.int16": "i16",
    "torch.int32": "i32",
    "torch.int64": "i64",
    "torch.uint8": "u8",
    "torch.uint16": "u16",
    "torch.uint32": "u32",
    "torch.uint64": "u64",
    "torch.bool": "bool",
    "torch.float8_e4m3fn": "f8E4M3FN",
    "torch.float8_e4m3fnuz": "f8E4M3FNUZ",
    "torch.float8_e5m2": "f8E5M2",
    "torch.float8_e5m2fnuz": "f8E5M2FNUZ",
    "torch.float8_e8m0fnu": "f8E8M0FNU",
}
# The types of the package ml_dtypes, by the names that it registers with NumPy → ours.
_ML_DTYPES = {
    name.removeprefix("torch."): ours for name, ours in _TORCH.items() if "float8" in name
} | {"bfloat16": "bf16"}
# NumPy's (kind, bytes) → ours.
_NUMPY = {
    ("f", 2): "f16",
    ("f", 4): "f32",
    ("f", 8): "f64",
    ("i", 1): "i8",
    ("i", 2): "i16",
    ("i", 4): "i32",
    ("i", 8): "i64",
    ("u", 1): "u8",
    ("u", 2): "u16",
    ("u", 4): "u32",
    ("u", 8): "u64",
    ("b", 1): "bool",
}


class Array(NamedTuple):
    """`data` is a numpy.ndarray of the argument's memory; `dtype` names its elements (an array of
    bf16 is of uint16, one of an fp8 type of uint8)."""

    data: Any
    dtype: str


def is_array(value: Any) -> bool:
    """Whether `value` is an array rather than a number."""
    kind = type(value)
    if kind in (int, float, bool):
        return False
    if kind.__module__ == "numpy" and kind.__name__ != "ndarray":
        return False  # NumPy's scalars have __array_interface__ too
    return hasattr(value, "__array_interface__") or hasattr(kind, "__dlpack__")


# NumPy's types whose arrays are passed as they are, by what was passed so far.
_plain: dict[Any, str] = {}


def as_array(value: Any, name: str) -> Array | None:
    """`view` of an array; None for what is none. It costs a call little: an array of a type that
    was passed before is only looked up."""
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
    """The memory of `value`, an argument called `name`. UsageError for what can't be passed."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        return _of_torch(torch, value, name)
    import numpy

    if isinstance(value, numpy.ndarray):
        data = value
    elif hasattr(value, "__array_interface__"):
        data = numpy.asarray(value)
    else:
        try:
            data = numpy.from_dlpack(value)
        except (BufferError, RuntimeError, TypeError, ValueError) as error:
            raise UsageError(
                f"argument {name}: {type(value).__name__} can't be seen as an array on the CPU:"
                f" {error}"
            ) from None
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


def dtype_of(data: Any, name: str) -> str:
    """Our name of a NumPy array's element type. UsageError where there is none."""
    dtype = data.dtype
    if dtype.name in _ML_DTYPES:
        return _ML_DTYPES[dtype.name]
    ours = _NUMPY.get((dtype.kind, dtype.itemsize))
    if ours is None:
        raise UsageError(
            f"argument {name}: elements of type {dtype} are not supported",
            hint=f"kernels know {', '.join(dict.fromkeys(_TORCH.values()))}",
        )
    if not dtype.isnative:
        raise UsageError(
            f"argument {name}: its bytes are in the other order ({dtype.str})",
            hint=f"pass {name}.astype({name}.dtype.newbyteorder('='))",
        )
    return ours


def _of_torch(torch: Any, tensor: Any, name: str) -> Array:
    if tensor.device.type != "cpu":
        raise UsageError(
            f"argument {name} is on {tensor.device}, and this device reads host memory",
            hint=f"pass {name}.cpu()",
        )
    if tensor.layout is not torch.strided or tensor.is_conj() or tensor.is_neg():
        raise UsageError(
            f"argument {name}: a sparse, conjugated or negated tensor has no elements to point at",
            hint=f"pass {name}.to_dense() or {name}.resolve_conj().resolve_neg()",
        )
    dtype = _TORCH.get(str(tensor.dtype))
    if dtype is None:
        raise UsageError(
            f"argument {name}: elements of type {tensor.dtype} are not supported",
            hint=f"kernels know {', '.join(_TORCH.values())}",
        )
    plain = tensor.detach()  # the same memory; autograd doesn't see what kernels write
    if dtype in _ML_DTYPES.values():
        size = plain.element_size()
        bits = torch.int16 if size == 2 else torch.int8
        return Array(plain.view(bits).numpy().view(f"u{size}"), dtype)
    return Array(plain.numpy(), dtype)


def as_value(value: Any, name: str) -> Any:
    """An argument as `fly_run` takes it: arrays as NumPy arrays of the same memory, NumPy's scalars
    as Python's numbers, the rest as it is."""
    if (array := as_array(value, name)) is not None:
        return array.data
    if type(value).__module__ == "numpy" and hasattr(value, "item"):
        return value.item()
    return value
