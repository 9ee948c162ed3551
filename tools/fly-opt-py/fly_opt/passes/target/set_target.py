"""fly-set-target: records on the module which chip it is compiled for."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from fly_backend.choice import aliased, supports
from fly_backend.registry import find
from fly_common.errors import InputError, UsageError
from fly_common.quoting import quoted
from fly_common.record import record, replace
from fly_dialect.extension import check_included
from fly_target import registry
from fly_target.target import Target

from fly_opt.passes.base import Pass

if TYPE_CHECKING:
    from fly_dialect.bindings import ir

ATTRIBUTE = "fly.target"
BACKEND = "fly.backend"


@record
class SetTarget(Pass):
    """Records the chip on the module, where every later pass and stage reads it.

    `arch` is another name of `chip`. `backend` compiles for the chip instead of the backend that
    its row names.
    """

    name: ClassVar[str] = "fly-set-target"

    chip: str = ""
    arch: str = ""
    backend: str = ""

    def __post_init__(self) -> None:
        if self._named is None:
            raise UsageError(f"pass {self.name} needs the option chip")

    @property
    def _named(self) -> str | None:
        return aliased(arch=self.arch or None, chip=self.chip or None)

    def run(self, op: ir.Operation) -> None:
        from fly_dialect.bindings import ir

        row = registry.find(self._named or "")
        chip = row.name
        if ATTRIBUTE in op.attributes and (traced := op.attributes[ATTRIBUTE].value) != chip:
            raise InputError(
                f"the module is for {traced}, and can't be compiled for {chip}",
                hint=f"trace it for this target: fly-trace --target {chip}",
            )
        op.attributes[ATTRIBUTE] = ir.StringAttr.get(chip)
        if self.backend:
            backend = find(self.backend)
            if not supports(backend, chip):
                raise UsageError(f"the backend {backend.name} does not compile for {quoted(chip)}")
            if backend.name != row.backend:
                check_included(backend)
                op.attributes[BACKEND] = ir.StringAttr.get(backend.name)


def target_of(op: ir.Operation) -> Target | None:
    """Returns the module's target, with the backend that compiles for it; None if it has none."""
    if ATTRIBUTE not in op.attributes:
        return None
    row = registry.find(op.attributes[ATTRIBUTE].value)
    if BACKEND not in op.attributes:
        return row
    return replace(row, backend=op.attributes[BACKEND].value)
