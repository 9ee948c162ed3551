"""Type inference for tiled copies and multiplications. See `fly_dialect.inference.rules`.

The layouts are computed by `fly_dialect.tiled`.
"""

from __future__ import annotations

from fly_dialect import algebra, tiled
from fly_dialect.atoms import CopyAtomSpec, MmaAtomSpec, TiledCopySpec, TiledMmaSpec
from fly_dialect.inference.atoms import enumerator
from fly_dialect.inference.layouts import moved, view_spec
from fly_dialect.inference.rules import Attributes, int_tuple_operand, memref_operand, wrong
from fly_dialect.inference.vectors import view_operand
from fly_dialect.layouts.int_tuple import Tree, is_static
from fly_dialect.layouts.layout import ComposedLayout, Layout
from fly_dialect.types import CoordTensorSpec, IntTupleSpec, LayoutSpec, MemRefSpec, Spec, TileSpec


def tiled_copy_operand(operands: list[Spec]) -> TiledCopySpec:
    if not isinstance(operands[0], TiledCopySpec):
        raise wrong(0, "a tiled_copy", operands[0])
    return operands[0]


def tiled_mma_operand(operands: list[Spec]) -> TiledMmaSpec:
    if not isinstance(operands[0], TiledMmaSpec):
        raise wrong(0, "a tiled_mma", operands[0])
    return operands[0]


def operand_id(attributes: Attributes) -> tiled.Operand:
    """The matrix operand that an op refers to, from its attribute #fly<mma_operand a>."""
    found = enumerator(attributes.get("operand_id"))
    match found:
        case "a" | "b" | "c" | "d":
            return found
        case _:
            raise ValueError(f"operand_id must be #fly<mma_operand a>, b, c or d, but is {found}")


# -- construction ---------------------------------------------------------------------------------
def infer_make_tiled_copy(operands: list[Spec], _: Attributes) -> list[Spec]:
    atom, layout, tile = operands
    if not isinstance(atom, CopyAtomSpec):
        raise wrong(0, "a copy_atom", atom)
    if not isinstance(tile, TileSpec):
        raise wrong(2, "a tile", tile)
    return [TiledCopySpec(atom, _layout(layout), tile.tile)]


def infer_make_tiled_mma(operands: list[Spec], _: Attributes) -> list[Spec]:
    atom, layout = operands[:2]
    if not isinstance(atom, MmaAtomSpec):
        raise wrong(0, "an mma_atom", atom)
    if len(operands) == 2:
        return [TiledMmaSpec(atom, _layout(layout))]
    if not isinstance(operands[2], TileSpec):
        raise wrong(2, "a tile", operands[2])
    return [TiledMmaSpec(atom, _layout(layout), operands[2].tile)]


def _layout(spec: Spec) -> Layout:
    if not isinstance(spec, LayoutSpec):
        raise wrong(1, "a layout", spec)
    return spec.layout


# -- tiled copies ---------------------------------------------------------------------------------
def infer_partition_src(operands: list[Spec], _: Attributes) -> list[Spec]:
    return _copy_partition(operands, "src")


def infer_partition_dst(operands: list[Spec], _: Attributes) -> list[Spec]:
    return _copy_partition(operands, "dst")


def _copy_partition(operands: list[Spec], side: tiled.Side) -> list[Spec]:
    copy, view, thread = (
        tiled_copy_operand(operands),
        view_operand(operands, 1),
        int_tuple_operand(operands, 2),
    )
    offset, layout = tiled.copy_partition(copy, side, view.layout.linear, thread)
    return [_moved_view(view, offset, layout)]


def infer_retile(operands: list[Spec], _: Attributes) -> list[Spec]:
    copy, view = tiled_copy_operand(operands), memref_operand(operands, 1)
    if not isinstance(view.layout, Layout):
        raise ValueError(f"{view} can't be retiled: its layout is composed")
    layout = tiled.copy_retile(copy, view.layout)
    return [MemRefSpec(view.element, view.space, layout, view.align, view.swizzle)]


def _moved_view(view: MemRefSpec | CoordTensorSpec, offset: Tree, layout: Layout) -> Spec:
    """The type of a view advanced by `offset`, with `layout`. In a composed layout, the offset is
    added to that of the linear layout."""
    base = view.pointer if isinstance(view, MemRefSpec) else view.base
    if isinstance(view.layout, ComposedLayout):
        return view_spec(base, tiled.moved_composition(view.layout, offset, layout))
    return view_spec(moved(base, offset), layout)


# -- tiled multiplications ------------------------------------------------------------------------
def infer_partition(operands: list[Spec], attributes: Attributes) -> list[Spec]:
    mma, view, thread = (
        tiled_mma_operand(operands),
        view_operand(operands, 1),
        int_tuple_operand(operands, 2),
    )
    operand, linear = operand_id(attributes), view.layout.linear
    offset, layout = tiled.mma_partition(mma, operand, linear, thread)
    if not is_static(thread):
        offset = _known_of_offset(mma, operand, linear, thread)
    return [_moved_view(view, offset, layout)]


def _known_of_offset(
    mma: TiledMmaSpec, operand: tiled.Operand, layout: Layout, thread: Tree
) -> Tree:
    """FlyDSL's type of the offset of a dynamic thread: the thread is treated as an index into the
    operand's own waves. The divisibility is correct, but perhaps not the greatest possible."""
    return algebra.crd2idx(thread, tiled.mode(tiled.mma_view(mma, operand, layout), 0))


def infer_partition_shape(operands: list[Spec], attributes: Attributes) -> list[Spec]:
    mma, shape = tiled_mma_operand(operands), int_tuple_operand(operands, 1)
    return [IntTupleSpec(tiled.mma_partition_shape(mma, operand_id(attributes), shape))]


def infer_make_fragment(operands: list[Spec], attributes: Attributes) -> list[Spec]:
    mma, view = tiled_mma_operand(operands), memref_operand(operands, 1)
    operand = operand_id(attributes)
    element = mma.atom.op.elements["abcd".index(operand)]
    layout = tiled.mma_fragment(mma, operand, view.layout.linear, attributes.get("stages"))
    return [MemRefSpec(element, "register", layout)]
