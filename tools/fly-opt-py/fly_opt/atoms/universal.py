"""Target-independent atoms: loads and stores, atomic updates, a multiply and an add.

As with CuTe's UniversalCopy, the pointers of a universal copy are aligned to its size: the access
is one load or store of that width.
"""

from __future__ import annotations

from fly_dialect.atoms.universal import UniversalAtomic, UniversalCopy, UniversalFma
from fly_dialect.bindings import ir
from fly_dialect.dialect import type_of

from fly_opt.atoms.emitters import Copy, Memory, Multiply, Operands, copies, multiplies
from fly_opt.ir import pointers
from fly_opt.lowering import spaces

# LLVM's atomicrmw: update → (integers, floats); None if there is none.
_RMW: dict[str, tuple[int, int | None]] = {
    "add": (1, 11),
    "and": (3, None),
    "or": (5, None),
    "max": (7, 13),
    "min": (8, 14),
    "inc": (15, None),
    "dec": (16, None),
}
_MONOTONIC = 2  # LLVM's ordering: atomic, without a fence


@copies(UniversalCopy)
def copy(call: Copy[UniversalCopy]) -> ir.Value | None:
    """Emits a load, a store, or both."""
    value = call.source
    if isinstance(value, Memory):
        value = _read(call, value, call.result or _moved(call.op.bit_size))
    if call.destination is not None:
        _write(call, value, call.destination)
        return None
    return value


def _moved(bits: int) -> ir.Type:
    """Returns the register type for a copy between two memories."""
    return pointers.words(bits // 32) if bits % 32 == 0 else pointers.integer(bits)


def _read(call: Copy[UniversalCopy], source: Memory, type_: ir.Type) -> ir.Value:
    builder, size = call.builder, pointers.width(type_)
    if (own := spaces.of(source.spec)) is not None:
        return own.load_through(builder, source.spec, source.pointer, type_)
    address = pointers.swizzled(builder, source.pointer, source.spec, size)
    return pointers.load(builder, type_, address, _alignment(size))


def _write(call: Copy[UniversalCopy], value: ir.Value, destination: Memory) -> None:
    builder, size = call.builder, pointers.width(value.type)
    if (own := spaces.of(destination.spec)) is not None:
        own.store_through(builder, destination.spec, destination.pointer, value)
        return
    address = pointers.swizzled(builder, destination.pointer, destination.spec, size)
    pointers.store(builder, value, address, _alignment(size))


def _alignment(size: int) -> dict[str, ir.Attribute] | None:
    """Returns the alignment of a copy of `size` bits if that is not a power of two; LLVM would
    assume the next greater power of two."""
    known = (size // 8) & -(size // 8)
    if known * 8 == size:
        return None
    return {"alignment": ir.IntegerAttr.get(pointers.integer(64), known)}


@copies(UniversalAtomic)
def atomic(call: Copy[UniversalAtomic]) -> ir.Value:
    """Emits a monotonic atomicrmw of one element. Returns the source's value."""
    builder, op, destination = call.builder, call.op, call.destination
    if not isinstance(destination, Memory) or isinstance(call.source, Memory):
        raise ValueError(f"{op} updates memory with a value in registers")
    integers, floats = _RMW[op.op]
    code = floats if op.element.startswith(("f", "bf")) else integers
    if code is None:
        raise ValueError(f"there is no atomic {op.op} of {op.element}")
    size = op.copied_bits
    address = pointers.swizzled(builder, destination.pointer, destination.spec, size)
    attributes: dict[str, ir.Attribute] = {
        "bin_op": ir.IntegerAttr.get(pointers.integer(64), code),
        "ordering": ir.IntegerAttr.get(pointers.integer(64), _MONOTONIC),
    }
    if op.scope:
        attributes["syncscope"] = ir.StringAttr.get(op.scope)
    value = pointers.bitcast(builder, call.source, type_of(op.element))
    builder.value("llvm.atomicrmw", value.type, [address, value], attributes)
    return value


def _element(op: UniversalFma) -> Operands:
    element = type_of(op.element)
    return Operands(element, element, element)


@multiplies(_element, UniversalFma)
def fma(call: Multiply[UniversalFma]) -> ir.Value:
    """Emits a multiply and an add that code generation may fuse: `contract` allows it."""
    builder, type_ = call.builder, call.c.type
    if isinstance(type_, ir.IntegerType):
        product = builder.value("arith.muli", type_, [call.a, call.b])
        return builder.value("arith.addi", type_, [product, call.c])
    fast = {"fastmathFlags": ir.Attribute.parse("#llvm.fastmath<contract>")}
    product = builder.value("llvm.fmul", type_, [call.a, call.b], fast)
    return builder.value("llvm.fadd", type_, [product, call.c], fast)
