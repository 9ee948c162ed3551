"""Lowers moves with relative register numbers of gfx11 and gfx12 (`semantics.rdna.relative`)."""

from __future__ import annotations

from collections.abc import Callable

from fly_run.emulator.isa.instruction import Immediate, Operand, Register
from fly_run.emulator.lowering.registers import Unsupported
from fly_run.emulator.lowering.scalar import general_scalars
from fly_run.emulator.lowering.steps import Lowering, Source, modifiers
from fly_run.emulator.lowering.vector import dpp
from fly_run.emulator.semantics.rdna.relative import SOURCE, TARGET, WHOLE, Field
from fly_run.emulator.state import SGPR


def _read(lowering: Lowering, operand: Operand, field: Field) -> Source:
    """Copies a register with a relative number to a temporary."""
    lowering.registers.name_all()
    row = lowering.temporary()
    place = lowering.row_source(operand, 1)
    lowering.add("fly_relative_read", row, place, immediate=field.mask, extra=field.shift)
    return Source("v", row)


def _write(lowering: Lowering, operand: Operand, source: Source, field: Field) -> None:
    lowering.registers.name_all()
    if source.kind != "v":
        source = lowering.in_row(source, "i32")
    place = lowering.vector_target(operand, "i32")
    lowering.add(
        "fly_relative_write", place, source.offset, immediate=field.mask, extra=field.shift
    )


def _move(source: Field | None, target: Field | None) -> Callable[[Lowering, str, str], None]:
    """v_movrels, v_movreld, v_movrelsd, v_movrelsd_2: the fields of M0 that are added to the number
    of the source and of the result. DPP moves the lanes of the register that is read."""

    def run(lowering: Lowering, name: str, encoding: str) -> None:
        modifiers(lowering, *(dpp.MODIFIERS if encoding == "dpp" else ()))
        result, operand = lowering.operands(2)
        if isinstance(operand, Register | Immediate) and (operand.negate or operand.absolute):
            raise Unsupported("a sign")
        value = _read(lowering, operand, source) if source else lowering.source(operand, "i32")
        if encoding == "dpp":
            value = dpp.move(lowering, value, "i32")
        if target:
            _write(lowering, result, value, target)
        else:
            lowering.valu("v_mov_b32", (lowering.vector_target(result, "i32"),), value)
        if encoding == "dpp":
            lowering.add("fly_restore_exec")

    return run


def _swap(lowering: Lowering, name: str, encoding: str) -> None:
    """v_swaprel: both registers are read before either is written."""
    modifiers(lowering)
    first, second = lowering.operands(2)
    old, new = _read(lowering, first, TARGET), _read(lowering, second, SOURCE)
    _write(lowering, first, new, TARGET)
    _write(lowering, second, old, SOURCE)


def _move_scalar(lowering: Lowering, name: str, encoding: str) -> None:
    modifiers(lowering)
    target, source = lowering.operands(2)
    if not isinstance(source, Register):
        raise Unsupported("a source that is not a register")
    places = lowering.scalar_target(target, 1), lowering.scalar_source(source, "i32")
    lowering.add(name, *places, extra=SGPR + 4 * general_scalars(lowering))


EXPANSIONS: dict[str, Callable[[Lowering, str, str], None]] = {
    "v_movrels_b32": _move(WHOLE, None),
    "v_movreld_b32": _move(None, WHOLE),
    "v_movrelsd_b32": _move(WHOLE, WHOLE),
    "v_movrelsd_2_b32": _move(SOURCE, TARGET),
    "v_swaprel_b32": _swap,
    "s_movrelsd_2_b32": _move_scalar,
}
