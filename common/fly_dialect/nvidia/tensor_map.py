"""Tensor maps: how TMA copies tiles between a tensor in global memory and shared memory.

The type `!fly_nvvm.tensor_map<bf16, S<3,3,3> o 0 o (128,64):(64,1)>` has the layout of a tile in
shared memory, whose modes are those of the tensor. It says how the hardware copies the tile:

    order     the modes, the one that is contiguous in both memories first
    box       the extents, in that order, of what one instruction copies
    pieces    where further instructions copy the rest of the tile to
    swizzle   the bytes of a row within which the hardware permutes groups of 16 bytes

A map of `tf32` is one of a tensor of f32 whose elements are rounded to that format as they are
loaded: wgmma itself drops the bits that TF32 lacks.

Source: PTX ISA 8.8, "Tensors"; CUDA driver API, cuTensorMapEncodeTiled.
"""

from __future__ import annotations

from itertools import product
from math import prod

from fly_common.record import record

from fly_dialect import algebra
from fly_dialect.inference.rules import Attributes, wrong
from fly_dialect.layouts.int_tuple import leaves, static_value
from fly_dialect.layouts.layout import AnyLayout, ComposedLayout, Layout
from fly_dialect.layouts.scanner import Scanner
from fly_dialect.layouts.swizzle import Swizzle
from fly_dialect.types import BackendSpec, MemRefSpec, PtrSpec, Spec, bits

MAX_RANK = 5
MAX_BOX = 256  # elements of a mode
GROUP = 16  # bytes that stay together, and the multiple that rows have
DTYPES = ("f16", "bf16", "f32", "f64", "i8", "i16", "i32", "i64", "f8E4M3FN", "f8E5M2")
# Formats that elements are rounded to as they are loaded → their type in memory.
ROUNDED = {"tf32": "f32"}
# Bytes of a row → the bits of a swizzle, whose source is 3 bits above its target.
SWIZZLES = {32: 1, 64: 2, 128: 3}


@record
class Piece:
    """One instruction's part of a tile: its coordinate in the tile, and where it begins in shared
    memory, in elements."""

    coordinate: tuple[int, ...]
    offset: int


@record
class TensorMapSpec(BackendSpec):
    """See the module."""

    element: str
    tile: AnyLayout

    def __post_init__(self) -> None:
        if self.element not in (*DTYPES, *ROUNDED):
            raise ValueError(f"TMA copies no {self.element}; it copies {', '.join(DTYPES)}")
        _boxed(self)
        row = self.box[0] * bits(self.memory) // 8
        if row % GROUP:
            raise ValueError(
                f"a row of the tile {self.tile} has {row} bytes, which is no multiple of {GROUP}"
            )
        if self.swizzle and row != self.swizzle:
            raise ValueError(
                f"the swizzle of {self.tile} is for rows of {self.swizzle} bytes, but a row has"
                f" {row}"
            )

    @property
    def memory(self) -> str:
        """The type of elements in both memories."""
        return ROUNDED.get(self.element, self.element)

    @property
    def layout(self) -> Layout:
        """The tile's layout without its swizzle."""
        return self.tile.linear if isinstance(self.tile, ComposedLayout) else self.tile

    @property
    def rank(self) -> int:
        shape = self.layout.shape
        return len(shape) if isinstance(shape, tuple) else 1

    @property
    def order(self) -> tuple[int, ...]:
        return _boxed(self)[0]

    @property
    def box(self) -> tuple[int, ...]:
        return _boxed(self)[1]

    @property
    def pieces(self) -> tuple[Piece, ...]:
        return _boxed(self)[2]

    @property
    def swizzle(self) -> int:
        """Bytes of a row, or 0."""
        return swizzle_bytes(self.tile, self.memory)

    @property
    def nbytes(self) -> int:
        """The bytes of the whole tile."""
        return len(self.pieces) * prod(self.box) * bits(self.memory) // 8

    def __str__(self) -> str:
        return f"!fly_nvvm.tensor_map<{self.element}, {self.tile}>"


def read(body: str) -> TensorMapSpec:
    """Parses the text between the brackets."""
    element, comma, layout = body.partition(",")
    if not comma:
        raise ValueError("a tensor_map has an element type and a layout")
    scanner = Scanner(layout)
    tile = scanner.any_layout()
    scanner.end()
    return TensorMapSpec(element.strip(), tile)


def swizzle_bytes(tile: AnyLayout, element: str) -> int:
    """The bytes of a row that a composed layout swizzles; 0 for a plain layout. ValueError for a
    swizzle that the hardware does not have."""
    if not isinstance(tile, ComposedLayout):
        return 0
    swizzle = tile.inner
    start = static_value(tile.offset)
    if start == 0 and isinstance(swizzle, Swizzle) and isinstance(tile.outer, Layout):
        together = (1 << swizzle.base) * bits(element) // 8
        for row, mask in SWIZZLES.items():
            if (swizzle.mask, swizzle.shift, together) == (mask, 3, GROUP):
                return row
    base = (GROUP * 8 // bits(element)).bit_length() - 1
    known = ", ".join(f"S<{mask},{base},3>" for mask in SWIZZLES.values())
    raise ValueError(f"{tile} has no swizzle of the hardware; for {element} those are {known}")


def _modes(layout: Layout) -> list[list[tuple[int, int]]]:
    """Extents and strides of each mode, adjacent ones joined, without extents of 1."""
    shape = layout.shape if isinstance(layout.shape, tuple) else (layout.shape,)
    stride = layout.stride if isinstance(layout.stride, tuple) else (layout.stride,)
    found: list[list[tuple[int, int]]] = []
    for extents, steps in zip(shape, stride, strict=True):
        mode = algebra.coalesce(Layout(extents, steps)).linear
        pairs = [
            (static_value(extent), static_value(step))
            for extent, step in zip(leaves(mode.shape), leaves(mode.stride), strict=True)
        ]
        if any(extent is None or step is None for extent, step in pairs):
            raise ValueError(f"the layout of a tile must be static, not {layout}")
        found.append([(e, s) for e, s in pairs if e != 1])  # type: ignore[misc]
    return found


def _boxed(
    spec: TensorMapSpec,
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[Piece, ...]]:
    """Order, box and pieces. ValueError for a tile that TMA can't copy."""
    modes = _modes(spec.layout)
    if len(modes) > MAX_RANK:
        raise ValueError(f"a tensor map has at most {MAX_RANK} modes, but {spec.tile} {len(modes)}")
    order: list[int] = []
    box: list[int] = []
    filled = 1
    while True:
        following = [
            (index, pairs[0][0])
            for index, pairs in enumerate(modes)
            if index not in order and pairs and pairs[0][1] == filled
        ]
        if not following:
            break
        index, extent = following[0]
        if extent > MAX_BOX:
            raise ValueError(f"TMA copies at most {MAX_BOX} elements of a mode, not {extent}")
        order.append(index)
        box.append(extent)
        filled *= extent
    if not order:
        raise ValueError(f"no mode of the tile {spec.tile} is contiguous")
    for index in range(len(modes)):
        if index not in order:
            order.append(index)
            box.append(1)
    rest: list[tuple[int, int, int, int]] = []  # mode, extent, its step along the mode, stride
    for index, pairs in enumerate(modes):
        step = box[order.index(index)]
        for extent, stride in pairs[1:] if step > 1 else pairs:
            rest.append((index, extent, step, stride))
            step *= extent
    pieces = []
    for place in product(*(range(extent) for _, extent, _, _ in rest)):
        coordinate, offset = [0] * len(modes), 0
        for number, (index, _, step, stride) in zip(place, rest, strict=True):
            coordinate[index] += number * step
            offset += number * stride
        pieces.append(Piece(tuple(coordinate), offset))
    return tuple(order), tuple(box), tuple(pieces)


# -- ops ------------------------------------------------------------------------------------------
def check_make(operands: list[Spec], results: list[Spec], _: Attributes) -> None:
    """make_tensor_map: a tensor → its map."""
    view, result = operands[0], results[0]
    if not isinstance(view, MemRefSpec) or view.space != "global":
        raise wrong(0, "a memref in global memory", view)
    if not isinstance(result, TensorMapSpec) or result.memory != view.element:
        raise ValueError(f"the result must be a tensor_map of {view.element}, but is {result}")
    check_tensor(view, result)


def check_tensor(view: MemRefSpec, result: TensorMapSpec) -> None:
    """ValueError for a tensor that is known to have no map."""
    if not isinstance(view.layout, Layout):
        raise ValueError(f"a tensor with a map has a plain layout, not {view.layout}")
    strides = view.layout.stride
    strides = strides if isinstance(strides, tuple) else (strides,)
    if len(strides) != result.rank:
        raise ValueError(f"the tensor has {len(strides)} modes, and its tile {result.rank}")
    inner = result.order[0]
    if static_value(strides[inner]) != 1:
        raise ValueError(
            f"mode {inner} is contiguous in the tile {result.tile}, but the tensor's stride there"
            f" is {strides[inner]}, not 1"
        )
    for index, stride in enumerate(strides):
        step = static_value(stride)
        size = bits(view.element) // 8
        if index != inner and step is not None and step * size % GROUP:
            raise ValueError(
                f"the stride of mode {index} is {step * size} bytes, which is no multiple of"
                f" {GROUP}"
            )


def _check(operands: list[Spec], barrier: int, masks: int = 0) -> None:
    """A map, a pointer to shared memory, `barrier` pointers and `masks` numbers more, and a
    coordinate."""
    found = operands[0]
    if not isinstance(found, TensorMapSpec):
        raise wrong(0, "a tensor_map", found)
    pointer = operands[1]
    if (
        not isinstance(pointer, PtrSpec)
        or pointer.space != "shared"
        or pointer.element != found.memory
    ):
        raise wrong(1, f"a ptr to {found.memory} in shared memory", pointer)
    for index in range(2, 2 + barrier):
        one = operands[index]
        if not isinstance(one, PtrSpec) or one.space != "shared":
            raise wrong(index, "a ptr to shared memory", one)
    if operands[2 + barrier : 2 + barrier + masks] != ["i32"] * masks:
        raise wrong(2 + barrier, "a mask of 32 bits", operands[2 + barrier])
    coordinate = operands[2 + barrier + masks :]
    if coordinate != ["i32"] * found.rank:
        raise ValueError(f"the coordinate has {found.rank} integers of 32 bits, not {coordinate}")


def check_load(operands: list[Spec], _: list[Spec], __: Attributes) -> None:
    """tma_load: map, tile, mbarrier, coordinate of the tile."""
    _check(operands, 1)


def check_multicast(operands: list[Spec], _: list[Spec], __: Attributes) -> None:
    """tma_multicast: map, tile, mbarrier, mask of blocks, coordinate of the tile."""
    _check(operands, 1, 1)


def check_store(operands: list[Spec], _: list[Spec], __: Attributes) -> None:
    """tma_store: map, tile, coordinate."""
    _check(operands, 0)
    found = operands[0]
    if isinstance(found, TensorMapSpec) and found.element in ROUNDED:
        raise ValueError(f"{found} rounds what is loaded: a store takes a map of {found.memory}")


def infer_wait(operands: list[Spec], attributes: Attributes) -> list[Spec]:
    """wgmma_wait: the accumulators, once at most `pending` groups are running."""
    if not isinstance(operands[0], str):
        raise wrong(0, "a vector of accumulators", operands[0])
    if not 0 <= attributes.get("pending", -1) <= 7:
        raise ValueError("pending must be from 0 to 7")
    return [operands[0]]
