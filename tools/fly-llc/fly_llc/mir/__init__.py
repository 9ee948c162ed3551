"""Machine passes in Python: MIR as functions, blocks, instructions and operands.

    from fly_llc import mir

    module = mir.parse(sys.stdin.read())
    for function in module.functions:
        for block in function.blocks:
            for instruction in block.instructions:
                if instruction.opcode == "S_NOP":
                    block.remove(instruction)
    sys.stdout.write(str(module))

What is not touched is printed as it was read, to the byte. Source of the grammar: LLVM's "Machine
IR (MIR) Format Reference Manual" and what LLVM 22 prints.

`mir.kinds`, `mir.registers` and `mir.waits` are those of AMD's machine, the only one there is.
"""

from __future__ import annotations

import importlib

from fly_llc.mir.block import Block
from fly_llc.mir.function import Function
from fly_llc.mir.instruction import Instruction
from fly_llc.mir.module import Module, parse
from fly_llc.mir.operand import Operand

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

    from fly_llc.mir.amd import kinds, registers, waits

__all__ = [
    "Block",
    "Function",
    "Instruction",
    "Module",
    "Operand",
    "kinds",
    "parse",
    "registers",
    "waits",
]

# The modules that know a machine's instructions, imported when a filter asks for them.
_MACHINE = "fly_llc.mir.amd"
_MODULES = ("kinds", "registers", "waits")


def __getattr__(name: str) -> ModuleType:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return importlib.import_module(f"{_MACHINE}.{name}")
