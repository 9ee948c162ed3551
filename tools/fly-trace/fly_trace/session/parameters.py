"""Parameters of traced functions: types in the dialect, symbolic values, descriptions."""

from __future__ import annotations

from typing import Any

from fly_dialect import dialect as fly
from fly_dialect.bindings import ir
from fly_dialect.layouts.layout import Int, Layout
from fly_dialect.types import MemRefSpec, PtrSpec

from fly_trace.core.dialect_value import DialectValue
from fly_trace.host import streams
from fly_trace.host.streams import StreamValue
from fly_trace.memory.pointers import Address
from fly_trace.memory.tensors import Tensor
from fly_trace.signatures.extents import Extent, symbol_of
from fly_trace.signatures.signature import (
    Constant,
    ParameterType,
    PointerType,
    ScalarType,
    StreamType,
    TensorType,
)
from fly_trace.values.scalars import Scalar


def ir_type(kind: ParameterType) -> ir.Type:
    if isinstance(kind, ScalarType):
        return fly.type_of(kind.dtype.ir)
    if isinstance(kind, StreamType):
        return fly.type_of(streams.TYPE)
    if isinstance(kind, PointerType):
        return fly.type_of("i64")
    assert isinstance(kind, TensorType)
    if not kind.shape:  # a tuple needs leaves: one element at offset 0, with any stride
        one = Layout(Int(1), Int(0))
        return fly.memref_type(MemRefSpec(kind.dtype.memory, "global", one, kind.align))
    shape, stride = ((leaf[0] if len(leaf) == 1 else leaf) for leaf in kind.leaves)
    layout = Layout(shape, stride)
    return fly.memref_type(MemRefSpec(kind.dtype.memory, "global", layout, kind.align))


def passed_type(value: DialectValue | Scalar) -> ir.Type:
    """The type of what is passed to a kernel."""
    if isinstance(value, DialectValue):
        assert value.ssa is not None, "what is static is not passed"
        return value.ssa.type
    return fly.type_of(value.dtype.ir)


def symbolic(name: str, kind: ParameterType, value: Any) -> Tensor | Scalar | Address | StreamValue:
    if isinstance(kind, TensorType):
        spec = fly.memref_of(value)
        return Tensor(
            spec,
            value,
            kind.dtype,
            name,
            is_array=True,
            rank=len(kind.shape),
            is_contiguous=kind.contiguous,
        )
    if isinstance(kind, StreamType):
        return StreamValue(name, value)
    if isinstance(kind, PointerType):
        return Address(PtrSpec(kind.dtype.memory, "global", kind.align), value, kind.dtype, name)
    assert isinstance(kind, ScalarType)
    return Scalar(kind.dtype, value)


def symbolic_tensor(name: str, like: Tensor, value: ir.Value) -> Tensor:
    """The kernel's tensor for the argument `like`."""
    return Tensor(
        like.spec,
        value,
        like.dtype,
        name,
        is_array=like.is_array,
        rank=like.rank,
        is_contiguous=like.is_contiguous,
    )


def description(name: str, kind: ParameterType, value: Any) -> ir.DictAttr:
    """The attributes of a host argument, for the host program."""
    found: dict[str, ir.Attribute] = {"fly.name": ir.StringAttr.get(name)}
    assert not isinstance(kind, Constant)
    if isinstance(kind, StreamType):
        return ir.DictAttr.get(found)
    if isinstance(kind, PointerType):
        found["fly.dtype"] = ir.StringAttr.get("i64")
        return ir.DictAttr.get(found)
    found["fly.dtype"] = ir.StringAttr.get(kind.dtype.name)
    if isinstance(kind, TensorType):
        found["fly.shape"] = ir.ArrayAttr.get([_extent(extent) for extent in kind.shape])
        found["fly.access"] = ir.StringAttr.get(value.access.text)
        if kind.contiguous:
            found["fly.contiguous"] = ir.UnitAttr.get()
    elif kind.default is not None:
        attribute = fly.type_of(kind.dtype.ir)
        if kind.dtype.is_float:
            found["fly.default"] = ir.FloatAttr.get(attribute, float(kind.default))
        elif kind.dtype.is_bool:
            found["fly.default"] = ir.BoolAttr.get(bool(kind.default))
        else:
            number = int(kind.default)
            low, high = kind.dtype.range
            number = number - (1 << kind.dtype.bits) if low == 0 and number > high >> 1 else number
            found["fly.default"] = ir.IntegerAttr.get(attribute, number)
    return ir.DictAttr.get(found)


def _extent(extent: Extent) -> ir.Attribute:
    symbol = symbol_of(extent)
    if symbol is not None:
        return ir.StringAttr.get(symbol)
    if isinstance(extent, int):
        return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), extent)
    return ir.UnitAttr.get()
