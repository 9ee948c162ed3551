"""What a tensor map says of the copies of a tile, by its layout."""

from __future__ import annotations

import itertools
import re

import pytest
from fly_dialect import algebra
from fly_dialect.layouts.int_tuple import static_value
from fly_dialect.layouts.integers import Int
from fly_dialect.nvidia.tensor_map import TensorMapSpec
from fly_dialect.type_text import parse_type

TILES = [
    ("bf16, S<3,3,3> o 0 o (128,64):(64,1)", (1, 0), (64, 128), 128, 1),
    ("bf16, S<2,3,3> o 0 o (16,32):(32,1)", (1, 0), (32, 16), 64, 1),
    ("f32, S<3,2,3> o 0 o (128,(32,2)):(32,(1,4096))", (1, 0), (32, 128), 128, 2),
    ("tf32, S<3,2,3> o 0 o (128,32):(32,1)", (1, 0), (32, 128), 128, 1),
    ("f16, S<3,3,3> o 0 o ((64,4),64):((1,4096),64)", (0, 1), (64, 64), 128, 4),
    ("f8E4M3FN, (64,32):(32,1)", (1, 0), (32, 64), 0, 1),
    ("i32, (2,3,8):(24,8,1)", (2, 1, 0), (8, 3, 2), 0, 1),
    ("bf16, S<3,3,3> o 0 o (1,1,8,64):(0,0,64,1)", (3, 2, 0, 1), (64, 8, 1, 1), 128, 1),
    # Rows that do not follow each other: an instruction for each.
    ("i32, (4,8):(16,1)", (1, 0), (8, 1), 0, 4),
]


def spec(text: str) -> TensorMapSpec:
    found = parse_type(f"!fly_nvvm.tensor_map<{text}>")
    assert isinstance(found, TensorMapSpec)
    return found


@pytest.mark.parametrize(("text", "order", "box", "swizzle", "count"), TILES)
def test_order_box_and_swizzle(text, order, box, swizzle, count) -> None:
    found = spec(text)
    assert (found.order, found.box, found.swizzle) == (order, box, swizzle)
    assert len(found.pieces) == count
    assert parse_type(str(found)) == found


@pytest.mark.parametrize("text", [row[0] for row in TILES])
def test_pieces_put_each_element_where_the_layout_has_it(text: str) -> None:
    """TMA writes a box densely, the innermost mode first (PTX ISA, "Tiled mode")."""
    found = spec(text)
    written: dict[tuple[int, ...], int] = {}
    for piece in found.pieces:
        boxes = itertools.product(*(range(extent) for extent in reversed(found.box)))
        for number, inside in enumerate(boxes):
            coordinate = list(piece.coordinate)
            for mode, step in zip(found.order, reversed(inside), strict=True):
                coordinate[mode] += step
            assert tuple(coordinate) not in written
            written[tuple(coordinate)] = piece.offset + number
    for coordinate, offset in written.items():
        expected = algebra.crd2idx(tuple(map(Int, coordinate)), found.layout)
        assert static_value(expected) == offset
    assert len(written) == static_value(algebra.size(found.layout))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("bf16, (8,512):(512,1)", "TMA copies at most 256 elements of a mode, not 512"),
        ("bf16, (8,64):(128,2)", "no mode of the tile (8,64):(128,2) is contiguous"),
        ("bf16, (8,4):(4,1)", "a row of the tile (8,4):(4,1) has 8 bytes, which is no multiple"),
        ("bf16, S<3,3,3> o 0 o (8,32):(32,1)", "is for rows of 128 bytes, but a row has 64"),
        ("bf16, S<3,3,4> o 0 o (8,64):(64,1)", "has no swizzle of the hardware; for bf16 those"),
        ("f4E2M1FN, (8,64):(64,1)", "TMA copies no f4E2M1FN"),
        ("bf16, (1,1,1,1,8,64):(0,0,0,0,64,1)", "a tensor map has at most 5 modes"),
        ("bf16, (?,64):(64,1)", "the layout of a tile must be static"),
    ],
)
def test_tiles_that_tma_can_not_copy(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        spec(text)
