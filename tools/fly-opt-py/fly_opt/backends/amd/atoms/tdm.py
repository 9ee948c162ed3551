"""The tensor data mover of gfx1250: a descriptor of up to five dimensions, and one instruction.

The global memory view gives the tile's extents and base; the atom's state gives the tensor's
extents and strides, a workgroup mask and a byte offset. The descriptor follows LLVM's
`llvm.amdgcn.tensor.load.to.lds` and FlyDSL's text; it has not been run on hardware.
"""

from __future__ import annotations

from fly_common.record import record
from fly_dialect.atoms.amd.tdm import TILE_STRIDE, Tdm
from fly_dialect.bindings import ir
from fly_dialect.layouts.int_tuple import IntTuple
from fly_dialect.layouts.integers import Int
from fly_dialect.layouts.layout import Layout
from fly_dialect.types import MemRefSpec, bits

from fly_opt.atoms.bitfields import Field, words
from fly_opt.atoms.emitters import Copy, Memory, copies
from fly_opt.ir import pointers
from fly_opt.ir.builder import Builder

# Where the descriptor has the size of the tensor and of the tile, and the stride, of its dimension
# in the descriptor: (group, bit). Groups 0 and 1 always exist, 2 and 3 from three dimensions on.
_TENSOR = ((1, 48), (1, 80), (2, 0), (2, 32), (3, 48))  # 32 bits
_TILE = ((1, 112), (1, 128), (1, 144), (2, 112), (3, 80))  # 16 bits
_STRIDE = ((1, 160), (1, 208), (2, 64), (3, 0))  # 48 bits, from dimension j to j + 1
_GROUP_WORDS = (4, 8, 4, 4, 8)
_TYPE = 2  # the descriptor's type: bits 126 and 127 of group 0


@record
class _Tile:
    """The static part of a copy, outermost dimension first."""

    shape: tuple[int, ...]
    strides: tuple[int | None, ...]  # None if dynamic
    element_bytes: int
    waves: tuple[int, ...]  # along each dimension

    @property
    def share(self) -> tuple[int, ...]:
        """The extents of one wave's part."""
        return tuple(-(-extent // n) for extent, n in zip(self.shape, self.waves, strict=True))


@copies(Tdm)
def copy(call: Copy[Tdm]) -> None:
    op, builder = call.op, call.builder
    outside, inside, name = _sides(call)
    tile = _tile(op, outside.spec)
    padding = _padding(op, bits(outside.spec.element))
    rank = op.rank
    extents = [call.field(f"extent_{mode}") for mode in range(rank)]
    strides = [_stride(call, tile, mode) for mode in range(rank - 1)] + [builder.constant(1, 64)]
    i64, i32 = pointers.integer(64), pointers.integer(32)
    base = builder.value("llvm.ptrtoint", i64, [outside.pointer])
    base = builder.value("arith.addi", i64, [base, call.field("imm_offset")])
    lds = builder.value("llvm.ptrtoint", i32, [inside.pointer])
    starts = _starts(builder, tile)
    if op.warps > 1:
        base = _moved(builder, base, starts, strides, tile.element_bytes)
        lds_strides = [builder.constant(step, 32) for step in _lds_strides(op, tile)]
        lds = _moved(builder, lds, starts, lds_strides, tile.element_bytes)
    groups: list[list[Field]] = [[] for _ in _GROUP_WORDS]
    groups[0] = [Field(0, 2, 1), Field(32, 32, lds), Field(64, 57, base), Field(126, 2, _TYPE)]
    groups[1] = [Field(0, 16, call.field("workgroup_mask")), *_configuration(op, tile), *padding]
    for dimension in range(rank):
        mode = rank - 1 - dimension
        left = builder.value("arith.subi", i32, [extents[mode], starts[mode]])
        reach = builder.value("arith.maxsi", i32, [left, builder.constant(0, 32)])
        _put(groups, _TENSOR[dimension], 32, reach)
        _put(groups, _TILE[dimension], 16, tile.share[mode])
        if dimension < rank - 1:
            _put(groups, _STRIDE[dimension], 48, strides[mode - 1])
    descriptor = [
        words(builder, count, fields) for count, fields in zip(_GROUP_WORDS, groups, strict=True)
    ]
    builder.op(name, None, descriptor, {"cachePolicy": ir.IntegerAttr.get(i32, op.cache)})


def _put(
    groups: list[list[Field]], place: tuple[int, int], width: int, value: ir.Value | int
) -> None:
    group, bit = place
    groups[group].append(Field(bit, width, value))


def _sides(call: Copy[Tdm]) -> tuple[Memory, Memory, str]:
    """Returns the global side, the LDS side, and the name of the instruction."""
    source, target = call.source, call.destination
    if isinstance(source, Memory) and isinstance(target, Memory):
        spaces = source.spec.space, target.spec.space
        if spaces == ("global", "shared"):
            return source, target, "rocdl.tensor.load.to.lds"
        if spaces == ("shared", "global"):
            return target, source, "rocdl.tensor.store.from.lds"
    raise ValueError("the tensor data mover copies between global and shared memory")


def _tile(op: Tdm, spec: MemRefSpec) -> _Tile:
    layout = spec.layout
    shape = _leaves(layout.shape)
    stride = _leaves(layout.stride) if isinstance(layout, Layout) else ()
    if not len(stride) == len(shape) == op.rank or None in shape:
        raise ValueError(f"a tile of rank {op.rank} must have as many static extents, not {layout}")
    extents = tuple(extent or 0 for extent in shape)
    size = bits(spec.element) // 8
    if bits(spec.element) % 8 or size & (size - 1) or size > 8:
        raise ValueError(f"the tensor data mover needs elements of 1, 2, 4 or 8 bytes: {spec}")
    return _Tile(extents, stride, size, _waves(extents, op.warps))


def _leaves(tree: IntTuple) -> tuple[int | None, ...]:
    """Returns the integers of a tuple's modes; None for one that is dynamic or not an integer."""
    modes = tree if isinstance(tree, tuple) else (tree,)
    return tuple(mode.value if isinstance(mode, Int) else None for mode in modes)


def _waves(shape: tuple[int, ...], count: int) -> tuple[int, ...]:
    """Distributes waves over the dimensions: as many as fit along the outermost, then the next."""
    waves = [1] * len(shape)
    for mode, extent in enumerate(shape):
        while count > 1 and waves[mode] * 2 <= extent:
            waves[mode] *= 2
            count //= 2
    waves[-1] *= count
    return tuple(waves)


def _stride(call: Copy[Tdm], tile: _Tile, mode: int) -> ir.Value:
    """Returns the tensor's stride along a mode, an i64 in elements: the state's, or the tile's own
    if that is static and the state's is not set."""
    builder, given = call.builder, call.field(f"stride_{mode}")
    own = tile.strides[mode]
    if own is None:
        return given
    equal = {"predicate": ir.IntegerAttr.get(pointers.integer(64), 0)}
    operands = [given, builder.constant(TILE_STRIDE, 64)]
    unset = builder.value("arith.cmpi", pointers.integer(1), operands, equal)
    return builder.value("arith.select", given.type, [unset, builder.constant(own, 64), given])


def _starts(builder: Builder, tile: _Tile) -> list[ir.Value]:
    """Returns the start of this wave's part along each dimension, in elements. The outermost
    dimension varies fastest with the wave's number."""
    i32, zero = pointers.integer(32), builder.constant(0, 32)
    if all(count == 1 for count in tile.waves):
        return [zero] * len(tile.waves)
    rest, starts = builder.value("rocdl.wave.id", i32, []), []
    for count, share in zip(tile.waves, tile.share, strict=True):
        along = builder.constant(count, 32)
        place = builder.value("arith.remui", i32, [rest, along])
        rest = builder.value("arith.divui", i32, [rest, along])
        starts.append(builder.value("arith.muli", i32, [place, builder.constant(share, 32)]))
    return starts


def _moved(
    builder: Builder, address: ir.Value, starts: list[ir.Value], strides: list[ir.Value], size: int
) -> ir.Value:
    """Returns the address plus Σ start·stride elements."""
    type_ = address.type
    for start, stride in zip(starts, strides, strict=True):
        if type_ != start.type:
            start = builder.value("arith.extui", type_, [start])
        elements = builder.value("arith.muli", type_, [start, stride])
        scale = builder.constant(size, pointers.width(type_))
        address = builder.value(
            "arith.addi", type_, [address, builder.value("arith.muli", type_, [elements, scale])]
        )
    return address


def _lds_strides(op: Tdm, tile: _Tile) -> list[int]:
    """Returns the strides in LDS: packed, with padding after each row."""
    strides = [1]
    for mode in range(op.rank - 1, 0, -1):
        padding = op.pad_amount if mode == op.rank - 1 else 0
        strides.insert(0, strides[0] * (tile.shape[mode] + padding))
    return strides


def _configuration(op: Tdm, tile: _Tile) -> list[Field]:
    return [
        Field(16, 2, tile.element_bytes.bit_length() - 1),
        Field(18, 1, int(op.barrier)),
        Field(21, 1, int(op.timeout)),
    ]


def _padding(op: Tdm, element_bits: int) -> list[Field]:
    """Returns the padding fields, in dwords: the interval as log2 - 1 in three bits, the amount
    minus one in seven."""
    if not op.pad_interval:
        return []
    interval, odd = divmod(op.pad_interval * element_bits, 32)
    amount, left = divmod(op.pad_amount * element_bits, 32)
    code = interval.bit_length() - 2
    if odd or left or not 0 <= code < 8 or 1 << code + 1 != interval or not 1 <= amount <= 128:
        raise ValueError(
            f"gfx1250 TDM: padding (interval={op.pad_interval}, amount={op.pad_amount} elements at "
            f"{element_bits}-bit) is not encodable: both are whole dwords, the interval a power of "
            "two from 2 to 256 of them, the amount at most 128"
        )
    return [Field(20, 1, 1), Field(22, 3, code), Field(25, 7, amount - 1)]
