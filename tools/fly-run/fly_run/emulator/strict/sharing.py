"""What the waves of a workgroup do with its LDS: accesses, copies, arrivals at barriers there."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from fly_run.emulator.isa.instruction import Instruction
from fly_run.emulator.semantics.base.access import Access, Atomic
from fly_run.emulator.strict import races, tensor
from fly_run.emulator.strict.accesses import Destination, Values
from fly_run.emulator.strict.clusters import Cluster
from fly_run.emulator.strict.dataflow import Effect
from fly_run.emulator.strict.lds_barriers import BYTES, LdsBarriers
from fly_run.emulator.strict.ordering import Barrier, Clock, NamedBarriers, Timeline, join
from fly_run.emulator.strict.races import SharedBytes
from fly_run.emulator.strict.reports import Reports
from fly_run.emulator.strict.undefined.shadow import Memory, Shadow
from fly_run.emulator.strict.waits import Counters, Outstanding
from fly_run.emulator.watch.observe import WaveView

# gfx1250: copies between memory and LDS, and tensor data moves, have counters of their own.
ASYNC, ASYNC_COUNTER = "_async_", "asynccnt"
TENSOR, TENSOR_COUNTER = "fly_tensor_copy", "tensorcnt"
ARRIVE = "ds_atomic_barrier_arrive_rtn_b64"
ARRIVALS = (ARRIVE, "fly_arrive_in_lds")


@dataclass
class Group:
    """A workgroup: the state of its LDS for races and the undefined bytes, its cluster and its
    number there, its barriers."""

    number: tuple[int, int, int]
    shared: SharedBytes
    undefined: Memory
    cluster: Cluster
    rank: int
    arrived: LdsBarriers
    barrier: Barrier = field(default_factory=Barrier)
    named: NamedBarriers = field(default_factory=NamedBarriers)


@dataclass
class Track:
    """A wave since its start. `shared` are its outstanding accesses to LDS, and `gets` what it gets
    from barriers in LDS when its outstanding loads are done."""

    number: int
    group: Group
    counters: Counters
    shadow: Shadow
    timeline: Timeline
    shared: dict[Outstanding, races.Access] = field(default_factory=dict)
    gets: dict[Outstanding, Clock] = field(default_factory=dict)

    def wait(self, instruction: Instruction) -> None:
        """Completes what an instruction waits for, and orders it."""
        done = self.counters.wait(instruction)
        races.order(done, self.shared, self.timeline.next)
        for one in done if self.gets else ():
            join(self.timeline.clock, self.gets.pop(one, {}))

    def access(self, instruction: Instruction, kind: str, straight: bool) -> races.Access:
        return races.Access(instruction, self.number, kind, straight, self.group.rank)

    def earlier(self, counter: str) -> list[races.Access]:
        """Returns the outstanding accesses that are done before what is issued now."""
        found = (self.shared.get(one) for one in self.counters.queues.get(counter, ()))
        return [access for access in found if access is not None]


class Sharing:
    def __init__(self, report: Reports) -> None:
        self._report = report
        self._hidden: list[tuple[np.ndarray, bytes]] = []

    def restore(self) -> None:
        """Undoes what a load of a barrier was shown."""
        for place, word in self._hidden:
            place[:] = np.frombuffer(word, np.uint8)
        self._hidden.clear()

    def access(
        self,
        wave: WaveView,
        track: Track,
        made: races.Access,
        issued: Outstanding,
        effect: Effect,
        place: Destination,
        values: Values,
    ) -> None:
        """Records an access of active lanes to LDS."""
        detail = effect.operation.detail
        assert isinstance(detail, Access | Atomic)
        rows = stored(effect, values)
        lanes = np.flatnonzero(place.lanes)
        offsets = place.offsets[lanes, None] + np.arange(detail.size)
        data = races.moved(detail, lanes, rows) if rows and isinstance(detail, Access) else None
        self._share(wave, track, made, offsets, data)
        if made.kind == "arrival":
            amounts = _amounts(effect, values)[lanes].tolist()
            counter = "dscnt" if effect.operation.mnemonic == ARRIVE else ASYNC_COUNTER
            places = zip(place.offsets[lanes].tolist(), amounts, strict=True)
            earlier = track.earlier(counter)
            track.group.arrived.arrive(made, track.timeline, places, earlier, wave.lds)
        elif made.kind == "load":
            self._poll(wave, track, made, issued, offsets)

    def _share(
        self,
        wave: WaveView,
        track: Track,
        made: races.Access,
        offsets: np.ndarray,
        data: np.ndarray | None = None,
    ) -> None:
        found = track.group.shared.access(made, offsets, track.timeline.clock, data)
        if found is not None:
            raise self._report.race(wave, made, *found)
        if made.kind in ("store", "atomic"):
            track.group.arrived.store(offsets)

    def _poll(
        self,
        wave: WaveView,
        track: Track,
        made: races.Access,
        issued: Outstanding,
        offsets: np.ndarray,
    ) -> None:
        """A load may read barriers. What it is shown is undone after it."""
        shown = track.group.arrived.load(made, track.timeline.clock, offsets)
        for address, seen, gets in shown:
            place = wave.lds[address : address + BYTES]
            self._hidden.append((place, place.tobytes()))
            place[:] = np.frombuffer(seen.word.to_bytes(BYTES, "little"), np.uint8)
            join(track.gets.setdefault(issued, {}), gets)

    def move_tensor(
        self,
        wave: WaveView,
        track: Track,
        instruction: Instruction,
        effect: Effect,
        values: Values,
    ) -> None:
        """Counts a tensor data move, and records the bytes of LDS that it reads or writes, and its
        arrival at a barrier."""
        group = track.group
        made = track.counters.issue(instruction, TENSOR_COUNTER, TENSOR, frozenset())
        offsets = tensor.lds_bytes(effect.step, values, len(wave.lds))
        barrier = tensor.arrives(effect.step, values)
        use = tensor.undefined_use(effect.step, track.shadow, group.undefined, offsets, barrier)
        if use is not None:
            raise self._report.uninitialised(wave, instruction, use)
        kind = "load" if tensor.stores(effect.step) else "store"
        access = track.access(instruction, kind, straight=True)
        self._share(wave, track, access, offsets[:, None])
        if kind == "store":
            group.undefined.bytes[offsets] = 0
        track.shared[made] = access
        if barrier is not None:
            arrival = track.access(instruction, "arrival", straight=True)
            self._share(wave, track, arrival, barrier + np.arange(BYTES))
            earlier = track.earlier(TENSOR_COUNTER)  # moves of a wave are done in order
            once = [(barrier, 1)]
            group.arrived.arrive(arrival, track.timeline, once, earlier, wave.lds)

    def check_lanes(
        self,
        wave: WaveView,
        instruction: Instruction,
        effect: Effect,
        values: Values,
        places: list[Destination],
    ) -> None:
        """Raises a fault if two lanes of one store put different values at one byte."""
        detail, rows = effect.operation.detail, stored(effect, values)
        if rows is None or not isinstance(detail, Access):
            return
        for where in (place for place in places if place.space == "lds"):
            found = races.clash(detail, where, rows)
            if found is None:
                continue
            first, second, byte = found
            message = (
                f"LDS race: lanes {first} and {second} of one store write different values to byte"
                f" 0x{byte:x}"
            )
            raise self._report.fault(
                wave, instruction, message, "each byte needs one lane that stores"
            )


def kind_of(effect: Effect) -> str:
    """Returns the kind of an access (`races.Access`)."""
    detail = effect.operation.detail
    if isinstance(detail, Access):
        return detail.kind
    return "arrival" if effect.operation.mnemonic in ARRIVALS else "atomic"


def stored(effect: Effect, values: Values) -> list[np.ndarray] | None:
    """Returns the register rows of a store, if they are known; None for other steps."""
    if kind_of(effect) != "store":
        return None
    rows = [values.row(word) for word in effect.reads[-1].words()]
    known = [row for row in rows if row is not None]
    return known if len(known) == len(rows) else None


def _amounts(effect: Effect, values: Values) -> np.ndarray:
    """Returns by how much each lane lowers the pending count. Of a copy it is one."""
    row = None
    if effect.operation.mnemonic == ARRIVE:
        row = values.row(effect.reads[-1].words()[0])
    return np.ones(64, np.uint32) if row is None else row
