"""fly-lower-launch-sizes: reads grid and block sizes from the implicit kernel arguments.

For these, convert-gpu-to-rocdl calls `__ockl_get_local_size` and `__ockl_get_num_groups`, device
library functions that do a single load each. Offsets: LLVM's AMDGPU usage guide, "Code Object V5
Metadata", hidden_block_count_* and hidden_group_size_*.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from fly_common.record import record

from fly_opt.ir.intrinsics import call
from fly_opt.passes.base import Pass

if TYPE_CHECKING:
    from fly_dialect.bindings import ir

DIMENSIONS = ("x", "y", "z")
MOST_IN_GRID = (1 << 32) - 1  # work items of a dimension
# Operation → offset of x in bytes, and the width of each dimension in bits.
HIDDEN = {"gpu.grid_dim": (0, 32), "gpu.block_dim": (12, 16)}


@record
class LowerLaunchSizes(Pass):
    """Lowers gpu.block_dim and gpu.grid_dim to loads or constants, and bounds gpu.block_id.

    They are loaded from implicit arguments. A static block size becomes a constant, and limits the
    number of blocks, so that a block's number is known not to be negative. Grids consist of whole
    blocks (uniform-work-group-size), so all blocks have the same size.
    """

    name: ClassVar[str] = "fly-lower-launch-sizes"
    anchor: ClassVar[str] = "gpu.module"

    def run(self, op: ir.Operation) -> bool:
        changed = False
        for child in op.regions[0].blocks[0]:
            if child.operation.name == "gpu.func" and _lower(child.operation):
                changed = True
        return changed


def _lower(function: ir.Operation) -> bool:
    """Returns whether the function asks for a size, or a bound was added."""
    from fly_dialect.bindings import ir

    found: dict[tuple[str, int], list[ir.Operation]] = {}

    def collect(op: ir.Operation) -> ir.WalkResult:
        if op.name in HIDDEN or op.name == "gpu.block_id":
            # `#gpu<dim x>`
            dimension = DIMENSIONS.index(str(op.attributes["dimension"]).rstrip(">")[-1])
            found.setdefault((op.name, dimension), []).append(op)
        return ir.WalkResult.ADVANCE

    function.walk(collect)
    attributes = function.attributes
    block = list(attributes["known_block_size"]) if "known_block_size" in attributes else None
    bounded = False
    for dimension in range(len(DIMENSIONS)):
        ids = found.pop(("gpu.block_id", dimension), [])
        if block is not None and block[dimension] > 1:  # else the bound would exceed 31 bits
            bounded |= bool(ids)
            _bound(ids, MOST_IN_GRID // block[dimension] + 1)
    if not found:
        return bounded
    start = ir.InsertionPoint.at_block_begin(function.regions[0].blocks[0])
    with start, ir.Location.unknown():
        pointer = None
        for (name, dimension), ops in sorted(found.items(), key=lambda item: item[0]):
            if name == "gpu.block_dim" and block is not None:
                size = _constant(block[dimension])
            else:
                pointer = pointer or _implicit_arguments()
                size = _load(pointer, *HIDDEN[name], dimension)
            for op in ops:
                op.results[0].replace_all_uses_with(size)
    # Erased last: the insertion point may be at one of them.
    for ops in found.values():
        for op in ops:
            op.erase()
    return True


def _bound(ids: list[ir.Operation], bound: int) -> None:
    """Says that the numbers of blocks are less than a bound."""
    from fly_dialect.bindings import ir

    for op in ids:
        if "upper_bound" not in op.attributes:
            op.attributes["upper_bound"] = ir.IntegerAttr.get(ir.IndexType.get(), bound)


def _constant(value: int) -> ir.Value:
    from fly_dialect.bindings import ir

    index = ir.IndexType.get()
    return ir.Operation.create(
        "arith.constant", [index], attributes={"value": ir.IntegerAttr.get(index, value)}
    ).results[0]


def _implicit_arguments() -> ir.Value:
    from fly_dialect.bindings import ir

    return call("llvm.amdgcn.implicitarg.ptr", ir.Type.parse("!llvm.ptr<4>"), [])


def _load(pointer: ir.Value, first: int, bits: int, dimension: int) -> ir.Value:
    from fly_dialect.bindings import ir

    byte, kind = ir.IntegerType.get_signless(8), ir.IntegerType.get_signless(bits)
    address = ir.Operation.create(
        "llvm.getelementptr",
        [pointer.type],
        [pointer],
        {
            "rawConstantIndices": ir.DenseI32ArrayAttr.get([first + dimension * bits // 8]),
            "elem_type": ir.TypeAttr.get(byte),
        },
    ).results[0]
    loaded = ir.Operation.create(
        "llvm.load",
        [kind],
        [address],
        {
            "invariant": ir.UnitAttr.get(),
            "alignment": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), bits // 8),
        },
    ).results[0]
    return ir.Operation.create("arith.index_castui", [ir.IndexType.get()], [loaded]).results[0]
