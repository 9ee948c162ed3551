"""fly-extract-host-program: the host function becomes the host program."""

from __future__ import annotations

from typing import Any, ClassVar

from fly_common.record import record

from fly_opt.passes.base import Pass


@record
class ExtractHostProgram(Pass):
    """Turns the host function into the host program, the module's attribute fly.host_program.

    The function is erased: the program says all that it does, and two descriptions of one thing
    drift apart. A module without a host function stays as it is.
    """

    name: ClassVar[str] = "fly-extract-host-program"

    def run(self, op: Any) -> None:
        from fly_dialect.bindings import ir
        from fly_host.text import write

        from fly_opt.passes.host import extraction

        host = extraction.entry(op)
        if host is None:
            return
        text = write(extraction.extract(op, host))
        op.attributes["fly.host_program"] = ir.StringAttr.get(text)
        host.erase()
