"""fly-check-dialects: rejects what is made for the hardware of another vendor."""

from __future__ import annotations

import re
from typing import ClassVar

from fly_backend import registry
from fly_backend.backend import Backend
from fly_common.record import record
from fly_dialect.bindings import ir
from fly_target.target import Target

from fly_opt.passes.base import Pass, refuse
from fly_opt.passes.target.set_target import target_of

_HINT = (
    "use what every target has: fx.UniversalCopy128b and other universal copies, fx.UniversalFMA,"
    " fx.UniversalAtomicAdd; or compile for one of {targets}"
)


@record
class CheckDialects(Pass):
    """Rejects operations and instruction types of other backends than the target's."""

    name: ClassVar[str] = "fly-check-dialects"

    def run(self, op: ir.Operation) -> bool:
        target = target_of(op)
        if target is None:
            raise refuse(op, "the module has no target", "run fly-set-target{chip=…} first")
        # By name, because a backend from elsewhere may have the dialects of a built-in one.
        own = registry.find(target.backend)
        known = ((n, one) for one in registry.built_in() for n in (one.namespace, *one.upstream))
        owners = {n: one for n, one in known if n not in (own.namespace, *own.upstream)}
        types = re.compile(rf"[!#]({'|'.join(map(re.escape, owners))})\.[\w.]+")
        seen: dict[ir.Type, str | None] = {}
        found: list[tuple[ir.Operation, str, Backend]] = []

        def visit(inner: ir.Operation) -> ir.WalkResult:
            namespace = inner.name.partition(".")[0]
            if namespace in owners:
                found.append((inner.operation, inner.name, owners[namespace]))
                return ir.WalkResult.INTERRUPT
            for result in inner.results:
                kind = result.type
                if kind not in seen:
                    match = types.search(str(kind))
                    seen[kind] = None if match is None else match[0]
                if text := seen[kind]:
                    owner = owners[text[1:].partition(".")[0]]
                    found.append((inner.operation, text, owner))
                    return ir.WalkResult.INTERRUPT
            return ir.WalkResult.ADVANCE

        op.walk(visit, ir.WalkOrder.PRE_ORDER)
        if found:
            raise _refused(*found[0], target)
        return False


def _refused(op: ir.Operation, what: str, owner: Backend, target: Target):
    from fly_target.registry import BUILT_IN

    targets = ", ".join(name for name, row in BUILT_IN.items() if row.backend == owner.name)
    message = f"{what} is an instruction of the backend {owner.name}, which {target.name} lacks"
    return refuse(op, message, _HINT.format(targets=targets))
