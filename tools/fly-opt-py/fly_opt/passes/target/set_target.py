"""fly-set-target: records on the module which chip it is compiled for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from fly_common.errors import InputError
from fly_target import registry
from fly_target.target import Target

from fly_opt.passes.base import Pass

if TYPE_CHECKING:
    from fly_dialect.bindings import ir

ATTRIBUTE = "fly.target"


@dataclass(frozen=True)
class SetTarget(Pass):
    """Records the chip on the module, where every later pass and stage reads it."""

    name: ClassVar[str] = "fly-set-target"

    chip: str

    def run(self, op: ir.Operation) -> None:
        from fly_dialect.bindings import ir

        chip = registry.find(self.chip).name
        if ATTRIBUTE in op.attributes and (traced := op.attributes[ATTRIBUTE].value) != chip:
            raise InputError(
                f"the module is for {traced}, and can't be compiled for {chip}",
                hint=f"trace it for this target: fly-trace --target {chip}",
            )
        op.attributes[ATTRIBUTE] = ir.StringAttr.get(chip)


def target_of(op: ir.Operation) -> Target | None:
    """Returns the module's target; None if it has none."""
    if ATTRIBUTE not in op.attributes:
        return None
    return registry.find(op.attributes[ATTRIBUTE].value)
