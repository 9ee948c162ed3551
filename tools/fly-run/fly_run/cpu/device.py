"""The device `cpu`: kernels for NVIDIA's GPUs as code of the host."""

from __future__ import annotations

import ctypes
import mmap
import threading
import time
from collections.abc import Sequence
from dataclasses import replace

from fly_common.errors import InputError, MissingError, UsageError
from fly_cpu import state, tensor_maps
from fly_host.tiles import Tile
from fly_image.image import Image, Triple
from fly_target import registry

from fly_run.cpu import sanitizer
from fly_run.cpu.compile import check_host
from fly_run.cpu.execution import Launch
from fly_run.cpu.loading import Kernel, Module, Region
from fly_run.devices import zeroed_pages
from fly_run.devices.options import Options, in_environment
from fly_run.devices.protocol import FROM_DEVICE, TO_DEVICE, Function, Stream


class Cpu:
    """Runs the LLVM IR in an image for `target` on the host. Device addresses are the host's.

    It is a `devices.protocol.Device`. Launches are complete when they return, so streams are
    trivially in order. One launch runs at a time, whatever the number of calling threads.
    """

    name = "cpu"
    concurrent = False
    own_memory = False
    place = None
    instructions = None
    remarks: tuple[str, ...] = ()

    def __init__(self, target: str, options: Options | None = None):
        options = in_environment(options)
        option = replace(options, strict=False).emulators
        if option is not None:
            raise UsageError(f"{option} is an option of the emulator, which cpu does not have")
        if not target.startswith("sm_"):
            raise MissingError(
                f"the device cpu runs code for NVIDIA's targets (sm_…), not for {target}",
                hint="the emulator runs code for AMD's: --device emulator",
            )
        check_host()
        self.sanitized = sanitizer.asked()
        if self.sanitized:
            sanitizer.check_loaded()
        self.target, self.options = target, options
        self._regions: dict[int, list[Region]] = {}
        # Memory of `alloc`; None for the sanitizer's.
        self._own: dict[int, mmap.mmap | None] = {}
        self._launches = 0
        self._busy = threading.RLock()

    # -- memory

    def adopt(self, pointer: int, nbytes: int, *, writable: bool = True, label: str = "") -> int:
        """See Device."""
        with self._busy:
            region = Region(label, pointer, nbytes, writable)
            self._regions.setdefault(pointer, []).append(region)
        return pointer

    def adopt_all(self, spans: Sequence[tuple[str, int, int, bool]]) -> list[int]:
        """See Device."""
        return [self.adopt(at, size, writable=write, label=name) for name, at, size, write in spans]

    def release(self, address: int) -> None:
        """See Device. UsageError if no buffer starts there."""
        with self._busy:
            found = self._regions.get(address)
            if not found:
                raise UsageError(f"no buffer begins at 0x{address:x}")
            found.pop()
            if not found:
                del self._regions[address]

    def release_all(self, addresses: Sequence[int]) -> None:
        """See Device."""
        for address in reversed(addresses):
            self.release(address)

    def alloc(self, nbytes: int, label: str = "") -> int:
        """See Device."""
        if self.sanitized:
            memory, host = None, sanitizer.allocate(nbytes)
        else:
            memory, host = zeroed_pages.allocate(nbytes)
        self._own[host] = memory
        return self.adopt(host, nbytes, label=label or "memory of the device")

    def free(self, address: int) -> None:
        """See Device. UsageError for an address that `alloc` did not return."""
        if address not in self._own:
            raise UsageError(f"no memory was allocated at 0x{address:x}")
        self.release(address)
        memory = self._own.pop(address)
        if memory is None:
            sanitizer.free(address)
        else:
            memory.close()

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
                self._check_held(source, nbytes)
            if direction != FROM_DEVICE:
                self._check_held(destination, nbytes)
            ctypes.memmove(destination, source, nbytes)

    def _check_held(self, address: int, nbytes: int) -> None:
        if not any(r.low <= address and address + nbytes <= r.end for r in self._buffers()):
            raise InputError(f"no buffer contains {nbytes} bytes at 0x{address:x}")

    def _buffers(self) -> list[Region]:
        return [region for regions in self._regions.values() for region in regions]

    # -- code

    def load(self, image: Image) -> Module:
        """See Device."""
        if image.target != self.target:
            raise InputError(
                f"the code is for {image.target}, but the device was opened for {self.target}",
                hint=f"compile with --target {self.target}",
            )
        return Module(image, self.sanitized, self.options.strict)

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
        """See Device. Raises Fault for an error of the kernel."""
        assert isinstance(function, Kernel)
        cluster = function.interface.cluster or cluster or (1, 1, 1)
        self._check(function, grid, block, shared, cluster)
        if 0 in grid:
            return
        size = function.interface.argument_bytes
        if len(packed) > size:
            raise InputError(
                f"{function.interface.name} takes {size} bytes of arguments, not {len(packed)}"
            )
        packed = packed.ljust(size, b"\0")
        with self._busy:
            self._launches += 1
            given = (function, grid, block, cluster, packed, shared)
            Launch(*given, self._buffers(), self._launches, self.options).run()

    def _check(
        self, function: Kernel, grid: Triple, block: Triple, shared: int, cluster: Triple
    ) -> None:
        threads = block[0] * block[1] * block[2]
        if min(block) < 1 or threads > state.MOST_THREADS or min(grid) < 0:
            raise UsageError(f"grid {grid} of blocks {block} can't be launched")
        if any(count % each for count, each in zip(grid, cluster, strict=True)):
            raise UsageError(f"grid {grid} is not made of whole clusters of {cluster} blocks")
        most = registry.find(self.target).lds
        asked = function.interface.shared_bytes + shared
        if asked > most:
            raise InputError(
                f"{function.interface.name} requests {asked} bytes of shared memory, but"
                f" {self.target} has {most} per block"
            )

    def describe(self, tile: Tile) -> bytes:
        """See Device."""
        return tensor_maps.encoded(tile)

    def driver_entry(self, functions: Sequence[Function]) -> None:
        """See Device. Launches go through Python, which handles faults, signals and prints."""

    # -- order

    def stream(self) -> Stream:
        """See Device."""
        return object()

    def event(self, stream: Stream | None = None) -> float:
        """A point in time, by the host's clock."""
        return time.perf_counter()

    def elapsed(self, start: float, end: float) -> float:
        """See Device."""
        return end - start

    def synchronize(self, what: object = None) -> None:
        """Launches are complete when they return."""

    def close(self) -> None:
        """See Device."""
        with self._busy:
            for address in list(self._own):
                self.free(address)
            self._regions.clear()
