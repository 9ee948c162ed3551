"""fly-lower-subgroups: operations of a warp that convert-gpu-to-nvvm does not lower."""

from __future__ import annotations

from typing import ClassVar

from fly_common.record import record
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


@record
class LowerSubgroups(Pass):
    """Lowers gpu.subgroup_reduce to shuffles, subgroup ids to arithmetic, shuffles to shfl.sync."""

    name: ClassVar[str] = "fly-lower-subgroups"

    def run(self, op: ir.Operation) -> None:
        for reduction in _named(op, "gpu.subgroup_reduce"):
            _replace(reduction, _reduced(reduction))
        for name, function in (("gpu.subgroup_id", _id), ("gpu.num_subgroups", _count)):
            for inner in _named(op, name):
                with ir.InsertionPoint(inner), inner.location:
                    _replace(inner, function())
        for shuffle in _named(op, "gpu.shuffle"):
            _exchange(shuffle)


def _named(op: ir.Operation, name: str) -> list[ir.Operation]:
    return [inner for inner in operations(op) if inner.name == name]


def _replace(op: ir.Operation, value: ir.Value) -> None:
    op.results[0].replace_all_uses_with(value)
    op.erase()


def _made(name: str, type_: ir.Type, *operands: ir.Value, **attributes: ir.Attribute) -> ir.Value:
    return ir.Operation.create(name, [type_], list(operands), attributes).results[0]


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


# gpu.shuffle's mode → shfl.sync's kind, and the lane that ends a group.
_KINDS = {
    "xor": ("bfly", LANES - 1),
    "up": ("up", 0),
    "down": ("down", LANES - 1),
    "idx": ("idx", LANES - 1),
}


_MOVE = "fly.lane_move"


def _pattern(op: ir.Operation) -> tuple[str, int, int]:
    """A shuffle's mode; and if it names a pattern of the language's primitives for which constants
    do, its offset and width. Lanes that read nothing then have no certain value, as the primitives
    select another one."""
    mode = str(op.attributes["mode"]).rstrip(">").split()[-1]
    said = ir.StringAttr(op.attributes[_MOVE]).value if _MOVE in op.attributes else ""
    name, _, step = said.partition(":")
    if name == "row_shift":
        return "up", int(step), LANES // 2
    if name == "shift":
        return "up", 1, LANES
    return ("idx", LANES // 2 - 1, LANES) if name == "row_below" else (mode, 0, 0)


def _exchange(op: ir.Operation) -> None:
    """Replaces gpu.shuffle by shfl.sync on 32-bit words. All lanes of the warp take part, whatever
    the width of the groups: convert-gpu-to-nvvm names only those of the first group, and then the
    others' results are undefined (PTX ISA, shfl.sync)."""
    value, offset, width = op.operands
    kind = value.type
    if not isinstance(kind, (ir.IntegerType, ir.FloatType)) or kind.width > 64:
        raise refuse(op, f"a shuffle of {kind} can't be lowered", hint="shuffle its elements")
    i32, bits = (ir.IntegerType.get_signless(n) for n in (32, kind.width))
    asked = next(op.results[1].uses, None) is not None
    mode, by, lanes = _pattern(op)
    name, last = _KINDS[mode]
    with ir.InsertionPoint(op), op.location:
        if by:
            offset, width = _number(by, i32), _number(lanes, i32)
        groups = _made("arith.subi", i32, _number(LANES, i32), width)
        groups = _made("arith.shli", i32, groups, _number(8, i32))
        groups = _made("arith.ori", i32, groups, _number(last, i32))
        if kind.width == 32:
            moved, valid = _shfl(name, value, offset, groups, asked)
        else:
            raw = value if bits == kind else _made("arith.bitcast", bits, value)
            moved, valid = _words_moved(name, raw, offset, groups, asked)
            moved = moved if bits == kind else _made("arith.bitcast", kind, moved)
    op.results[0].replace_all_uses_with(moved)
    if valid is not None:
        op.results[1].replace_all_uses_with(valid)
    op.erase()


def _words_moved(
    name: str, raw: ir.Value, offset: ir.Value, groups: ir.Value, asked: bool
) -> tuple[ir.Value, ir.Value | None]:
    """Moves an integer that is not a word: a shorter one extended, a longer one in two words."""
    i32, kind = ir.IntegerType.get_signless(32), raw.type
    bits = ir.IntegerType(kind).width
    if bits < 32:
        moved, valid = _shfl(name, _made("arith.extui", i32, raw), offset, groups, asked)
        return _made("arith.trunci", kind, moved), valid
    i64 = ir.IntegerType.get_signless(64)
    wide = raw if bits == 64 else _made("arith.extui", i64, raw)
    half = _number(32, i64)
    low, valid = _shfl(name, _made("arith.trunci", i32, wide), offset, groups, asked)
    upper = _made("arith.trunci", i32, _made("arith.shrui", i64, wide, half))
    high, _ = _shfl(name, upper, offset, groups, False)
    high = _made("arith.shli", i64, _made("arith.extui", i64, high), half)
    moved = _made("arith.ori", i64, _made("arith.extui", i64, low), high)
    return moved if bits == 64 else _made("arith.trunci", kind, moved), valid


def _shfl(
    name: str, word: ir.Value, offset: ir.Value, groups: ir.Value, asked: bool
) -> tuple[ir.Value, ir.Value | None]:
    """The word of another lane, and, if `asked`, whether that lane is in the group."""
    members = _number(-1, ir.IntegerType.get_signless(32))
    kind = {"kind": ir.Attribute.parse(f"#nvvm<shfl_kind {name}>")}
    operands = members, word, offset, groups
    if not asked:
        return _made("nvvm.shfl.sync", word.type, *operands, **kind), None
    i1 = ir.IntegerType.get_signless(1)
    pair = ir.Type.parse(f"!llvm.struct<({word.type}, i1)>")
    both = {**kind, "return_value_and_is_valid": ir.UnitAttr.get()}
    made = _made("nvvm.shfl.sync", pair, *operands, **both)
    moved, valid = (
        _made("llvm.extractvalue", type_, made, position=ir.DenseI64ArrayAttr.get([place]))
        for place, type_ in enumerate((word.type, i1))
    )
    return moved, valid
