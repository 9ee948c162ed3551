"""Lowering of fly pointers to LLVM: types, loads and stores, swizzles."""

from __future__ import annotations

from math import gcd

from fly_dialect.bindings import ir
from fly_dialect.layouts.integers import Int
from fly_dialect.types import SPACES, MemRefSpec, PtrSpec, Spec, Swizzle, bits

from fly_opt.ir.builder import Attributes, Builder
from fly_opt.ir.storage import storage_type


def space(spec: Spec) -> int | None:
    """Returns LLVM's number of the address space of a pointer or memref; None for other types and
    for a target's own spaces."""
    if isinstance(spec, (PtrSpec, MemRefSpec)):
        return SPACES.get(spec.space)
    return None


def lowered_space(spec: Spec) -> int:
    """Like `space`, but raises ValueError if there is none."""
    found = space(spec)
    if found is None:
        raise ValueError(f"there is no lowering for {spec}")
    return found


def pointer(number: int) -> ir.Type:
    """Returns the LLVM pointer type of an address space."""
    return ir.Type.parse(f"!llvm.ptr<{number}>" if number else "!llvm.ptr")


def integer(width: int) -> ir.IntegerType:
    return ir.IntegerType.get_signless(width)


def words(count: int) -> ir.Type:
    """Returns the type of `count` 32-bit words in registers: i32, or a vector of them."""
    return integer(32) if count == 1 else ir.VectorType.get([count], integer(32))


def aligned(spec: PtrSpec | MemRefSpec) -> dict[str, ir.Attribute]:
    """Returns the alignment attribute of an access: the greatest power of two that the type
    promises and the swizzle preserves."""
    alignment = spec.alignment
    if spec.swizzle is not None:
        alignment = gcd(alignment, 1 << spec.swizzle.base)
    return {"alignment": ir.IntegerAttr.get(integer(64), alignment & -alignment)}


def check_swizzle(spec: PtrSpec | MemRefSpec, size: int) -> None:
    """Raises ValueError unless the type's swizzle keeps the bits of one access together."""
    if spec.swizzle is not None and (8 << spec.swizzle.base) % size:
        raise ValueError(
            f"{spec.swizzle} keeps {1 << spec.swizzle.base} bytes together, but one access has "
            f"{size // 8}"
        )


def swizzled(
    builder: Builder, address: ir.Value, spec: PtrSpec | MemRefSpec, size: int
) -> ir.Value:
    """Returns the pointer for an access of `size` bits, with the type's swizzle applied."""
    check_swizzle(spec, size)
    if spec.swizzle is None:
        return address
    number = builder.value("llvm.ptrtoint", integer(64), [address])
    result = swizzled_number(builder, number, spec.swizzle)
    return builder.value("llvm.inttoptr", pointer(lowered_space(spec)), [result])


def swizzled_number(builder: Builder, number: ir.Value, swizzle: Swizzle) -> ir.Value:
    """Applies a swizzle to an address in bytes, an i32 or i64."""
    size = width(number.type)
    mask = ((1 << swizzle.mask) - 1) << (swizzle.base + swizzle.shift)
    picked = builder.value("arith.andi", number.type, [number, builder.constant(mask, size)])
    shift = builder.constant(swizzle.shift, size)
    moved = builder.value("arith.shrui", number.type, [picked, shift])
    return builder.value("arith.xori", number.type, [number, moved])


def is_packed(element: str) -> bool:
    """Returns whether several elements share a byte of memory. (An i1 has one of its own.)"""
    return 1 < bits(element) < 8


def packing(element: str) -> tuple[int, int]:
    """Returns the least number of packed elements that fill whole bytes, and how many bytes: (2, 1)
    for f4E2M1FN, (4, 3) for f6E2M3FN."""
    size = bits(element)
    return 8 // gcd(size, 8), size // gcd(size, 8)


def check_whole(element: str, count: Int) -> None:
    """Raises ValueError unless `count` elements are known to end on a byte boundary."""
    if is_packed(element):
        group, _ = packing(element)
        step = count.divisibility if count.value is None else count.value
        if step % group:
            raise ValueError(
                f"{count} elements of {element} are not known to be a multiple of {group}, which"
                " are"
                " whole bytes: access such elements with vectors and copies of whole bytes"
            )


def packed_bytes(builder: Builder, elements: ir.Value, element: str) -> ir.Value:
    """Converts a number of packed elements that fill whole bytes to a number of bytes."""
    group, size = packing(element)
    shift = builder.constant(group.bit_length() - 1, width(elements.type))
    value = builder.pure("arith.shrsi", elements.type, [elements, shift])
    if size > 1:
        factor = builder.constant(size, width(elements.type))
        value = builder.pure("arith.muli", elements.type, [value, factor])
    return value


def element_pointer(
    builder: Builder, base: ir.Value, offset: ir.Value, spec: PtrSpec | MemRefSpec
) -> ir.Value:
    """Returns the pointer plus `offset` elements, without inbounds."""
    stored = storage_type(spec.element)
    if is_packed(spec.element):
        stored, offset = integer(8), packed_bytes(builder, offset, spec.element)
    attributes = {
        "elem_type": ir.TypeAttr.get(stored),
        "rawConstantIndices": ir.DenseI32ArrayAttr.get([_DYNAMIC_INDEX]),
    }
    type_ = pointer(lowered_space(spec))
    return builder.pure("llvm.getelementptr", type_, [base, offset], attributes)


# LLVM::GEPOp::kDynamicIndex: the index is the next operand.
_DYNAMIC_INDEX = -(2**31)


def load(
    builder: Builder, type_: ir.Type, address: ir.Value, attributes: Attributes | None = None
) -> ir.Value:
    value = builder.value("llvm.load", _carrier(type_), [address], attributes)
    return bitcast(builder, value, type_)


def store(
    builder: Builder, value: ir.Value, address: ir.Value, attributes: Attributes | None = None
) -> None:
    value = bitcast(builder, value, _carrier(value.type))
    builder.op("llvm.store", None, [value, address], attributes)


def _carrier(type_: ir.Type) -> ir.Type:
    """Returns the type in which a value is accessed: its own, or words or bytes for packed
    elements, because each integer has bytes of its own in LLVM's memory. ValueError for a part of a
    byte."""
    element = type_.element_type if isinstance(type_, ir.VectorType) else type_
    if not isinstance(element, ir.IntegerType) or not 1 < element.width < 8:
        return type_
    size = width(type_)
    if size % 8:
        raise ValueError(f"an access must move whole bytes, but {type_} has {size} bits")
    if size % 32 == 0:
        return words(size // 32)
    return integer(8) if size == 8 else ir.VectorType.get([size // 8], integer(8))


def bitcast(builder: Builder, value: ir.Value, type_: ir.Type) -> ir.Value:
    """Reinterprets the bits as another type."""
    return value if value.type == type_ else builder.value("llvm.bitcast", type_, [value])


def width(type_: ir.Type) -> int:
    """Returns the width in bits of an integer, a float or a vector of those."""
    if isinstance(type_, ir.VectorType):
        count = 1
        for extent in type_.shape:
            count *= extent
        return count * width(type_.element_type)
    if not isinstance(type_, (ir.IntegerType, ir.FloatType)):
        raise TypeError(f"{type_} has no number of bits")
    return type_.width


# -- structs
def undefined(builder: Builder, type_: ir.Type) -> ir.Value:
    return builder.value("llvm.mlir.undef", type_, [])


def insert(
    builder: Builder, struct: ir.Value, index: int, value: ir.Value, type_: ir.Type
) -> ir.Value:
    """Returns the struct, of type `type_`, with a field replaced."""
    position = {"position": ir.DenseI64ArrayAttr.get([index])}
    return builder.value("llvm.insertvalue", type_, [struct, value], position)


def extract(builder: Builder, struct: ir.Value, index: int, type_: ir.Type) -> ir.Value:
    position = {"position": ir.DenseI64ArrayAttr.get([index])}
    return builder.value("llvm.extractvalue", type_, [struct], position)
