"""The ops of the fly dialect: a table of their names and of how result types follow.

Types are specs (`fly_dialect.types`), so nothing here imports MLIR. An entry's `infer` takes the
operand specs and the attributes and gives the result specs, or raises a ValueError that says what
is wrong; None where the result type is free, with `check` to judge it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import gcd
from typing import Any

from fly_dialect import algebra
from fly_dialect.layout import Int, Layout, dynamic_leaves, is_static, text
from fly_dialect.types import (
    SPACES,
    CoordTensorSpec,
    IntTupleSpec,
    LayoutSpec,
    MemRefSpec,
    OtherSpec,
    PtrSpec,
    Spec,
    element_bytes,
)

Attributes = Mapping[str, Any]  # array<i32: …> as a list of int, integers as int
Infer = Callable[[list[Spec], Attributes], list[Spec]]
Check = Callable[[list[Spec], list[Spec], Attributes], None]


@dataclass(frozen=True, slots=True)
class OpInfo:
    """`operands` and `results` are counts; None is any number. `pure` ops only compute."""

    name: str
    operands: int | None
    results: int | None
    infer: Infer | None = None
    check: Check | None = None
    pure: bool = True
    form: str = "functional"  # how the text looks; see fly_dialect.text


def wrong(index: int, expected: str, found: Spec) -> ValueError:
    return ValueError(f"operand #{index} must be {expected}, but is {found}")


def _int_tuple(operands: list[Spec], index: int):
    spec = operands[index]
    if not isinstance(spec, IntTupleSpec):
        raise wrong(index, "an int_tuple", spec)
    return spec.value


def _ptr(operands: list[Spec], index: int) -> PtrSpec:
    spec = operands[index]
    if not isinstance(spec, PtrSpec):
        raise wrong(index, "a ptr", spec)
    return spec


def _memref(operands: list[Spec], index: int) -> MemRefSpec:
    spec = operands[index]
    if not isinstance(spec, MemRefSpec):
        raise wrong(index, "a memref", spec)
    return spec


def layout_of(spec: Spec) -> Layout | None:
    """The layout of a layout, memref or coord_tensor type."""
    if isinstance(spec, (LayoutSpec, MemRefSpec, CoordTensorSpec)):
        return spec.layout
    return None


def _layout(operands: list[Spec], index: int) -> Layout:
    layout = layout_of(operands[index])
    if layout is None:
        raise wrong(index, "a layout, memref or coord_tensor", operands[index])
    return layout


# -- construction ---------------------------------------------------------------------------------
def _check_make_int_tuple(operands: list[Spec], results: list[Spec], _: Attributes) -> None:
    if not isinstance(results[0], IntTupleSpec):
        raise ValueError(f"the result must be an int_tuple, but is {results[0]}")
    needed = [f"i{leaf.width}" for leaf in dynamic_leaves(results[0].value)]
    given = [str(operand) for operand in operands]
    if needed != given:
        raise ValueError(
            f"{results[0]} has the dynamic leaves ({', '.join(needed)}), "
            f"but the operands are ({', '.join(given)})"
        )


def _check_static(_: list[Spec], results: list[Spec], __: Attributes) -> None:
    spec = results[0]
    value = spec.value if isinstance(spec, IntTupleSpec) else None
    layout = spec.layout if isinstance(spec, LayoutSpec) else None
    static = (
        (value is not None and is_static(value))
        or (layout is not None and layout.is_static)
        or (isinstance(spec, CoordTensorSpec) and is_static(spec.base) and spec.layout.is_static)
        or isinstance(spec, OtherSpec)
    )
    if isinstance(spec, (PtrSpec, MemRefSpec, str)) or not static:
        raise ValueError(f"{spec} is not wholly known from its type")


def _infer_make_layout(operands: list[Spec], _: Attributes) -> list[Spec]:
    return [LayoutSpec(Layout(_int_tuple(operands, 0), _int_tuple(operands, 1)))]


def _infer_make_view(operands: list[Spec], _: Attributes) -> list[Spec]:
    iterator, layout = operands
    if isinstance(layout, OtherSpec):
        raise wrong(1, "a layout", layout)
    if not isinstance(layout, LayoutSpec):
        raise wrong(1, "a layout", layout)
    if isinstance(iterator, PtrSpec):
        return [
            MemRefSpec(
                iterator.element, iterator.space, layout.layout, iterator.align, iterator.swizzle
            )
        ]
    if isinstance(iterator, IntTupleSpec):
        return [CoordTensorSpec(iterator.value, layout.layout)]
    raise wrong(0, "a ptr or an int_tuple", iterator)


# -- extraction -----------------------------------------------------------------------------------
def _infer_get_iter(operands: list[Spec], _: Attributes) -> list[Spec]:
    view = operands[0]
    if isinstance(view, MemRefSpec):
        return [view.pointer]
    if isinstance(view, CoordTensorSpec):
        return [IntTupleSpec(view.base)]
    raise wrong(0, "a memref or coord_tensor", view)


def _infer_get_layout(operands: list[Spec], _: Attributes) -> list[Spec]:
    if not isinstance(operands[0], (MemRefSpec, CoordTensorSpec)):
        raise wrong(0, "a memref or coord_tensor", operands[0])
    return [LayoutSpec(operands[0].layout)]


def _infer_get_shape(operands: list[Spec], _: Attributes) -> list[Spec]:
    return [IntTupleSpec(_layout(operands, 0).shape)]


def _infer_get_stride(operands: list[Spec], _: Attributes) -> list[Spec]:
    return [IntTupleSpec(_layout(operands, 0).stride)]


def _infer_get(operands: list[Spec], attributes: Attributes) -> list[Spec]:
    mode = tuple(attributes.get("mode", ()))
    spec = operands[0]
    if isinstance(spec, IntTupleSpec):
        return [IntTupleSpec(algebra.at(spec.value, mode))]
    layout = _layout(operands, 0)
    part = Layout(algebra.at(layout.shape, mode), algebra.at(layout.stride, mode))
    if isinstance(spec, MemRefSpec):
        return [MemRefSpec(spec.element, spec.space, part, spec.align, spec.swizzle)]
    if isinstance(spec, CoordTensorSpec):
        return [CoordTensorSpec(algebra.at(spec.base, mode), part)]
    return [LayoutSpec(part)]


def _infer_select(operands: list[Spec], attributes: Attributes) -> list[Spec]:
    value = _int_tuple(operands, 0)
    parts = tuple(algebra.at(value, (index,)) for index in attributes.get("indices", ()))
    return [IntTupleSpec(parts[0] if len(parts) == 1 else parts)]


def _infer_get_scalar(operands: list[Spec], _: Attributes) -> list[Spec]:
    return [f"i{algebra.scalar(_int_tuple(operands, 0)).width}"]


def _infer_get_leaves(operands: list[Spec], attributes: Attributes) -> list[Spec]:
    found = algebra.integers(_int_tuple(operands, 0))
    if attributes.get("dynamicOnly"):
        found = [leaf for leaf in found if leaf.value is None]
    return [f"i{leaf.width}" for leaf in found]


# -- integer tuples and layouts -------------------------------------------------------------------
def elementwise(name: str) -> Callable[[Any, Any], Any]:
    """The arithmetic of an int_tuple op on two leaves."""
    return {
        "int_tuple_add": lambda lhs, rhs: lhs + rhs,
        "int_tuple_sub": lambda lhs, rhs: lhs - rhs,
        "int_tuple_mul": lambda lhs, rhs: lhs * rhs,
        "int_tuple_div": lambda lhs, rhs: lhs // rhs,
        "int_tuple_mod": lambda lhs, rhs: lhs % rhs,
        "ceil_div": lambda lhs, rhs: lhs.ceildiv(rhs),
    }[name]


def _infer_elementwise(name: str) -> Infer:
    def infer(operands: list[Spec], _: Attributes) -> list[Spec]:
        lhs, rhs = _int_tuple(operands, 0), _int_tuple(operands, 1)
        algebra.integers(lhs), algebra.integers(rhs)
        return [IntTupleSpec(algebra.transform(elementwise(name), lhs, rhs))]

    return infer


def _infer_product(operands: list[Spec], _: Attributes) -> list[Spec]:
    return [IntTupleSpec(algebra.product(_int_tuple(operands, 0)))]


def _infer_product_each(operands: list[Spec], _: Attributes) -> list[Spec]:
    return [IntTupleSpec(algebra.product_each(_int_tuple(operands, 0)))]


def _infer_size(operands: list[Spec], _: Attributes) -> list[Spec]:
    spec = operands[0]
    shape = spec.value if isinstance(spec, IntTupleSpec) else _layout(operands, 0).shape
    return [IntTupleSpec(algebra.product(shape))]


def _infer_cosize(operands: list[Spec], _: Attributes) -> list[Spec]:
    layout = _layout(operands, 0)
    return [IntTupleSpec(algebra.cosize(layout.shape, layout.stride))]


def _infer_crd2idx(operands: list[Spec], _: Attributes) -> list[Spec]:
    if not isinstance(operands[1], LayoutSpec):
        raise wrong(1, "a layout", operands[1])
    layout = operands[1].layout
    return [IntTupleSpec(algebra.crd2idx(_int_tuple(operands, 0), layout.shape, layout.stride))]


def _infer_idx2crd(operands: list[Spec], _: Attributes) -> list[Spec]:
    if not isinstance(operands[1], LayoutSpec):
        raise wrong(1, "a layout", operands[1])
    layout = operands[1].layout
    return [IntTupleSpec(algebra.idx2crd(_int_tuple(operands, 0), layout.shape, layout.stride))]


# -- memory ---------------------------------------------------------------------------------------
def _infer_add_offset(operands: list[Spec], _: Attributes) -> list[Spec]:
    iterator, offset = operands[0], _int_tuple(operands, 1)
    if isinstance(iterator, IntTupleSpec):
        return [IntTupleSpec(algebra.transform(lambda a, b: a + b, iterator.value, offset))]
    if not isinstance(iterator, PtrSpec):
        raise wrong(0, "a ptr or an int_tuple", iterator)
    if not isinstance(offset, Int):
        raise ValueError(f"the offset must be one integer, but is {text(offset)}")
    # What divides the base and the offset, in elements, still divides the sum.
    size = element_bytes(iterator.element)
    held = gcd(iterator.alignment // size, offset.factor)
    return [PtrSpec(iterator.element, iterator.space, held * size, iterator.swizzle)]


def _check_make_ptr(_: list[Spec], results: list[Spec], attributes: Attributes) -> None:
    spec = results[0]
    if not isinstance(spec, PtrSpec):
        raise ValueError(f"the result must be a ptr, but is {spec}")
    if spec.space in ("register", "shared") and allocation_size(attributes) is None:
        raise ValueError(f"{spec} needs dictAttrs = {{allocSize = N : i64}}")


def allocation_size(attributes: Attributes) -> int | None:
    """The size a make_ptr asks for: elements in registers, bytes of LDS."""
    given = attributes.get("dictAttrs") or {}
    return given.get("allocBytes", given.get("allocSize"))


DYNAMIC_SHARED = PtrSpec("i8", "shared", 1024)


def _infer_get_dyn_shared(_: list[Spec], __: Attributes) -> list[Spec]:
    return [DYNAMIC_SHARED]


def _infer_ptrtoint(operands: list[Spec], _: Attributes) -> list[Spec]:
    width = {"shared": 32, "register": 32, "global": 64}.get(_ptr(operands, 0).space)
    if width is None:
        raise wrong(0, "a ptr to global, shared or register memory", operands[0])
    return [f"i{width}"]


def _check_inttoptr(operands: list[Spec], results: list[Spec], _: Attributes) -> None:
    if operands[0] not in ("i32", "i64"):
        raise wrong(0, "i32 or i64", operands[0])
    if not isinstance(results[0], PtrSpec):
        raise ValueError(f"the result must be a ptr, but is {results[0]}")


def _infer_to_llvm_ptr(operands: list[Spec], attributes: Attributes) -> list[Spec]:
    space = attributes.get("llvm_address_space", SPACES.get(_ptr(operands, 0).space, 0))
    return [f"!llvm.ptr<{space}>" if space else "!llvm.ptr"]


def _check_recast_iter(operands: list[Spec], results: list[Spec], _: Attributes) -> None:
    source, result = _ptr(operands, 0), results[0]
    if not isinstance(result, PtrSpec):
        raise ValueError(f"the result must be a ptr, but is {result}")
    if source.space != result.space:
        raise ValueError(f"{source} can't become {result}: the address spaces differ")


def _value_fits(value: Spec, element: str) -> bool:
    """Whether a value of this type is one element, or a vector of them."""
    if value == element:
        return True
    return isinstance(value, str) and value.startswith("vector<") and value.endswith(f"x{element}>")


def _check_ptr_load(operands: list[Spec], results: list[Spec], _: Attributes) -> None:
    pointer = _ptr(operands, 0)
    if not _value_fits(results[0], pointer.element):
        raise ValueError(f"{results[0]} can't be loaded from {pointer}")


def _check_ptr_store(operands: list[Spec], _: list[Spec], __: Attributes) -> None:
    pointer = _ptr(operands, 1)
    if not _value_fits(operands[0], pointer.element):
        raise ValueError(f"{operands[0]} can't be stored to {pointer}")


def _infer_memref_load(operands: list[Spec], _: Attributes) -> list[Spec]:
    view, coord = operands[0], _int_tuple(operands, 1)
    layout = _layout(operands, 0)
    offset = algebra.crd2idx(coord, layout.shape, layout.stride)
    if isinstance(view, MemRefSpec):
        return [view.element]
    if isinstance(view, CoordTensorSpec):
        return [IntTupleSpec(algebra.transform(lambda a, b: a + b, view.base, offset))]
    raise wrong(0, "a memref or coord_tensor", view)


def _check_memref_store(operands: list[Spec], _: list[Spec], __: Attributes) -> None:
    view = _memref(operands, 1)
    algebra.crd2idx(_int_tuple(operands, 2), view.layout.shape, view.layout.stride)
    if operands[0] != view.element:
        raise ValueError(f"{operands[0]} can't be stored to {view}")


def _check_memref_alloca(operands: list[Spec], results: list[Spec], _: Attributes) -> None:
    layout, view = _layout(operands, 0), results[0]
    if not isinstance(view, MemRefSpec) or view.space != "register" or view.layout != layout:
        raise ValueError(f"the result must be a register memref of layout {layout}, but is {view}")
    if not layout.is_static:
        raise ValueError(f"registers need a static layout, but it is {layout}")


_MAKE = {"check": _check_make_int_tuple}
_TABLE = [
    OpInfo("static", 0, 1, check=_check_static, form="static"),
    OpInfo("make_int_tuple", None, 1, **_MAKE),
    OpInfo("make_shape", None, 1, **_MAKE),
    OpInfo("make_stride", None, 1, **_MAKE),
    OpInfo("make_coord", None, 1, **_MAKE),
    OpInfo("make_layout", 2, 1, _infer_make_layout),
    OpInfo("make_view", 2, 1, _infer_make_view),
    OpInfo("get_iter", 1, 1, _infer_get_iter),
    OpInfo("get_layout", 1, 1, _infer_get_layout),
    OpInfo("get_shape", 1, 1, _infer_get_shape),
    OpInfo("get_stride", 1, 1, _infer_get_stride),
    OpInfo("get", 1, 1, _infer_get),
    OpInfo("select", 1, 1, _infer_select),
    OpInfo("get_scalar", 1, 1, _infer_get_scalar),
    OpInfo("get_leaves", 1, None, _infer_get_leaves),
    OpInfo("int_tuple_add", 2, 1, _infer_elementwise("int_tuple_add")),
    OpInfo("int_tuple_sub", 2, 1, _infer_elementwise("int_tuple_sub")),
    OpInfo("int_tuple_mul", 2, 1, _infer_elementwise("int_tuple_mul")),
    OpInfo("int_tuple_div", 2, 1, _infer_elementwise("int_tuple_div")),
    OpInfo("int_tuple_mod", 2, 1, _infer_elementwise("int_tuple_mod")),
    OpInfo("ceil_div", 2, 1, _infer_elementwise("ceil_div")),
    OpInfo("int_tuple_product", 1, 1, _infer_product),
    OpInfo("int_tuple_product_each", 1, 1, _infer_product_each),
    OpInfo("size", 1, 1, _infer_size),
    OpInfo("cosize", 1, 1, _infer_cosize),
    OpInfo("crd2idx", 2, 1, _infer_crd2idx),
    OpInfo("idx2crd", 2, 1, _infer_idx2crd),
    OpInfo("add_offset", 2, 1, _infer_add_offset),
    OpInfo("recast_iter", 1, 1, check=_check_recast_iter),
    OpInfo("ptrtoint", 1, 1, _infer_ptrtoint),
    OpInfo("inttoptr", 1, 1, check=_check_inttoptr),
    OpInfo("to_llvm_ptr", 1, 1, _infer_to_llvm_ptr),
    OpInfo("make_ptr", None, 1, check=_check_make_ptr, pure=False),
    OpInfo("get_dyn_shared", 0, 1, _infer_get_dyn_shared, form="nullary"),
    OpInfo("ptr.load", 1, 1, check=_check_ptr_load, pure=False),
    OpInfo("ptr.store", 2, 0, check=_check_ptr_store, pure=False),
    OpInfo("memref.load", 2, 1, _infer_memref_load, pure=False),
    OpInfo("memref.store", 3, 0, check=_check_memref_store, pure=False),
    OpInfo("memref.alloca", 1, 1, check=_check_memref_alloca, pure=False),
]
OPS = {info.name: info for info in _TABLE}
