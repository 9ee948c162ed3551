"""Tensor maps: arguments of kernels, descriptors of the host program, and copies of tiles by TMA.

A map is a kernel's parameter of 128 bytes, which is passed by value and never copied: the hardware
reads it where it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fly_dialect.bindings import ir
from fly_dialect.dialect import memref_of, spec_of
from fly_dialect.nvidia.tensor_map import ROUNDED, TensorMapSpec
from fly_dialect.types import MemRefSpec, PtrSpec, Spec
from fly_host.program import TileDescriptor, Word
from fly_host.validation import DESCRIPTOR_BYTES

from fly_opt.ir import pointers
from fly_opt.ir.builder import Builder
from fly_opt.passes.base import refuse
from fly_opt.passes.host.made import MadeLayout, View
from fly_opt.passes.host.tensors import TensorValue
from fly_opt.passes.host.values import Values

if TYPE_CHECKING:
    from fly_opt.passes.llvm.conversion import Conversion

ALIGNMENT = 64
_MAPS = "fly_nvvm.tensor_maps"
SHARED_CLUSTER = 7  # the address space of shared memory of a cluster's blocks


def lowered_type(spec: Spec) -> ir.Type | None:
    """The LLVM type of a map, a pointer to the parameter; None for other types."""
    return ir.Type.parse("!llvm.ptr") if isinstance(spec, TensorMapSpec) else None


def mark_parameters(function: ir.Operation) -> None:
    """Notes which parameters of a kernel are maps, for `pass_by_value`."""
    signature = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
    kinds = enumerate(signature.inputs)
    maps = [index for index, kind in kinds if isinstance(spec_of(kind), TensorMapSpec)]
    if maps:
        function.attributes[_MAPS] = ir.DenseI32ArrayAttr.get(maps)


def pass_by_value(kernel: ir.Operation) -> None:
    """Gives the parameters that are maps, pointers by now, the attributes that NVPTX needs: their
    content is passed, and never written. convert-gpu-to-nvvm would drop them."""
    attributes = kernel.attributes
    if _MAPS not in attributes:
        return
    maps = list(ir.DenseI32ArrayAttr(attributes[_MAPS]))
    del attributes[_MAPS]
    count = len(kernel.regions[0].blocks[0].arguments)
    if "arg_attrs" in attributes:
        old = [ir.DictAttr(one) for one in ir.ArrayAttr(attributes["arg_attrs"])]
    else:
        old = [ir.DictAttr.get({})] * count
    own = {
        "llvm.align": ir.IntegerAttr.get(pointers.integer(64), ALIGNMENT),
        "llvm.byval": ir.TypeAttr.get(ir.Type.parse(f"!llvm.array<{DESCRIPTOR_BYTES} x i8>")),
        "nvvm.grid_constant": ir.UnitAttr.get(),
    }
    made = [
        ir.DictAttr.get({**{item.name: item.attr for item in one}, **(own if at in maps else {})})
        for at, one in enumerate(old)
    ]
    attributes["arg_attrs"] = ir.ArrayAttr.get(made)


# -- the host program -----------------------------------------------------------------------------
def descriptor(values: Values, op: ir.Operation) -> Word:
    """What a kernel is passed for fly_nvvm.make_tensor_map."""
    spec = spec_of(op.results[0].type)
    assert isinstance(spec, TensorMapSpec), "the verifier has seen to it"
    held, view = values.held.get(op.operands[0]), memref_of(op.operands[0])
    tensor, shape, strides = _extents(values, op, held, view)
    order = spec.order
    made = TileDescriptor(
        spec.memory,
        tuple(shape[index] for index in order),
        tuple(strides[index] for index in order[1:]),
        spec.box,
        spec.swizzle,
        spec.element in ROUNDED,
    )
    return Word("descriptor", name=tensor, size=DESCRIPTOR_BYTES, descriptor=made)


def _extents(
    values: Values, op: ir.Operation, held: object, view: MemRefSpec
) -> tuple[str, list[int], list[int]]:
    """A tensor's name, and the expressions of its extents and strides."""
    if isinstance(held, TensorValue):
        layout = MadeLayout(held.tree(values.graph, "extent"), held.tree(values.graph, "stride"))
        return held.name, _flat(op, layout.shape), _flat(op, layout.stride)
    if isinstance(held, View) and isinstance(held.layout, MadeLayout):
        return held.of.name, _flat(op, held.layout.shape), _flat(op, held.layout.stride)
    raise refuse(op, f"a tensor of type {view} has no map: it is no tensor of the host function")


def _flat(op: ir.Operation, tree: object) -> list[int]:
    leaves = list(tree) if isinstance(tree, tuple) else [tree]
    found = [leaf for leaf in leaves if isinstance(leaf, int)]
    if len(found) != len(leaves):
        raise refuse(op, "a tensor with a map has one extent and one stride for each mode")
    return found


# -- copies ---------------------------------------------------------------------------------------
def load(conversion: Conversion, op: ir.Operation) -> None:
    """Lowers fly_nvvm.tma_load: an instruction for each piece of the tile."""
    _load(conversion, op, None, 3)


def load_multicast(conversion: Conversion, op: ir.Operation) -> None:
    """Lowers fly_nvvm.tma_multicast: the same, to several blocks of a cluster."""
    mask = conversion.value(op.operands[3])
    _load(conversion, op, conversion.builder.value("arith.trunci", pointers.integer(16), [mask]), 4)


def _load(conversion: Conversion, op: ir.Operation, mask: ir.Value | None, first: int) -> None:
    builder = conversion.builder
    spec, tensor, tile = _head(conversion, op)
    barrier = conversion.value(op.operands[2])
    coordinate = [conversion.value(value) for value in op.operands[first:]]
    cluster = pointers.pointer(SHARED_CLUSTER)
    no, yes = (builder.constant_of(ir.IntegerAttr.get(pointers.integer(1), n)) for n in (0, 1))
    # Multicast mask, cache hint, whether there are these two, and a group of blocks.
    rest = [
        builder.constant(0, 16) if mask is None else mask,
        builder.constant(0, 64),
        no if mask is None else yes,
        no,
        builder.constant(0, 32),
    ]
    for place, at in _pieces(builder, spec, tile, op, coordinate):
        target = builder.value("llvm.addrspacecast", cluster, [place])
        name = f"llvm.nvvm.cp.async.bulk.tensor.g2s.tile.{spec.rank}d"
        _call(builder, name, [target, barrier, tensor, *at, *rest])


def store(conversion: Conversion, op: ir.Operation) -> None:
    """Lowers fly_nvvm.tma_store."""
    builder = conversion.builder
    spec, tensor, tile = _head(conversion, op)
    coordinate = [conversion.value(value) for value in op.operands[2:]]
    no = builder.constant_of(ir.IntegerAttr.get(pointers.integer(1), 0))
    for place, at in _pieces(builder, spec, tile, op, coordinate):
        name = f"llvm.nvvm.cp.async.bulk.tensor.s2g.tile.{spec.rank}d"
        _call(builder, name, [place, tensor, *at, builder.constant(0, 64), no])


def _head(conversion: Conversion, op: ir.Operation) -> tuple[TensorMapSpec, ir.Value, ir.Value]:
    spec = spec_of(op.operands[0].type)
    assert isinstance(spec, TensorMapSpec), "the verifier has seen to it"
    return spec, conversion.value(op.operands[0]), conversion.value(op.operands[1])


def _pieces(
    builder: Builder,
    spec: TensorMapSpec,
    tile: ir.Value,
    op: ir.Operation,
    coordinate: Sequence[ir.Value],
):
    """Yields address and coordinate, in the map's order, of each piece."""
    i32 = pointers.integer(32)
    pointer = spec_of(op.operands[1].type)
    assert isinstance(pointer, PtrSpec), "the verifier has seen to it"
    for piece in spec.pieces:
        address = tile
        if piece.offset:
            offset = builder.constant(piece.offset, 32)
            address = pointers.element_pointer(builder, tile, offset, pointer)
        at = []
        for index in spec.order:
            value, more = coordinate[index], piece.coordinate[index]
            if more:
                value = builder.value("arith.addi", i32, [value, builder.constant(more, 32)])
            at.append(value)
        yield address, at


def _call(builder: Builder, name: str, operands: list[ir.Value]) -> None:
    attributes = {
        "intrin": ir.StringAttr.get(name),
        "op_bundle_sizes": ir.DenseI32ArrayAttr.get([]),
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(operands), 0]),
    }
    builder.op("llvm.call_intrinsic", None, operands, attributes)
