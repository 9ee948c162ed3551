"""What a fault says: the access, kernel, instruction, block, thread, and the source line."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Sequence

from fly_common.errors import Fault, Place
from fly_common.record import replace
from fly_cpu import state
from fly_cpu.runtime import races
from fly_image.dwarf import Line

from fly_run.cpu.loading import Copy, Kernel, Region
from fly_run.devices import memory_faults

HINTS = {
    **memory_faults.HINTS,
    "misaligned": "an access of n bytes needs an address that is a multiple of its alignment",
    "divergent": "all threads of a warp have to execute the same barrier",
    "deadlock": "the other threads of the block have ended, or wait elsewhere",
    "mask": "a lane executes an operation of its warp only with its own bit in the mask",
    "barrier": "there are the barriers 0 to 15, for whole warps",
    "stack": "recursion, or large arrays in local memory",
    "assert": None,
    "mbarrier": "fx.nvvm.Pipeline initialises mbarriers, and counts arrivals and bytes",
    "cluster": "every thread of the cluster arrives once before it waits: fx.cluster.barrier",
    "hidden": "wait for the cluster (fx.cluster.barrier) before the first access to another block's"
    " shared memory, and behind the last one",
    "map": "pass a tensor map of the host function on as it is",
    "race": "order them by a barrier, an mbarrier's phase, or a wait for asynchronous copies",
    "sanitizer": "AddressSanitizer's report tells what is at this address",
}


_MBARRIERS = (
    "it is not initialised",
    "more arrivals than its phase waits for",
    "more than 1 MB expected, or brought by copies that nobody expects",
    "it must wait for 1 to 1048575 arrivals",
)
_CLUSTERS = (
    "the thread has arrived at the cluster's barrier before, and has not waited",
    "the thread waits at the cluster's barrier, and has not arrived there",
    "the cluster has no block {}",
)
_FOUND = re.compile(r"ERROR: AddressSanitizer: ([\w-]+)")


def describe(
    kernel: Kernel,
    copy: Copy,
    block: tuple[int, int, int],
    regions: Sequence[Region],
    hidden: Sequence[tuple[Region, str]] = (),
) -> Fault:
    """Returns the fault that a library has recorded. `block` is the launch's; `hidden` is memory of
    the cluster's other blocks, with what a fault says of a block whose memory is not seen."""
    kind = (*state.KINDS, "sanitizer", "race")[copy.get("kind")]
    address, size = copy.get("address") & (1 << 64) - 1, copy.get("size")
    access = f"{size} bytes at 0x{address:x}"
    if kind == "read-only":
        holder = _holder(regions, address, size)
        if holder is None:
            kind = "unmapped"
        else:
            what = f"write to read-only memory: {access}: `{holder.name}` may only be read"
    others = [region for region, _ in hidden]
    held = _holder(others, address, size) if kind == "unmapped" else None
    if held is not None:
        why = hidden[others.index(held)][1]
        kind, what = "hidden", f"memory fault: {access}: in {held.name}, {why}"
    if kind == "unmapped":
        what = f"memory fault: {access}: {memory_faults.nearest(regions, address, size)}"
    elif kind == "misaligned":
        what = f"misaligned access: {access}"
    elif kind == "trap":
        what = "trap"
    elif kind == "divergent":
        what = "divergent barrier: not all threads of the warp execute it"
    elif kind == "deadlock":
        what = _deadlock(address, size, copy.get("waiting"))
    elif kind == "mask":
        what = f"the thread is not in the mask 0x{address:x} of an operation of its warp"
    elif kind == "barrier":
        what = f"barrier {address} for {size} threads does not exist"
    elif kind == "mbarrier":
        what = f"mbarrier at 0x{address:x}: {_MBARRIERS[size]}"
    elif kind == "race":
        what = _race(kernel, copy, block, [*regions, *others])
    elif kind == "cluster":
        what = _CLUSTERS[size].format(address)
    elif kind == "map":
        what = f"there is no tensor map at 0x{address:x}"
    elif kind == "stack":
        what = f"private memory fault: each thread has {size} bytes of stack"
    elif kind == "assert":
        message = ctypes.string_at(address).decode(errors="replace") if address else ""
        what = f"assertion failed: {message}"
    elif kind == "sanitizer":
        found = _FOUND.search(copy.report())
        what = f"AddressSanitizer: {found[1] if found else 'memory fault'}: {access}"
        holder = _holder(regions, address, size)
        near = f"in `{holder.name}`" if holder else memory_faults.nearest(regions, address, size)
        what += f": {near}"
    site = kernel.module.sites[copy.get("site")]
    place = _place(site.location)
    return Fault(f"{what}; {where(kernel, copy, block, site.what)}", hint=HINTS[kind], place=place)


def _race(
    kernel: Kernel, copy: Copy, block: tuple[int, int, int], regions: Sequence[Region]
) -> str:
    """What races with the access of a fault: see `fly_cpu.runtime.races`."""
    address, told = copy.get("address") & (1 << 64) - 1, copy.get("size") & (1 << 64) - 1
    ways = ["write" if told >> bit & 1 else "read" for bit in (32, 33)]
    holder = _holder(regions, address, 1)
    name, low = (holder.name, holder.low) if holder else ("shared memory", 0)
    other = kernel.module.sites[copy.get("waiting")]
    at = _place(other.location)
    line = f" at {at.file}:{at.line}" if at is not None else ""
    rank, index = divmod(told >> 34, 1 << races.THREAD_BITS)
    thread = index % block[0], index // block[0] % block[1], index // (block[0] * block[1])
    whose = f" of block {rank} of the cluster" if rank != copy.get("rank") else ""
    return (
        f"race: this {ways[0]} of byte 0x{address - low:x} of {name} and the {ways[1]} before it,"
        f" '{other.what}'{line} of thread {thread}{whose}, have no order"
    )


def _place(rows: Sequence[tuple[str, int, int]] | None) -> Place | None:
    """The place of a site, with the calls that lead there."""
    if not rows:
        return None
    first, *calls = (Line(*row).place() for row in rows)
    return replace(first, calls=tuple(calls))


def _holder(regions: Sequence[Region], address: int, size: int) -> Region | None:
    return next((r for r in regions if r.low <= address and address + size <= r.end), None)


def _deadlock(waiting: int, waits: int, ended: int) -> str:
    if waits == state.MBARRIER:
        return f"deadlock: nothing can end the phase of parity {waiting} of this mbarrier"
    if waits == state.CLUSTER:
        return "deadlock: not all threads of the cluster arrive at its barrier"
    if waits == state.BARRIER and waiting >= state.MOST_BARRIERS:
        return "not all threads of the warp group wait for its products"
    others = f"; {ended} threads have ended" if ended else ""
    if waits == state.BARRIER:
        return f"divergent barrier: not all threads reach barrier {waiting}{others}"
    return f"not all lanes of the mask 0x{waiting & 0xFFFFFFFF:x} reach the operation{others}"


def where(kernel: Kernel, copy: Copy, block: tuple[int, int, int], what: str = "") -> str:
    """The kernel, the instruction, the block and the thread."""
    index = copy.get("thread")
    thread = index % block[0], index // block[0] % block[1], index // (block[0] * block[1])
    group = tuple(copy.get(f"ctaid_{axis}") for axis in "xyz")
    at = f" '{what}'" if what else ""
    return f"kernel {kernel.interface.name}{at} block {group} thread {thread}"
