"""Launches of kernels that report (`fly_image.reports`): the buffers are cleared before a launch
and read after it. Lines that the kernel printed go to stdout; a report fails the launch.

    launch(device, function, grid, block, packed, shared, stream)

A launch of a module without reports is the device's own launch, and nothing else.
"""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, Any

from fly_common.errors import Fault, FlyError, InputError
from fly_common.quoting import quoted
from fly_image import reports
from fly_image.reports import Report, Sites

from fly_run.devices.protocol import Device, Function, Module, Stream, Triple, Variable

if TYPE_CHECKING:
    from fly_image.image import Image

_NAMES = (reports.FAULTS.buffer.encode(), reports.PRINTS.buffer.encode())
_CREATING = threading.Lock()


class Watch:
    """The report buffers of a loaded module. Threads take turns: the buffers are one launch's."""

    def __init__(self, module: Module):
        self.turn = threading.Lock()
        self._faults = _buffer(module, reports.FAULTS)
        self._prints = _buffer(module, reports.PRINTS)
        if self._faults is None and self._prints is None:
            raise InputError(f"the code has reports, but no variable {reports.BUFFER}")
        self.sites = Sites.parse(_variable(module, reports.SITES).read())
        self._cleared = [_variable(module, name) for name in self.sites.clear]

    def begin(self) -> None:
        """Clears what the kernel writes to."""
        for buffer in (self._faults, self._prints):
            if buffer is not None:
                buffer.clear(reports.HEADER.size)
        for variable in self._cleared:
            variable.clear()

    def end(self, function: Function, block: Triple) -> None:
        """Prints what the kernel printed. Raises Fault if it has reported."""
        if self._prints is not None:
            count, found = self._read(self._prints, reports.PRINTS)
            self._print(count, found, function.interface.name, block)
        if self._faults is not None:
            count, found = self._read(self._faults, reports.FAULTS)
            if count:
                raise self._fault(count, found, function.interface.name, block)

    def _read(self, buffer: Variable, channel: reports.Channel) -> tuple[int, list[Report]]:
        (count, *_) = reports.HEADER.unpack(buffer.read(reports.HEADER.size))
        if not count:
            return 0, []
        return reports.read(buffer.read(channel.nbytes), self.sites.sites, channel)

    def _print(self, count: int, found: list[Report], kernel: str, block: Triple) -> None:
        """Writes the lines in the order of blocks and threads, each thread's in its own order."""
        if not count:
            return
        found.sort(key=lambda one: (one.block[::-1], one.thread[::-1]))
        for one in found:
            sys.stdout.write(f"{one.message(self.sites.sites, block)}\n")
        sys.stdout.flush()
        if count > len(found):
            print(
                f"fly: kernel {quoted(kernel)} printed {count} lines, of which {len(found)} were"
                " kept",
                file=sys.stderr,
            )

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
    return any(name in image.data for name in _NAMES)


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
    cluster: Triple | None = None,
) -> None:
    """`Device.launch`. For a kernel that reports, also waits for its end, and raises Fault if it
    has reported."""
    asked = function, grid, block, packed, shared, stream, *(() if cluster is None else (cluster,))
    watched = watch(function)
    if watched is None:
        device.launch(*asked)
        return
    with watched.turn:
        device.synchronize()  # an earlier launch of the module may still write to the buffer
        watched.begin()
        try:
            device.launch(*asked)
            device.synchronize()
        except Fault as error:
            # What the kernel reported before may be why.
            try:
                watched.end(function, block)
            except Fault as reported:
                raise reported from error
            except FlyError:  # the device can't be used any more
                pass
            raise
        watched.end(function, block)


def _buffer(module: Module, channel: reports.Channel) -> Variable | None:
    """A module's buffer of reports, if it has one."""
    found = module.variable(channel.buffer)
    if found is not None and found.nbytes < channel.nbytes:
        raise InputError(f"{channel.buffer} has {found.nbytes} bytes")
    return found


def _variable(module: Module, name: str) -> Variable:
    found = module.variable(name)
    if found is None:
        raise InputError(f"the code has reports, but no variable {name}")
    return found
