"""The types of arrays in .npy files, from their headers."""

from __future__ import annotations

import ast

from fly_common.errors import UsageError
from fly_numerics.element_types import ELEMENT_TYPES

from fly_trace.signatures.signature import TensorType
from fly_trace.signatures.strides import c_strides
from fly_trace.values.dtypes import DTYPES

_NUMPY = {row.numpy[1:]: name for name, row in ELEMENT_TYPES.items() if row.is_numpys}


_SHOWN = 200  # characters of a header that a message quotes


def _is_extent(value: object) -> bool:
    return type(value) is int and 0 <= value < 1 << 63


def of_npy(path: str, static: bool) -> TensorType:
    """The type of the array in a .npy file, from its header. With `static` its extents are static,
    otherwise dynamic."""
    try:
        with open(path, "rb") as file:
            start = file.read(8)
            size = {1: 2, 2: 4, 3: 4}.get(start[6]) if start[:6] == b"\x93NUMPY" else None
            if size is None:
                raise UsageError(f"{path}: is not a .npy file")
            length = int.from_bytes(file.read(size), "little")
            header = ast.literal_eval(file.read(min(length, 65536)).decode("latin1"))
            descr, fortran, shape = header["descr"], header["fortran_order"], header["shape"]
            if not (isinstance(shape, tuple) and all(map(_is_extent, shape))):
                raise ValueError
            name = _NUMPY.get(descr[1:]) if descr[0] in "<|=" else None
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    except (ValueError, SyntaxError, LookupError, TypeError, MemoryError, RecursionError):
        raise UsageError(f"{path}: its .npy header is damaged") from None
    if name is None:
        raise UsageError(
            f"{path}: contains {str(descr)[:_SHOWN]}, which is not an element type of the language",
            hint=f"the element types are: {' '.join(DTYPES)}; give the type with --sig",
        )
    if not static:
        shape = tuple(None for _ in shape)
    if not fortran or len(shape) < 2:
        return TensorType(DTYPES[name], shape)
    return TensorType(DTYPES[name], shape, tuple(reversed(c_strides(tuple(reversed(shape))))))
