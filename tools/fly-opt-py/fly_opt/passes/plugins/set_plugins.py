"""fly-set-plugins: records on the module which plugins it was made with."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from fly_common.record import record
from fly_plugin.stamps import ATTRIBUTE, LATER, LINKED

from fly_opt.passes.base import Pass

if TYPE_CHECKING:
    from fly_dialect.bindings import ir


@record
class SetPlugins(Pass):
    """Records the plugins on the module, where later stages look for them.

    `made` are all active ones, as id@version with commas between them; `later` are those with
    something behind this stage, which the LLVM IR names too; `linked` those with something at the
    link, which objects name.
    """

    name: ClassVar[str] = "fly-set-plugins"

    made: str = ""
    later: str = ""
    linked: str = ""

    def run(self, op: ir.Operation) -> None:
        from fly_dialect.bindings import ir

        tables = ((ATTRIBUTE, self.made), (LATER, self.later), (LINKED, self.linked))
        for name, text in tables:
            if text:
                stamps = [ir.StringAttr.get(stamp) for stamp in text.split(",")]
                op.attributes[name] = ir.ArrayAttr.get(stamps)


def stamps_of(op: ir.Operation, name: str = ATTRIBUTE) -> list[str]:
    """Returns the stamps of a module, or the texts that it has in their place."""
    from fly_dialect.bindings import ir

    if name not in op.attributes:
        return []
    found = op.attributes[name]
    if not isinstance(found, ir.ArrayAttr):
        return []
    return [one.value for one in found if isinstance(one, ir.StringAttr)]
