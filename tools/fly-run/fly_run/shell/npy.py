"""Reads and writes .npy files; any defect of a file is an InputError.

Files are untrusted: pickled objects are rejected, and a header that promises more than the file
holds does not cause an allocation.
"""

from __future__ import annotations

import io
import math
import os
from typing import TYPE_CHECKING

from fly_common.errors import InputError, UsageError

if TYPE_CHECKING:
    import numpy as np

# Larger files are mapped instead of read, so that only the pages touched cost memory. They are read
# for AddressSanitizer, which knows memory of malloc only.
MAPPED = 64 << 20
SANITIZER = "FLY_CPU_SANITIZE"  # fly_run.cpu.sanitizer
MOST_DIMENSIONS = 32
LONGEST = 200  # maximum characters of a header quoted in a message


def load(path: str) -> np.ndarray:
    """Returns the array in a .npy file, writable; writes never reach the file."""
    import numpy as np

    try:
        with open(path, "rb") as file:
            if not file.seekable():  # a pipe
                return _read(path, io.BytesIO(file.read()))
            size = os.fstat(file.fileno()).st_size
            if size < MAPPED or os.environ.get(SANITIZER):
                return _read(path, io.BytesIO(file.read()))
            dtype, shape, fortran = _header(path, file, size)
            order = "F" if fortran else "C"
            return np.memmap(file, dtype, "c", file.tell(), shape, order).view(np.ndarray)
    except FileNotFoundError:
        raise UsageError(f"{path}: no such file") from None
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None


def _read(path: str, file: io.BytesIO) -> np.ndarray:
    import numpy as np

    dtype, shape, fortran = _header(path, file, len(file.getbuffer()))
    count = math.prod(shape)
    # The copy makes it writable and aligned.
    flat = np.frombuffer(file.getbuffer(), dtype, count, file.tell()).copy()
    return flat.reshape(shape, order="F" if fortran else "C")


def _header(
    path: str, file: io.BufferedIOBase, size: int
) -> tuple[np.dtype, tuple[int, ...], bool]:
    """Parses the header, and leaves the file at the first byte of data."""
    from numpy.lib import format

    start = file.read(6)
    file.seek(0)
    if start != format.MAGIC_PREFIX:
        what = "is empty" if not start else "is not a .npy file"
        npz = start[:2] == b"PK"
        hint = "it is a .npz archive; save one array with numpy.save" if npz else None
        raise InputError(f"{path}: {what}", hint=hint)
    readers = {(1, 0): format.read_array_header_1_0, (2, 0): format.read_array_header_2_0}
    try:
        version = format.read_magic(file)
        if version not in readers:
            raise InputError(f"{path}: .npy version {version[0]}.{version[1]} can't be read")
        shape, fortran, dtype = readers[version](file)
    except (InputError, OSError):
        raise
    except Exception as error:
        # NumPy parses the header as Python, with tokenize and literal_eval: the exceptions for a
        # damaged header are not documented.
        reason = next(iter(str(error).splitlines()), "") or type(error).__name__
        raise InputError(f"{path}: the .npy header is damaged: {reason[:LONGEST]}") from None
    if dtype.hasobject:
        raise InputError(
            f"{path}: contains Python objects, not numbers", hint="convert it: x.astype('float32')"
        )
    if dtype.fields is not None or dtype.subdtype is not None or dtype.kind not in "biufcV":
        raise InputError(f"{path}: contains {dtype}, not numbers")
    # NumPy accepts any tuple of integers, including booleans, as a shape. Its arrays have at most
    # 64 dimensions, 32 before NumPy 2, and strides that fit 64 bits even if there are no elements.
    sound = all(type(extent) is int and extent >= 0 for extent in shape)
    span = math.prod(max(extent, 1) for extent in shape) * dtype.itemsize if sound else 0
    if not sound or len(shape) > MOST_DIMENSIONS or not 0 < span < 1 << 63:
        raise InputError(f"{path}: the .npy header is damaged: shape {str(shape)[:LONGEST]}")
    needed, there = math.prod(shape) * dtype.itemsize, size - file.tell()
    if needed > there:
        raise InputError(
            f"{path}: is truncated: shape {shape} of {dtype} takes {needed} bytes, but the file has"
            f" {there}"
        )
    return dtype, shape, fortran


def dump(array: np.ndarray) -> bytes:
    """Returns the content of a .npy file."""
    import numpy as np

    file = io.BytesIO()
    np.lib.format.write_array(file, array, allow_pickle=False)
    return file.getvalue()
