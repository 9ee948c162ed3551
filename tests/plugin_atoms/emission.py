"""The lowering of the instructions."""

from __future__ import annotations

from fly_dialect.bindings import ir
from fly_dialect.dialect import type_of
from fly_opt.atoms import universal
from fly_opt.atoms.emitters import Memory, Operands, copies, multiplies
from fly_opt.ir import pointers

from plugin_atoms.instructions import Flip, Fma


def operands(op):
    element = type_of(op.element)
    return Operands(element, element, element)


@multiplies(operands, Fma)
def fma(call):
    builder, type_ = call.builder, call.c.type
    product = builder.value("llvm.fmul", type_, [call.a, call.b])
    double = builder.value("llvm.fadd", type_, [product, product])
    return builder.value("llvm.fadd", type_, [double, call.c])


@copies(Flip)
def flip(call):
    builder, value = call.builder, call.source
    integer = pointers.integer(call.op.bit_size)
    if isinstance(value, Memory):
        value = universal._read(call, value, integer)
    value = pointers.bitcast(builder, value, integer)
    ones = ir.IntegerAttr.get(integer, -1)
    mask = builder.value("llvm.mlir.constant", integer, [], {"value": ones})
    value = builder.value("llvm.xor", integer, [value, mask])
    if call.destination is not None:
        universal._write(call, value, call.destination)
        return None
    return value if call.result is None else pointers.bitcast(builder, value, call.result)
