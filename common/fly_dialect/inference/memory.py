"""Type inference for pointers and memory. See `fly_dialect.inference.rules`."""

from __future__ import annotations

import re
from math import gcd

from fly_common.record import replace

from fly_dialect import algebra
from fly_dialect.extension import check_made_pointer
from fly_dialect.inference.rules import (
    Attributes,
    any_layout_operand,
    int_tuple_operand,
    layout_operand,
    memref_operand,
    ptr_operand,
    wrong,
)
from fly_dialect.layouts.int_tuple import IntTuple, text
from fly_dialect.layouts.integers import Int
from fly_dialect.types import (
    SPACES,
    CoordTensorSpec,
    IntTupleSpec,
    MemRefSpec,
    PtrSpec,
    Spec,
    SwizzleSpec,
    bits,
)


def infer_add_offset(operands: list[Spec], _: Attributes) -> list[Spec]:
    iterator, offset = operands[0], int_tuple_operand(operands, 1)
    if isinstance(iterator, IntTupleSpec):
        return [IntTupleSpec(algebra.add(iterator.value, offset))]
    if not isinstance(iterator, PtrSpec):
        raise wrong(0, "a ptr or an int_tuple", iterator)
    return [moved_pointer(iterator, offset)]


def moved_pointer(pointer: PtrSpec, offset: IntTuple) -> PtrSpec:
    """The type of the pointer advanced by `offset` elements. Its alignment is what divides both the
    address and the offset."""
    if not isinstance(offset, Int):
        raise ValueError(f"the offset must be one integer, but is {text(offset)}")
    return _aligned(pointer, gcd(_held(pointer), offset.factor))


def _held(pointer: PtrSpec) -> int:
    """The known alignment of the address, in elements."""
    return max(1, pointer.alignment * 8 // bits(pointer.element))


def _aligned(pointer: PtrSpec, held: int) -> PtrSpec:
    size = (held * bits(pointer.element) + 7) // 8
    return replace(pointer, align=size)


def infer_apply_swizzle(operands: list[Spec], _: Attributes) -> list[Spec]:
    pointer, swizzle = ptr_operand(operands, 0), operands[1]
    if not isinstance(swizzle, SwizzleSpec):
        raise wrong(1, "a swizzle", swizzle)
    held = gcd(_held(pointer), 1 << swizzle.swizzle.base)
    return [replace(_aligned(pointer, held), swizzle=swizzle.swizzle)]


def check_make_ptr(operands: list[Spec], results: list[Spec], attributes: Attributes) -> None:
    spec = results[0]
    if not isinstance(spec, PtrSpec):
        raise ValueError(f"the result must be a ptr, but is {spec}")
    if not check_made_pointer(spec.space, operands, spec) and operands:
        raise ValueError(f"{spec} is allocated by make_ptr, which takes no operands for it")
    if spec.space in ("register", "shared") and allocation_size(attributes) is None:
        raise ValueError(f"{spec} needs dictAttrs = {{allocSize = N : i64}}")


def allocation_size(attributes: Attributes) -> int | None:
    """The size that a make_ptr requests: elements in registers, bytes of LDS."""
    given = attributes.get("dictAttrs") or {}
    return given.get("allocBytes", given.get("allocSize"))


DYNAMIC_SHARED = PtrSpec("i8", "shared", 1024)


def infer_get_dyn_shared(_: list[Spec], __: Attributes) -> list[Spec]:
    return [DYNAMIC_SHARED]


def infer_ptrtoint(operands: list[Spec], _: Attributes) -> list[Spec]:
    width = {"shared": 32, "register": 32, "global": 64}.get(ptr_operand(operands, 0).space)
    if width is None:
        raise wrong(0, "a ptr to global, shared or register memory", operands[0])
    return [f"i{width}"]


def check_inttoptr(operands: list[Spec], results: list[Spec], _: Attributes) -> None:
    if operands[0] not in ("i32", "i64"):
        raise wrong(0, "i32 or i64", operands[0])
    if not isinstance(results[0], PtrSpec):
        raise ValueError(f"the result must be a ptr, but is {results[0]}")


def infer_to_llvm_ptr(operands: list[Spec], attributes: Attributes) -> list[Spec]:
    space = attributes.get("llvm_address_space", SPACES.get(ptr_operand(operands, 0).space, 0))
    return [f"!llvm.ptr<{space}>" if space else "!llvm.ptr"]


def check_recast_iter(operands: list[Spec], results: list[Spec], _: Attributes) -> None:
    source, result = ptr_operand(operands, 0), results[0]
    if not isinstance(result, PtrSpec):
        raise ValueError(f"the result must be a ptr, but is {result}")
    if source.space != result.space:
        raise ValueError(f"{source} can't be converted to {result}: the address spaces differ")


def _value_fits(value: Spec, pointer: PtrSpec) -> bool:
    """Whether a value of this type is one element, or a vector of elements. In memory it may be
    anything of whole bytes: FlyDSL loads and stores the bytes at the pointer, whatever its type."""
    if not isinstance(value, str):
        return False
    vector = _VECTOR.fullmatch(value)
    element = vector[1] if vector else value
    if element == pointer.element:
        return True
    if pointer.space == "register" or not _NUMBER.fullmatch(element):
        return False
    return bits(pointer.element) % 8 == 0 and bits(element) % 8 == 0


_VECTOR = re.compile(r"vector<(?:\d+x)+(.+)>")
_NUMBER = re.compile(r"[if]\d+|bf16|index|f8\w+")


def check_ptr_load(operands: list[Spec], results: list[Spec], _: Attributes) -> None:
    pointer = ptr_operand(operands, 0)
    if not _value_fits(results[0], pointer):
        raise ValueError(f"{results[0]} can't be loaded from {pointer}")


def check_ptr_store(operands: list[Spec], _: list[Spec], __: Attributes) -> None:
    pointer = ptr_operand(operands, 1)
    if not _value_fits(operands[0], pointer):
        raise ValueError(f"{operands[0]} can't be stored to {pointer}")


def infer_memref_load(operands: list[Spec], _: Attributes) -> list[Spec]:
    view, coord = operands[0], int_tuple_operand(operands, 1)
    offset = algebra.crd2idx(coord, any_layout_operand(operands, 0))
    if isinstance(view, MemRefSpec):
        return [view.element]
    if isinstance(view, CoordTensorSpec):
        return [IntTupleSpec(algebra.add(view.base, offset))]
    raise wrong(0, "a memref or coord_tensor", view)


def check_memref_store(operands: list[Spec], _: list[Spec], __: Attributes) -> None:
    view = memref_operand(operands, 1)
    algebra.crd2idx(int_tuple_operand(operands, 2), view.layout)
    if operands[0] != view.element:
        raise ValueError(f"{operands[0]} can't be stored to {view}")


def check_memref_alloca(operands: list[Spec], results: list[Spec], _: Attributes) -> None:
    layout, view = layout_operand(operands, 0), results[0]
    if not isinstance(view, MemRefSpec) or view.space != "register" or view.layout != layout:
        raise ValueError(f"the result must be a register memref of layout {layout}, but is {view}")
    if not layout.is_static:
        raise ValueError(f"registers need a static layout, but it is {layout}")


def check_extract_ptr(operands: list[Spec], results: list[Spec], _: Attributes) -> None:
    """Checks the conversion of the address of a memref, or of a pointer, to any LLVM pointer."""
    if not isinstance(operands[0], PtrSpec):
        memref_operand(operands, 0)
    if not (isinstance(results[0], str) and results[0].startswith("!llvm.ptr")):
        raise ValueError(f"the result must be an !llvm.ptr, but is {results[0]}")


def check_print(_: list[Spec], __: list[Spec], attributes: Attributes) -> None:
    if not isinstance(attributes.get("format"), str):
        raise ValueError("needs a format, a string")
