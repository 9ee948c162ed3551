"""Layouts, integer tuples and tiles of the language that are known: they are data, in Python."""

from __future__ import annotations

import itertools
import math

import pytest
from fly_common.errors import InputError

import fly.expr as fx


def offsets(layout: fx.Layout) -> list[int]:
    """The offsets of all coordinates, the first mode fastest, by the definition of a layout."""
    shape, stride = layout.shape.unpack(), layout.stride.unpack()
    pairs = list(zip(flat(shape), flat(stride), strict=True))
    coords = itertools.product(*(range(extent) for extent, _ in reversed(pairs)))
    steps = [step for _, step in reversed(pairs)]
    return [sum(map(math.prod, zip(coord, steps, strict=True))) for coord in coords]


def flat(tree) -> list[int]:
    return [x for part in tree for x in flat(part)] if isinstance(tree, tuple) else [int(tree)]


def test_what_is_known_is_python():
    layout = fx.make_layout((4, (2, 8)), (1, (32, 4)))
    assert layout.shape.unpack() == (4, (2, 8))
    assert layout.shape[0] == 4
    assert layout.shape[1].unpack() == (2, 8)
    assert layout.shape[1][-1] == 8
    assert layout.stride == (1, (32, 4))
    assert [*range(fx.size(layout.shape[1]))] == [*range(16)]
    assert fx.size(layout).unpack() == 64
    assert fx.cosize(layout) == 64
    assert layout.rank == fx.rank(layout) == 2
    assert layout.depth == 2
    assert layout[1].stride.unpack() == (32, 4)


def test_equal_layouts_are_equal():
    one, other = fx.make_layout((4, 8), (8, 1)), fx.make_ordered_layout((4, 8), (1, 0))
    assert one == other
    assert len({one, other}) == 1
    assert one != fx.make_layout((4, 8), (1, 4))


def test_a_layout_is_a_function():
    layout = fx.make_layout((4, 8), (8, 1))
    assert [layout(i, j) for j in range(8) for i in range(4)] == offsets(layout)
    assert [layout(i) for i in range(32)] == offsets(layout)
    row = layout(2, None)
    assert row.shape.unpack() == 8
    assert [layout.get_hier_coord(layout(i, j)).unpack() for i, j in ((0, 0), (3, 5))] == [
        (0, 0),
        (3, 5),
    ]
    assert fx.get_1d_coord(layout(3, 5), layout) == 3 + 4 * 5


@pytest.mark.parametrize("name", ["logical", "zipped", "tiled", "flat"])
def test_divides_permute_the_offsets(name: str):
    layout = fx.make_layout((8, 12), (1, 8))
    divided = getattr(fx, f"{name}_divide")(layout, (4, 3))
    assert sorted(offsets(divided)) == sorted(offsets(layout))
    # The first twelve, the tile, are offsets of the corner.
    inside = [layout(i, j) for j in range(3) for i in range(4)]
    if name != "logical":
        assert offsets(divided)[:12] == inside


def test_composition_is_one_after_the_other():
    outer, inner = fx.make_layout((4, 8), (8, 1)), fx.make_layout((8, 2), (2, 16))
    both = fx.composition(outer, inner)
    assert offsets(both) == [outer(inner(i)) for i in range(16)]


def test_inverses():
    layout = fx.make_layout((4, 8), (8, 1))
    right = fx.right_inverse(layout)
    assert [layout(right(i)) for i in range(32)] == [*range(32)]
    left = fx.left_inverse(layout)
    assert [left(layout(i)) for i in range(32)] == [*range(32)]


def test_thread_value_layout():
    """Eight threads in two rows, each with a row of four: the definition, element by element."""
    tile, layout = fx.make_layout_tv(fx.make_layout((2, 4), (4, 1)), fx.make_layout((1, 4), (1, 1)))
    assert tile == (2, 16)
    for thread in range(8):
        for value in range(4):
            row, column = thread // 4, thread % 4 * 4 + value
            assert layout(thread, value) == row + 2 * column


def test_parts():
    layout = fx.make_layout((8, 12), (12, 1))
    tile = fx.local_tile(layout, (4, 3), (1, 2))
    assert offsets(tile) == offsets(fx.make_layout((4, 3), (12, 1)))
    threads = fx.make_layout((2, 4), (4, 1))
    mine = fx.local_partition(layout, threads, 6)
    assert mine.shape.unpack() == (4, 3)
    assert mine.stride.unpack() == (24, 4)


def test_pictures_of_values():
    assert "<svg" in str(fx.draw(fx.make_layout((4, 8), (1, 4))))
    with pytest.raises(InputError, match=r"fx\.draw"):
        fx.draw(fx.make_layout((4096, 4096), (1, 4096)))


def test_swizzled_layouts():
    swizzle = fx.static(fx.SwizzleType.get(2, 0, 3))
    plain = fx.make_layout((8, 8), (8, 1))
    layout = fx.make_composed_layout(swizzle, plain)
    for i, j in itertools.product(range(8), range(8)):
        offset = plain(i, j)
        assert layout(i, j) == offset ^ ((offset >> 3) & 3)
    assert layout.inner.mask == 2
    assert layout.outer == plain


def test_coordinates_of_coordinates():
    identity = fx.make_identity_layout((4, 8))
    assert identity.stride.unpack() == (fx.E(0), fx.E(1))
    assert identity(2, 5).unpack() == (2, 5)


def test_tuples():
    assert fx.int_tuple_add((1, (2, 3)), (4, (5, 6))).unpack() == (5, (7, 9))
    assert fx.int_tuple_product(((2, 3), 4)) == 24
    assert fx.int_tuple_product_each(((2, 3), 4)).unpack() == (6, 4)
    assert fx.ceil_div((10, 9), (4, 3)).unpack() == (3, 3)
    assert fx.get_scalar(fx.make_int_tuple(7)) == 7
    assert fx.get_leaves(fx.make_int_tuple((1, (2, 3)))) == (1, 2, 3)
    assert fx.select((2, 3, 4), [2, 0]).unpack() == (4, 2)
    assert fx.group((2, 3, 4), 1, 3).unpack() == (2, (3, 4))
    assert fx.depth((8, (4, 2))) == 2
    assert fx.has_none(fx.make_coord(None, 3))


def test_tiles():
    tile = fx.make_tile(4, None, fx.make_layout(8, 2))
    assert tile.rank == 3
    extent, free, layout = tile.unpack()
    assert (extent, free) == (4, None)
    assert layout == fx.make_layout(8, 2)


def test_atoms_and_tiled_ops_say_their_layouts():
    product = fx.make_tiled_mma(
        fx.make_mma_atom(fx.rocdl.MFMA(16, 16, 16, fx.Float16)),
        fx.make_layout((2, 2, 1), (1, 2, 0)),
    )
    assert product.tile_size_mnk.unpack() == (32, 32, 16)
    assert fx.size(product.thr_layout_vmnk) == 256
    # CDNA3 ISA manual: lane l of v_mfma_f32_16x16x16_f16 holds A[l % 16][4 * (l // 16) + v].
    layout = product.mma_atom.layout_A_tv
    for lane, value in itertools.product(range(64), range(4)):
        assert layout(lane, value) == lane % 16 + 16 * (4 * (lane // 16) + value)
    copy = fx.make_tiled_copy_A(fx.make_copy_atom(fx.UniversalCopy64b(), fx.Float16), product)
    assert [int(fx.size(mode)) for mode in copy.tile_mn.unpack()] == [32, 16]
    # Every element of the tile is held, by the two waves along N twice.
    held = [copy.layout_tv_tiled(t, v) for t in range(256) for v in range(4)]
    assert sorted(held) == sorted([*range(512)] * 2)


@pytest.mark.parametrize(
    ("misuse", "said"),
    [
        (lambda: fx.make_layout((4, 8), (1,)), "make_layout"),
        (lambda: fx.make_layout((4, "8"), (1, 4)), "needs integers, not the Python str '8'"),
        (lambda: fx.make_layout((), ()), "at least one element"),
        (lambda: fx.composition(fx.make_layout((4, 6), (6, 1)), fx.make_layout(5, 5)), "5"),
        (lambda: fx.select((2, 3), [5]), "select"),
        (lambda: fx.make_layout((4, 8), (1, 4)).shape[2], "mode 2"),
        (lambda: fx.make_tile("4"), "a mode of a tile"),
        (lambda: fx.SwizzleType.get(-1, 0, 0), "negative"),
        (lambda: fx.static(3), "fx.static takes a type"),
        (lambda: fx.rocdl.MFMA(16, 16, 5, fx.Float16), "the shapes of (f16, f16) -> f32 are"),
        (lambda: fx.rocdl.WMMA(16, 16, 16, fx.Float16), "has no value outside a kernel"),
        (lambda: fx.make_copy_atom(fx.UniversalCopy(12), fx.Float32), "whole bytes"),
        (lambda: fx.make_copy_atom(fx.UniversalCopy(24), fx.Float32), "no whole number of"),
        (lambda: fx.make_copy_atom(fx.Float32, fx.Float32), "a copy instruction first"),
        (lambda: fx.make_tiled_mma(fx.Float32, fx.make_layout(1, 1)), "an mma atom first"),
        (
            lambda: fx.make_tiled_mma(
                fx.make_mma_atom(fx.UniversalFMA(fx.Float32)), fx.make_layout(1, 0)
            ),
            "waves along M, N and K, not",
        ),
        (lambda: fx.printf("x"), "device libraries"),
    ],
)
def test_misuse_is_refused_at_its_line(misuse, said: str):
    with pytest.raises(InputError) as refused:
        misuse()
    assert said in str(refused.value) + (refused.value.hint or "")
    assert refused.value.place is not None
    assert refused.value.place.file == __file__


def test_structs_lie_as_in_c():
    from fly_trace.memory.structs import align_of, offsets_of, size_of

    @fx.struct
    class Inner:
        a: fx.Int8
        b: fx.Float64

    @fx.struct
    class Outer:
        c: fx.Array[fx.Float16, 3]
        d: Inner
        e: fx.Align[fx.Int32, 64]

    @fx.union
    class Either:
        f: fx.Int32
        g: fx.Array[fx.Float32, 5]

    assert (size_of(Inner), align_of(Inner), offsets_of(Inner)) == (16, 8, {"a": 0, "b": 8})
    assert offsets_of(Outer) == {"c": 0, "d": 8, "e": 64}
    assert (size_of(Outer), align_of(Outer)) == (128, 64)
    assert (size_of(Either), offsets_of(Either)) == (20, {"f": 0, "g": 0})
    assert size_of(fx.Struct["x" : fx.Int8, "y" : fx.Int32]) == 8
    with pytest.raises(ValueError, match="power of two"):
        fx.Align[fx.Int32, 6]
