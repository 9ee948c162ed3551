"""fly-rocdl-lane-moves: instructions for moves among lanes whose pattern is known.

    %moved, %_ = gpu.shuffle xor %x, %c1, %c64 {fly.lane_move = "xor:1"}
    →
    %moved = llvm.call_intrinsic "llvm.amdgcn.update.dpp.i32"(%poison, %x, 177, 15, 15, true)

convert-gpu-to-rocdl makes of every shuffle an access through the LDS unit, with a wait. DPP is a
modifier of an operand, by which a lane reads another one of its row of 16 lanes, or, on gfx9, the
one below, or the last one of the row or half below; LLVM folds most of these moves into their
users. Sources: CDNA3 ISA manual, section 4.9.1 "DPP"; RDNA3 ISA manual, section 7.7 "DPP16"; the
numbers are those of LLVM (`AMDGPU::DPP`, SIDefines.h).
"""

from __future__ import annotations

from typing import ClassVar

from fly_common.record import record
from fly_dialect.bindings import ir

from fly_opt.backends.amd.intrinsics import PERMLANEX16, READLANE, UPDATE_DPP
from fly_opt.ir.builder import operations
from fly_opt.ir.intrinsics import call
from fly_opt.passes.base import Pass, refuse
from fly_opt.passes.target.set_target import target_of

ATTRIBUTE = "fly.lane_move"
_QUADS = {1: 0xB1, 2: 0x4E, 3: 0x1B}  # quad_perm
_REVERSED = {7: 0x141, 15: 0x140}  # row_half_mirror, row_mirror
_ROW_SHR, _ROW_ROR, _ROW_XMASK = 0x110, 0x120, 0x160
_WAVE_SHR1 = 0x138
_ROW_BCAST15, _ROW_BCAST31 = 0x142, 0x143
_ALL, _ODD_ROWS, _UPPER_ROWS = 0xF, 0xA, 0xC  # rows that are written
_LAST_LANES = -1  # v_permlanex16: 15 for each lane of a row
_SAME_LANES = 0x76543210, 0xFEDCBA98


@record
class LaneMoves(Pass):
    """Lowers gpu.shuffle ops that say their pattern to DPP moves, v_permlanex16 and v_readlane.

    The language's primitives say it. The shuffles for which the target has none of them stay.
    A value for the lanes that read nothing, selected behind the shuffle, becomes the old value of
    the DPP move. Runs before convert-gpu-to-rocdl, which lowers the rest.
    """

    name: ClassVar[str] = "fly-rocdl-lane-moves"
    only_with: ClassVar[tuple[str, ...]] = ("lane_move",)

    def run(self, op: ir.Operation) -> bool:
        target = target_of(op)
        if target is None or target.amd is None:
            raise refuse(op, "the module has no target", "run fly-set-target{chip=…} first")
        changed = False
        for inner in operations(op):
            if inner.name == "gpu.shuffle" and ATTRIBUTE in inner.attributes:
                pattern = ir.StringAttr(inner.attributes[ATTRIBUTE]).value
                _replace(inner, pattern, target.amd.generation)
                changed = True
        return changed


def _replace(op: ir.Operation, pattern: str, generation: int) -> None:
    name, _, number = pattern.partition(":")
    step = int(number or "0")
    value, offset = op.operands[0], op.operands[1]
    is_new = generation > 9
    with ir.InsertionPoint(op), op.location:
        if name == "xor" and (control := _control(step, is_new)) is not None:
            _give(op, _dpp(None, value, control))
        elif name == "xor" and step == 16 and is_new:
            _give(op, _other_row(value, *_SAME_LANES))
        elif name == "row_shift":
            _select(op, _ROW_SHR + step, _ALL)
        elif name == "row_below" and is_new:
            _give(op, _other_row(value, _LAST_LANES, _LAST_LANES))
        elif name == "row_below":
            _select(op, _ROW_BCAST15, _ODD_ROWS)
        elif name == "half_below" and not is_new:
            _select(op, _ROW_BCAST31, _UPPER_ROWS)
        elif name == "shift" and not is_new:
            _select(op, _WAVE_SHR1, _ALL)
        elif name == "lane":
            _give(op, call(READLANE, value.type, [value, offset]))


def _control(mask: int, is_new: bool) -> int | None:
    """The control by which each lane reads lane `lane ^ mask` of its row."""
    known = {**_QUADS, **_REVERSED, 8: _ROW_ROR + 8}
    if mask in known:
        return known[mask]
    return _ROW_XMASK + mask if is_new and mask < 16 else None


def _select(op: ir.Operation, control: int, rows: int) -> None:
    """Replaces a shuffle, and the select of another value where it reads nothing. Without one,
    lanes that read nothing have no certain value."""
    users = [use.owner.operation for use in op.results[0].uses]
    if len(users) == 1 and users[0].name == "arith.select":
        select = users[0]
        if select.operands[1] == op.results[0] and select.operands[2] != op.results[0]:
            with ir.InsertionPoint(select), select.location:
                made = _dpp(select.operands[2], op.operands[0], control, rows)
            select.results[0].replace_all_uses_with(made)
            select.erase()
            op.erase()
            return
    _give(op, _dpp(None, op.operands[0], control))


def _give(op: ir.Operation, value: ir.Value) -> None:
    op.results[0].replace_all_uses_with(value)
    op.erase()


def _dpp(old: ir.Value | None, value: ir.Value, control: int, rows: int = _ALL) -> ir.Value:
    """A DPP move. `old` is what lanes have that read nothing, or that are not in `rows`."""
    kind = value.type
    before = ir.Operation.create("llvm.mlir.poison", [kind]).results[0] if old is None else old
    numbers = [_constant(one) for one in (control, rows, _ALL)]
    return call(UPDATE_DPP, kind, [before, value, *numbers, _constant(int(old is None), 1)])


def _other_row(value: ir.Value, low: int, high: int) -> ir.Value:
    """The value of a lane of the other row of a pair, by four bits for each lane of a row."""
    lanes = [_constant(one) for one in (low, high)]
    no = [_constant(0, 1), _constant(0, 1)]  # neither fetch-inactive nor bound_ctrl
    return call(PERMLANEX16, value.type, [value, value, *lanes, *no])


def _constant(number: int, width: int = 32) -> ir.Value:
    kind = ir.IntegerType.get_signless(width)
    signed = number - (1 << width) if number >= 1 << (width - 1) else number
    value = ir.IntegerAttr.get(kind, signed)
    return ir.Operation.create("arith.constant", [kind], [], {"value": value}).results[0]
