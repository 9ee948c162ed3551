"""The host program of an NVIDIA image."""

from __future__ import annotations

from collections.abc import Container

from fly_common.errors import InputError
from fly_host import text
from fly_host.program import Program


def read_program(data: bytes, target: str, kernels: Container[str]) -> Program | None:
    """Returns the program in a section, or None for an empty one. Raises InputError if it is
    damaged, for another target, or launches a kernel that the image lacks."""
    if not data.strip(b"\0\n"):
        return None
    made = text.read(data.rstrip(b"\0\n"))
    if made.target != target:
        raise InputError(
            f"the host program is for {made.target}, but the code is for {target}",
            hint="compile the kernel again; --target is given once, to fly-opt-py",
        )
    for launch in made.launches:
        if launch.kernel not in kernels:
            raise InputError(
                f"the host program launches the kernel {launch.kernel}, which the code lacks",
                hint="make sure that no pass removes it",
            )
    return made
