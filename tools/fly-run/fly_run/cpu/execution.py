"""One launch: host threads that take blocks of the grid, in slices.

A launch starts on the calling thread. If it is not done after its first slice, more threads join,
each with a copy of the library. The order of blocks then varies; a module with atomic operations
on global memory, or with variables in it, is run by one thread. Between slices Python handles
signals, progress, the time limit (FLY_TIMEOUT) and what kernels print.
"""

from __future__ import annotations

import ctypes
import math
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from fly_common import diagnostics
from fly_common.errors import Fault
from fly_common.programs import process
from fly_cpu import state

from fly_run.cpu import faults, printing
from fly_run.cpu.clusters import Cluster
from fly_run.cpu.loading import Copy, Kernel, Region
from fly_run.devices.options import Options

MOST_WORKERS = 64
_FEW_THREADS = 1 << 14  # of a launch in clusters, which one host thread runs

Triple = tuple[int, int, int]


@dataclass
class Launch:
    """A launch of `kernel`. `buffers` is the memory that it was given; `cluster` the size of a
    cluster in blocks."""

    kernel: Kernel
    grid: Triple
    block: Triple
    cluster: Triple
    packed: bytes
    shared: int
    buffers: list[Region]
    number: int
    options: Options
    stop: bool = False
    error: BaseException | None = None
    tickets: ctypes.c_uint64 = field(default_factory=ctypes.c_uint64)
    guard: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.blocks = math.prod(self.grid)
        self.threads = math.prod(self.block)
        self.limit = process.time_limit()
        self.start = time.monotonic()
        self._room = ctypes.create_string_buffer(len(self.packed) + 64)
        self.arguments = ctypes.addressof(self._room)
        self.arguments += -self.arguments % 64
        ctypes.memmove(self.arguments, self.packed, len(self.packed))

    def run(self) -> None:
        """Runs it to its end. Raises Fault for an error of the kernel."""
        if self.cluster != (1, 1, 1):
            self._run_clusters()
            return
        module = self.kernel.module
        (first,) = module.copies(1)
        self.prepare(first)
        status = first.run(1)
        helpers: list[threading.Thread] = []
        try:
            if status == state.SLICE and not module.in_order and self.blocks > 1:
                helpers = self._helpers()
            self._continue(first, status)
            for helper in helpers:
                helper.join()
        except BaseException:  # an interrupt too
            self.stop = True
            raise
        finally:
            for helper in helpers:
                helper.join()
        if self.error is not None:
            raise self.error

    def _run_clusters(self) -> None:
        """Runs clusters of blocks: on several host threads from the second one on, if the first one
        has taken long."""
        module, size = self.kernel.module, math.prod(self.cluster)
        groups = [Cluster(self, module.copies(size), self.cluster)]
        helpers: list[threading.Thread] = []
        left = self.blocks // size
        if not module.in_order and left > 1 and self.blocks * self.threads > _FEW_THREADS:
            count = min(len(os.sched_getaffinity(0)), left, MOST_WORKERS)
            copies = module.copies(size * count)
            for first in range(size, len(copies), size):
                groups.append(Cluster(self, copies[first : first + size], self.cluster))
        for group in groups[1:]:
            helpers.append(threading.Thread(target=self._guarded, args=(group.run,), daemon=True))
            helpers[-1].start()
        try:
            groups[0].run()
        except BaseException:  # an interrupt too
            self.stop = True
            raise
        finally:
            for helper in helpers:
                helper.join()
        if self.error is not None:
            raise self.error

    def take(self) -> int:
        """The number of a cluster that nobody has taken."""
        with self.guard:
            self.tickets.value += 1
            return self.tickets.value - 1

    def _helpers(self) -> list[threading.Thread]:
        left = max(0, self.blocks - self.tickets.value)
        count = min(len(os.sched_getaffinity(0)) - 1, left, MOST_WORKERS)
        helpers = []
        for copy in self.kernel.module.copies(1 + count)[1:]:
            self.prepare(copy)
            helpers.append(threading.Thread(target=self._help, args=(copy,), daemon=True))
            helpers[-1].start()
        return helpers

    def _help(self, copy: Copy) -> None:
        self._guarded(lambda: self._continue(copy, copy.run(1)))

    def _guarded(self, work: Callable[[], None]) -> None:
        """What a helper does; its error ends the launch."""
        try:
            work()
        except BaseException as error:
            with self.guard:
                self.error = self.error or error
            self.stop = True

    def prepare(self, copy: Copy) -> None:
        stacks = copy.stacks(self.threads)
        copy.show(self.regions(copy))
        if self.kernel.module.sanitized:
            self.kernel.module.reset_poison(copy, stacks, self.shared)
        values = {
            "entry": self.kernel.module.entry(copy, self.kernel),
            "arguments": self.arguments,
            **{f"grid_{axis}": size for axis, size in zip("xyz", self.grid, strict=True)},
            **{f"block_{axis}": size for axis, size in zip("xyz", self.block, strict=True)},
            "threads": self.threads,
            "tickets": ctypes.addressof(self.tickets),
            "blocks": self.blocks,
            "stacks": stacks.low,
            "dynamic": self.shared,
            "turns": state.TURNS,
            "number": self.number,
            # A copy may have run a cluster's block before.
            **dict.fromkeys(("cluster", "rank", "peers", "meeting", "hopeless", "unseen"), 0),
            **dict.fromkeys((f"cluster_{axis}" for axis in "xyz"), 0),
        }
        for name, value in values.items():
            copy.set(name, value)

    def regions(self, copy: Copy) -> list[Region]:
        arguments = Region("the kernel's arguments", self.arguments, len(self.packed), False)
        own = self.kernel.module.own_memory(copy, self.shared)
        return [*self.buffers, *own, copy.stacks(self.threads), arguments]

    def _continue(self, copy: Copy, status: int) -> None:
        """Goes on after a slice, until the grid is done."""
        while status == state.ENDING or (status != state.FINISHED and not self.stop):
            self.serve(copy, status)
            status = copy.run(0)

    def serve(self, copy: Copy, status: int, hidden: Sequence[tuple[Region, str]] = ()) -> None:
        """Does what a copy has returned for. Raises Fault for an error of the kernel. `hidden`: see
        `faults.describe`."""
        if status in (state.FAULT, state.ENDING):
            regions = self.regions(copy)
            found = faults.describe(self.kernel, copy, self.block, regions, hidden)
            if status == state.FAULT:
                raise found
            diagnostics.print_error(found, "fly")
        elif status == state.PRINT:
            self._print(copy)
        else:
            copy.set("turns", state.TURNS)
            self.look_up(copy)

    def look_up(self, copy: Copy) -> None:
        """What is done between slices."""
        if self.options.progress is not None:
            self.options.progress(min(self.tickets.value, self.blocks), self.blocks)
        if time.monotonic() - self.start > self.limit:
            name = self.kernel.interface.name
            group = tuple(copy.get(f"ctaid_{axis}") for axis in "xyz")
            raise Fault(
                f"timeout: the launch did not end within {self.limit:g} s; kernel {name} block"
                f" {group}",
                hint="either a loop of the kernel does not end, or it needs more time: set"
                " FLY_TIMEOUT=SECONDS",
            )

    def _print(self, copy: Copy) -> None:
        text = printing.formatted(copy.get("format"), copy.get("values"))
        with self.guard:
            sys.stdout.write(text)
            sys.stdout.flush()
