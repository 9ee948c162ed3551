"""The emulator's device: loads code objects, launches kernels, raises faults.

Emulator.load        maps the code object's segments to guest addresses               loading
Loaded.function      encodes the kernel (once): decode, lower, reject unsupported code
Emulator.launch      sets up the launch: registers, arguments, slots for resident
                     workgroups (once per shape)                                      workspace
                     runs the grid in slices, between which progress, Ctrl-C and the
                     instruction limit are handled                                    launch
"""

from __future__ import annotations

import ctypes
import mmap
import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from fly_common.errors import InputError, MissingError, UsageError
from fly_host.tiles import Tile
from fly_image.amd.code_object import CodeObject, Kernel
from fly_image.image import Image
from fly_target import registry

from fly_run.devices import zeroed_pages
from fly_run.devices.options import MFMA, Options, in_environment
from fly_run.devices.protocol import FROM_DEVICE, TO_DEVICE, Function, Stream
from fly_run.emulator.engine import clusters, library
from fly_run.emulator.engine.arena import GAP, OWN, Buffers, Region
from fly_run.emulator.engine.launch import run
from fly_run.emulator.engine.loading import Loaded, Prepared
from fly_run.emulator.engine.workspace import Workspace
from fly_run.emulator.isa import matrix

MOST_WORK_ITEMS = 1024  # of a workgroup
# Limits of the state kept for later launches of the same shape: shapes, and total bytes.
MOST_SPACES, MOST_SPACE_BYTES = 64, 256 << 20

Triple = tuple[int, int, int]
_Shape = tuple[Prepared, Triple, Triple, int, Triple]


@dataclass(frozen=True)
class Event:
    """A point in time, by the host's clock (`time.perf_counter`)."""

    seconds: float


class Emulator:
    """Runs AMD GPU machine code of `target` on the host processor. Its results have not been
    compared with hardware.

    It is a `devices.protocol.Device`. Launches are complete when they return, so streams are
    trivially in order. One launch runs at a time, whatever the number of calling threads.
    """

    name = "emulator"
    concurrent = False
    own_memory = False
    place = None

    def __init__(self, target: str, options: Options | None = None):
        options = in_environment(options)
        row = registry.get(target)
        if row is None or not row.emulated:
            raise MissingError(
                f"the emulator does not run {target}",
                hint=f"it runs {', '.join(registry.EMULATED)}",
            )
        if options.max_instructions is not None and options.max_instructions < 1:
            raise UsageError("the limit of instructions must be at least 1")
        if options.threads is not None and options.threads < 1:
            raise UsageError("the number of threads must be at least 1")
        if options.mfma not in MFMA:
            raise UsageError(
                f"{options.mfma} is not a summation mode of matrix instructions",
                hint=f"expected {' or '.join(MFMA)}",
            )
        if options.strict:
            from fly_run.emulator.strict.strict import Strict

            options = replace(options, observers=(*options.observers, Strict()))
        self.target = target
        self.options = options
        self._library = library.load()
        self._buffers = Buffers()
        self._own: dict[int, mmap.mmap] = {}  # memory of `alloc`, by guest address
        self._spaces: OrderedDict[_Shape, Workspace] = OrderedDict()
        self._space_bytes = 0
        self._executed = 0
        self._multiplies = False
        # Launches share the table of buffers and the waves' memory, so they take turns. The lock is
        # reentrant because a progress bar or an observer may use the device during a launch.
        self._busy = threading.RLock()

    @property
    def instructions(self) -> int:
        """The wave instructions executed so far, by all launches."""
        return self._executed

    @property
    def remarks(self) -> tuple[str, ...]:
        """The arithmetic of matrix instructions, if a kernel had any."""
        return (matrix.remark(self.target, self.options.mfma),) if self._multiplies else ()

    # -- memory

    def adopt(self, pointer: int, nbytes: int, *, writable: bool = True, label: str = "") -> int:
        """See Device."""
        with self._busy:
            return self._buffers.add(label, pointer, nbytes, writable)

    def map(
        self,
        pointer: int,
        nbytes: int,
        *,
        writable: bool = True,
        label: str = "",
        beneath: bool = False,
    ) -> None:
        """`adopt` for memory that kernels access at its own address, the host's; `release` ends it.
        Memory that is mapped `beneath` is read-only, and may contain what has been mapped before.
        InputError if the emulator uses that address."""
        if any(low < pointer + nbytes + GAP and pointer < low + size for low, size in OWN):
            raise InputError(
                f"0x{pointer:x}: the emulator has other memory at this address",
                hint="run the program again: the system chooses addresses at random",
            )
        with self._busy:
            region = Region(label, pointer, nbytes, pointer, writable and not beneath)
            self._buffers.place(region, beneath=beneath)

    def adopt_within(
        self, margin: int, pointer: int, nbytes: int, writable: bool, label: str
    ) -> int:
        """`adopt`, where kernels may also read `margin` bytes before the memory and behind it, a
        multiple of the alignment that the memory should have."""
        with self._busy:
            return self._buffers.add_within(margin, label, pointer, nbytes, writable)

    def adopt_all(self, spans: Sequence[tuple[str, int, int, bool]]) -> list[int]:
        """See Device."""
        with self._busy:
            return self._buffers.add_all(spans)

    def release_all(self, addresses: Sequence[int]) -> None:
        """See Device. UsageError where no buffer begins at one of them."""
        with self._busy:
            try:
                self._buffers.remove_all(addresses)
            except KeyError as error:
                raise UsageError(f"no buffer begins at 0x{error.args[0]:x}") from None

    def release(self, address: int) -> None:
        """See Device. UsageError if no buffer starts there."""
        with self._busy:
            try:
                self._buffers.remove(address)
            except KeyError:
                raise UsageError(f"no buffer begins at 0x{address:x}") from None

    def alloc(self, nbytes: int, label: str = "") -> int:
        """See Device."""
        memory, host = zeroed_pages.allocate(nbytes)
        address = self.adopt(host, nbytes, label=label or "memory of the device")
        self._own[address] = memory
        return address

    def free(self, address: int) -> None:
        """See Device. UsageError for an address that `alloc` did not return."""
        if address not in self._own:
            raise UsageError(f"no memory was allocated at 0x{address:x}")
        self.release(address)
        self._own.pop(address).close()

    def copy(
        self,
        destination: int,
        source: int,
        nbytes: int,
        direction: str,
        stream: Stream | None = None,
    ) -> None:
        """See Device. InputError if the device's bytes are not in a buffer."""
        with self._busy:
            if direction != TO_DEVICE:
                source = self._host(source, nbytes)
            if direction != FROM_DEVICE:
                destination = self._host(destination, nbytes)
            ctypes.memmove(destination, source, nbytes)

    def _host(self, address: int, nbytes: int) -> int:
        region = self._buffers.find(address, nbytes)
        if region is None:
            raise InputError(f"no buffer contains {nbytes} bytes at 0x{address:x}")
        return address - region.low + region.host

    # -- code

    def load(self, image: Image) -> Loaded:
        """See Device."""
        if not isinstance(image, CodeObject):
            raise InputError("the emulator runs AMD GPU code objects only")
        if image.target != self.target:
            raise InputError(
                f"the code object is for {image.target}, but the emulator was created for"
                f" {self.target}",
                hint=f"compile with --target {self.target}",
            )
        handlers, options = self._library.handlers, self.options
        return Loaded.load(image, self._buffers, handlers, options, self._busy, self._forget)

    def launch(
        self,
        function: Function,
        grid: Triple,
        block: Triple,
        packed: bytes,
        shared: int = 0,
        stream: Stream | None = None,
        cluster: Triple | None = None,
    ) -> None:
        """See Device. Raises Fault for an error of the kernel. `cluster` is the size of a cluster
        in workgroups; by default the kernel's own (`clusters.of`)."""
        assert isinstance(function, Prepared)
        joint = clusters.of(function.kernel, self.target, grid, cluster)
        with self._busy:
            if 0 in grid:
                self._check(function.kernel, grid, block, shared)
                return
            shape = function, grid, block, shared, joint
            space = self._space(shape)
            watch = function.watch
            if self.options.observers:
                watch.begin(space.described(grid, block))
            try:
                run(space, self._library.run, packed, self.options)
            finally:
                executed = space.executed
                self._executed += executed
                self._multiplies |= function.multiplies
                watch.end(executed)
                self._keep(shape, space)

    def _space(self, shape: _Shape) -> Workspace:
        """Returns the workspace for this shape, which is cached."""
        space = self._spaces.get(shape)
        if space is not None:
            self._spaces.move_to_end(shape)
            return space
        function, grid, block, shared, cluster = shape
        lds = self._check(function.kernel, grid, block, shared)
        space = self._spaces[shape] = Workspace(function, grid, block, lds, cluster)
        return space

    def _keep(self, shape: _Shape, space: Workspace) -> None:
        """Accounts for the memory of a launch's shape, and evicts what exceeds the limits."""
        grown = space.grown()
        if self._spaces.get(shape) is not space:
            return  # an observer or a progress bar has dropped it meanwhile
        self._space_bytes += grown
        while len(self._spaces) > MOST_SPACES or self._space_bytes > MOST_SPACE_BYTES:
            _, oldest = self._spaces.popitem(last=False)
            self._space_bytes -= oldest.nbytes

    def _forget(self, module: Loaded) -> None:
        """Drops the workspaces of a module."""
        for shape in [shape for shape in self._spaces if shape[0].loaded is module]:
            self._space_bytes -= self._spaces.pop(shape).nbytes

    # -- order

    def describe(self, tile: Tile) -> bytes:
        """See Device."""
        raise MissingError("the emulator has no descriptors for copies of tiles")

    def driver_entry(self, functions: Sequence[Function]) -> None:
        """See Device."""

    def stream(self) -> Stream:
        """See Device."""
        return object()

    def event(self, stream: Stream | None = None) -> Event:
        """See Device."""
        return Event(time.perf_counter())

    def elapsed(self, start: Event, end: Event) -> float:
        """See Device."""
        return end.seconds - start.seconds

    def synchronize(self, what: Stream | Event | None = None) -> None:
        """Launches are complete when they return."""

    def close(self) -> None:
        """See Device."""
        with self._busy:
            self._spaces.clear()
            self._space_bytes = 0
            for address in list(self._own):
                self.free(address)

    def _check(self, kernel: Kernel, grid: Triple, block: Triple, shared: int) -> int:
        """Returns the bytes of LDS of a workgroup, if the launch is valid."""
        lds = kernel.group_segment_fixed_size + shared
        items = block[0] * block[1] * block[2]
        if min(block) < 1 or items > MOST_WORK_ITEMS or min(grid) < 0:
            raise UsageError(f"grid {grid} of blocks {block} can't be launched")
        if max(grid) >= 1 << 32:
            raise UsageError(f"grid {grid} has more than 2^32 - 1 workgroups along an axis")
        if kernel.max_flat_workgroup_size and items > kernel.max_flat_workgroup_size:
            raise InputError(
                f"{kernel.name} was compiled for at most {kernel.max_flat_workgroup_size} work"
                f" items per workgroup, but the block has {items}"
            )
        most = registry.find(self.target).lds
        if lds > most:
            raise InputError(
                f"{kernel.name} requests {lds} bytes of LDS, but {self.target} has {most} per"
                " workgroup"
            )
        return lds
