"""Swizzles: permutations of offsets or coordinates by exclusive or, with FlyDSL's text.

Swizzle(3, 4, 3)                    S<3,4,3>
CoordSwizzle(3, 0, (0,), 2, (1,))   CS<3,0,[0],2,[1]>
"""

from __future__ import annotations

from fly_common.quoting import shortened
from fly_common.record import record

BITS = 64  # of an offset and of a coordinate


def _check_bits(swizzle: Swizzle | CoordSwizzle, used: int) -> None:
    if used > BITS:
        raise ValueError(f"{shortened(swizzle)} uses bits above the {BITS} of an offset")


@record
class Swizzle:
    """`S<mask,base,shift>`: exclusive-ors the `mask` bits at `base` with those `shift` above."""

    mask: int
    base: int
    shift: int

    def __post_init__(self) -> None:
        if min(self.mask, self.base, self.shift) < 0:
            raise ValueError(f"{shortened(self)} has a negative number")
        _check_bits(self, self.mask + self.base + self.shift)

    def __str__(self) -> str:
        return f"S<{self.mask},{self.base},{self.shift}>"

    @property
    def is_trivial(self) -> bool:
        """Whether it is the identity."""
        return self.mask == 0

    @property
    def source_bits(self) -> int:
        """The mask of the bits that are read."""
        return ((1 << self.mask) - 1) << (self.base + self.shift)

    def apply(self, offset: int) -> int:
        return offset ^ ((offset & self.source_bits) >> self.shift)


@record
class CoordSwizzle:
    """`CS<mask,base_row,[mode_row],base_col,[mode_col]>`: exclusive-ors `mask` bits of a
    coordinate's column with bits of its row. `mode_row` and `mode_col` are the paths to the two."""

    mask: int
    base_row: int
    mode_row: tuple[int, ...]
    base_col: int
    mode_col: tuple[int, ...]

    def __post_init__(self) -> None:
        if min(self.mask, self.base_row, self.base_col, *self.mode_row, *self.mode_col) < 0:
            raise ValueError(f"{shortened(self)} has a negative number")
        _check_bits(self, self.mask + max(self.base_row, self.base_col))

    def __str__(self) -> str:
        row, col = (", ".join(map(str, mode)) for mode in (self.mode_row, self.mode_col))
        return f"CS<{self.mask},{self.base_row},[{row}],{self.base_col},[{col}]>"

    @property
    def is_trivial(self) -> bool:
        """Whether it is the identity."""
        return self.mask == 0

    def apply(self, row: int, col: int) -> int:
        """The new column."""
        return col ^ (((row >> self.base_row) & ((1 << self.mask) - 1)) << self.base_col)
