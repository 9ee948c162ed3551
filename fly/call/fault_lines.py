"""Finds the Python line of a kernel's fault.

Code objects are compiled without line tables. After a fault, the chain runs again with line tables
(debug information does not change LLVM's code). If the machine code is byte-identical, the line of
the faulting instruction is looked up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fly_common.errors import Fault, FlyError, Place

if TYPE_CHECKING:
    from fly_image.image import Image

    from fly.chains.chain import Chain


def locate(fault: Fault, image: Image, module: bytes | None, chain: Chain | None) -> None:
    """Adds the source line to a fault of `image`, which `chain` made from `module`. Without these,
    a fault has a line only if the code object has line tables."""
    if fault.place is None and fault.pc is not None and module is not None and chain:
        fault.place = _place(fault.pc, image, module, chain)


def _place(pc: int, image: Image, module: bytes, chain: Chain) -> Place | None:
    import fly_image

    from fly.chains.chain import run

    try:
        again = fly_image.read(run(chain.with_lines(), module))
    except FlyError:  # a failure here must not hide the fault
        return None
    return again.line(pc) if again.same_code(image) else None
