"""GPU features: ids, shared memory, barriers, lane shuffles, atomics."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

from fly_common.record import record

from fly_trace.core import tracing
from fly_trace.core.tracing import describe
from fly_trace.memory.tensors import Tensor
from fly_trace.signatures.strides import c_strides
from fly_trace.values.conversion import convert, integer, scalar
from fly_trace.values.dtypes import I32, I64, I128, U32, DType
from fly_trace.values.functions.math_functions import where
from fly_trace.values.scalars import Scalar

if TYPE_CHECKING:
    from fly_trace.session.builder import Builder

WIDTHS = (1, 2, 4, 8, 16, 32, 64)  # group sizes of shuffles; no wave has more lanes
LEAST_LANES = 32  # of any wave
SHARED_ALIGN = 16  # bytes: the widest access


@record
class Axes:
    """`fx.thread_idx` and similar: three i32 values. `op` is an op of the gpu dialect."""

    name: str
    op: str

    @property
    def x(self) -> Scalar:
        return self._axis("x")

    @property
    def y(self) -> Scalar:
        return self._axis("y")

    @property
    def z(self) -> Scalar:
        return self._axis("z")

    def __iter__(self) -> Any:
        return iter((self.x, self.y, self.z))

    def _axis(self, axis: str) -> Scalar:
        builder = tracing.kernel(f"fx.{self.name}.{axis}")
        key = f"{self.op} {axis}"
        if key not in builder.ids:
            dimension = builder.attribute(f"#gpu<dim {axis}>")
            builder.ids[key] = builder.at_start(
                lambda: _as_i32(builder, builder.one(self.op, "index", dimension=dimension))
            )
        return builder.ids[key]


def _as_i32(builder: Builder, index: Any) -> Scalar:
    return Scalar(I32, builder.one("arith.index_cast", "i32", index))


thread_idx = Axes("thread_idx", "gpu.thread_id")
block_idx = Axes("block_idx", "gpu.block_id")
block_dim = Axes("block_dim", "gpu.block_dim")
grid_dim = Axes("grid_dim", "gpu.grid_dim")


def lane_id() -> Scalar:
    """The work item's index in its wave, i32."""
    builder = tracing.kernel("fx.lane_id")
    if "lane" not in builder.ids:
        builder.ids["lane"] = builder.at_start(
            lambda: _as_i32(builder, builder.one("gpu.lane_id", "index"))
        )
    return builder.ids["lane"]


def known_block_size() -> tuple[int, int, int]:
    """The block size, if the launch gives it as Python ints."""
    builder = tracing.kernel("fx.known_block_size")
    block = builder.known_block
    if block is None:
        tracing.refuse("the launch's block is not known while tracing", "use fx.block_dim")
    return block


def num_warp_threads() -> Scalar:
    """The number of lanes of a wave, i32: 64 on CDNA, 32 on RDNA and NVIDIA. It is a constant in
    the compiled kernel and in the host program, but not known while tracing, because a trace is for
    all targets."""
    builder = tracing.current("fx.num_warp_threads")
    if "wave" not in builder.ids:
        builder.ids["wave"] = builder.at_start(
            lambda: _as_i32(builder, builder.one("gpu.subgroup_size", "index"))
        )
    return builder.ids["wave"]


def barrier() -> None:
    """Waits for all work items of the block. Earlier writes to shared memory are then visible."""
    tracing.kernel("fx.barrier").op("gpu.barrier", [], [])


# -- shared memory
# -------------------------------------------------------------------------------------------


def shared_array(dtype: DType, shape: int | tuple[int, ...], *, of_waves: bool = False) -> Tensor:
    """Allocates an uninitialised array of static shape in the block's shared memory. of_waves: each
    wave has the same number of elements, and the shape is for waves of 32 lanes; with wider ones,
    there is memory for the first elements only."""
    from fly_dialect.builders import ops
    from fly_dialect.layouts.layout import Layout
    from fly_dialect.types import LayoutSpec, PtrSpec

    builder = tracing.kernel("fx.shared_array")
    _check_dtype("fx.shared_array", dtype)
    extents = tuple(_extent(item) for item in _shape(shape))
    count = 1
    for extent in extents:
        count *= extent
    layout = _layout(extents, c_strides(extents))
    align = max(SHARED_ALIGN, dtype.bytes)

    spec = PtrSpec(dtype.memory, "shared", align)
    size = dtype.bytes_of(count)
    pointer = builder.allocate(lambda: builder.fly(ops.make_ptr, spec, size, of_waves))

    def make() -> Any:
        return builder.fly(
            ops.make_view, pointer, builder.fly(ops.static, LayoutSpec(Layout(*layout)))
        )

    memref = builder.after(pointer, make)
    return Tensor(builder.spec(memref), memref, dtype, "the shared array", is_array=True)


def dynamic_shared(dtype: DType, shape: Any, offset: int = 0) -> Tensor:
    """An array in the shared memory that the launch requests with `smem=`, starting at byte
    `offset`. Extents may be dynamic."""
    from fly_dialect.builders import ops
    from fly_dialect.types import PtrSpec

    builder = tracing.kernel("fx.dynamic_shared")
    _check_dtype("fx.dynamic_shared", dtype)
    extents = [
        item.to(I32) if isinstance(item, Scalar) and item.number is None else _extent(item)
        for item in _shape(shape)
    ]
    strides: list[Any] = [1]
    for extent in reversed(extents[1:]):
        strides.insert(0, extent * strides[0])
    if not isinstance(offset, int) or offset % dtype.bytes or offset < 0:
        tracing.refuse(
            f"the offset of fx.dynamic_shared must be in bytes and a multiple of {dtype.bytes},"
            f" not {describe(offset)}"
        )
    pointer = builder.fly(ops.get_dyn_shared)
    if offset:
        pointer = builder.fly(ops.add_offset, pointer, builder.fly(ops.make_int_tuple, offset))
    align = max(dtype.bytes, min(SHARED_ALIGN, offset & -offset if offset else SHARED_ALIGN))
    pointer = builder.fly(ops.recast_iter, pointer, PtrSpec(dtype.memory, "shared", align))
    sizes = [
        builder.fly(ops.make_int_tuple, *(_leaf(builder, item) for item in items))
        for items in (extents, strides)
    ]
    memref = builder.fly(ops.make_view, pointer, builder.fly(ops.make_layout, *sizes))
    name = "the dynamic shared array"
    array = Tensor(builder.spec(memref), memref, dtype, name, is_array=True)
    for what, items in (("shape", extents), ("stride", strides)):
        for mode, item in enumerate(items):
            if isinstance(item, Scalar):
                array.parts[what, mode] = item
    return array


def _leaf(builder: Builder, item: Any) -> Any:
    return builder.ssa(item) if isinstance(item, Scalar) else item


def _check_dtype(what: str, dtype: Any) -> None:
    if not isinstance(dtype, DType):
        tracing.refuse(f"{what} takes an element type first, as in {what}(fx.Float32, (16, 16))")


def _shape(shape: Any) -> tuple[Any, ...]:
    items = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    if not items:
        tracing.refuse("a shared array must have at least one dimension")
    return items


def _extent(item: Any) -> int:
    if isinstance(item, Scalar):
        item = item.number if item.number is not None else item
    if isinstance(item, Scalar):
        tracing.refuse(
            f"the shape of fx.shared_array must be known while tracing, not {describe(item)}",
            "use fx.dynamic_shared and launch(smem=…)",
        )
    if isinstance(item, bool) or not hasattr(item, "__index__") or operator.index(item) < 1:
        tracing.refuse(f"an extent must be a positive integer, not {describe(item)}")
    return operator.index(item)


def _layout(extents: Any, strides: Any) -> tuple[Any, Any]:
    """Unwraps the tuples of a layout of rank 1, whose shape and stride are leaves."""
    return (extents[0], strides[0]) if len(extents) == 1 else (extents, strides)


# -- lane shuffles ---------------------------------------------------------------------------------


def _shuffle(mode: str, value: Any, by: Any, width: Any) -> Scalar:
    builder = tracing.kernel(f"fx.shuffle_{mode}")
    value = scalar(value, f"the value of fx.shuffle_{mode}")
    given = width.number if isinstance(width, Scalar) else width
    if given not in WIDTHS and width is not None:
        tracing.refuse(
            f"the width of a shuffle must be a power of two up to {WIDTHS[-1]}, known while"
            " tracing,"
            f" not {describe(width)}",
            "omit it to use the whole wave",
        )
    lanes: Any = num_warp_threads() if width is None else given
    amount = integer(by, "a shuffle's offset", I32)
    if mode == "idx" and width is not None:
        # Lanes are numbered within their group, but the op numbers them within the wave.
        lane = lane_id()
        amount = (lane - lane % lanes) + (convert(amount, I32) & (lanes - 1))
        lanes = num_warp_threads()
    elif mode == "xor" and not _is_within(by, given):
        # The instructions read below the group, and take the offset modulo the wave's lanes.
        amount = where(convert(amount, U32) < convert(lanes, U32), convert(amount, I32), 0)
    elif mode == "up":
        # MLIR's lowering to ROCDL only checks the upper end of the group, and reads below it.
        lane = lane_id()
        by = convert(amount, I32)
        outside = convert(lane % lanes, U32) < convert(by, U32)
        amount, lanes, mode = where(outside, lane, lane - by), num_warp_threads(), "idx"
    offset = builder.ssa(convert(amount, I32))
    size = builder.ssa(scalar(lanes, "a shuffle's width"))
    attribute = builder.attribute(f"#gpu<shuffle_mode {mode}>")

    def move(piece: Any, kind: str) -> Any:
        types = [builder.type(kind), builder.type("i1")]
        return builder.op("gpu.shuffle", types, [piece, offset, size], {"mode": attribute}).results[
            0
        ]

    dtype, x = value.dtype, builder.ssa(value)
    if dtype.bits == 32:
        return Scalar(dtype, move(x, dtype.ir))
    # The hardware moves 32 bits: shorter values are extended to a word, longer ones split.
    bits = f"i{dtype.bits}"
    raw = builder.one("arith.bitcast", bits, x) if dtype.is_float else x
    if dtype.bits < 32:
        moved = move(builder.one("arith.extui", "i32", raw), "i32")
        raw = builder.one("arith.trunci", bits, moved)
    else:
        whole = I64 if dtype.bits == 64 else I128
        places = [builder.constant(place, whole) for place in range(32, dtype.bits, 32)]
        parts = [raw, *(builder.one("arith.shrui", bits, raw, place) for place in places)]
        words = [
            builder.one("arith.extui", bits, move(builder.one("arith.trunci", "i32", part), "i32"))
            for part in parts
        ]
        raw = words[0]
        for word, place in zip(words[1:], places, strict=True):
            shifted = builder.one("arith.shli", bits, word, place)
            raw = builder.one("arith.ori", bits, raw, shifted)
    return Scalar(dtype, builder.one("arith.bitcast", dtype.ir, raw) if dtype.is_float else raw)


def _is_within(by: Any, width: Any) -> bool:
    """Whether an offset is known to be less than a group's lanes."""
    number = by.number if isinstance(by, Scalar) else by
    return isinstance(number, int) and 0 <= number < (width or LEAST_LANES)


def shuffle_xor(value: Any, offset: Any, width: int | None = None) -> Scalar:
    """The value of lane `lane ^ offset`. Lanes form groups of `width`, by default the whole wave.
    If the lane is outside the group, returns the lane's own value."""
    return _shuffle("xor", value, offset, width)


def shuffle_up(value: Any, offset: Any, width: int | None = None) -> Scalar:
    """The value of lane `lane - offset` of the group, or the lane's own value if there is none."""
    return _shuffle("up", value, offset, width)


def shuffle_down(value: Any, offset: Any, width: int | None = None) -> Scalar:
    """The value of lane `lane + offset` of the group, or the lane's own value if there is none."""
    return _shuffle("down", value, offset, width)


def shuffle_idx(value: Any, lane: Any, width: int | None = None) -> Scalar:
    """The value of lane `lane` of the group, the same for all lanes."""
    return _shuffle("idx", value, lane, width)
