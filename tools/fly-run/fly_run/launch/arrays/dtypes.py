"""Names of element types, and their NumPy counterparts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fly_numerics.element_types import ELEMENT_TYPES
from fly_numerics.small_floats import FORMATS

if TYPE_CHECKING:
    import numpy as np

_HELD = {name: row for name, row in ELEMENT_TYPES.items() if row.numpy}
# Types that NumPy lacks → those of the package ml_dtypes. Without it arrays hold the bits, as
# uint16 and uint8.
ML_DTYPES = {name: row.long_name for name, row in _HELD.items() if not row.is_numpys}
NUMPY = {name: row.numpy for name, row in _HELD.items()}
FLOATS = frozenset(name for name, row in _HELD.items() if row.kind == "float")
# bf16 is packed as the upper half of an f32.
STRUCT = {name: row.struct for name, row in _HELD.items() if row.struct}
SIZES = {name: row.bytes for name, row in _HELD.items()}


def numpy_dtype(name: str) -> np.dtype:
    import numpy as np

    return np.dtype(NUMPY[name])


def name_of(dtype: np.dtype) -> str:
    """Returns our name of a NumPy type, if there is one; otherwise NumPy's."""
    if dtype == "V2":
        return "bf16"
    for name, text in NUMPY.items():
        if dtype.name == ML_DTYPES[name] if name in ML_DTYPES else dtype == text:
            return name
    return str(dtype)


def holds(dtype: np.dtype, name: str) -> bool:
    """Whether an array of `dtype` holds elements of our type `name`, in native byte order.

    A type that NumPy lacks may be given as its bits, as ml_dtypes' type, or as the `V2` or `V1`
    that NumPy makes of the latter when it loads a .npy file.
    """
    if name in ML_DTYPES and (
        dtype.name == ML_DTYPES[name] or (dtype.kind, dtype.itemsize) == ("V", SIZES[name])
    ):
        return dtype.fields is None
    return dtype == numpy_dtype(name)


def spelled(name: str) -> str:
    """Lists the NumPy types accepted for a type that NumPy lacks, for a hint."""
    bits = numpy_dtype(name).name
    return f"{name} arrays contain the bits as {bits}, or are ml_dtypes.{ML_DTYPES[name]}"


def pack_scalar(value: int | float | bool, name: str) -> bytes:
    """Returns a scalar's bytes in a kernel's arguments. OverflowError if it does not fit.

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
    """Converts `values` to our type `name`; types that NumPy lacks round to nearest, ties to even.
    OverflowError for a value that a type of 8 bits can't hold."""
    import numpy as np

    if name in FORMATS:
        codes = b"".join(pack_scalar(value, name) for value in values.ravel().tolist())
        return np.frombuffer(codes, np.uint8).reshape(values.shape).copy()
    if name != "bf16":
        return values.astype(numpy_dtype(name))
    bits = values.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def as_numbers(array: np.ndarray, name: str) -> np.ndarray:
    """Returns an array that NumPy can compute with: types that it lacks become float32."""
    import numpy as np

    if name in FORMATS:
        table = np.array([FORMATS[name].decode(code) for code in range(256)], np.float32)
        return table[array.view(np.uint8)]
    if name != "bf16":
        return array
    return (array.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
