"""Tiled copies and multiplications: the part of a view that each thread processes. Imports no MLIR.

A view's layout is divided into tiles, and each tile among the threads, so that each thread gets
some values of every tile. A view with (mode, mode, …) becomes one with

    a tiled copy     (thread, (values of an atom, atoms of a tile), tiles of mode 0, …)
    a tiled mma      ((thread in the wave, (wave, wave)), (values of an atom, (atoms, atoms)))

and the part of a thread is the slice at the thread's coordinate. The leaves of the view may be a
pass's; those of the tiled op are static. A view that does not match the tile raises ValueError.
"""

from __future__ import annotations

from typing import Any, Literal

from fly_dialect import algebra
from fly_dialect.algebra.construction import compact
from fly_dialect.algebra.structure import expand, modes
from fly_dialect.atoms import CopyAtomSpec, TiledCopySpec, TiledMmaSpec
from fly_dialect.layouts.int_tuple import Tree, rank, static_value, text
from fly_dialect.layouts.integers import Int
from fly_dialect.layouts.layout import ComposedLayout, Layout
from fly_dialect.layouts.tile import Mode, Tile

Side = Literal["src", "dst"]
Operand = Literal["a", "b", "c", "d"]
# The modes of M × N × K that each operand has.
MODES: dict[str, tuple[int, int]] = {"a": (0, 2), "b": (1, 2), "c": (0, 1), "d": (0, 1)}
# The part of a thread: its offset in the view, and its layout.
Part = tuple[Tree, Layout]


def joined(*layouts: Layout) -> Layout:
    """The layout whose modes are `layouts`."""
    return Layout(
        tuple(layout.shape for layout in layouts), tuple(layout.stride for layout in layouts)
    )


def mode(layout: Layout, index: int) -> Layout:
    """One mode as a layout."""
    return algebra.at(layout, (index,))


def count(shape: Tree) -> int:
    """The number of elements of a static shape."""
    value = static_value(algebra.size(shape))
    if value is None:
        raise ValueError(f"the shape {text(shape)} must be known at compile time")
    return value


def moved_composition(composed: ComposedLayout, offset: Tree, layout: Layout) -> ComposedLayout:
    """The composition for a part of the linear layout that has `layout`, from `offset` on."""
    outer = composed.outer
    if isinstance(outer, ComposedLayout):
        inner = moved_composition(outer, offset, layout)
        return ComposedLayout(composed.inner, composed.offset, inner)
    return ComposedLayout(composed.inner, algebra.add(composed.offset, offset), layout)


# -- tiled copies ---------------------------------------------------------------------------------
def copy_view(tiled: TiledCopySpec, side: Side, layout: Layout) -> Layout:
    """The view as (thread, values, tiles of each mode), for `side` of the copy."""
    divided = algebra.zipped_divide(layout, tiled.tile).linear
    part = algebra.composition(mode(divided, 0), _to_tile(tiled, side)).linear
    return joined(part, mode(divided, 1)).mapped(lambda tree: expand(tree, 0))


def _to_tile(tiled: TiledCopySpec, side: Side) -> Layout:
    """(thread, (value of an atom, atom)) → position in the tile.

    The tile's own layout refers to the atom's reference side. If the instruction takes values on
    another side from other threads, the atom's layouts describe from which.
    """
    atom = tiled.atom
    reference = atom.thr_val_layout_ref
    own = atom.thr_val_layout_src if side == "src" else atom.thr_val_layout_dst
    to_side = algebra.composition(algebra.right_inverse(reference), own).linear
    one = Tile(tuple(Int(count(extent)) for extent in reference.shape))
    atoms = algebra.zipped_divide(tiled.layout_tv, one).linear
    inside = algebra.composition(mode(atoms, 0), to_side).linear
    # ((thread, value) of an atom, (thread, value) of atoms) → (threads, values), two modes each.
    paired = joined(inside, mode(atoms, 1)).mapped(lambda tree: tuple(zip(*tree, strict=True)))
    return algebra.coalesce(paired, (Int(1), (Int(1), Int(1)))).linear


def copy_partition(tiled: TiledCopySpec, side: Side, layout: Layout, thread: Tree) -> Part:
    """The part that `thread` copies: (values, tiles of mode 0, tiles of mode 1, …)."""
    view = copy_view(tiled, side, layout)
    left = joined(*(mode(view, index) for index in range(1, rank(view.shape))))
    left = left.mapped(lambda tree: expand(tree, 1))
    return algebra.crd2idx(thread, mode(view, 0)), left


def copy_layout_tv(tiled: TiledCopySpec, side: Side) -> Layout:
    """(thread, values) → position in the tile, with its first mode fastest."""
    extents = tile_extents(tiled.tile)
    places = Layout(extents, compact(extents))
    return algebra.take(copy_view(tiled, side, places), 0, 2)


def tile_extents(tile: Tile) -> Tree:
    """The extents of a tile's modes, without undivided ones."""
    given = tile.modes if isinstance(tile.modes, tuple) else (tile.modes,)
    return tuple(_extent(part) for part in given if part is not None)


def _extent(part: Mode) -> Int:
    if isinstance(part, Layout):
        return Int(count(part.shape))
    if isinstance(part, Int):
        return part
    raise ValueError(f"a tile of modes {part} does not have a single extent")


def copy_retile(tiled: TiledCopySpec, layout: Layout) -> Layout:
    """A fragment (values, tiles, …) of another tiled op, with its values in the order in which this
    copy's atoms use them."""
    shape = modes(layout.shape)
    values = count(shape[0])
    threads = count(tiled.layout_tv.shape[0])
    extents = tile_extents(tiled.tile)
    # Position in the tile → index of the contiguous group of values of a thread.
    inverse = algebra.composition(
        algebra.right_inverse(tiled.layout_tv), Layout(extents, compact(extents))
    )
    groups = algebra.recast_layout(inverse, 1, threads * values).linear
    order = algebra.logical_product(Layout(values, 1), algebra.right_inverse(groups).linear).linear
    atom_values = count(tiled.atom.thr_val_layout_ref.shape[1])
    order = algebra.zipped_divide(order, Layout(atom_values, 1)).linear
    tile = Tile((Int(values), *(Int(count(extent)) for extent in modes(groups.shape))))
    divided = algebra.zipped_divide(layout, tile).linear
    first = algebra.composition(mode(divided, 0), order).linear
    rest = mode(divided, 1)
    return joined(first, *(mode(rest, index) for index in range(1, rank(rest.shape))))


# -- tiled multiplications ------------------------------------------------------------------------
def tile_size(tiled: TiledMmaSpec) -> tuple[int, int, int]:
    """M, N and K of the tile that the threads compute together."""
    m, n, k = (count(_extent(part)) for part in _permutation(tiled))
    return m, n, k


def _permutation(tiled: TiledMmaSpec) -> tuple[Mode, Mode, Mode]:
    """The divisors of M, N and K: the permutation's modes, or the extents of all atoms together."""
    given = modes(tiled.permutation.modes)  # type: ignore[arg-type]
    found: list[Any] = []
    for index, extent in enumerate(tiled.atom.op.shape_mnk):
        own = given[index] if index < len(given) else None
        atoms = count(modes(tiled.atom_layout.shape)[index])
        found.append(Int(extent * atoms) if own is None else own)
    return found[0], found[1], found[2]


def atom_layout_tv(tiled: TiledMmaSpec, operand: Operand) -> Layout:
    """The atom's layout of an operand."""
    op = tiled.atom.op
    if operand == "a":
        return op.thr_val_layout_a
    return op.thr_val_layout_b if operand == "b" else op.thr_val_layout_c


def mma_view(tiled: TiledMmaSpec, operand: Operand, layout: Layout) -> Layout:
    """The view of an operand as ((thread in the wave, waves), (values, atoms))."""
    along = MODES[operand]
    if rank(layout.shape) < len(along):
        raise ValueError(f"operand {operand} must have at least two modes, but is {layout}")
    permutation = _permutation(tiled)
    whole = algebra.logical_divide(layout, Tile(tuple(permutation[index] for index in along)))
    atom = Tile(tuple(Int(tiled.atom.op.shape_mnk[index]) for index in along))
    atoms = algebra.zipped_divide(whole, atom).linear
    inside = algebra.composition(mode(atoms, 0), atom_layout_tv(tiled, operand)).linear
    waves = Tile(tuple(Int(count(tiled.atom_layout.shape[index])) for index in along))
    shared = algebra.zipped_divide(mode(atoms, 1), waves).linear
    return joined(
        joined(mode(inside, 0), mode(shared, 0)), joined(mode(inside, 1), mode(shared, 1))
    )


def _values(view: Layout) -> Layout:
    """A thread's part of an operand's view: (values, atoms of one mode, atoms of the other)."""
    return mode(view, 1).mapped(lambda tree: expand(tree, 1))


def thr_layout_vmnk(tiled: TiledMmaSpec) -> Layout:
    """(thread in the wave, wave along M, along N, along K) → thread."""
    return algebra.tiled_product(tiled.atom.op.thr_layout, tiled.atom_layout).linear


def thread_coord(tiled: TiledMmaSpec, operand: Operand, thread: Tree) -> Tree:
    """A thread's coordinate in the first mode of an operand's view."""
    lane, *waves = algebra.get_flat_coord(thread, thr_layout_vmnk(tiled))
    first, second = MODES[operand]
    return lane, (waves[first], waves[second])


def mma_partition(tiled: TiledMmaSpec, operand: Operand, layout: Layout, thread: Tree) -> Part:
    """The part of an operand of `thread`: (values, atoms of one mode, atoms of the other)."""
    view = mma_view(tiled, operand, layout)
    return algebra.crd2idx(thread_coord(tiled, operand, thread), mode(view, 0)), _values(view)


def mma_partition_shape(tiled: TiledMmaSpec, operand: Operand, shape: Tree) -> Tree:
    """The shape of a thread's part of an operand of `shape`."""
    return _values(mma_view(tiled, operand, Layout(shape, compact(shape)))).shape


def mma_fragment(
    tiled: TiledMmaSpec, operand: Operand, layout: Layout, stages: int | None = None
) -> Layout:
    """The register layout of a thread's part; with `stages`, of that many consecutive copies."""
    if stages is not None:
        if stages <= 0:
            raise ValueError(f"stages must be positive, got {stages}")
        shape, stride = modes(layout.shape), modes(layout.stride)
        if len(shape) < 2:
            raise ValueError(f"stages need an operand of at least two modes, not {layout}")
        # A dynamic stride sorts after all others, so stages are the slowest mode.
        layout = Layout((*shape[:2], Int(stages)), (*stride[:2], Int(None)))
    return algebra.make_fragment_layout_like(_values(mma_view(tiled, operand, layout)))


def mma_layout_tv(tiled: TiledMmaSpec, operand: Operand) -> Layout:
    """(thread, values) → position in the operand's part of the tile, first mode fastest."""
    along = MODES[operand]
    extents = tuple(Int(tile_size(tiled)[index]) for index in along)
    view = mma_view(tiled, operand, Layout(extents, compact(extents)))
    threads = mode(view, 0)
    vmnk = thr_layout_vmnk(tiled)
    if operand in ("a", "b"):
        # Waves that differ only along the mode that the operand lacks hold the same values.
        own = (Int(1), Int(0)) if operand == "a" else (Int(0), Int(1))
        both = Layout((vmnk.shape[1], vmnk.shape[2]), own)
        threads = algebra.composition(threads, Tile((None, Tile((both, None))))).linear
    rest = algebra.complement(vmnk).linear
    to_coord = algebra.right_inverse(joined(vmnk, rest)).linear
    size = count(vmnk.shape)
    of_thread = algebra.composition(Layout((size, 1), (1, 0)), to_coord).linear
    return joined(algebra.composition(threads, of_thread).linear, mode(view, 1))


def tiled_copy_of(atom: CopyAtomSpec, tiled: TiledMmaSpec, operand: Operand) -> TiledCopySpec:
    """The tiled copy whose threads hold the same elements as for an operand: FlyDSL's
    make_tiled_copy_A, _B and _C."""
    sizes = tile_size(tiled)
    tile = Tile(tuple(Layout(sizes[index], 1) for index in MODES[operand]))
    return TiledCopySpec(atom, mma_layout_tv(tiled, operand), tile)
