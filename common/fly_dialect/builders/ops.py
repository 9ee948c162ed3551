"""Builders of the fly dialect's ops: one function per op, with inferred result types.

Each builds at the insertion point `ip` with the location `loc`; None means the current one. A
single result is returned as a value, no result as None. Wrong operand types raise ValueError.
"""

from __future__ import annotations

from typing import TypeAlias

from fly_common.quoting import quoted

from fly_dialect.bindings import ir
from fly_dialect.builders.atom_ops import *  # noqa: F403
from fly_dialect.builders.building import Ip, Loc, Value, build, build_op  # noqa: F401 (users take both from here)
from fly_dialect.dialect import spec_of
from fly_dialect.layouts.int_tuple import IntTuple
from fly_dialect.layouts.integers import Int
from fly_dialect.types import SPACES, IntTupleSpec, MemRefSpec, PtrSpec, Spec

# A leaf to build: a Python integer is static, a value is dynamic. Tuples nest.
Leaf: TypeAlias = "int | Value | tuple[Leaf, ...] | list[Leaf]"


def _tree(leaves: Leaf, operands: list[Value]) -> IntTuple:
    if isinstance(leaves, (tuple, list)):
        return tuple(_tree(leaf, operands) for leaf in leaves)
    if isinstance(leaves, int):
        return Int(leaves)
    operands.append(leaves)
    return Int(None, int(str(spec_of(leaves.type)).removeprefix("i")))


def static(spec: Spec, *, loc: Loc = None, ip: Ip = None) -> Value:
    """A value that its type describes completely: a static int_tuple, layout, tile, swizzle."""
    return build("static", [], [spec], loc=loc, ip=ip)


def make_int_tuple(
    *leaves: Leaf, spec: IntTupleSpec | None = None, loc: Loc = None, ip: Ip = None
) -> Value:
    """An int_tuple of Python integers, i32 and i64 values, and nested tuples of them.

    A single leaf gives a scalar int_tuple. With `spec`, the leaves are only the dynamic ones, and
    the type gives the rest, including divisibility.
    """
    if spec is not None:
        dynamic = [leaf for leaf in leaves if isinstance(leaf, Value)]
        return build("make_int_tuple", dynamic, [spec], loc=loc, ip=ip)
    if not leaves:
        raise ValueError("fly.make_int_tuple: an int_tuple must have at least one element")
    operands: list[Value] = []
    value = _tree(leaves[0] if len(leaves) == 1 else leaves, operands)
    return build("make_int_tuple", operands, [IntTupleSpec(value)], loc=loc, ip=ip)


def make_layout(shape: Value, stride: Value, *, loc: Loc = None, ip: Ip = None) -> Value:
    return build("make_layout", [shape, stride], loc=loc, ip=ip)


def make_view(iterator: Value, layout: Value, *, loc: Loc = None, ip: Ip = None) -> Value:
    """A memref from a ptr, or a coord_tensor from an int_tuple."""
    return build("make_view", [iterator, layout], loc=loc, ip=ip)


def get_iter(view: Value, *, loc: Loc = None, ip: Ip = None) -> Value:
    return build("get_iter", [view], loc=loc, ip=ip)


def get_layout(view: Value, *, loc: Loc = None, ip: Ip = None) -> Value:
    return build("get_layout", [view], loc=loc, ip=ip)


def get_shape(layout: Value, *, loc: Loc = None, ip: Ip = None) -> Value:
    """The shape of a layout or memref, an int_tuple."""
    return build("get_shape", [layout], loc=loc, ip=ip)


def get_stride(layout: Value, *, loc: Loc = None, ip: Ip = None) -> Value:
    """The stride of a layout or memref, an int_tuple."""
    return build("get_stride", [layout], loc=loc, ip=ip)


def get(value: Value, *mode: int, loc: Loc = None, ip: Ip = None) -> Value:
    """The part at the path `mode`: get(shape, 0, 1) is the second mode of the first."""
    attributes = {"mode": ir.DenseI32ArrayAttr.get(list(mode))}
    return build("get", [value], None, attributes, loc=loc, ip=ip)


def get_scalar(value: Value, *, loc: Loc = None, ip: Ip = None) -> Value:
    """The integer in a scalar int_tuple: an i32, or an i64 if the leaf has 64 bits."""
    return build("get_scalar", [value], loc=loc, ip=ip)


def size(value: Value, *, loc: Loc = None, ip: Ip = None) -> Value:
    """The number of elements of a layout, memref or shape, a scalar int_tuple."""
    return build("size", [value], loc=loc, ip=ip)


def cosize(layout: Value, *, loc: Loc = None, ip: Ip = None) -> Value:
    """The greatest offset of a layout plus one."""
    return build("cosize", [layout], loc=loc, ip=ip)


def crd2idx(coord: Value, layout: Value, *, loc: Loc = None, ip: Ip = None) -> Value:
    """The offset of a coordinate, a scalar int_tuple."""
    return build("crd2idx", [coord, layout], loc=loc, ip=ip)


def add_offset(ptr: Value, offset: Value, *, loc: Loc = None, ip: Ip = None) -> Value:
    """The pointer advanced by `offset` elements."""
    return build("add_offset", [ptr, offset], loc=loc, ip=ip)


def ptr_load(ptr: Value, type: Spec | None = None, *, loc: Loc = None, ip: Ip = None) -> Value:
    """Loads an element, or several with a `type` such as "vector<4xf32>"."""
    spec = spec_of(ptr.type)
    element = spec.element if isinstance(spec, PtrSpec) else str(spec)
    return build("ptr.load", [ptr], [type or element], loc=loc, ip=ip)


def ptr_store(value: Value, ptr: Value, *, loc: Loc = None, ip: Ip = None) -> None:
    build("ptr.store", [value, ptr], loc=loc, ip=ip)


def memref_load(memref: Value, coord: Value, *, loc: Loc = None, ip: Ip = None) -> Value:
    """Loads the element at a coordinate, an int_tuple such as (i,j) of (M,N)."""
    return build("memref.load", [memref, coord], loc=loc, ip=ip)


def memref_store(
    value: Value, memref: Value, coord: Value, *, loc: Loc = None, ip: Ip = None
) -> None:
    build("memref.store", [value, memref, coord], loc=loc, ip=ip)


def memref_alloca(layout: Value, spec: MemRefSpec, *, loc: Loc = None, ip: Ip = None) -> Value:
    """A register memref of a static layout; `spec` is its type."""
    return build("memref.alloca", [layout], [spec], loc=loc, ip=ip)


def make_ptr(
    spec: PtrSpec, size: int, of_waves: bool = False, *, loc: Loc = None, ip: Ip = None
) -> Value:
    """Allocates memory: `size` bytes of static LDS for a shared `spec`, `size` elements for a
    register one. Each op is a separate allocation. of_waves: each wave of a block has the same
    number of these bytes; `size` is for waves of 32 lanes, and wider ones need less. ValueError for
    a size beyond 64 bits."""
    if not -(1 << 63) <= size < 1 << 63:
        raise ValueError(f"an allocation of {quoted(size)} elements does not fit in 64 bits")
    count = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), size)
    given: dict[str, ir.Attribute] = {"allocSize": count}
    if of_waves:
        given["ofWaves"] = ir.UnitAttr.get()
    attributes = {"dictAttrs": ir.DictAttr.get(given)}
    return build("make_ptr", [], [spec], attributes, loc=loc, ip=ip)


def get_dyn_shared(*, loc: Loc = None, ip: Ip = None) -> Value:
    """The start of the LDS that the launch requests: a ptr to i8, aligned to 1024 bytes."""
    return build("get_dyn_shared", [], loc=loc, ip=ip)


def recast_iter(ptr: Value, spec: PtrSpec, *, loc: Loc = None, ip: Ip = None) -> Value:
    """The same address as a pointer to another element type."""
    return build("recast_iter", [ptr], [spec], loc=loc, ip=ip)


def to_llvm_ptr(ptr: Value, *, loc: Loc = None, ip: Ip = None) -> Value:
    """The pointer as `!llvm.ptr<1>` (global), `<3>` (shared) or `<5>` (register)."""
    spec = spec_of(ptr.type)
    number = SPACES.get(spec.space, 0) if isinstance(spec, PtrSpec) else 0
    space = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), number)
    return build("to_llvm_ptr", [ptr], None, {"llvm_address_space": space}, loc=loc, ip=ip)


def ptrtoint(ptr: Value, *, loc: Loc = None, ip: Ip = None) -> Value:
    """The address: i64 of a global pointer, i32 of a shared or register one."""
    return build("ptrtoint", [ptr], loc=loc, ip=ip)


def inttoptr(address: Value, spec: PtrSpec, *, loc: Loc = None, ip: Ip = None) -> Value:
    return build("inttoptr", [address], [spec], loc=loc, ip=ip)
