"""Tensors of which a device copies tiles by a descriptor, and what it demands of them."""

from __future__ import annotations

from fly_common.record import record
from fly_numerics.element_types import ELEMENT_TYPES

from fly_host.program import TileDescriptor

GROUP = 16  # bytes: the alignment of the tensor, and of all strides but the innermost one
MOST_STRIDE = 1 << 40  # bytes
MOST_EXTENT = 1 << 32
TILES_HINT = (
    "such a tensor begins at a multiple of 16 bytes, and so does each of its rows: pad the rows, or"
    " use a kernel that loads elements"
)


@record
class Tile:
    """A tensor and a box of it. Modes are listed from the innermost one out; `strides` are in
    bytes, without the innermost mode's. `dtype` is MLIR's name of the element type,
    `rounded` as in `TileDescriptor`."""

    address: int
    dtype: str
    itemsize: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    swizzle: int
    rounded: bool = False

    @classmethod
    def of(
        cls,
        descriptor: TileDescriptor,
        address: int,
        shape: tuple[int, ...],
        strides: tuple[int, ...],
    ) -> Tile:
        """`strides` are in elements."""
        size = ELEMENT_TYPES[descriptor.dtype].bytes
        # The stride of a mode with one element does not matter, but has to be a sound one.
        steps = tuple(
            size * stride if extent > 1 else GROUP
            for extent, stride in zip(shape[1:], strides, strict=True)
        )
        box, swizzle, rounded = descriptor.box, descriptor.swizzle, descriptor.rounded
        return cls(address, descriptor.dtype, size, shape, steps, box, swizzle, rounded)

    def problem(self, name: str) -> str | None:
        """What keeps the tensor from having a descriptor (CUDA driver API,
        cuTensorMapEncodeTiled); None if nothing does."""
        if self.address % GROUP:
            return f"{name} begins at an address that is no multiple of {GROUP} bytes"
        for extent in self.shape:
            if not 0 < extent <= MOST_EXTENT:
                return f"{name} has an extent of {extent}; tiles are copied of 1 to 2^32 elements"
        for extent, stride in zip(self.shape[1:], self.strides, strict=True):
            if extent > 1 and (stride % GROUP or not 0 < stride < MOST_STRIDE):
                return (
                    f"a stride of {name} is {stride} bytes; where tiles are copied, it is a"
                    f" positive multiple of {GROUP}"
                )
        return None
