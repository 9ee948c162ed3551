"""torch's and NumPy's own ways to make tensors: for views, and where native code can't allocate."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from fly_numerics.element_types import ELEMENT_TYPES

from fly_host.native.specialisation import CPU, Array, Specialisation

Numbers = tuple[int, ...]
_DEVICES = {1: "cpu", 2: "cuda", 10: "cuda"}  # DLPack's numbers


def dtype_object(specialisation: Specialisation, dtype: str) -> Any:
    """The NumPy dtype of arrays that the program makes."""
    if dtype in specialisation.dtypes:
        return specialisation.dtypes[dtype]
    import numpy

    return numpy.dtype(ELEMENT_TYPES[dtype].numpy)


def allocator(specialisation: Specialisation, dtype: str) -> Callable[[Numbers, Numbers, int], Any]:
    """A function (shape, strides, elements) that allocates."""
    made = specialisation.made
    if made.kind == "torch":
        return _torch_allocator(made, dtype)
    return _numpy_allocator(dtype_object(specialisation, dtype))


def _torch_allocator(made: Array, dtype: str) -> Callable[[Numbers, Numbers, int], Any]:
    torch: Any = sys.modules["torch"]
    kind = getattr(torch, ELEMENT_TYPES[dtype].long_name)
    device = torch.device(_DEVICES[made.device[0]], made.device[1] if made.device != CPU else None)
    fast = None
    if made.device == CPU:
        guards = getattr(getattr(torch._C, "_dynamo", None), "guards", None)
        fast = getattr(guards, "_empty_strided_cpu", None)

    def allocate(shape: Numbers, strides: Numbers, elements: int) -> Any:
        if elements > span(shape, strides):
            return torch.empty(elements, dtype=kind, device=device).as_strided(shape, strides)
        if fast is not None:
            return fast(shape, strides, kind)
        return torch.empty_strided(shape, strides, dtype=kind, device=device)

    return allocate


def _numpy_allocator(dtype: Any) -> Callable[[Numbers, Numbers, int], Any]:
    import numpy

    def allocate(shape: Numbers, strides: Numbers, elements: int) -> Any:
        memory = numpy.empty(max(elements, span(shape, strides)), dtype)
        steps = tuple(stride * dtype.itemsize for stride in strides)
        return numpy.ndarray(shape, dtype, memory, 0, steps)

    return allocate


def span(shape: Numbers, strides: Numbers) -> int:
    """The number of elements from the first to the last that strides reach."""
    if 0 in shape:
        return 0
    return 1 + sum((n - 1) * stride for n, stride in zip(shape, strides, strict=True))


def view(tensor: Any, shape: Numbers, strides: Numbers, offset: int) -> Any:
    """Elements of a tensor; `offset` counts from its element zero."""
    if type(tensor).__module__.partition(".")[0] == "torch":
        return tensor.as_strided(shape, strides, tensor.storage_offset() + offset)
    import numpy

    steps = tuple(stride * tensor.itemsize for stride in strides)
    # A dtype that is not NumPy's has no name in the interface: its bits are seen, then it.
    return numpy.asarray(_Elements(tensor, shape, steps, offset)).view(tensor.dtype)


class _Elements:
    """Elements of a NumPy array, which it keeps alive."""

    def __init__(self, array: Any, shape: Numbers, steps: Numbers, offset: int):
        self.array = array
        self.__array_interface__ = {
            "version": 3,
            "shape": shape,
            "strides": steps,
            "typestr": f"|V{array.itemsize}" if array.dtype.kind == "V" else array.dtype.str,
            "data": (array.ctypes.data + offset * array.itemsize, not array.flags.writeable),
        }
