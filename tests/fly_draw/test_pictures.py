"""What the pictures show, read back from the SVG, beside what the layouts mean."""

from __future__ import annotations

import itertools
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest
from chosen_targets import one_of_each
from fly_draw import Picture, draw
from fly_draw.reads import Reads
from fly_target.registry import BUILT_IN

SVG = "{http://www.w3.org/2000/svg}"


def cells(picture: Picture) -> list[list[tuple[str, ...]]]:
    """The lines of text in each cell of the last grid drawn, row by row: a cell's text stands over
    its rectangle, labels over none."""
    root = ElementTree.fromstring(str(picture))
    boxes = []
    for rect in root.iter(f"{SVG}rect"):
        if rect.get("x") is not None:
            x, y, w, h = (float(rect.get(name, "")) for name in ("x", "y", "width", "height"))
            boxes.append((y, x, y + h, x + w))
    words = [
        (float(text.get("y", "")), float(text.get("x", "")), text.text or "")
        for text in root.iter(f"{SVG}text")
    ]
    shown = {
        box: tuple(t for y, x, t in words if box[0] < y < box[2] and box[1] < x < box[3])
        for box in boxes
    }
    rows = itertools.groupby(sorted(shown), key=lambda box: box[0])
    return [[shown[box] for box in row] for _, row in rows]


def numbers(picture: Picture) -> list[list[int]]:
    return [[int(line) for (line,) in row] for row in cells(picture)]


def test_a_layout_shows_every_offset():
    assert numbers(draw("(4,8):(1,4)")) == [[r + 4 * c for c in range(8)] for r in range(4)]


def test_a_nested_layout_counts_its_inner_modes_first():
    shown = numbers(draw("((2,2),(2,3)):((1,6),(2,12))"))
    expected = [[r % 2 + r // 2 * 6 + c % 2 * 2 + c // 2 * 12 for c in range(6)] for r in range(4)]
    assert shown == expected


def test_a_layout_of_one_mode_is_a_row():
    assert numbers(draw("5:3")) == [[0, 3, 6, 9, 12]]


def test_modes_after_the_second_are_columns():
    shown = numbers(draw("(2,3,2):(1,2,10)"))
    assert shown == [[r + 2 * (c % 3) + 10 * (c // 3) for c in range(6)] for r in range(2)]


def test_a_swizzle_is_applied():
    shown = numbers(draw("S<2,0,3> o 0 o (4,8):(8,1)"))
    assert shown == [[8 * r + (c ^ (r & 3)) for c in range(8)] for r in range(4)]


def test_threads_and_values_stand_where_they_hold():
    # Thread t holds row t % 4, columns t // 4 and t // 4 + 2 of a 4 × 4 tile.
    shown = cells(draw("((4,2),2):((1,4),8)", tile=(4, 4)))
    assert shown == [[(f"T{r + 4 * (c % 2)}", f"V{c // 2}") for c in range(4)] for r in range(4)]


def test_an_element_of_several_threads_says_so():
    assert cells(draw("(3,2):(0,1)", tile=(1, 2))) == [[("T0 +2", "V0"), ("T0 +2", "V1")]]


def test_elements_that_nobody_holds_are_empty():
    assert cells(draw("(2,1):(2,0)", tile=(1, 4))) == [[("T0", "V0"), (), ("T1", "V0"), ()]]


# A wave's 32 lanes read four bytes each, `stride` words apart: what every manual's table says.
@pytest.mark.parametrize(("stride", "ways"), [(0, 1), (1, 1), (2, 2), (4, 4), (32, 32), (33, 1)])
@pytest.mark.parametrize("target", one_of_each(BUILT_IN, lambda row: row.lds_banks))
def test_conflicts_of_strided_reads(target: str, stride: int, ways: int):
    assert Reads(target, 4, 1).degree([stride * lane for lane in range(32)]) == ways


@pytest.mark.parametrize(
    ("target", "served"),
    [
        ("gfx942", [*range(4), *range(20, 24)]),
        ("gfx950", [*range(4), *range(12, 16), *range(20, 28)]),
        ("gfx1100", list(range(8))),
    ],
)
def test_sixteen_bytes_a_lane_meet_only_lanes_served_with_them(target: str, served: list[int]):
    """One lane wants other dwords of lane 0's banks, all others the dwords of four other banks:
    there is a conflict where the one is served with lane 0."""
    reads = Reads(target, 4, 4)
    for lane in range(1, 32):
        offsets = [0] + [4] * 31
        offsets[lane] = 256
        assert reads.degree(offsets) == (2 if lane in served else 1), lane


def test_more_than_an_instruction_reads_is_read_in_parts():
    """24 bytes a lane: 16 of eight lanes together, then 8 of sixteen, who conflict the most."""
    assert Reads("gfx1100", 8, 3).degree([4 * lane for lane in range(32)]) == 4
    assert Reads("gfx1100", 8, 3).degree([16 * lane for lane in range(32)]) == 16
    # 6 bytes: 4 of 32 lanes, 8 bytes apart, then 2.
    assert Reads("gfx1100", 2, 3).degree([4 * lane for lane in range(32)]) == 2


def test_elements_smaller_than_a_bank_share_it():
    assert Reads("gfx942", 2, 1).degree(list(range(64))) == 1
    assert [Reads("gfx942", 2, 1).bank(offset) for offset in (0, 1, 2, 63, 64)] == [0, 0, 1, 31, 0]


def test_a_second_wave_conflicts_with_no_first():
    assert Reads("gfx942", 4, 1).degree([0] * 64 + [32] * 64) == 1


def degrees(layout: str, **options: Any) -> set[str]:
    """The degrees above the columns."""
    root = ElementTree.fromstring(str(draw(layout, **options)))
    labels = [text.text or "" for text in root.iter(f"{SVG}text")]
    return {label.split()[1] for label in labels if re.fullmatch(r"\d+ ×\d+", label)}


@pytest.mark.parametrize(
    ("target", "plain", "swizzled"), [("gfx942", 4, 1), ("gfx950", 4, 2), ("gfx1100", 4, 1)]
)
def test_the_swizzle_of_a_tile_takes_its_conflict_away(target: str, plain: int, swizzled: int):
    """Rows of 64 bytes: of lanes down a column, every second one has the same banks of 32."""
    options = {"element": "f32", "vector": 4, "target": target}
    assert degrees("(32,16):(16,1)", **options) == {f"×{plain}"}
    assert degrees("S<2,2,3> o 0 o (32,16):(16,1)", **options) == {f"×{swizzled}"}


def test_a_picture_of_banks_names_its_target():
    assert "f32 on gfx942, 1 a lane" in str(draw("4:1", element="f32"))
    assert "f32 on gfx1201, 1 a lane" in str(draw("4:1", element="f32", target="gfx1201"))


def test_a_picture_is_saved_and_shown(tmp_path: Path):
    picture = draw("4:1")
    picture.save(tmp_path / "row.svg")
    assert (tmp_path / "row.svg").read_text(encoding="utf-8") == str(picture)
    assert picture._repr_svg_() == str(picture)


def test_an_mma_shows_the_fragments_of_the_manual():
    """CDNA3 ISA, "Dense Matrix Layout": of v_mfma_f32_16x16x16_f16's result, lane l holds four rows
    of column l % 16, from row 4 · (l // 16)."""
    shown = cells(draw("!fly.mma_atom<!fly_rocdl.cdna3.mfma<16x16x16, (f16, f16) -> f32>>"))
    for row, column in itertools.product(range(16), range(16)):
        # The last sixteen rows of the picture hold A's and, to the right, C's.
        lane, value = column + row // 4 * 16, row % 4
        assert shown[16 + row][16 + column] == (f"T{lane}", f"V{value}")


def test_a_tiled_mma_repeats_its_atom_for_each_wave():
    """Two waves side by side along N: the second holds columns 16 to 31 of C and of B."""
    atom = "!fly.mma_atom<!fly_rocdl.cdna3.mfma<16x16x16, (f16, f16) -> f32>>"
    shown = cells(draw(f"!fly.tiled_mma<{atom}, <(1,2,1):(0,1,0)>>"))
    for row, column in itertools.product(range(16), range(32)):
        lane = 64 * (column // 16) + column % 16 + row // 4 * 16
        assert shown[16 + row][16 + column] == (f"T{lane}", f"V{row % 4}")
        assert shown[row][column] == (f"T{lane}", f"V{row % 4}")  # B is K × N
        # Both waves need all of A.
        assert shown[16 + row][column % 16][0] == f"T{row + column % 16 // 4 * 16} +1"


def test_a_tiled_copy_shows_who_reads_and_who_writes():
    atom = "!fly.copy_atom<!fly.universal_copy<64>, 32>"
    shown = cells(draw(f"!fly.tiled_copy<{atom}, <((2,4),2):((8,1),4)>, <[4|4]>>"))
    half = [[(f"T{c // 2 + 2 * r}", f"V{c % 2}") for c in range(4)] for r in range(4)]
    assert shown == [row + row for row in half]


@pytest.mark.parametrize(
    ("what", "options", "message"),
    [
        ("(4,?):(1,4)", {}, "not static"),
        ("(4096,4096):(1,4096)", {}, "too many to draw"),
        ("(4,8):(1E0,1E1)", {}, "maps to coordinates"),
        ("(4,8):(1,4)", {"tile": (2, 2)}, "beyond a tile"),
        ("4:1", {"tile": (2, 2)}, "no modes"),
        ("(4,8):(1,4)", {"element": "f4E2M1FN"}, "smaller than a byte"),
        ("(4,8):(1,4)", {"element": "f32", "target": "gfx906"}, "the LDS of gfx906 is not known"),
        ("(4,8", {}, "expected"),
    ],
)
def test_what_can_not_be_drawn_is_refused(what: str, options: dict, message: str):
    with pytest.raises(ValueError, match=message):
        draw(what, **options)


def test_other_objects_are_refused():
    with pytest.raises(TypeError, match="can be drawn"):
        draw(17)
