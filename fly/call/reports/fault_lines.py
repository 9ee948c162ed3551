"""Finds the Python line of a kernel's fault, and of the kernel that a driver's error is about.

Code objects are compiled without line tables. After a fault, the chain runs again with line tables
(debug information does not change LLVM's code). If the machine code is byte-identical, the line of
the faulting instruction is looked up. A driver does not name the instruction: its errors get the
line of the kernel, and those of its launches.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from fly_common.errors import Fault, FlyError, Place, Related

from fly.call.reports.compile_reports import kernel_line

if TYPE_CHECKING:
    from fly_image.image import Image

    from fly.chains.chain import Chain


def locate(error: FlyError, image: Image, module: bytes | None, chain: Chain | None) -> None:
    """Adds the source line to a fault of `image`, which `chain` made from `module`, or to an error
    of the driver that is about one of its kernels. Without these, an error has a line only if the
    code object has line tables."""
    if error.place is not None or module is None:
        return
    if isinstance(error, Fault) and error.pc is not None and chain:
        error.place = _place(error.pc, image, module, chain)
    elif error.kernel is not None:
        error.place = kernel_line(module, error.kernel)
        error.related = launch_lines(module, error.kernel)


def launch_lines(module: bytes, kernel: str) -> tuple[Related, ...]:
    """The launches of a kernel in the host function, with the calls of helpers that lead there, by
    a module as fly-trace prints it."""
    from fly_image.dwarf import Line

    found = []
    text = module.decode(errors="replace")
    for launch in re.finditer(rf"gpu\.launch_func\b.*@{re.escape(kernel)}[ \n].*", text):
        places = _PLACE.findall(launch[0])
        for number, (file, line, column) in enumerate(places):
            place = Line(file, int(line), int(column)).place()
            found.append(Related("called" if number else "launched", place))
    return tuple(dict.fromkeys(found))


_PLACE = re.compile(r'"((?:[^"\\]|\\.)*)":(\d+):(\d+)')


def _place(pc: int, image: Image, module: bytes, chain: Chain) -> Place | None:
    import fly_image

    from fly.chains.chain import run

    try:
        again = fly_image.read(run(chain.with_lines(), module))
    except FlyError:  # a failure here must not hide the fault
        return None
    return again.line(pc) if again.same_code(image) else None
