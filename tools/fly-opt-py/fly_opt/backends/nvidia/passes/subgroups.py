"""fly-lower-subgroups: operations of a warp that convert-gpu-to-nvvm does not lower."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fly_dialect.bindings import ir

from fly_opt.ir.builder import operations
from fly_opt.passes.base import Pass, refuse

LANES = 32
DIMENSIONS = ("x", "y", "z")
# gpu.subgroup_reduce's operation → arith's for integers, for floats.
_COMBINE = {
    "add": ("addi", "addf"),
    "mul": ("muli", "mulf"),
    "minui": ("minui", None),
    "minsi": ("minsi", None),
    "maxui": ("maxui", None),
    "maxsi": ("maxsi", None),
    "and": ("andi", None),
    "or": ("ori", None),
    "xor": ("xori", None),
    "minnumf": (None, "minnumf"),
    "maxnumf": (None, "maxnumf"),
    "minimumf": (None, "minimumf"),
    "maximumf": (None, "maximumf"),
}


@dataclass(frozen=True)
class LowerSubgroups(Pass):
    """Lowers gpu.subgroup_reduce to shuffles, subgroup ids to arithmetic, and narrow shuffles.

    The shuffle instruction moves 32 bits: a shorter value is extended, a longer one is split by
    convert-gpu-to-nvvm.
    """

    name: ClassVar[str] = "fly-lower-subgroups"

    def run(self, op: ir.Operation) -> None:
        for reduction in _named(op, "gpu.subgroup_reduce"):
            _replace(reduction, _reduced(reduction))
        for name, function in (("gpu.subgroup_id", _id), ("gpu.num_subgroups", _count)):
            for inner in _named(op, name):
                with ir.InsertionPoint(inner), inner.location:
                    _replace(inner, function())
        for shuffle in _named(op, "gpu.shuffle"):
            _widen(shuffle)


def _named(op: ir.Operation, name: str) -> list[ir.Operation]:
    return [inner for inner in operations(op) if inner.name == name]


def _replace(op: ir.Operation, value: ir.Value) -> None:
    op.results[0].replace_all_uses_with(value)
    op.erase()


def _made(name: str, kind: ir.Type, *operands: ir.Value, **attributes: ir.Attribute) -> ir.Value:
    return ir.Operation.create(name, [kind], list(operands), attributes).results[0]


def _number(value: int, kind: ir.Type) -> ir.Value:
    return _made("arith.constant", kind, value=ir.IntegerAttr.get(kind, value))


def _id() -> ir.Value:
    """The number of the thread in its block, x first, divided by the lanes of a warp."""
    index = ir.IndexType.get()
    number = _size("thread_id", "z")
    for dimension in ("y", "x"):
        wide = _made("arith.muli", index, number, _size("block_dim", dimension))
        number = _made("arith.addi", index, wide, _size("thread_id", dimension))
    return _made("arith.divui", index, number, _number(LANES, index))


def _count() -> ir.Value:
    index = ir.IndexType.get()
    size = _size("block_dim", "x")
    for dimension in ("y", "z"):
        size = _made("arith.muli", index, size, _size("block_dim", dimension))
    size = _made("arith.addi", index, size, _number(LANES - 1, index))
    return _made("arith.divui", index, size, _number(LANES, index))


def _size(name: str, dimension: str) -> ir.Value:
    attribute = ir.Attribute.parse(f"#gpu<dim {dimension}>")
    return _made(f"gpu.{name}", ir.IndexType.get(), dimension=attribute)


def _reduced(op: ir.Operation) -> ir.Value:
    """Combines by a butterfly: each lane with the lane whose number differs in one bit."""
    value = op.operands[0]
    kind, attributes = value.type, op.attributes
    word = str(attributes["op"]).rstrip(">").split()[-1]
    integers, floats = _COMBINE.get(word, (None, None))
    name = integers if isinstance(kind, ir.IntegerType) else floats
    if name is None or isinstance(kind, ir.VectorType):
        raise refuse(op, f"a reduction by {word} of {kind} can't be lowered")
    count = _attribute(attributes, "cluster_size", LANES)
    stride = _attribute(attributes, "cluster_stride", 1)
    i32, i1 = ir.IntegerType.get_signless(32), ir.IntegerType.get_signless(1)
    with ir.InsertionPoint(op), op.location:
        lanes, mode = _number(LANES, i32), ir.Attribute.parse("#gpu<shuffle_mode xor>")
        distance = stride
        while distance < count * stride:
            operands = [value, _number(distance, i32), lanes]
            other = ir.Operation.create("gpu.shuffle", [kind, i1], operands, {"mode": mode})
            value = _made(f"arith.{name}", kind, value, other.results[0])
            distance *= 2
    return value


def _attribute(attributes: ir.OpAttributeMap, name: str, default: int) -> int:
    return ir.IntegerAttr(attributes[name]).value if name in attributes else default


def _widen(op: ir.Operation) -> None:
    kind = op.operands[0].type
    if not isinstance(kind, (ir.IntegerType, ir.FloatType)) or kind.width >= 32:
        return
    i32, narrow = (ir.IntegerType.get_signless(bits) for bits in (32, kind.width))
    with ir.InsertionPoint(op), op.location:
        value = op.operands[0]
        if isinstance(kind, ir.FloatType):
            value = _made("arith.bitcast", narrow, value)
        value = _made("arith.extui", i32, value)
        operands = [value, *list(op.operands)[1:]]
        types = [i32, op.results[1].type]
        made = ir.Operation.create("gpu.shuffle", types, operands, {"mode": op.attributes["mode"]})
        result = _made("arith.trunci", narrow, made.results[0])
        if isinstance(kind, ir.FloatType):
            result = _made("arith.bitcast", kind, result)
    op.results[0].replace_all_uses_with(result)
    op.results[1].replace_all_uses_with(made.results[1])
    op.erase()
