"""Summaries of plugins: what fly-run prints about a run, besides its own tables.

A plugin's record names them: `summaries={"roofline": "fly_roofline.summary:summary"}`. The function
takes a `Run` and the plugin's options (None if it has none), and returns text for standard error.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from fly_plugin import active

from fly_run.devices.protocol import Device, Function, Stream, Triple

if TYPE_CHECKING:
    from fly_image.image import Image

    from fly_run.shell.bench import Report


@dataclass(frozen=True)
class Launched:
    """A launch. `packed` are its arguments, as the kernel gets them. `seconds` is the median of
    --bench where a device has times; `statistics` the document of --stats. Both may be None."""

    kernel: str
    grid: Triple
    block: Triple
    packed: bytes
    shared: int = 0
    seconds: float | None = None
    statistics: dict[str, Any] | None = None


@dataclass(frozen=True)
class Run:
    """A run of an image on the device of this name."""

    image: Image
    device: str
    launches: tuple[Launched, ...]


def wanted() -> bool:
    """Whether an active plugin has a summary."""
    return any(one.plugin.summaries for one in active())


class Recording:
    """A device that remembers what it launches."""

    def __init__(self, device: Device):
        self._device = device
        self.launches: list[Launched] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._device, name)

    def driver_entry(self, functions: Sequence[Function]) -> None:
        """Native launchers call `launch`, which remembers."""

    def launch(
        self,
        function: Function,
        grid: Triple,
        block: Triple,
        packed: bytes,
        shared: int = 0,
        stream: Stream | None = None,
        *cluster: Triple,
    ) -> None:
        self._device.launch(function, grid, block, packed, shared, stream, *cluster)
        made = Launched(function.interface.name, grid, block, bytes(packed), shared)
        self.launches.append(made)


def show(
    image: Image,
    device: str,
    launches: Sequence[Launched],
    documents: Sequence[dict[str, Any]],
    measured: Report | None,
) -> None:
    """Prints the summaries of the active plugins, in the order of their activation."""
    from fly_common.resolve import resolve
    from fly_plugin.contents import owned

    made = list(launches)
    if len(documents) == len(made):
        pairs = zip(made, documents, strict=True)
        made = [replace(one, statistics=document) for one, document in pairs]
    if measured is not None and len(measured.times) == len(made):
        pairs = zip(made, measured.times, strict=True)
        made = [replace(one, seconds=times.median) for one, times in pairs]
    run = Run(image, device, tuple(made))
    for one in active():
        for name, reference in one.plugin.summaries.items():
            with owned(one, f"summary {name}"):
                sys.stderr.write(str(resolve(reference)(run, one.options)))
