"""Asserts and printed lines of kernels become reports to the host.

A trace has `fly.print` with the text of a site (`fly_image.reports`) and values of 64 bits. An
assert has the attribute `assert` too, and is in the branch where its condition is false. FlyDSL's
`fly.print` has a text with `{}` and values of any type (`printed_values`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from fly_common.record import record

from fly_opt.passes.base import Pass, refuse

if TYPE_CHECKING:
    from fly_dialect.bindings import ir


@record
class LowerPrints(Pass):
    """Replaces fly.print by reports to the host. asserts=false leaves asserts out."""

    name: ClassVar[str] = "fly-lower-prints"
    only_with: ClassVar[tuple[str, ...]] = ("print",)

    asserts: bool = True

    def run(self, op: ir.Operation) -> bool:
        from fly_opt.passes.instrumentation.building import gpu_modules

        changed = False
        for module in gpu_modules(op):
            found = _prints(module)
            if found:
                self._lower(module, found)
                changed = True
        return changed

    def _lower(self, module: ir.Operation, found: list[ir.Operation]) -> None:
        from fly_dialect.bindings import ir
        from fly_image.reports import FAULTS, PRINTS

        from fly_opt.passes.instrumentation import printed_values
        from fly_opt.passes.instrumentation.building import symbol_of
        from fly_opt.passes.instrumentation.reports import Reports

        reports = Reports(module)
        i64 = ir.IntegerType.get_signless(64)
        for one in found:
            is_assert = "assert" in one.attributes
            if is_assert and not self.asserts:
                one.erase()
                continue
            channel = FAULTS if is_assert else PRINTS
            values, text = list(one.operands), ir.StringAttr(one.attributes["format"]).value
            if printed_values.is_plain(text, values):
                text, values = printed_values.converted(one, text, values)
            if len(values) > channel.values or any(value.type != i64 for value in values):
                raise refuse(one, f"fly.print takes at most {channel.values} values of type i64")
            number = reports.site(symbol_of(_kernel(one)), text, one.location)
            reports.emit(ir.InsertionPoint(one), one.location, number, values, channel)
            one.erase()
        reports.finish()


def _kernel(op: ir.Operation) -> ir.Operation:
    while op.name != "gpu.func":
        assert op.parent is not None, "it is in a kernel"
        op = op.parent.operation
    return op


def _prints(module: ir.Operation) -> list[ir.Operation]:
    from fly_dialect.bindings import ir

    found: list[ir.Operation] = []

    def collect(op: ir.Operation) -> ir.WalkResult:
        if op.name == "fly.print":
            found.append(op)
        return ir.WalkResult.ADVANCE

    module.walk(collect)
    return found
