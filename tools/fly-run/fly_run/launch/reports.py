"""Launches of kernels that report (`fly_image.reports`): the buffer is cleared before a launch and
read after it. A report fails the launch.

    launch(device, function, grid, block, packed, shared, stream)

A launch of a module without reports is the device's own launch, and nothing else.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from fly_common.errors import Fault, InputError
from fly_common.quoting import quoted
from fly_image import reports
from fly_image.reports import Report, Sites

from fly_run.devices.protocol import Device, Function, Module, Stream, Triple, Variable

if TYPE_CHECKING:
    from fly_image.image import Image

_NAME = reports.BUFFER.encode()
_CREATING = threading.Lock()


class Watch:
    """The report buffer of a loaded module. Threads take turns: the buffer is one launch's."""

    def __init__(self, module: Module):
        self.turn = threading.Lock()
        self._buffer = _variable(module, reports.BUFFER)
        self.sites = Sites.parse(_variable(module, reports.SITES).read())
        self._cleared = [_variable(module, name) for name in self.sites.clear]
        if self._buffer.nbytes < reports.NBYTES:
            raise InputError(f"{reports.BUFFER} has {self._buffer.nbytes} bytes")

    def begin(self) -> None:
        """Clears what the kernel writes to."""
        self._buffer.clear(reports.HEADER.size)
        for variable in self._cleared:
            variable.clear()

    def end(self, function: Function, block: Triple) -> None:
        """Raises Fault if the kernel has reported."""
        (count, *_) = reports.HEADER.unpack(self._buffer.read(reports.HEADER.size))
        if not count:
            return
        count, found = reports.read(self._buffer.read(reports.NBYTES), self.sites.sites)
        raise self._fault(count, found, function.interface.name, block)

    def _fault(self, count: int, found: list[Report], kernel: str, block: Triple) -> Fault:
        """Of the reports that were kept, shows that of the lowest block, thread and site."""
        sites = self.sites.sites
        shown = min(found, key=lambda one: (one.block[::-1], one.thread[::-1], one.site))
        lines = {(sites[one.site].file, sites[one.site].line) for one in found}
        more = f"; {count - 1} more" if count > 1 else ""
        more += f" on {len(lines)} lines" if len(lines) > 1 else ""
        said = shown.message(sites, block)
        where = f"block {shown.block} thread {shown.thread}"
        place = sites[shown.site].place
        return Fault(f"kernel {quoted(kernel)}: {said}; {where}{more}", place=place)


def has(image: Image) -> bool:
    """Whether kernels of an image report."""
    return _NAME in image.data


def watch(function: Function) -> Watch | None:
    """The watch of the module of a kernel; None if its kernels do not report."""
    module: Any = getattr(function, "module", None)
    if module is None:
        return None
    # The module keeps it: it holds the module's variables, and goes with the module.
    try:
        return module.reports_watch
    except AttributeError:
        pass
    with _CREATING:  # two first launches at once must take turns on one lock
        try:
            return module.reports_watch
        except AttributeError:
            module.reports_watch = found = Watch(module) if has(module.image) else None
            return found


def launch(
    device: Device,
    function: Function,
    grid: Triple,
    block: Triple,
    packed: bytes,
    shared: int = 0,
    stream: Stream | None = None,
) -> None:
    """`Device.launch`. For a kernel that reports, also waits for its end, and raises Fault if it
    has reported."""
    watched = watch(function)
    if watched is None:
        device.launch(function, grid, block, packed, shared, stream)
        return
    with watched.turn:
        device.synchronize()  # an earlier launch of the module may still write to the buffer
        watched.begin()
        device.launch(function, grid, block, packed, shared, stream)
        device.synchronize()
        watched.end(function, block)


def _variable(module: Module, name: str) -> Variable:
    found = module.variable(name)
    if found is None:
        raise InputError(f"the code has reports, but no variable {name}")
    return found
