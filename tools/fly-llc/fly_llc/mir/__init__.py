"""Machine passes in Python: MIR as functions, blocks, instructions and operands.

    from fly_llc import mir

    module = mir.parse(sys.stdin.read())
    for function in module.functions:
        for block in function.blocks:
            for instruction in block.instructions:
                if instruction.opcode == "S_NOP":
                    block.remove(instruction)
    sys.stdout.write(str(module))

Unchanged parts are printed byte for byte as they were read. The grammar is from LLVM's "Machine IR
(MIR) Format Reference Manual" and from the output of LLVM 22.
"""

from fly_llc.mir.block import Block
from fly_llc.mir.function import Function
from fly_llc.mir.instruction import Instruction
from fly_llc.mir.module import Module, parse
from fly_llc.mir.operand import Operand

__all__ = ["Block", "Function", "Instruction", "Module", "Operand", "parse"]
