"""fly-extract-plan: converts the host function to the launch plan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from fly_opt.passes.base import Pass

if TYPE_CHECKING:
    from fly_dialect.bindings import ir


@dataclass(frozen=True)
class ExtractPlan(Pass):
    """Turns the host function into the launch plan, the module's attribute fly.plan.

    The function is removed: the plan describes what it computes, and two descriptions could
    diverge. A module without a host function is unchanged.
    """

    name: ClassVar[str] = "fly-extract-plan"

    def run(self, op: ir.Operation) -> None:
        from fly_dialect.bindings import ir
        from fly_host import plan

        from fly_opt.passes.host import manifest

        host = manifest.entry(op)
        if host is None:
            return
        text = plan.to_text(manifest.extract(op, host))
        op.attributes["fly.plan"] = ir.StringAttr.get(text)
        host.erase()
