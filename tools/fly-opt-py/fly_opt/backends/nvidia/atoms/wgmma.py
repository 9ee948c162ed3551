"""wgmma.mma_async: descriptors of operands in shared memory, and the instruction.

Sources: PTX ISA 8.8, "Matrix Descriptor Format", "Strides", "wgmma.mma_async".
"""

from __future__ import annotations

from functools import lru_cache

from fly_common.record import record
from fly_dialect import algebra
from fly_dialect.atoms.nvidia.wgmma import Wgmma, WgmmaRegisters
from fly_dialect.bindings import ir
from fly_dialect.layouts.int_tuple import static_value
from fly_dialect.layouts.integers import Int
from fly_dialect.layouts.layout import Layout
from fly_dialect.types import MemRefSpec, bits

from fly_opt.atoms.emitters import Memory, Multiply, Operands, multiplies
from fly_opt.backends.nvidia import warpgroup
from fly_opt.ir import pointers
from fly_opt.ir.builder import Builder
from fly_opt.ir.storage import storage_type

NAMES = {
    "f16": "f16",
    "bf16": "bf16",
    "f32": "tf32",
    "f8E4M3FN": "e4m3",
    "f8E5M2": "e5m2",
}
GROUP = 16  # bytes that a swizzle keeps together
# Bytes of a swizzled row → the field of the descriptor. 0: no swizzle.
MODES = {0: 0, 128: 1, 64: 2, 32: 3}
ADDRESS_BITS = 18


@record
class Place:
    """How an operand lies in shared memory: whether K is contiguous, the descriptor's fields, which
    are in bytes, and the row that is swizzled."""

    along_k: bool
    leading: int
    stride: int
    row: int

    @property
    def bits(self) -> int:
        """The descriptor without its address."""
        return self.leading >> 4 << 16 | self.stride >> 4 << 32 | MODES[self.row] << 62


def _operands(op: Wgmma) -> Operands:
    count = op.m * op.n // 128
    return Operands(None, None, ir.VectorType.get([count], storage_type(op.acc)))


@multiplies(_operands, Wgmma)
def wgmma(call: Multiply[Wgmma]) -> ir.Value:
    op, builder = call.op, call.builder
    a, b = place_of(call.a.spec, op.m, op.k), place_of(call.b.spec, op.n, op.k)
    count = warpgroup.count_of(call.c.type)
    flags = "1, 1, 1"  # add to D; signs of A and B
    if bits(op.a) == 16:
        flags += f", {int(not a.along_k)}, {int(not b.along_k)}"
    elif not (a.along_k and b.along_k):
        raise ValueError(
            f"{op} takes operands that are contiguous along K; only elements of 16 bits may be"
            " contiguous across it"
        )
    shape, types = f"m{op.m}n{op.n}k{op.k}", f"{op.acc}.{NAMES[op.a]}.{NAMES[op.b]}"
    head = f"wgmma.mma_async.sync.aligned.{shape}.{types}"
    text = f"{head} {warpgroup.registers(count)}, ${count}, ${count + 1}, {flags};"
    descriptors = [descriptor(builder, call.a, a), descriptor(builder, call.b, b)]
    return warpgroup.tied(builder, text, call.c, descriptors)


def _with_registers(op: WgmmaRegisters) -> Operands:
    return Operands(pointers.words(op.m * op.k // 256), None, _operands(op).c)


@multiplies(_with_registers, WgmmaRegisters)
def wgmma_registers(call: Multiply[WgmmaRegisters]) -> ir.Value:
    op, builder = call.op, call.builder
    b = place_of(call.b.spec, op.n, op.k)
    i32 = pointers.integer(32)
    words = [
        builder.value("llvm.extractelement", i32, [call.a, builder.constant(index, 32)])
        for index in range(ir.VectorType(call.a.type).shape[0])
    ]
    count = warpgroup.count_of(call.c.type)
    given = ", ".join(f"${count + index}" for index in range(len(words)))
    head = f"wgmma.mma_async.sync.aligned.m{op.m}n{op.n}k{op.k}.{op.acc}"
    head += f".{NAMES[op.a]}.{NAMES[op.b]} {warpgroup.registers(count)}"
    text = f"{head}, {{{given}}}, ${count + len(words)}, 1, 1, 1, {int(not b.along_k)};"
    return warpgroup.tied(builder, text, call.c, [*words, descriptor(builder, call.b, b)])


def descriptor(builder: Builder, operand: Memory, place: Place) -> ir.Value:
    """The matrix descriptor of an operand: address, strides and swizzle. Those of the parts of one
    tile share what is computed of its address, and differ by constants."""
    i32, i64 = pointers.integer(32), pointers.integer(64)
    base, offset = _split(operand)
    address = builder.pure("llvm.ptrtoint", i32, [base])
    mask = builder.constant((1 << ADDRESS_BITS) - 1, 32)
    address = builder.pure("arith.andi", i32, [address, mask])
    address = builder.pure("arith.shrui", i32, [address, builder.constant(4, 32)])
    address = builder.pure("arith.extui", i64, [address])
    fields = place.bits - (1 << 64) * (place.bits >> 63)
    whole = builder.pure("arith.ori", i64, [address, builder.constant(fields, 64)])
    if not offset:
        return whole
    return builder.pure("arith.addi", i64, [whole, builder.constant(offset >> 4, 64)])


def _split(operand: Memory) -> tuple[ir.Value, int]:
    """The address that an operand's is a constant distance from, and that distance in bytes, of
    whole groups of 16."""
    pointer = operand.pointer
    owner = pointer.owner
    if isinstance(owner, ir.Block) or owner.name != "llvm.getelementptr":
        return pointer, 0
    if len(owner.operands) != 2:
        return pointer, 0
    base, index = owner.operands
    made = index.owner
    if isinstance(made, ir.Block) or made.name != "arith.constant":
        return pointer, 0
    element = ir.TypeAttr(owner.attributes["elem_type"]).value
    distance = ir.IntegerAttr(made.attributes["value"]).value * pointers.width(element) // 8
    return (pointer, 0) if distance % GROUP or distance < 0 else (base, distance)


@lru_cache(maxsize=256)
def place_of(spec: MemRefSpec, rows: int, k: int) -> Place:
    """The fields for a view of `rows` × `k` elements. ValueError for a layout that no descriptor
    describes."""
    layout, size = spec.layout, bits(spec.element) // 8
    if not isinstance(layout, Layout) or not layout.is_static:
        raise ValueError(f"wgmma reads a tile whose layout is static and plain, not {layout}")
    row = _swizzled_row(spec)
    offsets = [
        [static_value(algebra.crd2idx((Int(i), Int(j)), layout)) for j in range(k)]
        for i in range(rows)
    ]
    at = [[size * offset for offset in line if offset is not None] for line in offsets]
    for place in _candidates(at, row, size, rows, k):
        width = (row or GROUP) // size
        if all(
            at[i][j] == _offset(place, i, j, width, size) for i in range(rows) for j in range(k)
        ):
            return place
    raise ValueError(
        f"wgmma can't read a tile of {rows}×{k} elements of {spec.element} with the layout {layout}"
        f" and {spec.swizzle or 'no swizzle'}: rows of {row or GROUP} bytes, in groups of 8, are"
        " contiguous along K, or across K"
    )


def _candidates(at: list[list[int]], row: int, size: int, rows: int, k: int) -> list[Place]:
    """The places that the first elements admit."""
    width = (row or GROUP) // size
    down = at[8][0] if rows > 8 else 0
    right = at[0][width] if k > width else GROUP
    found = [Place(True, right if not row else GROUP, down, row)]
    if row and size == 2:
        across = at[width][0] if rows > width else GROUP
        found.append(Place(False, across, at[0][8] if k > 8 else 0, row))
    return found


def _offset(place: Place, i: int, j: int, width: int, size: int) -> int:
    """Where element (i, j) is, before it is swizzled, in bytes."""
    if place.along_k:
        groups, inside = divmod(j, width)
        right = groups * (place.leading if not place.row else width * size)
        return i % 8 * width * size + i // 8 * place.stride + right + inside * size
    groups, inside = divmod(i, width)
    return inside * size + groups * place.leading + j % 8 * place.row + j // 8 * place.stride


def _swizzled_row(spec: MemRefSpec) -> int:
    """The bytes of a row that the pointer's swizzle permutes; 0 without one."""
    swizzle = spec.swizzle
    if swizzle is None:
        return 0
    row = GROUP << swizzle.mask
    if swizzle.base != 4 or swizzle.shift != 3 or row not in MODES:
        raise ValueError(f"{swizzle} is no swizzle of the hardware: S<1,4,3>, S<2,4,3>, S<3,4,3>")
    return row
