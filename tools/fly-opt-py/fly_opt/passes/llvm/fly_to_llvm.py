"""`convert-fly-to-rocdl`: pointers become LLVM's, accesses loads and stores, atoms instructions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from fly_dialect.bindings import ir
from fly_dialect.dialect import PREFIX, attributes_of, int_tuple_of, pointer_of, spec_of
from fly_dialect.inference.memory import allocation_size
from fly_dialect.layouts.integers import Int
from fly_dialect.types import (
    ComposedLayoutSpec,
    CoordTensorSpec,
    IntTupleSpec,
    LayoutSpec,
    PtrSpec,
)

from fly_opt.backends.amd import buffers
from fly_opt.ir import pointers
from fly_opt.ir.storage import storage_type, stored_type
from fly_opt.passes.base import Pass
from fly_opt.passes.llvm.conversion import Conversion

Value = Any  # an ir.Value

# LDS is 64 KiB a compute unit; its largest natural alignment is that of ds_read_b128.
LDS_ALIGNMENT = 16
DYNAMIC_LDS_ALIGNMENT = 1024  # what fly.get_dyn_shared's type promises


@dataclass(frozen=True)
class ConvertFlyToROCDL(Pass):
    """Turns fly pointers into LLVM pointers, fly memory ops into LLVM's, atoms into instructions.

    ptr and memref types become !llvm.ptr<1> (global), <3> (shared), <5> (register); those behind
    a buffer descriptor become a pair of the descriptor and an offset in elements. add_offset
    becomes a getelementptr that counts in elements, without inbounds: a pointer may be computed for
    an access that a condition then keeps from happening. ptr.load and ptr.store carry the alignment
    of the pointer's type. A shared make_ptr becomes an LDS variable of its own in the gpu.module, a
    register make_ptr an alloca in the function's first block, get_dyn_shared the zero-length
    variable that stands for the LDS a launch asks for. An atom becomes a struct of its state, and a
    call of it the target's instruction, from the table of its family.
    """

    name: ClassVar[str] = "convert-fly-to-rocdl"

    def run(self, op: Any) -> None:
        Conversion(_CONVERT).run(op)


# -- one function an op: the value that takes the result's place ----------------------------------
def _make_int_tuple(conversion: Conversion, op: Any) -> None:
    if len(op.operands) == 1:
        conversion.integers[op.results[0]] = op.operands[0]


def _same(conversion: Conversion, op: Any) -> Value | None:
    """The address stays what it is: get_iter and make_view of a memref, recast_iter."""
    operand = op.operands[0]
    kinds = (IntTupleSpec, LayoutSpec, ComposedLayoutSpec, CoordTensorSpec)
    if isinstance(spec_of(operand.type), kinds):
        return None
    return conversion.value(operand)


def _to_llvm_ptr(conversion: Conversion, op: Any) -> Value:
    spec = pointer_of(op.operands[0])
    expected, found = pointers.pointer(pointers.lowered_space(spec)), op.results[0].type
    if expected != found:
        raise ValueError(f"{spec} becomes {expected}, not {found}")
    return conversion.value(op.operands[0])


def _add_offset(conversion: Conversion, op: Any) -> Value | None:
    pointer, offset = op.operands
    if isinstance(spec_of(pointer.type), IntTupleSpec):
        return None
    spec, base = pointer_of(pointer), conversion.value(pointer)
    elements = conversion.offset(offset)
    if isinstance(leaf := int_tuple_of(offset).value, Int):
        pointers.check_whole(spec.element, leaf)
    if buffers.is_buffer(spec):
        return buffers.add(conversion.builder, base, elements)
    return pointers.element_pointer(conversion.builder, base, elements, spec)


def _ptr_load(conversion: Conversion, op: Any) -> Value:
    builder, pointer, wanted = conversion.builder, op.operands[0], op.results[0].type
    spec, type_ = pointer_of(pointer), stored_type(wanted)
    if buffers.is_buffer(spec):
        at = buffers.place(builder, spec, conversion.value(pointer), pointers.width(type_))
        value = buffers.load(builder, type_, at)
    else:
        address = conversion.address(pointer, type_)
        value = pointers.load(builder, type_, address, pointers.aligned(spec))
    return value if type_ == wanted else builder.value("arith.bitcast", wanted, [value])


def _ptr_store(conversion: Conversion, op: Any) -> None:
    builder, (value, pointer) = conversion.builder, op.operands
    spec, value = pointer_of(pointer), conversion.value(value)
    type_ = stored_type(value.type)
    if type_ != value.type:
        value = builder.value("arith.bitcast", type_, [value])
    if buffers.is_buffer(spec):
        at = buffers.place(builder, spec, conversion.value(pointer), pointers.width(type_))
        buffers.store(builder, value, at)
    else:
        pointers.store(builder, value, conversion.address(pointer, type_), pointers.aligned(spec))


def _ptrtoint(conversion: Conversion, op: Any) -> Value:
    operands = [conversion.value(op.operands[0])]
    return conversion.builder.value("llvm.ptrtoint", op.results[0].type, operands)


def _inttoptr(conversion: Conversion, op: Any) -> Value:
    space = pointers.lowered_space(spec_of(op.results[0].type))
    return conversion.builder.value("llvm.inttoptr", pointers.pointer(space), [op.operands[0]])


def _make_ptr(conversion: Conversion, op: Any) -> Value:
    spec, given = pointer_of(op.results[0]), attributes_of(op)
    if buffers.is_buffer(spec):
        return _make_buffer(conversion, op)
    size = allocation_size(given)
    if size is None or spec.space not in ("shared", "register"):
        raise ValueError(f"there is no lowering for {spec}")
    if spec.space == "register":
        return _alloca(conversion, spec, size)
    asked = given["dictAttrs"].get("allocAlign", max(LDS_ALIGNMENT, spec.alignment))
    return conversion.address_of(conversion.lds("__shared_alloc", size, asked, "internal"))


def _make_buffer(conversion: Conversion, op: Any) -> Value:
    """A descriptor of a base, a stride, a number of bytes and the flags, its fourth word. Without
    flags they are those of the module's target."""
    builder, operands = conversion.builder, [conversion.value(value) for value in op.operands]
    if len(operands) == 3:
        if conversion.target is None:
            raise ValueError("a descriptor without flags needs a target: run fly-set-target first")
        operands.append(builder.constant(buffers.flags(conversion.target), 32))
    descriptor = builder.value("rocdl.make.buffer.rsrc", buffers.descriptor_type(), operands)
    return buffers.make(builder, descriptor)


def _get_buffer_rsrc(conversion: Conversion, op: Any) -> Value:
    return buffers.descriptor(conversion.builder, conversion.value(op.operands[0]))


def _alloca(conversion: Conversion, spec: PtrSpec, count: int) -> Value:
    """A stack slot of `count` elements."""
    builder, i64 = conversion.builder, pointers.integer(64)
    attributes = {"value": ir.IntegerAttr.get(i64, count)}
    number = conversion.slot(lambda: builder.op("arith.constant", i64, [], attributes))
    attributes = {"elem_type": ir.TypeAttr.get(storage_type(spec.element))}
    pointer = pointers.pointer(5)
    operands = [number.results[0]]
    slot = conversion.slot(lambda: builder.op("llvm.alloca", pointer, operands, attributes))
    return slot.results[0]


def _get_dyn_shared(conversion: Conversion, op: Any) -> Value:
    if conversion.dynamic is None:
        symbol = conversion.lds("__dynamic_shared", 0, DYNAMIC_LDS_ALIGNMENT, "external")
        conversion.dynamic = symbol
    base = conversion.address_of(conversion.dynamic)
    attributes = {
        "elem_type": ir.TypeAttr.get(pointers.integer(8)),
        "rawConstantIndices": ir.DenseI32ArrayAttr.get([0]),
    }
    return conversion.builder.value("llvm.getelementptr", pointers.pointer(3), [base], attributes)


def _atoms(name: str) -> Callable[[Conversion, Any], Value | None]:
    """The function of that name in `fly_atoms`, which few modules need."""

    def convert(conversion: Conversion, op: Any) -> Value | None:
        from fly_opt.passes.llvm import atoms

        return getattr(fly_atoms, name)(conversion, op)

    return convert


_FLY: dict[str, Callable[[Conversion, Any], Value | None]] = {
    "make_int_tuple": _make_int_tuple,
    "get_iter": _same,
    "make_view": _same,
    "recast_iter": _same,
    "apply_swizzle": _same,
    "to_llvm_ptr": _to_llvm_ptr,
    "add_offset": _add_offset,
    "ptr.load": _ptr_load,
    "ptr.store": _ptr_store,
    "ptrtoint": _ptrtoint,
    "inttoptr": _inttoptr,
    "make_ptr": _make_ptr,
    "get_dyn_shared": _get_dyn_shared,
    "make_copy_atom": _atoms("make_atom"),
    "make_mma_atom": _atoms("make_atom"),
    "make_tiled_copy": _atoms("same"),
    "make_tiled_mma": _atoms("same"),
    "get_copy_atom": _atoms("same"),
    "get_mma_atom": _atoms("same"),
    "atom.set_value": _atoms("set_value"),
    "copy_atom_call": _atoms("copy_call"),
    "copy_atom_call_ssa": _atoms("copy_call_ssa"),
    "mma_atom_call": _atoms("mma_call"),
    "mma_atom_call_ssa": _atoms("mma_call_ssa"),
}
_CONVERT = {
    **{f"{PREFIX}{name}": convert for name, convert in _FLY.items()},
    "fly_rocdl.get_buffer_rsrc": _get_buffer_rsrc,
}
