"""The Python line of a kernel's fault.

Code objects are compiled without line tables, which nobody needs until something goes wrong. Then
the chain runs once more with them (debug information does not change LLVM's code), and the faulting
instruction's line is looked up, if the machine code is the same to the byte.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from fly_common.errors import Fault, FlyError, Place

if TYPE_CHECKING:
    from fly_image.amd.code_object import CodeObject

    from fly.chains.chain import Chain


@contextlib.contextmanager
def faults_located(code: CodeObject, module: bytes | None, chain: Chain | None) -> Iterator[None]:
    """Puts the source line into a Fault that is raised inside. `code` is what `chain` made of
    `module`; without these a fault has a line only if the code object has line tables."""
    try:
        yield
    except Fault as error:
        if error.place is None and error.pc is not None and module is not None and chain:
            error.place = _place(error.pc, code, module, chain)
        raise


def _place(pc: int, code: CodeObject, module: bytes, chain: Chain) -> Place | None:
    from fly_image import dwarf
    from fly_image.amd.code_object import CodeObject

    from fly.chains.chain import run

    try:
        again = CodeObject.parse(run(chain.with_lines(), module))
    except FlyError:  # the fault is what matters, not what its line would have needed
        return None
    if again.executable() != code.executable():
        return None
    found = dwarf.table_of(again.data).find(pc)
    return found.place() if found else None
