"""Replacements for ops of the bindings' LLVM 24 that LLVM 22, the code generator, does not have.

LLVM 24's asynchronous copies to LDS are the same instructions as LLVM 22's synchronous ones, for
which LLVM 22 inserts the waits, so they are replaced by those. A wait for a group then becomes a
wait for all outstanding copies, which is conservative. The other ops have no replacement.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fly_target.amd.waits import GFX9

if TYPE_CHECKING:
    from fly_dialect.bindings import ir

ASYNCHRONOUS = {
    "rocdl.global.load.async.lds": "rocdl.global.load.lds",
    "rocdl.raw.ptr.buffer.load.async.lds": "rocdl.raw.ptr.buffer.load.lds",
    "rocdl.load.async.to.lds": "rocdl.load.to.lds",
}
_MARK, _WAIT = "rocdl.asyncmark", "rocdl.wait.asyncmark"
REPLACED = {*ASYNCHRONOUS, _MARK, _WAIT}
MISSING = {"rocdl.ptr.s.buffer.load"}

# s_waitcnt vmcnt(0) of gfx9, the only chips with such copies.
_WAIT_FOR_MEMORY = GFX9.word(vm=0)


def replace(op: ir.Operation) -> None:
    """Replaces an op of REPLACED with its LLVM 22 equivalent."""
    from fly_dialect.bindings import ir

    with ir.InsertionPoint(op), op.location:
        if op.name in ASYNCHRONOUS:
            attributes = {name: op.attributes[name] for name in op.attributes}
            ir.Operation.create(ASYNCHRONOUS[op.name], [], list(op.operands), attributes)
        elif op.name == _WAIT:
            i32 = ir.IntegerType.get_signless(32)
            number = ir.IntegerAttr.get(i32, _WAIT_FOR_MEMORY)
            ir.Operation.create("rocdl.s.waitcnt", attributes={"bitfield": number})
    op.erase()
