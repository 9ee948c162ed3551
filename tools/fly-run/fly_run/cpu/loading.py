"""Modules and kernels of the device: a library, and a copy of it for each host thread."""

from __future__ import annotations

import ctypes
import json
import mmap
import struct
import threading
from collections.abc import Iterable
from typing import Any, NamedTuple

from fly_common.errors import InputError, MissingError
from fly_cpu import rewrite, state
from fly_image.image import Image, KernelInterface

from fly_run.cpu import compile as compiling
from fly_run.cpu import sanitizer
from fly_run.devices.host_variables import HostVariable

_NORESERVE = 0x4000  # MAP_NORESERVE of Linux


class Region(NamedTuple):
    """Memory that kernels may access. Faults call it `name`."""

    name: str
    low: int
    length: int
    writable: bool

    @property
    def end(self) -> int:
        return self.low + self.length


class Copy:
    """A copy of a library: its variables serve one host thread at a time."""

    def __init__(self, module: Module, number: int):
        self._library: Any = compiling.opened(module.library, module.name, number, module.sanitized)
        self.run: Any = self._library.fly_run
        self.run.argtypes, self.run.restype = [ctypes.c_int64], ctypes.c_int64
        self._context = self._address("fly_context")
        if module.sanitized:
            sanitizer.share_lock(self._address("fly_reporter"))
        self._tables = {way: self._address(f"fly_{way}") for way in ("read", "write")}
        self._rows = dict.fromkeys(self._tables, 0)
        self._stacks: mmap.mmap | None = None
        self._stacks_size = 0

    @property
    def base(self) -> int:
        """An address in it. Copies differ in where they are, and not in what is where in them."""
        return self._context

    def _address(self, name: str) -> int:
        return ctypes.addressof(ctypes.c_char.in_dll(self._library, name))

    def notes(self) -> dict[str, Any]:
        return json.loads(ctypes.string_at(self._address("fly_notes")))

    def report(self) -> str:
        """The beginning of the sanitizer's last report."""
        return ctypes.string_at(self._address("fly_report")).decode(errors="replace")

    def words(self, name: str, count: int) -> list[int]:
        return list((ctypes.c_uint64 * count).from_address(self._address(name)))

    def get(self, name: str) -> int:
        return ctypes.c_int64.from_address(self._context + state.OFFSETS[name]).value

    def set(self, name: str, value: int) -> None:
        ctypes.c_int64.from_address(self._context + state.OFFSETS[name]).value = value

    def stacks(self, threads: int) -> Region:
        """Memory for the stacks of a block's threads. Pages that are not used take no memory."""
        size = threads * state.STACK
        if size > self._stacks_size:
            flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NORESERVE
            try:
                self._stacks = mmap.mmap(-1, size, flags)
            except OSError:
                raise MissingError(
                    f"there is no memory for the stacks of {threads} threads"
                ) from None
            self._stacks.madvise(mmap.MADV_NOHUGEPAGE)
            self._stacks_size = size
        assert self._stacks is not None
        low = ctypes.addressof(ctypes.c_char.from_buffer(self._stacks))
        return Region("local memory", low, self._stacks_size, True)

    def show(self, regions: Iterable[Region]) -> None:
        """Fills the tables of memory that may be read and written."""
        every = list(regions)
        for way, rows in (("read", every), ("write", [one for one in every if one.writable])):
            if len(rows) > state.MOST_REGIONS:
                raise InputError(f"more than {state.MOST_REGIONS - 64} buffers are bound at once")
            flat = [word for one in rows for word in (one.low, one.length)]
            # Code remembers rows: those that are not in use any more must be empty.
            flat += [0] * (2 * max(0, self._rows[way] - len(rows)))
            data = struct.pack(f"<{len(flat)}Q", *flat)
            ctypes.memmove(self._tables[way], data, len(data))
            self._rows[way] = len(rows)
            self.set(f"{way}s", len(rows))

    def unload(self) -> None:
        compiling.close(self._library)


class Kernel(NamedTuple):
    """A kernel of a module. See `Function`."""

    module: Module
    interface: KernelInterface
    number: int

    def __hash__(self) -> int:
        return id(self)


class Site(NamedTuple):
    """A place in the code, and in its source if that is known: file, line and column, then those of
    the calls that lead there."""

    what: str
    function: str
    location: list[tuple[str, int, int]] | None


class Module:
    """See `fly_run.devices.protocol.Module`."""

    def __init__(self, image: Image, sanitized: bool = False, strict: bool = False):
        self.image, self.sanitized = image, sanitized
        self.name = next(iter(image.kernels))
        self.library = compiling.obtain(image, sanitized, strict)
        self._copies = [Copy(self, 0)]
        notes = self._copies[0].notes()
        self.variables: list[tuple[str, str]] = [tuple(one) for one in notes["variables"]]
        self.sites = [Site(*one) for one in notes["sites"]]
        self.in_order: bool = notes["in_order"]
        self._numbers = {name: number for number, name in enumerate(notes["kernels"])}
        self._functions: dict[str, Kernel] = {}
        self._loading = threading.Lock()

    def copies(self, count: int) -> list[Copy]:
        """The first `count` copies."""
        while len(self._copies) < count:
            self._copies.append(Copy(self, len(self._copies)))
        return self._copies[:count]

    def function(self, name: str | None) -> Kernel:
        """See Module."""
        interface = self.image.kernel(name)
        with self._loading:
            found = self._functions.get(interface.name)
            if found is None:
                number = self._numbers[interface.name]
                found = self._functions[interface.name] = Kernel(self, interface, number)
            return found

    def variable(self, name: str) -> HostVariable | None:
        """See Module. A module with variables is run by one host thread, with the first copy."""
        kinds = (rewrite.READABLE, rewrite.WRITABLE)
        (copy,) = self.copies(1)
        words = copy.words("fly_variables", 2 * len(self.variables))
        for (found, kind), low, size in zip(self.variables, words[::2], words[1::2], strict=True):
            if found == name and kind in kinds:
                return HostVariable(name, low, size, low, self)
        return None

    def entry(self, copy: Copy, kernel: Kernel) -> int:
        return copy.words("fly_entries", len(self._numbers))[kernel.number]

    def own_memory(self, copy: Copy, shared: int) -> list[Region]:
        """The module's variables in a copy. `shared` is the size of dynamic shared memory."""
        words = copy.words("fly_variables", 2 * len(self.variables))
        regions = []
        for (name, kind), low, size in zip(self.variables, words[::2], words[1::2], strict=True):
            label = f"shared memory {name}" if kind in ("shared", "dynamic") else f"variable {name}"
            length = shared if kind == "dynamic" else size
            regions.append(Region(label, low, length, kind != "constant"))
        return regions

    def shared_memory(self, copy: Copy, shared: int) -> list[Region]:
        """The shared memory of the block that a copy runs."""
        regions = zip(self.variables, self.own_memory(copy, shared), strict=True)
        return [region for (_, kind), region in regions if kind in ("shared", "dynamic")]

    def reset_poison(self, copy: Copy, stacks: Region, shared: int) -> None:
        """Prepares memory for the sanitizer: stacks, on which a fault may have left arrays'
        redzones, and dynamic shared memory, of which only `shared` bytes are the launch's."""
        sanitizer.set_accessible(stacks.low, stacks.length)
        for (_, kind), region in zip(self.variables, self.own_memory(copy, shared), strict=True):
            if kind == "dynamic":
                sanitizer.set_accessible(region.low, shared)
                rest = rewrite.LARGEST_SHARED - shared
                sanitizer.set_accessible(region.low + shared, rest, accessible=False)

    def unload(self) -> None:
        """See Module."""
        with self._loading:
            self._functions.clear()
            while self._copies:
                self._copies.pop().unload()
