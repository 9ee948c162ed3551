"""Which image of a library a device runs."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from fly_common.errors import FlyError, MissingError
from fly_common.resolve import resolve
from fly_image.image import Image

from fly_run.devices.options import Options, in_environment
from fly_run.devices.registry import AUTO, DEVICES, NUMBERED, open_device


def choose(images: Sequence[Image], name: str, options: Options | None = None) -> Image:
    """The first image that device `name` runs; for "auto" the first that a GPU of this machine
    runs, else the first one. The error of the first image if the device runs none."""
    if len(images) == 1:
        return images[0]
    if name == "auto":
        return next((image for image in images if _has_gpu(image.target, options)), images[0])
    why: FlyError | None = None
    for image in images:
        try:
            open_device(name, image.target, options).close()
            return image
        except FlyError as error:
            why = why or error
    assert why is not None
    raise why


def _has_gpu(target: str, options: Options | None) -> bool:
    names = next(names for start, names in AUTO if target.startswith(start))
    for name in (name for name in names if name in NUMBERED):
        with contextlib.suppress(MissingError):
            resolve(DEVICES[name])(target, in_environment(options)).close()
            return True
    return False
