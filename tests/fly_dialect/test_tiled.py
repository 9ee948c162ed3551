"""Tiled copies and multiplications against what threads hold by the manuals, element by element.

The expectations are plain expressions of rows, columns and threads; no layout is in them.
"""

from __future__ import annotations

from itertools import product

import pytest
from fly_dialect import algebra, tiled
from fly_dialect.atoms import CopyAtomSpec, MmaAtomSpec, TiledCopySpec, TiledMmaSpec
from fly_dialect.atoms.amd.lds_transpose import LdsReadTranspose
from fly_dialect.atoms.amd.mfma import Mfma
from fly_dialect.atoms.amd.tdm import Tdm
from fly_dialect.atoms.amd.wmma import Gfx11Wmma, Gfx120xWmma
from fly_dialect.atoms.universal import UniversalCopy
from fly_dialect.layouts.integers import Int
from fly_dialect.layouts.layout import Layout
from fly_dialect.layouts.tile import Tile

MFMA = MmaAtomSpec(Mfma(16, 16, 16, "f16", "f16", "f32"))
WIDE = MmaAtomSpec(Mfma(32, 32, 8, "f16", "f16", "f32"))
RDNA3 = MmaAtomSpec(Gfx11Wmma(16, 16, 16, "f16", "f16", "f32"))
RDNA4 = MmaAtomSpec(Gfx120xWmma(16, 16, 16, "bf16", "bf16", "f32"))
VECTOR = CopyAtomSpec(UniversalCopy(128), 16)  # eight values of 16 bits


def offsets(part: tiled.Part) -> list[int]:
    """Where the elements of a thread's part lie, the first mode fastest."""
    start, layout = part
    found = [algebra.scalar(start).value]
    for extent, step in zip(
        algebra.flatten(layout.shape), algebra.flatten(layout.stride), strict=True
    ):
        found = [place + i * step.value for i in range(extent.value) for place in found]
    return found


def row_major(rows: int, columns: int) -> Layout:
    return Layout((rows, columns), (columns, 1))


def held(mma: TiledMmaSpec, operand: tiled.Operand, view: Layout, thread: int) -> list[int]:
    return offsets(tiled.mma_partition(mma, operand, view, Int(thread)))


def threads_of(mma: TiledMmaSpec, step: int = 7) -> range:
    """All threads, or every seventh: it shares no factor with what waves are divided by."""
    return range(0, tiled.count(tiled.thr_layout_vmnk(mma).shape), step)


# -- multiplications ------------------------------------------------------------------------------
def test_four_waves_beside_each_other():
    """The lane's place in its wave's 16 columns; A is the same in all waves."""
    mma = TiledMmaSpec(MFMA, Layout((1, 4, 1), (0, 1, 0)))
    assert tiled.tile_size(mma) == (16, 64, 16)
    a, b, c = row_major(16, 32), row_major(64, 32), row_major(16, 64)
    for thread in threads_of(mma):
        wave, lane = divmod(thread, 64)
        row, group = lane % 16, lane // 16
        ks = [16 * step + 4 * group + i for step in range(2) for i in range(4)]
        assert held(mma, "a", a, thread) == [32 * row + k for k in ks]
        assert held(mma, "b", b, thread) == [32 * (16 * wave + row) + k for k in ks]
        rows = range(4 * group, 4 * group + 4)
        assert held(mma, "c", c, thread) == [64 * m + 16 * wave + row for m in rows]


def test_two_by_two_waves_of_32_by_32():
    """Four rows, eight further on the next four; wave 1 is below wave 0, wave 2 beside it."""
    mma = TiledMmaSpec(WIDE, Layout((2, 2, 1), (1, 2, 0)))
    view = row_major(128, 64)
    for thread in threads_of(mma):
        wave, lane = divmod(thread, 64)
        down, right = wave % 2, wave // 2
        rows = [
            64 * tile + 32 * down + 8 * block + 4 * (lane // 32) + i
            for tile in range(2)
            for block in range(4)
            for i in range(4)
        ]
        expected = [64 * row + 32 * right + lane % 32 for row in rows]
        assert held(mma, "c", view, thread) == expected


def test_a_permutation_gives_a_wave_neighbouring_columns():
    """With two columns of atoms at a time, of which a wave takes every second one: then lane l has
    columns 2l and 2l + 1."""
    mma = TiledMmaSpec(
        MFMA, Layout((1, 1, 1), (0, 0, 0)), Tile((None, Layout((16, 2), (2, 1)), None))
    )
    view = row_major(16, 32)
    for thread in range(64):
        rows = range(4 * (thread // 16), 4 * (thread // 16) + 4)
        columns = (2 * (thread % 16), 2 * (thread % 16) + 1)
        expected = [32 * row + column for column, row in product(columns, rows)]
        assert held(mma, "c", view, thread) == expected


@pytest.mark.parametrize(("atom", "row"), [(RDNA3, "2 * v + half"), (RDNA4, "8 * half + v")])
def test_rows_of_rdna(atom, row):
    mma = TiledMmaSpec(atom, Layout((2, 2, 1), (2, 1, 0)))
    view = row_major(32, 32)
    for thread in threads_of(mma):
        wave, lane = divmod(thread, 32)
        down, right = wave // 2, wave % 2
        rows = [eval(row, {"v": v, "half": lane // 16}) for v in range(8)]
        expected = [32 * (16 * down + m) + 16 * right + lane % 16 for m in rows]
        assert held(mma, "c", view, thread) == expected


def test_upper_lanes_of_rdna3_hold_what_the_lower_do_and_of_rdna4_the_other_half_of_k():
    own = Layout((1, 1, 1), (0, 0, 0))
    view = row_major(16, 16)
    for lane in range(32):
        low = [16 * (lane % 16) + k for k in range(16)]
        assert held(TiledMmaSpec(RDNA3, own), "a", view, lane) == low
        half = range(8 * (lane // 16), 8 * (lane // 16) + 8)
        assert held(TiledMmaSpec(RDNA4, own), "b", view, lane) == [
            16 * (lane % 16) + k for k in half
        ]


@pytest.mark.parametrize("operand", ["a", "b", "c"])
@pytest.mark.parametrize(
    "mma",
    [
        TiledMmaSpec(MFMA, Layout((2, 2, 1), (1, 2, 0))),
        TiledMmaSpec(WIDE, Layout((1, 2, 1), (0, 1, 0)), Tile((64, None, None))),
        TiledMmaSpec(RDNA4, Layout((2, 1, 1), (1, 0, 0))),
    ],
    ids=str,
)
def test_every_element_is_held(mma, operand):
    """By one wave of C, by all waves in the row or column of A and B."""
    first, second = tiled.MODES[operand]
    extents = [2 * tiled.tile_size(mma)[index] for index in (first, second)]
    view = row_major(*extents)
    found = [place for thread in threads_of(mma, 1) for place in held(mma, operand, view, thread)]
    size = extents[0] * extents[1]
    assert set(found) == set(range(size))
    shape = [algebra.scalar(extent).value for extent in mma.atom_layout.shape]
    copies = {"a": shape[1], "b": shape[0], "c": 1}[operand]
    assert len(found) == size * copies


def test_partition_shape_and_fragments_agree_with_the_partition():
    mma = TiledMmaSpec(MFMA, Layout((1, 4, 1), (0, 1, 0)))
    _, part = tiled.mma_partition(mma, "c", row_major(48, 128), Int(0))
    assert tiled.mma_partition_shape(mma, "c", (Int(48), Int(128))) == part.shape
    fragment = tiled.mma_fragment(mma, "c", row_major(48, 128))
    assert str(fragment) == "((4,1),3,2):((1,0),8,4)"  # its modes in the order of the view's
    assert str(tiled.mma_fragment(mma, "a", row_major(16, 32), 2)) == "(4,1,2,2):(1,0,4,8)"
    with pytest.raises(ValueError, match="stages need an operand of at least two modes"):
        tiled.mma_fragment(mma, "a", Layout(16, 1), 2)
    with pytest.raises(ValueError, match="operand a must have at least two modes, but is 16:1"):
        tiled.mma_view(mma, "a", Layout(16, 1))


# -- copies ---------------------------------------------------------------------------------------
def tiled_copy(atom: CopyAtomSpec, threads: Layout, values: Layout) -> TiledCopySpec:
    tile, layout = algebra.make_layout_tv(threads, values)
    return TiledCopySpec(atom, layout, Tile(tile))


def test_threads_copy_rows_of_eight_values():
    """Thread t: row t div 8, values from 8·(t mod 8), in each 32 × 64 tile."""
    copy = tiled_copy(VECTOR, Layout((32, 8), (8, 1)), Layout((1, 8), (1, 1)))
    view = row_major(64, 128)
    for thread in range(0, 256, 7):
        expected = [
            128 * (32 * down + thread // 8) + 64 * right + 8 * (thread % 8) + i
            for right in range(2)
            for down in range(2)
            for i in range(8)
        ]
        for side in ("src", "dst"):
            assert offsets(tiled.copy_partition(copy, side, view, Int(thread))) == expected


def test_a_transposing_read_takes_rows_and_gives_columns():
    """ds_read_b64_tr_b16: lane l of 16 reads the four values from 4·l, and gets the values l,
    16 + l, 32 + l and 48 + l."""
    atom = CopyAtomSpec(LdsReadTranspose(16, 64), 16)
    copy = TiledCopySpec(atom, Layout((16, 4), (1, 16)), Tile((16, 4)))
    view = Layout((16, 4), (1, 16))
    for lane in range(16):
        read = offsets(tiled.copy_partition(copy, "src", view, Int(lane)))
        got = offsets(tiled.copy_partition(copy, "dst", view, Int(lane)))
        assert read == [4 * lane + i for i in range(4)]
        assert got == [lane + 16 * i for i in range(4)]


@pytest.mark.parametrize("operand", ["a", "b", "c"])
def test_a_copy_made_for_an_operand_moves_what_the_operand_holds(operand):
    """And retiled, the registers of the one are those of the other."""
    mma = TiledMmaSpec(MFMA, Layout((2, 2, 1), (1, 2, 0)), Tile((None, None, 32)))
    copy = tiled.tiled_copy_of(CopyAtomSpec(UniversalCopy(64), 16), mma, operand)
    first, second = tiled.MODES[operand]
    view = row_major(*(2 * tiled.tile_size(mma)[index] for index in (first, second)))
    fragment = tiled.mma_fragment(mma, operand, view)
    for thread in threads_of(mma):
        start, part = tiled.copy_partition(copy, "src", view, Int(thread))
        assert sorted(offsets((start, part))) == sorted(held(mma, operand, view, thread))
        in_memory = held(mma, operand, view, thread)
        registers = offsets((Int(0), fragment))
        retiled = offsets((Int(0), tiled.copy_retile(copy, fragment)))
        # Value i of the copy is register `retiled[i]`: which must be that of the same element.
        where = dict(zip(in_memory, registers, strict=True))
        assert [where[place] for place in offsets((start, part))] == retiled


def test_what_does_not_fit_is_refused():
    tdm = CopyAtomSpec(Tdm(2, 1), 0)
    with pytest.raises(ValueError, match="moves a whole tile: it has no layout of values"):
        _ = tdm.thr_val_layout_src
    with pytest.raises(ValueError, match="layout of a tiled copy must be static"):
        TiledCopySpec(VECTOR, Layout((Int(None), 8), (8, 1)), Tile((32, 64)))
