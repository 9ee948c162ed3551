"""fly-nvvm-shuffle-groups: shuffles within groups of lanes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fly_dialect.bindings import ir

from fly_opt.ir.builder import operations
from fly_opt.passes.base import Pass


@dataclass(frozen=True)
class ShuffleGroups(Pass):
    """Makes shuffles of less than 32 lanes ones of each group of that many.

    convert-gpu-to-nvvm lets only the first group take part: its mask has the lanes of that group,
    which the others may then not execute, and the operand c has no segment (PTX ISA, "shfl.sync").
    In c, bits 0 to 4 are the clamp and bits 8 to 12 the segment's mask, 32 - width. What
    convert-gpu-to-nvvm writes there is 32 - width for `up`, else width - 1.
    """

    name: ClassVar[str] = "fly-nvvm-shuffle-groups"

    def run(self, op: ir.Operation) -> None:
        for shuffle in [one for one in operations(op) if one.name == "nvvm.shfl.sync"]:
            clamp = shuffle.operands[3]
            with ir.InsertionPoint(shuffle), shuffle.location:
                if "up" in str(shuffle.attributes["kind"]):
                    control = _made("shl", clamp, _number(8))
                else:
                    segment = _made("shl", _made("sub", _number(31), clamp), _number(8))
                    control = _made("or", segment, _number(31))
                shuffle.operands[0], shuffle.operands[3] = _number(-1), control


def _made(name: str, *operands: ir.Value) -> ir.Value:
    kind = operands[0].type
    return ir.Operation.create(f"llvm.{name}", [kind], list(operands)).results[0]


def _number(value: int) -> ir.Value:
    i32 = ir.IntegerType.get_signless(32)
    attributes = {"value": ir.IntegerAttr.get(i32, value)}
    return ir.Operation.create("llvm.mlir.constant", [i32], [], attributes).results[0]
