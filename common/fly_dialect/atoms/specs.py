"""The types of atoms and of tiled copies and multiplications, and their text.

    CopyAtomSpec    !fly.copy_atom<!fly.universal_copy<64>, 16>
    MmaAtomSpec     !fly.mma_atom<!fly_rocdl.cdna3.mfma<16x16x16, (f16, f16) -> f32>>
    TiledCopySpec   !fly.tiled_copy<ATOM, !fly.layout<(4,8):(8,1)>, !fly.tile<[4|8]>>
    TiledMmaSpec    !fly.tiled_mma<ATOM, !fly.layout<(1,4,1):(0,1,0)>, !fly.tile<[*|32|*]>>

The parser also accepts `<(1,4,1):(0,1,0)>` for a layout or tile in a tiled type.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, TypeVar

from fly_common.record import record

from fly_dialect import algebra
from fly_dialect.atoms import reading, registry
from fly_dialect.atoms.interface import AtomOp, CopyOp, MmaOp
from fly_dialect.layouts.layout import Layout
from fly_dialect.layouts.scanner import Scanner
from fly_dialect.layouts.tile import Tile
from fly_dialect.types import LayoutSpec, TileSpec, read_body, split_type

# The default: M, N and K are not permuted.
NO_PERMUTATION = Tile((None, None, None))


@record
class CopyAtomSpec:
    """A copy instruction, and the width in bits of the values that its layouts count."""

    op: CopyOp
    bits: int

    def __post_init__(self) -> None:
        if self.bits < 0:
            raise ValueError(f"a value can't have {self.bits} bits")

    @property
    def is_static(self) -> bool:
        """Whether the atom has no state, so that its type describes it completely."""
        return not self.op.state

    @property
    def thr_val_layout_src(self) -> Layout:
        """(thread, value) → value of the tile, for reading the source."""
        return self._in_values(self.op.thr_bit_layout_src)

    @property
    def thr_val_layout_dst(self) -> Layout:
        """(thread, value) → value of the tile, for writing the destination."""
        return self._in_values(self.op.thr_bit_layout_dst)

    @property
    def thr_val_layout_ref(self) -> Layout:
        """The one of the two to which a tiled copy's layout refers."""
        return self._in_values(self.op.thr_bit_layout_ref)

    def _in_values(self, layout: Layout) -> Layout:
        if self.op.WHOLE_TILE:
            raise ValueError(f"{self.op} moves a whole tile: it has no layout of values")
        return algebra.recast_layout(layout, 1, self.bits).linear

    def __str__(self) -> str:
        return f"!fly.copy_atom<{self.op}, {self.bits}>"


@record
class MmaAtomSpec:
    """A matrix instruction."""

    op: MmaOp

    @property
    def is_static(self) -> bool:
        return not self.op.state

    def __str__(self) -> str:
        return f"!fly.mma_atom<{self.op}>"


@record
class TiledCopySpec:
    """A copy atom repeated over threads and values. `layout_tv` maps (thread, value) to a position
    in the tile, with its first mode fastest."""

    atom: CopyAtomSpec
    layout_tv: Layout
    tile: Tile

    def __post_init__(self) -> None:
        if not self.layout_tv.is_static:
            raise ValueError(f"the layout of a tiled copy must be static, not {self.layout_tv}")

    @property
    def is_static(self) -> bool:
        return self.atom.is_static

    def __str__(self) -> str:
        return f"!fly.tiled_copy<{self.atom}, {LayoutSpec(self.layout_tv)}, {TileSpec(self.tile)}>"


@record
class TiledMmaSpec:
    """A matrix atom repeated over waves. `atom_layout` distributes waves along M, N and K;
    `permutation` selects the rows and columns of the operands that are processed together."""

    atom: MmaAtomSpec
    atom_layout: Layout
    permutation: Tile = NO_PERMUTATION

    def __post_init__(self) -> None:
        if not self.atom_layout.is_static:
            raise ValueError(f"the layout of a tiled mma must be static, not {self.atom_layout}")

    @property
    def is_static(self) -> bool:
        return self.atom.is_static

    def __str__(self) -> str:
        own = "" if self.permutation == NO_PERMUTATION else f", {TileSpec(self.permutation)}"
        return f"!fly.tiled_mma<{self.atom}, {LayoutSpec(self.atom_layout)}{own}>"


AtomSpec: TypeAlias = CopyAtomSpec | MmaAtomSpec
TiledSpec: TypeAlias = TiledCopySpec | TiledMmaSpec


_Part = TypeVar("_Part")


# -- text -----------------------------------------------------------------------------------------
def _atom(scanner: Scanner) -> AtomSpec | TiledSpec | AtomOp | str:
    """Parses an atom or an instruction; returns other text unchanged."""
    text = reading.element(scanner)
    parts = split_type(text)
    if parts is None:
        return registry.of_plugin(text) or text
    read = reader(f"{parts[0]}.{parts[1]}")
    return read_body(read, parts[2]) if read else text


def _read_copy_atom(scanner: Scanner) -> CopyAtomSpec:
    op = _atom(scanner)
    if not isinstance(op, CopyOp):
        raise ValueError(f"a copy atom needs a copy instruction, but {op} is not one")
    scanner.expect(",")
    return CopyAtomSpec(op, reading.number(scanner))


def _read_mma_atom(scanner: Scanner) -> MmaAtomSpec:
    op = _atom(scanner)
    if not isinstance(op, MmaOp):
        raise ValueError(f"an mma atom needs a matrix instruction, but {op} is not one")
    return MmaAtomSpec(op)


def _read_tiled_copy(scanner: Scanner) -> TiledCopySpec:
    atom = _atom(scanner)
    if not isinstance(atom, CopyAtomSpec):
        raise ValueError(f"a tiled copy needs a copy_atom, not {atom}")
    scanner.expect(",")
    layout = _bracketed(scanner, "layout", Scanner.layout)
    scanner.expect(",")
    return TiledCopySpec(atom, layout, _bracketed(scanner, "tile", Scanner.tile))


def _read_tiled_mma(scanner: Scanner) -> TiledMmaSpec:
    atom = _atom(scanner)
    if not isinstance(atom, MmaAtomSpec):
        raise ValueError(f"a tiled mma needs an mma_atom, not {atom}")
    scanner.expect(",")
    layout = _bracketed(scanner, "layout", Scanner.layout)
    if not scanner.take(","):
        return TiledMmaSpec(atom, layout)
    return TiledMmaSpec(atom, layout, _bracketed(scanner, "tile", Scanner.tile))


def _bracketed(scanner: Scanner, name: str, read: Callable[[Scanner], _Part]) -> _Part:
    """Parses `!fly.name<…>` or `<…>`."""
    scanner.take(f"!fly.{name}")
    scanner.expect("<")
    part = read(scanner)
    scanner.expect(">")
    return part


_SPECS: dict[str, Callable[[Scanner], AtomSpec | TiledSpec]] = {
    "fly.copy_atom": _read_copy_atom,
    "fly.mma_atom": _read_mma_atom,
    "fly.tiled_copy": _read_tiled_copy,
    "fly.tiled_mma": _read_tiled_mma,
}


def reader(name: str) -> Callable[[Scanner], AtomSpec | TiledSpec | AtomOp] | None:
    """The parser for the text between the brackets of the type `!name<…>`, or None if it is not an
    atom's. Raises ValueError for an unknown instruction."""
    if name in _SPECS:
        return _SPECS[name]
    if name.startswith("fly_") or registry.is_family(name):
        return registry.family(name).read
    return None
