"""Loading images. Those that a library of `fly-link --host shared` holds are run as any other ones,
each by the devices for its target."""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fly.call.compiled import Compiled

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fly_host.native.calling import Native
    from fly_image.image import Image
    from fly_run.devices.options import Options
    from fly_run.launch.completed import Ran
    from fly_run.launch.execution import Outcome

    from fly.call.host_options import CompileOptions


class SharedLibrary(Compiled):
    """Code for several targets. `image`, `target` and what else describes code are of the one that
    the device "auto" stands for; a call with another device runs that device's."""

    @functools.cached_property
    def images(self) -> list[Image]:
        """The images, in the order in which they were linked."""
        from fly_image import library

        return library.images(self.data)

    @functools.cached_property
    def image(self) -> Image:
        return self._on("auto").image

    @property
    def targets(self) -> tuple[str, ...]:
        return tuple(image.target for image in self.images)

    def run_viewed(
        self,
        values: Mapping[str, Any],
        viewed: Mapping[str, Any],
        device: str = "auto",
        options: Options | None = None,
        host: CompileOptions | None = None,
    ) -> Outcome:
        return self._on(device).run_viewed(values, viewed, device, options, host)

    def native(
        self, arguments: Sequence[object], device: str = "auto", host: CompileOptions | None = None
    ) -> Native:
        return self._on(device).native(arguments, device, host)

    def _launch_kernel(
        self,
        kernel: str | None,
        grid: int | tuple[int, ...],
        block: int | tuple[int, ...],
        args: Sequence[Any],
        dynamic_lds: int,
        device: str,
        options: Options | None,
    ) -> Sequence[Ran]:
        chosen = self._on(device)
        return chosen._launch_kernel(kernel, grid, block, args, dynamic_lds, device, options)

    def _on(self, device: str) -> Compiled:
        """The code that a device runs."""
        found = self._chosen.get(device)
        if found is None:
            from fly_run.devices.choosing import choose

            found = self._chosen[device] = Compiled(choose(self.images, device).data)
        return found

    @functools.cached_property
    def _chosen(self) -> dict[str, Compiled]:
        return {}


def load(source: bytes | str | os.PathLike[str]) -> Compiled:
    """Loads an image from bytes or from a file. It may have been compiled by other tools. A library
    of `fly-link --host shared` has several images; each device runs its own.

    Raises InputError if it is not a code object, UsageError if the file cannot be read.
    """
    from fly_common.filter import read_input
    from fly_image import registry

    data = source if isinstance(source, bytes) else read_input(os.fspath(source))
    made = SharedLibrary(data) if registry.is_library(data) else Compiled(data)
    made.image  # noqa: B018  read now, so that a damaged file is refused here
    return made
