"""The Python lines of kernels that drivers' errors are about.

A driver says which kernel it can't launch, or which one failed, but not at which instruction. The
line tables of the image, if it has any, say where the kernel's code begins.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from fly_common.errors import FlyError
from fly_image.image import Image


@contextlib.contextmanager
def located(image: Image) -> Iterator[None]:
    """Adds the line to errors that name a kernel and nothing more."""
    try:
        yield
    except FlyError as error:
        name = error.kernel
        if error.place is None and name is not None and name in image.kernels:
            start = _start(image, name)
            error.place = None if start is None else image.line(start)
        raise


def _start(image: Image, name: str) -> int | None:
    """The address of a kernel's first instruction, for `Image.line`."""
    from fly_image.amd.code_object import Kernel
    from fly_image.nvidia.cubin import Cubin

    kernel = image.kernels[name]
    if isinstance(kernel, Kernel):
        return kernel.entry
    return image.address(name) if isinstance(image, Cubin) else None
