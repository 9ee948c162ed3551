"""`fx.pipeline`: a ring of buffers in shared memory, from which threads read while it is filled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fly_trace.core import tracing
from fly_trace.core.tracing import describe
from fly_trace.gpu.device import barrier
from fly_trace.gpu.immediates import number
from fly_trace.memory.view_construction import make_rmem_tensor
from fly_trace.pipelines.copies import Asynchronous, Cooperation, Registers, Source, repeat, when
from fly_trace.pipelines.mechanisms import GROUP, Guards, rings, target
from fly_trace.pipelines.roles import Everyone, WarpGroups, block_threads, group_number
from fly_trace.pipelines.slots import Later, Slot, Turn
from fly_trace.pipelines.tiles import Buffer, Tile
from fly_trace.values.conversion import convert, integer
from fly_trace.values.dtypes import I32, U32

__all__ = ["pipeline", "pipeline_threads", "tile_source"]

MOST_STAGES = 32


class Pipeline:
    """See `pipeline`."""

    def __init__(self, stages: int, consumers: int | None, tiles: dict[str, Tile]):
        what = "fx.pipeline"
        self._threads = block_threads(what)
        self.consumers = self._threads if consumers is None else consumers
        self.is_specialised = self._threads == self.consumers + GROUP
        if self._threads != self.consumers and not self.is_specialised:
            tracing.refuse(
                f"{what} with consumers={self.consumers} is for blocks of {self.consumers} threads,"
                f" or of {GROUP} more, which copy; the block has {self._threads}",
                f"launch with block=fx.pipeline_threads({self.consumers})",
            )
        self._rings = rings()
        direct = None if self.is_specialised else self._rings.direct(target())
        self._direct = direct
        through_registers = not self.is_specialised and direct is None
        self.stages = min(stages, 2) if through_registers else stages
        self._buffers = {name: Buffer(tile, self.stages) for name, tile in tiles.items()}
        self._filling, self._reading = Turn(self.stages), Turn(self.stages)
        self._guards: Guards | None = None
        self._registers: Registers | None = None
        self._copies: Asynchronous | None = None
        if self.is_specialised:
            if self.consumers % GROUP:
                tracing.refuse(f"{what}: consumers are whole warp groups of {GROUP} threads")
            self._guards = self._rings.guards(self.stages, self.consumers)
            self._number = group_number()
            return
        cooperation = Cooperation(self._threads)
        if direct is None:
            self._registers = Registers(cooperation, self._buffers)
        else:
            self._copies = Asynchronous(direct, cooperation, self._break_count)
        self.ahead = 1 if through_registers else self.stages - 1
        # What is to be filled next, and where that ends; how many groups may not be as usual.
        self._next, self._last = make_rmem_tensor(1, I32), make_rmem_tensor(1, I32)
        self._next[0] = self._last[0] = 0
        self._uneven = make_rmem_tensor(1, I32)
        self._uneven[0] = 0

    # -- roles

    def producer_warps(self, registers: int | None = None) -> Any:
        """The role of filling the ring: `with ring.producer_warps():`. One thread of the warp group
        behind the consumers', if the block has it; else all threads."""
        if not self.is_specialised:
            return Everyone(self._threads)
        return WarpGroups(self._number, self.consumers // GROUP, 1, registers, lead=True)

    def consumer_warps(self, registers: int | None = None) -> Any:
        """The role of reading the ring: `with ring.consumer_warps() as own:`."""
        if not self.is_specialised:
            return Everyone(self._threads)
        return WarpGroups(self._number, 0, self.consumers // GROUP, registers)

    # -- filling

    def fill(self, first: Any, last: Any, load: Callable[[Slot, Any], None]) -> None:
        """Fills buffers for steps `first` to `last` - 1, by `load(slot, step)`, as they are free;
        and `wait` gives them in this order. Where no warps are specialised, `load` is called later,
        by `wait`, for all but the first steps."""
        what = "fx.pipeline: fill"
        if not callable(load):
            tracing.refuse(f"{what} takes a function of a slot and a step, not {describe(load)}")
        first, last = [
            convert(integer(one, f"a step of {what}", I32, U32), I32) for one in (first, last)
        ]
        if self.is_specialised:
            self._fill_all(first, last, load)
            return
        builder = tracing.kernel(what)
        builder.rings[id(self)] = self, Later(load)  # no other ring gets this id
        self._next[0], self._last[0] = first, last
        self._uneven[0] = 0  # all copies for the steps of another `fill` have been waited for
        if self._copies is not None:
            barrier()  # what the steps of another `fill` read is overwritten
        for _ in range(self.ahead):
            self._fill_next()

    def _fill_all(self, first: Any, last: Any, load: Callable[[Slot, Any], None]) -> None:
        role = self.producer_warps()

        def step(number: Any) -> None:
            slot = self.acquire()
            load(slot, number)
            self.commit()

        def lead() -> None:
            when(role.thread == 0, lambda: repeat(first, last, step))

        when(role.__fly_members__(), lead)

    def _fill_next(self) -> None:
        """Fills the next buffer, if there is a step left."""
        _, later = tracing.kernel("fx.pipeline").rings.get(id(self), (self, None))
        if later is None:
            tracing.refuse(
                "ring.wait without ring.fill: nothing fills the ring",
                "call ring.fill(first, last, load) before",
            )
        step = self._next[0]

        def fill() -> None:
            later.call(self._slot(self._filling.stage), step)
            self._filling.pass_on()
            self._next[0] = step + 1

        when(step < self._last[0], fill, self._break_count)
        if self._direct is not None:
            self._direct.commit()

    def acquire(self) -> Slot:
        """The next buffer to fill; waits until it is free. Each of its tiles must be copied once,
        by `slot.copy`, and `commit` ends that. Only in `with ring.producer_warps()`, of a block
        with a warp group that copies."""
        guards = self._specialised("acquire")
        stage = self._filling.stage
        total = sum(one.tile.nbytes for one in self._buffers.values())
        guards.expect(stage, self._filling.parity, total)
        return self._slot(stage)

    def commit(self) -> None:
        """All copies to the buffer that `acquire` gave have been started."""
        self._specialised("commit")
        self._filling.pass_on()

    def _specialised(self, what: str) -> Guards:
        if self._guards is None:
            tracing.refuse(
                f"ring.{what}() is for a block with a warp group that copies, which this one has"
                " not",
                "use ring.fill(first, last, load), which is for all blocks",
            )
        return self._guards

    def _slot(self, stage: Any) -> Slot:
        return Slot(self, stage)

    def _buffer(self, name: str) -> Buffer:
        if name not in self._buffers:
            tracing.refuse(
                f"the ring has no buffer {name}: it has {', '.join(self._buffers)}",
            )
        return self._buffers[name]

    def _copy(self, name: str, given: Any, coordinate: tuple[Any, ...], stage: Any) -> None:
        what, buffer = f"slot.copy({name}=…)", self._buffer(name)
        is_source = self._rings.is_source(given)
        if self._guards is not None:
            if not is_source:
                tracing.refuse(
                    f"{what}: a warp group that copies takes what fx.tile_source makes of a tensor,"
                    f" not {describe(given)}",
                    "call fx.tile_source in the host function, and pass its result to the kernel",
                )
            self._guards.load(given, coordinate, buffer.view(stage), stage)
            return
        if is_source:
            tracing.refuse(
                f"{what}: all threads of the block copy, which takes the tensor itself",
                f"launch with block=fx.pipeline_threads({self.consumers}), or pass the tensor",
            )
        source = Source(what, given, coordinate, buffer.tile)
        if self._registers is not None:
            self._registers.start(name, source, buffer, stage)
            return
        assert self._copies is not None
        self._copies.start(source, buffer, stage)

    # -- reading

    def wait(self) -> Slot:
        """The next buffer to read; waits until it has been filled. `release` ends its use. All
        consumers call both, the same number of times."""
        turn = self._reading
        stage = turn.stage
        if self._guards is not None:
            self._guards.filled(stage, turn.parity)
        else:
            self._land(stage)
            barrier()
            self._fill_next()
        turn.pass_on()
        return self._slot(stage)

    def _land(self, stage: Any) -> None:
        """Waits for this thread's copies to a stage."""
        if self._registers is not None:
            self._registers.land(self._buffers, stage)
            return
        direct = self._direct
        assert direct is not None
        later = self.ahead - 1
        if direct.groups:
            direct.wait(later)
            return
        copies = later * sum(one.tile.pieces // self._threads for one in self._buffers.values())
        if not later or copies > direct.most:
            direct.wait(0)
            return
        when(self._uneven[0] == 0, lambda: direct.wait(copies), lambda: direct.wait(0))

    def _break_count(self) -> None:
        """From now on fewer copies run than a count of them assumes."""
        self._uneven[0] = 1

    def release(self, slot: Slot) -> None:
        """This thread will not read a buffer any more: what it has read of it has arrived in
        registers. Without a warp group that copies, `wait` for the next one says the same."""
        if not isinstance(slot, Slot):
            tracing.refuse(f"ring.release takes the slot that ring.wait gave, not {describe(slot)}")
        if self._guards is not None:
            self._guards.release(slot.stage)


def pipeline(stages: int, *, consumers: int | None = None, **buffers: Any) -> Pipeline:
    """A ring of `stages` buffers in shared memory, each of the named tiles: a=(fx.Float16, (128,
    64)) is a tile of 128 rows and 64 columns. All threads make it together.

        ring = fx.pipeline(4, consumers=256, a=(fx.Float16, (128, 64)), b=(fx.Float16, (128, 64)))

        def load(slot, step):
            slot.copy(a=(A, row, step * 64), b=(B, column, step * 64))

        with ring.producer_warps(registers=40):
            ring.fill(0, steps, load)
        with ring.consumer_warps(registers=232) as own:
            for step in range(steps):
                slot = ring.wait()
                ...  # read slot.a and slot.b
                ring.release(slot)

    `consumers` is the number of threads that read, all of the block's by default. The kernel is
    launched with `fx.pipeline_threads(consumers)` threads. By the target, and by that number, it
    is one of these:

    | target | copies | guards |
    |---|---|---|
    | sm_90a, sm_100a, with 128 threads more | by TMA, by one of those threads | mbarriers |
    | sm_80 and later, without them | `cp.async`, by all threads | groups of copies, barriers |
    | gfx1250 | asynchronous copies to LDS, by all threads | a count of copies, barriers |
    | others | loads to registers before a step, stores behind it | barriers; two buffers |

    A row of a tile is a multiple of 16 bytes. Elements beyond the tensor are 0.
    """
    what = "fx.pipeline"
    tracing.kernel(what)
    count = number(stages, f"the stages of {what}", MOST_STAGES)
    if count < 2:
        tracing.refuse(f"{what} needs 2 stages at least, not {count}")
    if not buffers:
        tracing.refuse(f"{what} needs a buffer", "as in a=(fx.Float16, (128, 64))")
    tiles = {}
    for name, given in buffers.items():
        pair = given if isinstance(given, tuple) and len(given) == 2 else (None, given)
        if hasattr(Slot, name) or name.startswith("_"):
            tracing.refuse(f"{what}: a buffer can't be called {name}", "choose another name")
        tiles[name] = Tile(f"{what}, {name}=", *pair)
    readers = None if consumers is None else number(consumers, f"the consumers of {what}", 1024)
    return Pipeline(count, readers, tiles)


def pipeline_threads(consumers: int) -> int:
    """In the host function: the threads of a block of which so many read a ring. Where a warp group
    that only copies is best, it has 128 more."""
    tracing.current("fx.pipeline_threads")
    more = GROUP if consumers % GROUP == 0 and rings().is_specialised(target()) else 0
    return consumers + more


def tile_source(tensor: Any, dtype_and_shape: Any) -> Any:
    """In the host function: what a ring copies the tiles of a tensor from, an argument of the
    kernel. `dtype_and_shape` describes the tiles as `fx.pipeline` has them. Where a warp group
    copies by TMA this is a tensor map, for which the tensor must begin at a multiple of 16 bytes,
    and its rows too; elsewhere the tensor."""
    what = "fx.tile_source"
    if not tracing.current(what).host:
        tracing.refuse(f"{what} is for host functions: pass its result to the kernel")
    pair = dtype_and_shape if isinstance(dtype_and_shape, tuple) else ()
    tile = Tile(what, *(pair if len(pair) == 2 else (None, dtype_and_shape)))
    return rings().source(tensor, tile.layout)
