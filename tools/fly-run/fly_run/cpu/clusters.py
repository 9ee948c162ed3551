"""Launches of clusters of blocks: each block of a cluster runs in a copy of the library of its own.

The blocks of a cluster take turns on one host thread: each runs until its threads wait for other
blocks, or its slice is over. If none of them moves in a whole turn, none ever will: a deadlock.

A block's shared memory is seen by the others from when all of them have begun to when it has ended,
as the PTX ISA has it ("mapa", "barrier.cluster"): an access that nothing orders behind the begin of
the other block, or before its end, is a fault.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING

from fly_cpu import state
from fly_cpu.runtime.clusters import MEETING_WORDS

from fly_run.cpu.loading import Copy, Region

if TYPE_CHECKING:
    from fly_run.cpu.execution import Launch

Triple = tuple[int, int, int]


class Cluster:
    """The copies that run the blocks of one cluster after another."""

    def __init__(self, launch: Launch, copies: list[Copy], shape: Triple):
        self.launch, self.copies, self.shape = launch, copies, shape
        self.counts = tuple(a // b for a, b in zip(launch.grid, shape, strict=True))
        self._meeting = (ctypes.c_uint64 * MEETING_WORDS)()
        self._tickets = [ctypes.c_uint64() for _ in copies]
        bases = [copy.base for copy in copies]
        distances = [[(there - own) % (1 << 64) for there in bases] for own in bases]
        self._peers = [(ctypes.c_uint64 * len(copies))(*row) for row in distances]
        self._shared = [launch.kernel.module.shared_memory(one, launch.shared) for one in copies]
        self._ended: set[int] = set()
        for rank, copy in enumerate(copies):
            launch.prepare(copy)
            words = {
                "tickets": ctypes.addressof(self._tickets[rank]),
                "cluster": len(copies),
                **{f"cluster_{axis}": size for axis, size in zip("xyz", shape, strict=True)},
                "rank": rank,
                "peers": ctypes.addressof(self._peers[rank]),
                "meeting": ctypes.addressof(self._meeting),
            }
            for name, value in words.items():
                copy.set(name, value)

    def run(self) -> None:
        """Runs clusters until there are none. Raises Fault for an error of the kernel."""
        total = self.counts[0] * self.counts[1] * self.counts[2]
        while not self.launch.stop:
            number = self.launch.take()
            if number >= total:
                return
            self._run(number)

    def _run(self, number: int) -> None:
        """Runs one cluster."""
        launch = self.launch
        threads = launch.block[0] * launch.block[1] * launch.block[2]
        self._meeting[:] = [threads * len(self.copies), 0, 0, 0, 0]
        self._ended = set()
        statuses: dict[int, int] = {}
        for rank, copy in enumerate(self.copies):
            block = self._block(number, rank)
            self._tickets[rank].value = block
            for name, value in (("blocks", block + 1), ("hopeless", 0), ("unseen", 1)):
                copy.set(name, value)
            copy.show(launch.regions(copy))
        for rank, copy in enumerate(self.copies):
            statuses[rank] = self._until_it_waits(copy, copy.run(1))
            self._note_end(rank, statuses[rank], begun=False)
        self._show()
        while set(statuses.values()) != {state.FINISHED} and not launch.stop:
            moved = False
            for rank, copy in enumerate(self.copies):
                if statuses[rank] == state.FINISHED:
                    continue
                moved |= statuses[rank] == state.SLICE
                copy.set("moved", 0)
                copy.set("turns", state.TURNS)
                statuses[rank] = self._until_it_waits(copy, copy.run(0))
                moved |= bool(copy.get("moved"))
                self._note_end(rank, statuses[rank])
            launch.look_up(self.copies[0])
            if not moved:
                waiting = [self.copies[r] for r, s in statuses.items() if s == state.WAITING]
                # The one that reports the deadlock: it waits for something else than the cluster.
                waiting.sort(key=lambda copy: copy.get("size") == state.CLUSTER)
                waiting[0].set("hopeless", 1)

    def _until_it_waits(self, copy: Copy, status: int) -> int:
        """Goes on after what only Python does, until the block waits, ends or was sliced."""
        while status not in (state.FINISHED, state.WAITING, state.SLICE):
            self.launch.serve(copy, status, self.hidden(copy))
            status = copy.run(0)
        return status

    def _note_end(self, rank: int, status: int, begun: bool = True) -> None:
        if status == state.FINISHED:
            self._ended.add(rank)
            if begun:
                self._show()

    def _show(self) -> None:
        """Lets each block see the shared memory of the others that have not ended."""
        for rank, copy in enumerate(self.copies):
            if rank not in self._ended:
                copy.set("unseen", 0)
                others = [
                    region
                    for peer, regions in enumerate(self._shared)
                    for region in regions
                    if peer != rank and peer not in self._ended
                ]
                copy.show([*self.launch.regions(copy), *_named(others)])

    def hidden(self, copy: Copy) -> list[tuple[Region, str]]:
        """The shared memory of the other blocks, and what a fault says of a block whose memory is
        not seen."""
        found = []
        for peer, (other, regions) in enumerate(zip(self.copies, self._shared, strict=True)):
            if other is not copy:
                when = "which has ended" if peer in self._ended else "which may not have begun"
                name = f"the shared memory of block {peer} of the cluster"
                found += [(Region(name, one.low, one.length, True), when) for one in regions]
        return found

    def _block(self, number: int, rank: int) -> int:
        """The number in the grid of a block, x first."""
        place, inside = [], []
        for count, size in zip(self.counts, self.shape, strict=True):
            number, at = divmod(number, count)
            rank, within = divmod(rank, size)
            place.append(at)
            inside.append(within)
        x, y, z = (
            at * size + within for at, size, within in zip(place, self.shape, inside, strict=True)
        )
        return x + self.launch.grid[0] * (y + self.launch.grid[1] * z)


def _named(regions: list[Region]) -> list[Region]:
    return [Region(f"{one.name} of another block", one.low, one.length, True) for one in regions]
