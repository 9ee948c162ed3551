"""Tiles in shared memory, and their copies by the tensor memory accelerator (TMA) of sm_90."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fly_dialect.layouts.layout import AnyLayout
from fly_dialect.layouts.layout import ComposedLayout as ComposedData
from fly_dialect.layouts.layout import Layout as LayoutData
from fly_dialect.layouts.swizzle import Swizzle
from fly_dialect.nvidia import tensor_map as data
from fly_dialect.nvidia.tensor_map import TensorMapSpec
from fly_dialect.types import PtrSpec

from fly_trace.backends.nvidia.intrinsics import intrinsic
from fly_trace.backends.nvidia.pipelines import mbarrier_of
from fly_trace.core import tracing
from fly_trace.core.dialect_value import DialectValue, values_of
from fly_trace.core.tracing import describe
from fly_trace.gpu import cluster
from fly_trace.gpu.immediates import number
from fly_trace.layouts.layouts import ComposedLayout, Layout, SwizzleType, static
from fly_trace.layouts.swizzled_tiles import GROUP, swizzled_tile
from fly_trace.memory.pointers import Access, Pointer, apply_swizzle, recast_iter
from fly_trace.memory.tensors import Tensor
from fly_trace.memory.view_construction import get_iter, make_view, tensor_of
from fly_trace.values.conversion import convert, integer
from fly_trace.values.dtypes import I32, I64, U32, DType
from fly_trace.values.scalars import Scalar

if TYPE_CHECKING:
    from fly_dialect.bindings import ir

__all__ = [
    "SharedTiles",
    "TensorMap",
    "fence_async",
    "tensor_map",
    "tile_layout",
    "tma_commit",
    "tma_load",
    "tma_store",
    "tma_wait",
]

ALIGNMENT = 1024  # bytes after which the pattern of a swizzle repeats


def tile_layout(
    dtype: DType, shape: tuple[int, int], contiguous: int = 1, row: int = 128
) -> ComposedLayout:
    """The layout of a tile in shared memory that TMA and wgmma share: rows of `row` bytes (32, 64
    or 128) along mode `contiguous`, in which groups of 16 bytes are permuted. A tile that is wider
    consists of several such columns, one behind the other."""
    what = "fx.nvvm.tile_layout"
    whole = isinstance(shape, tuple) and len(shape) == 2 and all(type(n) is int for n in shape)
    if not whole or contiguous not in (0, 1):
        tracing.refuse(
            f"{what} takes the rows and columns of a tile, and the mode 0 or 1 that is contiguous"
        )
    if row not in data.SWIZZLES:
        tracing.refuse(f"{what} has rows of 32, 64 or 128 bytes, not {row}")
    along = shape[contiguous]
    if along * dtype.bits % (row * 8):
        tracing.refuse(f"{what}: {along} elements of {dtype.name} are no whole rows of {row} bytes")
    return swizzled_tile(dtype, shape, contiguous, row)


class SharedTiles:
    """`stages` tiles of a `tile_layout` in shared memory: `tiles[stage]` is the view of one. They
    are allocated where the first one is taken by all threads: make this in front of branches."""

    def __init__(self, dtype: DType, layout: Any, stages: int = 1):
        from fly_trace.memory.shared_memory import SharedAllocator
        from fly_trace.memory.structs import Array

        self.dtype, self.layout = dtype, layout
        self.plain, self.row = _plain(dtype, layout)
        self.elements = _count(layout)
        storage = SharedAllocator().allocate(Array[dtype, self.elements * stages], ALIGNMENT)
        self.base: Pointer = storage.peek().ptr

    def divided(self, layout: Any) -> SharedTiles:
        """The same memory as smaller tiles, of `layout`: several of them, one behind the other, are
        one of these tiles, as where a tile is copied in parts of its rows."""
        made = object.__new__(SharedTiles)
        made.dtype, made.layout, made.base = self.dtype, layout, self.base
        made.plain, made.row = _plain(self.dtype, layout)
        made.elements = _count(layout)
        if self.elements % made.elements or made.elements * self.dtype.bits % (8 * ALIGNMENT):
            tracing.refuse(
                f"tiles of {self.elements} elements can't be divided into such of {made.elements}",
                f"each has to begin at a multiple of {ALIGNMENT} bytes",
            )
        return made

    def __getitem__(self, stage: Any) -> Tensor:
        """The tile of a stage."""
        pointer = self.base + stage * self.elements
        if self.row:
            swizzle = Swizzle(data.SWIZZLES[self.row], 4, 3)
            pointer = apply_swizzle(pointer, static(SwizzleType.get(swizzle.mask, 4, 3)))
        return make_view(pointer, self.plain)


def _plain(dtype: DType, layout: Any) -> tuple[Layout, int]:
    """The layout without its swizzle, and the bytes of a row that it permutes."""
    what = "fx.nvvm.SharedTiles"
    if isinstance(layout, ComposedLayout):
        try:
            row = data.swizzle_bytes(layout.spec.layout, dtype.memory)
        except ValueError as error:
            tracing.refuse(f"{what}: {error}")
        from fly_trace.memory.view_construction import static_layout

        return static_layout(layout.spec.layout.linear), row
    if not isinstance(layout, Layout) or not layout.is_static:
        tracing.refuse(f"{what} takes a layout that is known while tracing")
    return layout, 0


def _count(layout: Any) -> int:
    from fly_trace.layouts.layout_algebra import cosize

    spec = layout.spec.layout
    if isinstance(spec, ComposedData):
        from fly_trace.memory.view_construction import static_layout

        layout = static_layout(spec.linear)
    return int(cosize(layout))


@values_of(TensorMapSpec)
class TensorMap(DialectValue):
    """A tensor of which kernels copy tiles, an argument of kernels. `tile` is the layout of a tile
    in shared memory, `nbytes` its size in bytes."""

    __slots__ = ("access",)
    noun = "a tensor map"

    def __init__(self, spec: TensorMapSpec, ssa: ir.Value | None, access: Access | None = None):
        super().__init__(spec, ssa)
        self.access = access or Access()

    @classmethod
    def wrapped(cls, spec: TensorMapSpec, ssa: ir.Value | None, origin: Any) -> TensorMap:
        return cls(spec, ssa)

    @property
    def nbytes(self) -> int:
        return self.spec.nbytes


def tensor_map(tensor: Any, tile: Any, tf32: bool = False) -> TensorMap:
    """The map of a tensor for copies of tiles, which the host function makes and kernels take as an
    argument. `tile` is the layout of a tile in shared memory, with the tensor's modes: see
    `tile_layout`. If it has fewer modes than the tensor, it has one element of each of the
    tensor's first ones.

    Elements beyond the tensor's ends are loaded as 0, and not stored. When the program runs, the
    tensor has to begin at a multiple of 16 bytes, and its strides, but for the contiguous mode's,
    have to be such multiples.

    With `tf32`, for a tensor of f32, elements are rounded to the nearest values of TF32 as they are
    loaded, which a product by `WGMMA` of f32 needs: wgmma itself truncates. Tiles hold f32 as
    before. Such a map is for loads only.
    """
    what = "fx.nvvm.tensor_map"
    builder = tracing.current(what)
    if not builder.host:
        tracing.refuse(f"{what} is for host functions: pass the map to the kernel")
    view = tensor_of(tensor, what)
    if not isinstance(tile, Layout | ComposedLayout) or not tile.is_static:
        tracing.refuse(f"{what} takes the layout of a tile, not {describe(tile)}")
    try:
        element = view.dtype.memory
        if tf32 and element != data.ROUNDED["tf32"]:
            raise ValueError(f"tf32=True rounds elements of f32, not of {element}")
        element = "tf32" if tf32 else element
        spec = TensorMapSpec(element, _padded(tile.spec.layout, view.rank))
        data.check_tensor(view.spec, spec)
    except ValueError as error:
        tracing.refuse(f"{what}: {error}")
    ssa = builder.fly_op("fly_nvvm.make_tensor_map", [view.value(builder)], {}, spec)
    return TensorMap(spec, ssa, view.access)


def _padded(tile: AnyLayout, rank: int) -> AnyLayout:
    """The layout with modes of extent 1 in front, as many as a tensor of this rank has more."""
    if isinstance(tile, ComposedData):
        return ComposedData(tile.inner, tile.offset, _padded(tile.outer, rank))
    shape = tile.shape if isinstance(tile.shape, tuple) else (tile.shape,)
    stride = tile.stride if isinstance(tile.stride, tuple) else (tile.stride,)
    more = rank - len(shape)
    if more <= 0:
        return tile
    return LayoutData((*(1,) * more, *shape), (*(0,) * more, *stride))


def _tile(what: str, source: Any, tile: Any) -> tuple[TensorMap, Pointer]:
    """The map, and the pointer to a tile that has its layout."""
    if not isinstance(source, TensorMap):
        tracing.refuse(f"{what} takes a tensor map, not {describe(source)}")
    view = tensor_of(tile, what)
    spec: TensorMapSpec = source.spec
    swizzle = view.spec.swizzle
    row = GROUP << swizzle.mask if swizzle is not None else 0
    padded = _padded(view.spec.layout, spec.rank)
    if view.space != "shared" or padded != spec.layout or row != spec.swizzle:
        tracing.refuse(f"{what}: {view.describe()} is no tile with the map's layout, {spec.tile}")
    pointer = get_iter(view)
    plain = PtrSpec(pointer.spec.element, "shared", pointer.spec.align)
    return source, recast_iter(plain, pointer) if swizzle is not None else pointer


def _coordinate(what: str, source: TensorMap, coordinate: Any) -> list[Any]:
    builder = tracing.kernel(what)
    parts = coordinate if isinstance(coordinate, tuple) else (coordinate,)
    if len(parts) != source.spec.rank:
        tracing.refuse(f"{what} takes a coordinate of {source.spec.rank} numbers, not {len(parts)}")
    found = [integer(part, f"a coordinate of {what}", I32, U32, I64) for part in parts]
    return [builder.ssa(convert(part, I32)) for part in found]


def tma_load(source: Any, coordinate: Any, tile: Any, barrier: Any, multicast: Any = None) -> None:
    """Starts to copy the tile at `coordinate` of the tensor to shared memory. One thread does so.
    The mbarrier `barrier`, which expects `source.nbytes` bytes, tells that it has arrived.

    `multicast` is an integer with a bit for each block of the cluster that the tile is copied to:
    to the same place of its shared memory, where the mbarrier at the same place as `barrier` counts
    the bytes. Each of these blocks has to expect them."""
    what = "fx.nvvm.tma_load"
    found, pointer = _tile(what, source, tile)
    found.access.reads = True
    builder = tracing.kernel(what)
    arrival = mbarrier_of(what, barrier)
    operands = [found.value(builder), pointer.value(builder), arrival.value(builder)]
    name = "fly_nvvm.tma_load"
    if multicast is not None:
        name = "fly_nvvm.tma_multicast"
        operands.append(_blocks(what, multicast))
    builder.fly_op(name, [*operands, *_coordinate(what, found, coordinate)], {})


def _blocks(what: str, mask: Any) -> Any:
    """The mask of a multicast, i32."""
    given = integer(mask, f"the blocks of {what}", I32, U32)
    known = given.number if isinstance(given, Scalar) else given
    every = (1 << cluster.size()) - 1
    if known is not None and not 0 < int(known) <= every:
        tracing.refuse(
            f"{what}: multicast={known:#b} does not name blocks of a cluster of {cluster.size()}",
            "bit i is block i; launch the kernel with cluster=",
        )
    return tracing.kernel(what).ssa(convert(given, I32))


def tma_store(tile: Any, target: Any, coordinate: Any) -> None:
    """Starts to copy a tile of shared memory to `coordinate` of the tensor. One thread does so,
    with `tma_commit` and `tma_wait` behind it. Threads that wrote the tile did `fence_async`
    before."""
    what = "fx.nvvm.tma_store"
    found, pointer = _tile(what, target, tile)
    if found.spec.element in data.ROUNDED:
        tracing.refuse(f"{what}: the map was made with tf32=True, which is for loads only")
    found.access.writes = True
    builder = tracing.kernel(what)
    operands = [found.value(builder), pointer.value(builder)]
    builder.fly_op("fly_nvvm.tma_store", [*operands, *_coordinate(what, found, coordinate)], {})


def tma_commit() -> None:
    """Makes a group of this thread's stores since the last one."""
    intrinsic("fx.nvvm.tma_commit", "cp.async.bulk.commit.group", [])


def tma_wait(groups: int, read: bool = True) -> None:
    """Waits until at most `groups` of this thread's groups of stores are running. With `read`,
    those that have read shared memory count as done: it may be written again."""
    what = "fx.nvvm.tma_wait"
    count = number(groups, f"the groups of {what}", 63)
    name = f"cp.async.bulk.wait.group{'.read' if read else ''}"
    builder = tracing.kernel(what)
    intrinsic(what, name, [builder.constant(count, I32)])


def fence_async() -> None:
    """Makes this thread's accesses to shared memory visible to TMA and wgmma."""
    intrinsic("fx.nvvm.fence_async", "fence.proxy.async.shared_cta", [])
