"""The Python line of a kernel's fault.

Code objects are compiled without line tables, which nobody needs until something goes wrong. Then
the chain runs once more with them (debug information does not change LLVM's code), and the faulting
instruction's line is looked up, if the machine code is the same to the byte.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fly_common.errors import Fault, FlyError, Place

if TYPE_CHECKING:
    from fly_image.image import Image

    from fly.chains.chain import Chain


def locate(fault: Fault, image: Image, module: bytes | None, chain: Chain | None) -> None:
    """Puts the source line into a fault of `image`, which is what `chain` made of `module`; without
    these a fault has a line only if the code object has line tables."""
    if fault.place is None and fault.pc is not None and module is not None and chain:
        fault.place = _place(fault.pc, image, module, chain)


def _place(pc: int, image: Image, module: bytes, chain: Chain) -> Place | None:
    import fly_image

    from fly.chains.chain import run

    try:
        again = fly_image.read(run(chain.with_lines(), module))
    except FlyError:  # the fault is what matters, not what its line would have needed
        return None
    return again.line(pc) if again.same_code(image) else None
