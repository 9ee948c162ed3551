"""Lowering of pointers that go through a buffer descriptor, `#fly_rocdl.buffer_desc`.

Such a pointer is a pair: the descriptor (`!llvm.ptr<8>`, four words that the hardware reads) and an
offset in elements. An access passes the offset to the hardware in bytes; past the descriptor's
number of bytes a load returns 0 and a store does nothing.

The module is the backend's `fly_opt.lowering.interface.PointerSpaces`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fly_common.record import record
from fly_dialect.amd.buffers import BUFFER_SPACE
from fly_dialect.bindings import ir
from fly_dialect.types import MemRefSpec, PtrSpec, Spec, element_bytes
from fly_target.amd.facts import facts_of
from fly_target.target import Target

from fly_opt.ir import pointers
from fly_opt.ir.builder import Builder

if TYPE_CHECKING:
    from fly_opt.passes.llvm.conversion import Conversion

_DESCRIPTOR, _OFFSET = 0, 1  # fields of the pair

# The descriptor's fourth word (CDNA3 ISA, "Buffer resource descriptor"; RDNA3 ISA, the same): data
# format "32", number format "float"; raw accesses require them to be set and ignore them.
_FORMAT = 7 << 12 | 4 << 15


def holds(spec: Spec) -> bool:
    """Returns whether a pointer or memref goes through a descriptor."""
    return isinstance(spec, (PtrSpec, MemRefSpec)) and spec.space == BUFFER_SPACE


def flags(target: Target) -> int:
    """Returns the fourth word of a descriptor for bounds-checked raw accesses."""
    return _FORMAT | facts_of(target).buffer_flags


def descriptor_type() -> ir.Type:
    return pointers.pointer(8)


def pair_type() -> ir.Type:
    return ir.Type.parse("!llvm.struct<(ptr<8>, i32)>")


def lowered_type(spec: Spec) -> ir.Type:
    return pair_type()


def make_pointer(conversion: Conversion, op: ir.Operation) -> ir.Value:
    """Lowers a make_ptr of a base, a stride, a number of bytes and the flags, the descriptor's
    fourth word. The flags default to those of the module's target."""
    builder, operands = conversion.builder, [conversion.value(value) for value in op.operands]
    if len(operands) == 3:
        if conversion.target is None:
            raise ValueError("a descriptor without flags needs a target: run fly-set-target first")
        operands.append(builder.constant(flags(conversion.target), 32))
    return make(builder, builder.value("rocdl.make.buffer.rsrc", descriptor_type(), operands))


def get_descriptor(conversion: Conversion, op: ir.Operation) -> ir.Value:
    """Lowers fly_rocdl.get_buffer_rsrc: the descriptor of a pointer."""
    return descriptor(conversion.builder, conversion.value(op.operands[0]))


def make(builder: Builder, descriptor: ir.Value, offset: ir.Value | None = None) -> ir.Value:
    """Returns the pointer made of its parts; `offset` is in elements and defaults to 0."""
    offset = builder.constant(0, 32) if offset is None else offset
    type_ = pair_type()
    pair = pointers.undefined(builder, type_)
    pair = pointers.insert(builder, pair, _DESCRIPTOR, descriptor, type_)
    return pointers.insert(builder, pair, _OFFSET, offset, type_)


def descriptor(builder: Builder, pair: ir.Value) -> ir.Value:
    return pointers.extract(builder, pair, _DESCRIPTOR, descriptor_type())


def add(builder: Builder, pair: ir.Value, elements: ir.Value) -> ir.Value:
    """Advances the pointer; `elements` wraps modulo 2^32, as the hardware's offset does."""
    i32 = pointers.integer(32)
    if elements.type != i32:
        elements = builder.value("arith.trunci", i32, [elements])
    offset = pointers.extract(builder, pair, _OFFSET, i32)
    total = builder.value("arith.addi", i32, [offset, elements])
    return make(builder, descriptor(builder, pair), total)


def scaled(builder: Builder, elements: ir.Value, element: str) -> ir.Value:
    """Converts a count of elements to bytes, as i32; packed elements must fill whole bytes."""
    if pointers.is_packed(element):
        return pointers.packed_bytes(builder, elements, element)
    size = element_bytes(element)
    if size == 1:
        return elements
    return builder.value("arith.muli", elements.type, [elements, builder.constant(size, 32)])


@record
class Place:
    """The location of an access: the descriptor and the offset in bytes."""

    descriptor: ir.Value
    offset: ir.Value


def place(builder: Builder, spec: PtrSpec | MemRefSpec, pair: ir.Value, size: int) -> Place:
    """Returns the location of an access of `size` bits through a pointer of type `spec`, with its
    swizzle applied. ValueError if the swizzle would split the access."""
    pointers.check_swizzle(spec, size)
    found = descriptor(builder, pair)
    elements = pointers.extract(builder, pair, _OFFSET, pointers.integer(32))
    offset = scaled(builder, elements, spec.element)
    if spec.swizzle is not None:
        offset = pointers.swizzled_number(builder, offset, spec.swizzle)
    return Place(found, offset)


def load(
    builder: Builder, type_: ir.Type, at: Place, soffset: ir.Value | None = None, cache: int = 0
) -> ir.Value:
    """Emits a buffer_load. `soffset` is in bytes, `cache` is the cache policy."""
    operands = [at.descriptor, at.offset, _soffset(builder, soffset)]
    loaded = _loadable(type_)
    value = builder.value("rocdl.raw.ptr.buffer.load", loaded, operands, policy(cache))
    return pointers.bitcast(builder, value, type_)


def store(
    builder: Builder, value: ir.Value, at: Place, soffset: ir.Value | None = None, cache: int = 0
) -> None:
    """Emits a buffer_store; arguments as in `load`."""
    value = pointers.bitcast(builder, value, _loadable(value.type))
    operands = [value, at.descriptor, at.offset, _soffset(builder, soffset)]
    builder.op("rocdl.raw.ptr.buffer.store", None, operands, policy(cache))


def load_through(
    builder: Builder, spec: PtrSpec | MemRefSpec, pair: ir.Value, type_: ir.Type
) -> ir.Value:
    return load(builder, type_, place(builder, spec, pair, pointers.width(type_)))


def store_through(
    builder: Builder, spec: PtrSpec | MemRefSpec, pair: ir.Value, value: ir.Value
) -> None:
    store(builder, value, place(builder, spec, pair, pointers.width(value.type)))


def policy(cache: int) -> dict[str, ir.Attribute]:
    """Returns the cache policy attribute of a buffer access: 0 is the default, 2 streams."""
    return {"aux": ir.IntegerAttr.get(pointers.integer(32), cache)}


def _soffset(builder: Builder, soffset: ir.Value | None) -> ir.Value:
    return builder.constant(0, 32) if soffset is None else soffset


def _loadable(type_: ir.Type) -> ir.Type:
    """Returns the type in which the instruction moves a value: a byte, a half word, whole words."""
    size = pointers.width(type_)
    if size in (8, 16):
        return pointers.integer(size)
    if size % 32 or size > 128:
        raise ValueError(f"a buffer access must move 8, 16, 32, 64, 96 or 128 bits, not {size}")
    return pointers.words(size // 32)
