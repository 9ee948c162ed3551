"""fly-verify-slot: checks what holds at a slot of plugins."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from fly_backend import registry as backends
from fly_common.errors import InputError, UsageError
from fly_common.record import record
from fly_dialect.dialect import check
from fly_dialect.extension import plugins_dialects
from fly_plugin.slots import LLVM_DIALECT, find, unknown

from fly_opt.lowering import interface
from fly_opt.passes.base import Pass, refuse
from fly_opt.passes.target.set_target import target_of

if TYPE_CHECKING:
    from fly_dialect.bindings import ir


@record
class VerifySlot(Pass):
    """Rejects a module that does not have the form that its slot promises to the next plugin.

    An operation of another form is reported, and one of the dialect that is not valid.
    """

    name: ClassVar[str] = "fly-verify-slot"

    slot: str = ""

    def __post_init__(self) -> None:
        found = find(self.slot)
        if found is None:
            raise unknown(self.slot)
        if not found.is_mlir:
            raise UsageError(f"the slot {self.slot} holds {found.holds}, not MLIR")

    def run(self, op: ir.Operation) -> bool:
        from fly_dialect.bindings import ir

        slot = find(self.slot)
        assert slot is not None
        allowed = slot.allows
        target = target_of(op)
        if slot.allows == LLVM_DIALECT:
            lowerings = interface.candidates(target)
            allowed += tuple(prefix for one in lowerings for prefix in one.translated)
        elif target is not None:
            allowed += tuple(f"{name}." for name in backends.find(target.backend).upstream)
        if slot.plugins_dialects:
            allowed += tuple(f"{name}." for name in plugins_dialects())
        wrong: list[InputError] = []

        def visit(one: ir.Operation) -> ir.WalkResult:
            name = one.name
            if not name.startswith(allowed):
                wrong.append(
                    refuse(
                        one,
                        f"{name} is not allowed at the slot {self.slot}",
                        f"there, a module is: {slot.invariant}",
                    )
                )
                return ir.WalkResult.INTERRUPT
            try:
                check(one.operation)
            except ValueError as error:
                wrong.append(refuse(one, f"{name}: {error}, at the slot {self.slot}"))
                return ir.WalkResult.INTERRUPT
            return ir.WalkResult.ADVANCE

        op.walk(visit, ir.WalkOrder.PRE_ORDER)
        if wrong:
            raise wrong[0]
        return False
