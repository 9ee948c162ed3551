"""The memory that HIP's functions know: allocated, registered, and global variables of modules.

A pointer of HIP is a host address, and kernels use the same one: the emulator maps all this memory
at its own address (`Emulator.map`). Its bounds are checked to the byte. Addresses of freed memory
are not used again soon, so that a use after the free faults.

Other memory of the host is accessible too, as on a system whose devices can access pageable memory.
Nothing tells its bounds, so before a launch the whole mapping of the operating system is mapped
that contains an address in the arguments (`host_memory`).
"""

from __future__ import annotations

import bisect
import ctypes
import errno
import mmap
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from fly_common.errors import FlyError

from fly_run.emulator.engine.arena import CAPACITY, OWN
from fly_run.hip_runtime.errors import Failure, need

DEVICE, HOST, MANAGED, REGISTERED, GLOBAL = (
    "device memory",
    "host memory",
    "managed memory",
    "registered memory",
    "global variable",
)
GAP = 1 << 16  # bytes between two allocations
PAGE = mmap.PAGESIZE
MOST = CAPACITY - 128  # allocations; the rest is for memory of the host
MOST_AT_ONCE = 1 << 30  # bytes; the operating system copies at most 2 GiB
# Allocations are in this range of addresses, which Linux does not use by itself. Bit 31 is set in
# the first, as in the emulator's own addresses.
FIRST, LAST = 0x6F10_8000_0000, 0x6FF0_0000_0000
FIXED_NOREPLACE, NORESERVE = 0x100000, 0x4000  # MAP_…
FAILED = ctypes.c_void_p(-1).value


@dataclass(frozen=True)
class Allocation:
    """Memory by its address. `flags` are those of the function that made it. `mapped` are the bytes
    to return to the operating system."""

    start: int
    size: int
    kind: str
    device: int
    number: int
    flags: int = 0
    mapped: int = 0
    label: str = ""

    @property
    def end(self) -> int:
        return self.start + self.size

    @property
    def name(self) -> str:
        return self.label or f"{self.kind} {self.number}"


class Memory:
    """The allocations of a process, by address."""

    next = FIRST  # of all instances

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._held: dict[int, Allocation] = {}
        self._count = 0
        self.used = 0  # bytes allocated
        self.total = os.sysconf("SC_PHYS_PAGES") * PAGE
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._libc.mmap.restype = ctypes.c_void_p
        self._libc.process_vm_writev.restype = ctypes.c_ssize_t
        sizes, numbers = [ctypes.c_void_p, ctypes.c_size_t], [ctypes.c_int] * 3
        self._libc.mmap.argtypes = [*sizes, *numbers, ctypes.c_long]
        self._libc.munmap.argtypes = sizes
        # The host's allocations are to stay off the addresses of the emulator.
        for start, size in OWN:
            self._map(start, size, 0)

    def _map(self, start: int, size: int, access: int) -> bool:
        """Maps memory at exactly this address. Returns False if it is not free."""
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | FIXED_NOREPLACE
        flags |= 0 if access else NORESERVE
        found = self._libc.mmap(start, size, access, flags, -1, 0)
        if found not in (start, None, FAILED):  # a Linux before 4.17 takes the address as a hint
            self._libc.munmap(found, size)
        return found == start

    def __iter__(self) -> Iterator[Allocation]:
        return iter([self._held[start] for start in self._starts])

    def find(self, address: int) -> Allocation | None:
        """Returns the allocation that contains an address."""
        index = bisect.bisect_right(self._starts, address) - 1
        found = self._held[self._starts[index]] if index >= 0 else None
        return found if found is not None and address < found.end else None

    def starting_at(self, address: int) -> Allocation | None:
        return self._held.get(address)

    def allocate(self, size: int, kind: str, device: int, flags: int = 0) -> Allocation:
        """Allocates zeroed memory. hipErrorOutOfMemory if there is not as much."""
        mapped = size + -size % PAGE
        self.need_room()
        need(size <= self.total - self.used, "hipErrorOutOfMemory", f"{size} bytes")
        for _ in range(64):
            if Memory.next + mapped + GAP > LAST:
                Memory.next = FIRST
            wanted = Memory.next
            Memory.next += mapped + GAP
            if self._map(wanted, mapped, mmap.PROT_READ | mmap.PROT_WRITE):
                self.used += size
                return self.add(Allocation(wanted, size, kind, device, 0, flags, mapped))
        raise Failure("hipErrorOutOfMemory", f"{size} bytes")

    def need_room(self) -> None:
        """hipErrorOutOfMemory if the emulator's table has no room for another allocation."""
        need(len(self._starts) < MOST, "hipErrorOutOfMemory", f"{MOST} allocations exist")

    def add(self, allocation: Allocation) -> Allocation:
        """Adds memory that was made elsewhere, or by `allocate`, and numbers it."""
        self._count += 1
        made = Allocation(**{**vars(allocation), "number": self._count})
        bisect.insort(self._starts, made.start)
        self._held[made.start] = made
        return made

    def remove(self, allocation: Allocation) -> None:
        """Forgets memory, and returns it to the operating system if it was allocated."""
        self._starts.remove(allocation.start)
        del self._held[allocation.start]
        if allocation.mapped:
            self.used -= allocation.size
            self._libc.munmap(allocation.start, allocation.mapped)

    def check(self, address: int, size: int) -> None:
        """hipErrorInvalidValue for a null pointer, for more bytes than there are, or for bytes of
        which only the first are in an allocation. `move` checks other memory of the host."""
        need(address, reason="a null pointer")
        need(size <= self.total, reason=f"{size} bytes")
        found = self.find(address)
        if found is not None and address + size > found.end:
            raise Failure(
                "hipErrorInvalidValue",
                f"{size} bytes at 0x{address:x} exceed {found.name} of {found.size} bytes",
            )

    def move(self, to: int, source: int, size: int) -> None:
        """Copies bytes. hipErrorInvalidValue for memory that does not exist, or may not be written,
        which the operating system finds out."""
        if self.find(to) is not None and self.find(source) is not None:
            ctypes.memmove(to, source, size)
            return
        for done in range(0, size, MOST_AT_ONCE):
            count = min(size - done, MOST_AT_ONCE)
            here, there = _Span(source + done, count), _Span(to + done, count)
            spans = ctypes.byref(here), 1, ctypes.byref(there), 1
            moved = self._libc.process_vm_writev(os.getpid(), *spans, ctypes.c_ulong(0))
            if moved < 0 and ctypes.get_errno() in (errno.EPERM, errno.ENOSYS):
                ctypes.memmove(to + done, source + done, count)  # a sandbox
            elif moved < count:
                raise Failure("hipErrorInvalidValue", f"0x{source:x} or 0x{to:x} is inaccessible")


class _Span(ctypes.Structure):
    """struct iovec."""

    _fields_ = [("start", ctypes.c_size_t), ("size", ctypes.c_size_t)]


@dataclass(frozen=True)
class Piece:
    """A part of a mapping of the operating system."""

    start: int
    end: int
    writable: bool


def host_memory(addresses: Iterable[int], known: Memory) -> list[Piece]:
    """Returns the host's memory around these addresses: whole mappings that can be read, without
    what `known` has. Addresses where nothing is mapped are ignored."""
    wanted = sorted({one for one in addresses if one >= PAGE and known.find(one) is None})
    if not wanted:
        return []
    pieces: list[Piece] = []
    for start, end, access in _mappings():
        index = bisect.bisect_left(wanted, start)
        if index < len(wanted) and wanted[index] < end and access.startswith("r"):
            pieces += _without(Piece(start, end, access[1] == "w"), known)
    return pieces


def _without(piece: Piece, known: Memory) -> Iterator[Piece]:
    start = piece.start
    for one in known:
        if one.end > start and one.start < piece.end:
            if one.start > start:
                yield Piece(start, one.start, piece.writable)
            start = one.end
    if start < piece.end:
        yield Piece(start, piece.end, piece.writable)


def _mappings() -> Iterator[tuple[int, int, str]]:
    """Yields the process's mappings: start, end, access ("rw-p")."""
    try:
        with open("/proc/self/maps") as file:
            lines = file.readlines()
    except OSError as error:
        raise FlyError(f"/proc/self/maps can't be read: {error.strerror}") from None
    for line in lines:
        words = line.split(maxsplit=2)
        if "[v" not in line:  # [vdso], [vvar], [vsyscall]
            start, _, end = words[0].partition("-")
            yield int(start, 16), int(end, 16), words[1]
