"""Tiled copies and multiplications: the part of a tile that each thread moves or holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

from fly_dialect import tiled as data
from fly_dialect.atoms import TiledCopySpec, TiledMmaSpec
from fly_dialect.types import TileSpec

from fly_trace.atoms.atom import CopyAtom, MmaAtom, Stateful, get_atom
from fly_trace.core import tracing
from fly_trace.core.dialect_value import DialectValue, apply, inferred, values_of
from fly_trace.core.tracing import describe
from fly_trace.layouts.int_tuples import IntTuple, int_tuple
from fly_trace.layouts.layout_algebra import make_layout_tv
from fly_trace.layouts.layouts import Layout
from fly_trace.layouts.tiles import Tile, make_tile, tiler
from fly_trace.memory.pointers import dtype_of
from fly_trace.memory.tensors import Tensor
from fly_trace.memory.view_construction import static_layout, tensor_of, view_of

if TYPE_CHECKING:
    from fly_dialect.bindings import ir

    from fly_trace.session.builder import Builder

__all__ = [
    "MmaOperand",
    "ThrCopy",
    "ThrMma",
    "TiledCopy",
    "TiledMma",
    "make_tiled_copy",
    "make_tiled_copy_A",
    "make_tiled_copy_B",
    "make_tiled_copy_C",
    "make_tiled_copy_tv",
    "make_tiled_mma",
    "mma_make_fragment",
    "tiled_copy_partition_dst",
    "tiled_copy_partition_src",
    "tiled_copy_retile",
    "tiled_mma_partition",
    "tiled_mma_partition_shape",
]


class MmaOperand:
    """The matrices of D = A·B + C."""

    A, B, C, D = "a", "b", "c", "d"


def _operand(operand: Any, what: str) -> Any:
    if operand not in ("a", "b", "c", "d"):
        tracing.refuse(f"{what} takes fx.MmaOperand.A, .B, .C or .D, not {describe(operand)}")
    return f"#fly<mma_operand {operand}>"


class OfThread(Stateful):
    """A thread's part of a tiled op: `tiled` and the thread's index. Control flow carries the two
    separately, so neither is used before it has its value."""

    __slots__ = ("thread", "tiled")
    __fly_fields__ = ("tiled", "thr_idx")
    whole: ClassVar[type[DialectValue]]  # the class of `tiled`

    def __init__(self, tiled: Any, thr_idx: Any):
        self.spec = tiled.spec
        self.tiled = tiled
        self.thread = int_tuple(thr_idx, "a thread's number")

    @classmethod
    def wrapped(cls, spec: Any, ssa: ir.Value | None, origin: Any) -> Self:
        return cls(cls.whole(spec, ssa), origin.thread)

    @property
    def ssa(self) -> Any:
        return self.tiled.ssa

    @property
    def thr_idx(self) -> IntTuple:
        """The thread's index, an int tuple."""
        return self.thread

    def value(self, builder: Builder) -> ir.Value:
        return self.tiled.value(builder)

    def with_fields(self, fields: dict[str, Any]) -> Self:
        return type(self)(**fields)

    def is_same(self, other: Any) -> bool:
        return super().is_same(other) and self.thread.is_same(other.thread)

    def __eq__(self, other: Any) -> Any:
        return super().__eq__(other) and (self is other or self.thread == other.thread)

    __hash__ = DialectValue.__hash__


# -- copies ----------------------------------------------------------------------------------------


@values_of(TiledCopySpec)
class TiledCopy(Stateful):
    """A copy atom repeated over threads and values. It is static, and may be a kernel argument."""

    __slots__ = ()
    noun = "a tiled copy"

    def made(self, builder: Builder) -> ir.Value:
        atom = CopyAtom(self.spec.atom).value(builder)
        layout = static_layout(self.spec.layout_tv).value(builder)
        tile = self.tile_mn.value(builder)
        return builder.fly_op("make_tiled_copy", [atom, layout, tile], {}, self.spec)

    @property
    def copy_atom(self) -> CopyAtom:
        return get_atom("get_copy_atom", self)

    @property
    def tile_mn(self) -> Tile:
        """The tile that all threads copy together."""
        return Tile(TileSpec(self.spec.tile))

    @property
    def layout_tv_tiled(self) -> Layout:
        """(thread, value) → position in the tile, with its first mode fastest."""
        return static_layout(self.spec.layout_tv)

    @property
    def layout_src_tv_tiled(self) -> Layout:
        return static_layout(data.copy_layout_tv(self.spec, "src"))

    @property
    def layout_dst_tv_tiled(self) -> Layout:
        return static_layout(data.copy_layout_tv(self.spec, "dst"))

    def get_slice(self, thr_idx: Any) -> ThrCopy:
        """The part of the thread `thr_idx`."""
        return ThrCopy(self, thr_idx)

    thr_slice = get_slice


class ThrCopy(OfThread, TiledCopy):
    """A thread's part of a tiled copy."""

    __slots__ = ()
    whole = TiledCopy

    def partition_S(self, src: Any) -> Any:
        """The part of a source that the thread reads: (values, tiles of mode 0, …)."""
        return tiled_copy_partition_src(self.tiled, src, self.thread)

    def partition_D(self, dst: Any) -> Any:
        """The part of a destination that the thread writes: (values, tiles of mode 0, …)."""
        return tiled_copy_partition_dst(self.tiled, dst, self.thread)

    def retile(self, t: Any) -> Tensor:
        """A fragment of another tiled op, in the order in which this copy uses its values."""
        return tiled_copy_retile(self.tiled, t)


def make_tiled_copy(copy_atom: CopyAtom, layout_thr_val: Layout, tile_mn: Any) -> TiledCopy:
    """A copy of tiles `tile_mn`. `layout_thr_val` maps (thread, value) to tile positions."""
    _need_atom("fx.make_tiled_copy", copy_atom, CopyAtom)
    operands = copy_atom, _static(layout_thr_val, "fx.make_tiled_copy"), tiler(tile_mn, "a tile")
    return _tiled(TiledCopy, "make_tiled_copy", operands)


def _tiled(cls: Any, name: str, operands: tuple[DialectValue, ...]) -> Any:
    if operands[0].is_static:
        return cls(inferred(name, operands, {}))
    return apply(name, *operands)


def _need_atom(what: str, atom: Any, kind: type) -> None:
    if not isinstance(atom, kind):
        tracing.refuse(f"{what} takes {kind.noun} first, not {describe(atom)}")  # type: ignore[attr-defined]


def _static(layout: Any, what: str) -> Layout:
    if not isinstance(layout, Layout) or not layout.is_static:
        tracing.refuse(f"{what} takes a layout that is known while tracing, not {describe(layout)}")
    return layout


def make_tiled_copy_tv(atom: CopyAtom, thr_layout: Layout, val_layout: Layout) -> TiledCopy:
    """A copy with threads arranged by `thr_layout`, and their values by `val_layout`."""
    tile, layout_tv = make_layout_tv(thr_layout, val_layout)
    return make_tiled_copy(atom, layout_tv, tile)


def _of_operand(operand: str) -> Any:
    def function(copy_atom: CopyAtom, tiled_mma: TiledMma) -> TiledCopy:
        _need_atom(function.__name__, copy_atom, CopyAtom)
        if not isinstance(tiled_mma, TiledMma):
            tracing.refuse(f"fx.{function.__name__} takes a tiled mma, not {describe(tiled_mma)}")
        spec = data.tiled_copy_of(copy_atom.spec, tiled_mma.spec, operand)  # type: ignore[arg-type]
        if copy_atom.is_static:
            return TiledCopy(spec)
        layout, tile = static_layout(spec.layout_tv), Tile(TileSpec(spec.tile))
        return apply("make_tiled_copy", copy_atom, layout, tile)

    function.__name__ = function.__qualname__ = f"make_tiled_copy_{operand.upper()}"
    function.__doc__ = f"A copy whose threads move what they hold of {operand.upper()}."
    return function


make_tiled_copy_A, make_tiled_copy_B = _of_operand("a"), _of_operand("b")
make_tiled_copy_C = _of_operand("c")


def _partition(name: str, tiled_copy: TiledCopy, view: Any, thread: Any) -> Any:
    what = f"fx.{name.replace('.', '_')}"
    if not isinstance(tiled_copy, TiledCopy):
        tracing.refuse(f"{what} takes a tiled copy first, not {describe(tiled_copy)}")
    view = view_of(view, what)
    return apply(name, tiled_copy, view, int_tuple(thread, what), origin=view)


def tiled_copy_partition_src(tiled_copy: TiledCopy, src: Any, thr_int_tuple: Any) -> Any:
    """The part of a source that a thread reads."""
    return _partition("tiled_copy.partition_src", tiled_copy, src, thr_int_tuple)


def tiled_copy_partition_dst(tiled_copy: TiledCopy, dst: Any, thr_int_tuple: Any) -> Any:
    """The part of a destination that a thread writes."""
    return _partition("tiled_copy.partition_dst", tiled_copy, dst, thr_int_tuple)


def tiled_copy_retile(tiled_copy: TiledCopy, t: Any) -> Tensor:
    """A fragment of another tiled op, in the order in which this copy uses its values."""
    fragment = tensor_of(t, "fx.tiled_copy_retile")
    return apply("tiled_copy.retile", tiled_copy, fragment, origin=fragment)


# -- matrix products -------------------------------------------------------------------------------


@values_of(TiledMmaSpec)
class TiledMma(Stateful):
    """A matrix atom repeated over waves. It is static, and may be a kernel argument."""

    __slots__ = ()
    noun = "a tiled mma"

    def made(self, builder: Builder) -> ir.Value:
        operands = [
            MmaAtom(self.spec.atom).value(builder),
            self.atom_layout.value(builder),
            self.permutation_mnk.value(builder),
        ]
        return builder.fly_op("make_tiled_mma", operands, {}, self.spec)

    @property
    def mma_atom(self) -> MmaAtom:
        return get_atom("get_mma_atom", self)

    @property
    def atom_layout(self) -> Layout:
        """The layout of waves along M, N and K."""
        return static_layout(self.spec.atom_layout)

    @property
    def permutation_mnk(self) -> Tile:
        """The permutation of M, N and K: which rows and columns are processed together."""
        return Tile(TileSpec(self.spec.permutation))

    @property
    def tile_size_mnk(self) -> IntTuple:
        """M, N and K of the tile that all waves compute together."""
        return int_tuple(data.tile_size(self.spec))

    @property
    def thr_layout_vmnk(self) -> Layout:
        """(thread in its wave, wave along M, along N, along K) → thread."""
        return static_layout(data.thr_layout_vmnk(self.spec))

    @property
    def tv_layout_A_tiled(self) -> Layout:
        return static_layout(data.mma_layout_tv(self.spec, "a"))

    @property
    def tv_layout_B_tiled(self) -> Layout:
        return static_layout(data.mma_layout_tv(self.spec, "b"))

    @property
    def tv_layout_C_tiled(self) -> Layout:
        return static_layout(data.mma_layout_tv(self.spec, "c"))

    def get_slice(self, thr_idx: Any) -> ThrMma:
        """The part of the thread `thr_idx`."""
        return ThrMma(self, thr_idx)

    thr_slice = get_slice

    def make_fragment_A(self, a: Any, *, stages: int | None = None) -> Tensor:
        """Registers for a thread's part of A; with `stages`, that many copies."""
        return mma_make_fragment(MmaOperand.A, self, a, stages=stages)

    def make_fragment_B(self, b: Any, *, stages: int | None = None) -> Tensor:
        """Registers for a thread's part of B; with `stages`, that many copies."""
        return mma_make_fragment(MmaOperand.B, self, b, stages=stages)

    def make_fragment_C(self, c: Any, *, stages: int | None = None) -> Tensor:
        """Registers for a thread's part of C, with the accumulator type of the instruction."""
        return mma_make_fragment(MmaOperand.C, self, c, stages=stages)


class ThrMma(OfThread, TiledMma):
    """A thread's part of a tiled mma."""

    __slots__ = ()
    whole = TiledMma

    def partition_A(self, a: Any) -> Any:
        """The part of A that the thread holds: (values, atoms along M, atoms along K)."""
        return tiled_mma_partition(MmaOperand.A, self.tiled, a, self.thread)

    def partition_B(self, b: Any) -> Any:
        """The part of B that the thread holds: (values, atoms along N, atoms along K)."""
        return tiled_mma_partition(MmaOperand.B, self.tiled, b, self.thread)

    def partition_C(self, c: Any) -> Any:
        """The part of C that the thread holds: (values, atoms along M, atoms along N)."""
        return tiled_mma_partition(MmaOperand.C, self.tiled, c, self.thread)


def make_tiled_mma(mma_atom: MmaAtom, atom_layout: Layout, permutation: Any = None) -> TiledMma:
    """A multiplication whose waves are arranged by `atom_layout` along M, N and K. `permutation`
    selects the rows and columns of the operands that form a tile."""
    _need_atom("fx.make_tiled_mma", mma_atom, MmaAtom)
    layout = _static(atom_layout, "fx.make_tiled_mma")
    if layout.rank != 3:
        tracing.refuse(
            f"fx.make_tiled_mma takes a layout of waves along M, N and K, not {layout}",
            "for one wave, use fx.make_layout((1, 1, 1), (0, 0, 0))",
        )
    operands: tuple[DialectValue, ...] = mma_atom, layout
    if permutation is not None:
        tile = permutation if isinstance(permutation, Tile) else make_tile(*permutation)
        operands = (*operands, tile)
    return _tiled(TiledMma, "make_tiled_mma", operands)


def tiled_mma_partition(operand_id: str, tiled_mma: TiledMma, t: Any, coord: Any) -> Any:
    """The part of an operand that a thread holds."""
    what = "fx.tiled_mma_partition"
    view = view_of(t, what)
    thread = int_tuple(coord, what)
    operand = _operand(operand_id, what)
    return apply("tiled_mma.partition", tiled_mma, view, thread, origin=view, operand_id=operand)


def tiled_mma_partition_shape(operand_id: str, tiled_mma: TiledMma, shape: Any) -> Any:
    """The shape of a thread's part of an operand of `shape`."""
    what = "fx.tiled_mma_partition_shape"
    operand = _operand(operand_id, what)
    return apply("tiled_mma.partition_shape", tiled_mma, int_tuple(shape, what), operand_id=operand)


def mma_make_fragment(
    operand_id: str, tiled_mma: TiledMma, input: Any, *, stages: int | None = None
) -> Tensor:
    """Registers for a thread's part of an operand with the shape of `input`."""
    what = "fx.mma_make_fragment"
    view = tensor_of(input, what)
    attributes = {"operand_id": _operand(operand_id, what), "stages": stages}
    spec = inferred("mma.make_fragment", (tiled_mma, view), attributes)
    builder = tracing.kernel(what)
    operands = [tiled_mma.value(builder), view.value(builder)]
    ssa = builder.fly_op("mma.make_fragment", operands, attributes, spec)
    return Tensor(
        spec, ssa, dtype_of(spec.element, view.dtype), f"the fragment {operand_id.upper()}"
    )
