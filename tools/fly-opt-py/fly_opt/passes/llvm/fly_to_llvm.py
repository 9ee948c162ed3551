"""Converts the fly dialect to LLVM: pointers, loads and stores, and atoms to instructions.

ptr and memref types become !llvm.ptr<1> (global), <3> (shared), <5> (register); those in a
backend's own space are lowered by the backend. add_offset becomes a getelementptr in elements,
without inbounds: a pointer may be computed for an access that a condition then skips. ptr.load and
ptr.store have the alignment of the pointer's type. A shared make_ptr becomes a variable in the
gpu.module, a register make_ptr an alloca in the function's first block, get_dyn_shared the
zero-length variable that represents the shared memory requested by a launch. An atom becomes a
struct of its state, and a call of it the target's instruction, from the table of its family.
"""

from __future__ import annotations

from collections.abc import Callable

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

from fly_opt.ir import pointers
from fly_opt.ir.storage import from_stored, storage_type, stored_type, to_stored
from fly_opt.lowering import interface, spaces
from fly_opt.passes.llvm.conversion import Conversion
from fly_opt.passes.target.set_target import target_of

SHARED_ALIGNMENT = 16  # bytes: the widest access to shared memory
DYNAMIC_SHARED_ALIGNMENT = 1024  # the alignment that the type of fly.get_dyn_shared promises


def convert(module: ir.Operation) -> None:
    """Turns fly pointers into LLVM pointers, fly memory ops into LLVM's, atoms into
    instructions."""
    table = dict(_CONVERT)
    for lowering in interface.candidates(target_of(module)):
        table.update(lowering.conversions())
    Conversion(table).run(module)


# -- one function per op, which returns the value that replaces the result -----------------------
def _make_int_tuple(conversion: Conversion, op: ir.Operation) -> None:
    if len(op.operands) == 1:
        conversion.integers[op.results[0]] = op.operands[0]


def _same(conversion: Conversion, op: ir.Operation) -> ir.Value | None:
    """Keeps the address: get_iter and make_view of a memref, recast_iter."""
    operand = op.operands[0]
    kinds = (IntTupleSpec, LayoutSpec, ComposedLayoutSpec, CoordTensorSpec)
    if isinstance(spec_of(operand.type), kinds):
        return None
    return conversion.value(operand)


def _to_llvm_ptr(conversion: Conversion, op: ir.Operation) -> ir.Value:
    spec = pointer_of(op.operands[0])
    expected, found = pointers.pointer(pointers.lowered_space(spec)), op.results[0].type
    if expected != found:
        raise ValueError(f"{spec} becomes {expected}, not {found}")
    return conversion.value(op.operands[0])


def _extract_pointer(conversion: Conversion, op: ir.Operation) -> ir.Value:
    """The address of a memref's first element, in the address space that the result names."""
    found, wanted = conversion.value(op.operands[0]), op.results[0].type
    spec = spec_of(op.operands[0].type)
    if spaces.of(spec) is not None:
        raise ValueError(f"{spec} has no address in memory")
    if found.type == wanted:
        return found
    return conversion.builder.value("llvm.addrspacecast", wanted, [found])


def _add_offset(conversion: Conversion, op: ir.Operation) -> ir.Value | None:
    pointer, offset = op.operands
    if isinstance(spec_of(pointer.type), IntTupleSpec):
        return None
    spec, base = pointer_of(pointer), conversion.value(pointer)
    elements = conversion.offset(offset)
    if isinstance(leaf := int_tuple_of(offset).value, Int):
        pointers.check_whole(spec.element, leaf)
    if (own := spaces.of(spec)) is not None:
        return own.add(conversion.builder, base, elements)
    return pointers.element_pointer(conversion.builder, base, elements, spec)


def _ptr_load(conversion: Conversion, op: ir.Operation) -> ir.Value:
    builder, pointer, wanted = conversion.builder, op.operands[0], op.results[0].type
    spec, type_ = pointer_of(pointer), stored_type(wanted)
    if (own := spaces.of(spec)) is not None:
        value = own.load_through(builder, spec, conversion.value(pointer), type_)
    else:
        address = conversion.address(pointer, type_)
        value = pointers.load(builder, type_, address, pointers.aligned(spec))
    return from_stored(builder, value, wanted)


def _ptr_store(conversion: Conversion, op: ir.Operation) -> None:
    builder, (value, pointer) = conversion.builder, op.operands
    spec, value = pointer_of(pointer), to_stored(builder, conversion.value(value))
    if (own := spaces.of(spec)) is not None:
        own.store_through(builder, spec, conversion.value(pointer), value)
    else:
        address = conversion.address(pointer, value.type)
        pointers.store(builder, value, address, pointers.aligned(spec))


def _ptrtoint(conversion: Conversion, op: ir.Operation) -> ir.Value:
    operands = [conversion.value(op.operands[0])]
    return conversion.builder.value("llvm.ptrtoint", op.results[0].type, operands)


def _inttoptr(conversion: Conversion, op: ir.Operation) -> ir.Value:
    space = pointers.lowered_space(spec_of(op.results[0].type))
    return conversion.builder.value("llvm.inttoptr", pointers.pointer(space), [op.operands[0]])


def _make_ptr(conversion: Conversion, op: ir.Operation) -> ir.Value:
    spec, given = pointer_of(op.results[0]), attributes_of(op)
    if (own := spaces.of(spec)) is not None:
        return own.make_pointer(conversion, op)
    size = allocation_size(given)
    if size is None or spec.space not in ("shared", "register"):
        raise ValueError(f"there is no lowering for {spec}")
    if spec.space == "register":
        return _alloca(conversion, spec, size)
    asked = given["dictAttrs"].get("allocAlign", max(SHARED_ALIGNMENT, spec.alignment))
    return conversion.address_of(
        conversion.shared_variable("__shared_alloc", size, asked, "internal")
    )


def _alloca(conversion: Conversion, spec: PtrSpec, count: int) -> ir.Value:
    """Allocates a stack slot of `count` elements."""
    builder, i64 = conversion.builder, pointers.integer(64)
    attributes = {"value": ir.IntegerAttr.get(i64, count)}
    number = conversion.slot(lambda: builder.op("arith.constant", i64, [], attributes))
    attributes = {"elem_type": ir.TypeAttr.get(storage_type(spec.element))}
    pointer = pointers.pointer(5)
    operands = [number.results[0]]
    slot = conversion.slot(lambda: builder.op("llvm.alloca", pointer, operands, attributes))
    return slot.results[0]


def _get_dyn_shared(conversion: Conversion, op: ir.Operation) -> ir.Value:
    if conversion.dynamic is None:
        symbol = conversion.shared_variable(
            "__dynamic_shared", 0, DYNAMIC_SHARED_ALIGNMENT, "external"
        )
        conversion.dynamic = symbol
    base = conversion.address_of(conversion.dynamic)
    attributes = {
        "elem_type": ir.TypeAttr.get(pointers.integer(8)),
        "rawConstantIndices": ir.DenseI32ArrayAttr.get([0]),
    }
    return conversion.builder.value("llvm.getelementptr", pointers.pointer(3), [base], attributes)


def _atoms(name: str) -> Callable[[Conversion, ir.Operation], ir.Value | None]:
    """Returns the function of that name in `atoms`, which few modules need."""

    def convert(conversion: Conversion, op: ir.Operation) -> ir.Value | None:
        from fly_opt.passes.llvm import atoms

        return getattr(atoms, name)(conversion, op)

    return convert


_FLY: dict[str, Callable[[Conversion, ir.Operation], ir.Value | None]] = {
    "make_int_tuple": _make_int_tuple,
    "get_iter": _same,
    "make_view": _same,
    "recast_iter": _same,
    "apply_swizzle": _same,
    "to_llvm_ptr": _to_llvm_ptr,
    "extract_aligned_pointer_as_index": _extract_pointer,
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
}
