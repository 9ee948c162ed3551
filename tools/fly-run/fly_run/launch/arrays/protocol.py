"""The arrays that a call gives and gets back.

A program's tensors are NumPy arrays of host memory to everything in here. What the caller sees of
them is a matter of `Arrays`: NumPy's arrays themselves, or objects of another library that share
their memory (`fly.call.arrays.array_kinds`), which this package does not import.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from fly_common.errors import MissingError

from fly_run.launch.arrays import dtypes

if TYPE_CHECKING:
    import numpy as np


class Arrays(Protocol):
    """A library's arrays. Strides and offsets are in elements."""

    def empty(
        self, dtype: str, shape: tuple[int, ...], strides: tuple[int, ...], elements: int
    ) -> tuple[Any, np.ndarray]:
        """A new array in memory for `elements` elements, not initialised, and all of its memory:
        more than the array reaches where it is padded. MissingError where there is no memory."""
        ...

    def strided(
        self, array: Any, shape: tuple[int, ...], strides: tuple[int, ...], offset: int
    ) -> Any:
        """Elements of an array, which share its memory."""
        ...

    def memory(self, array: Any) -> np.ndarray:
        """The array's memory as a NumPy array of the same shape and strides; of a type that NumPy
        lacks, the bits."""
        ...


class NumpyArrays:
    """NumPy's own. A type that NumPy lacks comes as its bits."""

    def empty(
        self, dtype: str, shape: tuple[int, ...], strides: tuple[int, ...], elements: int
    ) -> tuple[np.ndarray, np.ndarray]:
        import numpy as np

        try:
            flat = np.empty(elements, dtypes.numpy_dtype(dtype))
        except (MemoryError, ValueError):
            size = elements * dtypes.SIZES[dtype]
            raise MissingError(f"there is no memory for {size} bytes more") from None
        return _elements(flat, shape, strides, 0), flat

    def strided(
        self, array: np.ndarray, shape: tuple[int, ...], strides: tuple[int, ...], offset: int
    ) -> np.ndarray:
        return _elements(flat_memory(array), shape, strides, offset)

    def memory(self, array: np.ndarray) -> np.ndarray:
        return array


def _elements(
    flat: np.ndarray, shape: tuple[int, ...], strides: tuple[int, ...], offset: int
) -> np.ndarray:
    import numpy as np

    size = flat.itemsize
    steps = tuple(stride * size for stride in strides)
    return np.ndarray(shape, flat.dtype, flat, offset * size, steps)


def flat_memory(array: np.ndarray) -> np.ndarray:
    """The elements from the first of an array to the last one that it reaches, in one dimension.
    Its strides must not be negative."""
    import numpy as np

    if not array.size:
        return np.empty(0, array.dtype)
    steps = zip(array.shape, array.strides, strict=True)
    reach = sum((extent - 1) * stride for extent, stride in steps) // array.itemsize + 1
    return np.lib.stride_tricks.as_strided(array, (reach,), (array.itemsize,))


NUMPY = NumpyArrays()
