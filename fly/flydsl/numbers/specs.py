"""FlyDSL's classes of the fly dialect's types: `PointerType.get(…)`,
`isinstance(t, MemRefType)`."""

from __future__ import annotations

from typing import Any

import fly_trace.expr as _language
from fly_dialect.types import CoordTensorSpec, LayoutSpec, MemRefSpec, PtrSpec
from fly_trace.core.dialect_value import DialectValue
from fly_trace.values.dtypes import DType

from fly.flydsl.numbers.raw import is_spec, spec_of
from fly.flydsl.numbers.types import dtype_of, text_of


class _OfSpec(type):
    """A class of types of the fly dialect, whose call is the type itself, if it is one of them."""

    spec: Any

    def __call__(cls, kind: Any) -> Any:
        found = kind if is_spec(kind) else spec_of(kind)
        if not isinstance(found, cls.spec):
            raise ValueError(f"{kind} is no {cls.__name__}")
        return found

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, cls.spec)


class PointerType(metaclass=_OfSpec):
    """`PointerType.get(element type, address space, alignment in bytes)`."""

    spec = PtrSpec

    @staticmethod
    def get(elem_ty: Any, address_space: Any = "global", alignment: int | None = None) -> PtrSpec:
        if not isinstance(elem_ty, (DType, str)) and not hasattr(elem_ty, "context"):
            raise TypeError(f"a pointer is to a type of MLIR, not to {elem_ty!r}")
        element = text_of(elem_ty)
        dtype = dtype_of(element)
        natural = dtype.bytes if dtype is not None else 1
        return PtrSpec(element, space_of(address_space), alignment or natural)


class MemRefType(metaclass=_OfSpec):
    """`MemRefType.get(element type, layout type, address space, alignment in bytes)`."""

    spec = MemRefSpec

    @staticmethod
    def get(
        elem_ty: Any, layout: Any, address_space: Any = "global", alignment: int | None = None
    ) -> MemRefSpec:
        element = text_of(elem_ty)
        dtype = dtype_of(element)
        held = layout.spec if isinstance(layout, DialectValue) else layout
        least = alignment or (dtype.bytes if dtype is not None else 1)
        return MemRefSpec(element, space_of(address_space), held.layout, least)


class LayoutType(metaclass=_OfSpec):
    """`LayoutType.get(shape, stride)`: the type of a static layout."""

    spec = LayoutSpec

    @staticmethod
    def get(shape: Any, stride: Any) -> Any:
        return _language.make_layout(shape, stride).spec


class CoordTensorType(metaclass=_OfSpec):
    """The type of a tensor of coordinates."""

    spec = CoordTensorSpec


class AddressSpace:
    """The kinds of memory. Each prints as in the text of the dialect."""

    Generic, Global, Shared, Register = "generic", "global", "shared", "register"


_SPACES = ("generic", "global", "shared", "register")


def space_of(address_space: Any) -> str:
    """An address space by its name in the dialect; FlyDSL also numbers those of every target."""
    return _SPACES[address_space] if isinstance(address_space, int) else str(address_space)
