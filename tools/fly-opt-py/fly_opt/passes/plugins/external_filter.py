"""fly-external-filter: runs a program on the module's text."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from fly_common.errors import InputError, UsageError
from fly_common.record import record
from fly_plugin.contents import run_command
from fly_plugin.manifest import Command

from fly_opt.passes.base import Pass

if TYPE_CHECKING:
    from fly_dialect.bindings import ir


@record
class ExternalFilter(Pass):
    """Replaces the module by what a command makes of its text.

    The command reads MLIR from its standard input and writes MLIR to its standard output, in the
    generic form, which any mlir-opt reads with --allow-unregistered-dialect. It may also write
    FlyDSL's text.
    """

    name: ClassVar[str] = "fly-external-filter"

    command: str = ""

    def __post_init__(self) -> None:
        if not self.command.strip():
            raise UsageError(f"pass {self.name} needs the option command")

    def run(self, op: ir.Operation) -> None:
        import shlex

        from fly_dialect import dialect, text

        words = tuple(shlex.split(self.command))
        printed = op.get_asm(enable_debug_info=True, print_generic_op_form=True)
        made = run_command(Command(words), printed.encode(), self.name)
        name = f"<output of {words[0]}>"
        try:
            read = made.decode()
        except UnicodeDecodeError:
            raise InputError(f"{self.name}: {words[0]} wrote something that is not text") from None
        new = text.read(read, op.context, name)
        dialect.verify(new, read, name)
        block = op.regions[0].blocks[0]
        for child in list(block.operations):
            child.operation.erase()
        for child in list(new.body.operations):
            block.append(child)
        for attribute in list(op.attributes):
            del op.attributes[attribute]
        for attribute in new.operation.attributes:
            op.attributes[attribute] = new.operation.attributes[attribute]
