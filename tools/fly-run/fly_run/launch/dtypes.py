"""The names of element types, and what NumPy calls them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fly_common.small_floats import FORMATS

if TYPE_CHECKING:
    import numpy as np

# Types that NumPy lacks → those of the package ml_dtypes. Without it arrays hold the bits, as
# uint16 and uint8.
ML_DTYPES = {
    "bf16": "bfloat16",
    "f8E4M3FN": "float8_e4m3fn",
    "f8E4M3FNUZ": "float8_e4m3fnuz",
    "f8E5M2": "float8_e5m2",
    "f8E5M2FNUZ": "float8_e5m2fnuz",
    "f8E8M0FNU": "float8_e8m0fnu",
}
_EIGHT = [name for name in ML_DTYPES if name in FORMATS]
NUMPY = {
    "f16": "<f2",
    "bf16": "<u2",
    "f32": "<f4",
    "f64": "<f8",
    "i8": "|i1",
    "i16": "<i2",
    "i32": "<i4",
    "i64": "<i8",
    "u8": "|u1",
    "u16": "<u2",
    "u32": "<u4",
    "u64": "<u8",
    "bool": "|b1",
    **dict.fromkeys(_EIGHT, "|u1"),
}
FLOATS = frozenset(("f16", "bf16", "f32", "f64", *_EIGHT))
# struct's letters; bf16 is packed as the upper half of an f32.
STRUCT = {
    "f16": "e", "f32": "f", "f64": "d", "i8": "b", "i16": "h", "i32": "i", "i64": "q",
    "u8": "B", "u16": "H", "u32": "I", "u64": "Q", "bool": "?",
}  # fmt: skip
SIZES = {
    "f16": 2, "bf16": 2, "f32": 4, "f64": 8, "i8": 1, "i16": 2, "i32": 4, "i64": 8,
    "u8": 1, "u16": 2, "u32": 4, "u64": 8, "bool": 1, **dict.fromkeys(_EIGHT, 1),
}  # fmt: skip


def numpy_dtype(name: str) -> np.dtype:
    import numpy as np

    return np.dtype(NUMPY[name])


def name_of(dtype: np.dtype) -> str:
    """Our name of a NumPy type, where it has one; else NumPy's."""
    if dtype == "V2":
        return "bf16"
    for name, text in NUMPY.items():
        if dtype.name == ML_DTYPES[name] if name in ML_DTYPES else dtype == text:
            return name
    return str(dtype)


def holds(dtype: np.dtype, name: str) -> bool:
    """Whether an array of `dtype` holds elements of our type `name`, in this machine's order.

    A type that NumPy lacks comes as its bits, as ml_dtypes' type, or as the `V2` or `V1` that NumPy
    makes of the latter when it loads a .npy file.
    """
    if name in ML_DTYPES and (
        dtype.name == ML_DTYPES[name] or (dtype.kind, dtype.itemsize) == ("V", SIZES[name])
    ):
        return dtype.fields is None
    return dtype == numpy_dtype(name)


def spelled(name: str) -> str:
    """How an array of a type that NumPy lacks may come: for a hint."""
    bits = numpy_dtype(name).name
    return f"{name} arrays hold their bits as {bits}, or are ml_dtypes.{ML_DTYPES[name]}"


def pack_scalar(value: int | float | bool, name: str) -> bytes:
    """A scalar's bytes in a kernel's arguments. OverflowError where it does not fit.

    A float is rounded to the nearest, ties to even; one that would become infinite does not fit.
    """
    import math
    import struct

    if name in FORMATS:
        code = FORMATS[name].encode(float(value))
        if code is None:
            raise OverflowError
        return bytes([code])
    if name == "bf16":
        bits = struct.unpack("<I", struct.pack("<f", value))[0]
        if math.isnan(value):
            return struct.pack("<H", bits >> 16 | 0x40)
        bits = bits + 0x7FFF + (bits >> 16 & 1) >> 16
        if bits & 0x7FFF == 0x7F80 and not math.isinf(value):
            raise OverflowError
        return struct.pack("<H", bits)
    try:
        return struct.pack("<" + STRUCT[name], float(value) if name in FLOATS else value)
    except struct.error:
        raise OverflowError from None


def convert(values: np.ndarray, name: str) -> np.ndarray:
    """`values` as our type `name`; what NumPy lacks rounds to nearest, ties to even. OverflowError
    for one that a type of 8 bits can't hold."""
    import numpy as np

    if name in FORMATS:
        codes = b"".join(pack_scalar(value, name) for value in values.ravel().tolist())
        return np.frombuffer(codes, np.uint8).reshape(values.shape).copy()
    if name != "bf16":
        return values.astype(numpy_dtype(name))
    bits = values.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def as_numbers(array: np.ndarray, name: str) -> np.ndarray:
    """An array of our type as NumPy can compute with it: what it lacks as float32."""
    import numpy as np

    if name in FORMATS:
        table = np.array([FORMATS[name].decode(code) for code in range(256)], np.float32)
        return table[array.view(np.uint8)]
    if name != "bf16":
        return array
    return (array.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
