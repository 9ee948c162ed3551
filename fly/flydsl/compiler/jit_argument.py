"""`flydsl.compiler.jit_argument`: arguments of host functions.

An array has FlyDSL's type: extents are dynamic and have 32 bits, the leading stride is 1.
`from_dlpack` and `from_torch_tensor` give one whose extents and strides are static.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, ClassVar

from fly_common.errors import UsageError
from fly_dialect.layouts.integers import Int
from fly_trace.signatures.signature import PointerType, TensorType
from fly_trace.values.dtypes import DType, named

from fly.call.arrays.annotated_array import AnnotatedArray
from fly.call.arrays.annotated_array import from_dlpack as _from_dlpack
from fly.call.arrays.views import view

__all__ = ["JitArgumentRegistry", "from_c_void_p", "from_dlpack", "from_torch_tensor"]


class DynamicArray(AnnotatedArray):
    """An array as FlyDSL takes one that is not annotated."""

    def __init__(self, array: Any, name: str) -> None:
        found = view(array, name)
        self.array = array
        data = found.data
        self._dtype = named(found.dtype)
        self._contiguous = bool(data.flags.c_contiguous)
        self._shape = [Int(None)] * data.ndim
        steps = [step // found.data.itemsize for step in data.strides]
        ones = [at for at, step in enumerate(steps) if step == 1 and data.shape[at] > 1]
        self._strides = [1 if at in ones[-1:] else Int(None, 64) for at in range(data.ndim)]

    @property
    def type(self) -> TensorType:
        strides = None if self._contiguous else tuple(self._strides)
        return TensorType(self._dtype, tuple(self._shape), strides)


class PointerArgument:
    """An address in global memory, and what is there."""

    def __init__(self, element_type: DType, address: int, alignment: int):
        self.element_type, self.address, self.alignment = element_type, address, alignment

    @property
    def type(self) -> PointerType:
        return PointerType(self.element_type, self.alignment)


def from_dlpack(
    tensor: Any, *, assumed_align: int | None = None, use_32bit_stride: bool = False
) -> AnnotatedArray:
    """An array with static extents and strides, until they are marked as dynamic."""
    return _from_dlpack(tensor, assumed_align=assumed_align, use_32bit_stride=use_32bit_stride)


from_torch_tensor = from_dlpack


def from_c_void_p(
    element_type: DType,
    pointer: ctypes.c_void_p | int | None,
    *,
    address_space: Any = "global",
    assumed_align: int | None = None,
) -> PointerArgument:
    """An address of elements, which begin at a multiple of `assumed_align` bytes."""
    if str(address_space) != "global":
        raise UsageError(f"a launch passes addresses of global memory, not of {address_space}")
    address = pointer.value if isinstance(pointer, ctypes.c_void_p) else pointer
    return PointerArgument(element_type, int(address or 0), assumed_align or element_type.bytes)


class JitArgumentRegistry:
    """Classes of arguments, with what makes an argument of their objects."""

    _known: ClassVar[dict[type, Callable[[Any], Any]]] = {}

    @classmethod
    def register(cls, kind: type, *, dsl_type: Any = None) -> Callable[[Any], Any]:
        """A decorator for what makes an argument that is known of an object of class `kind`."""

        def add(made: Any) -> Any:
            cls._known[kind] = made
            return made

        return add

    @classmethod
    def converted(cls, value: Any) -> Any:
        """The argument for an object of a registered class; others unchanged."""
        for kind in type(value).__mro__:
            if kind in cls._known:
                return cls._known[kind](value)
        return value
