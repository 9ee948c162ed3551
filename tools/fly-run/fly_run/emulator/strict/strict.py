"""`--strict`: an observer that ends a launch whose result depends on luck.

    waits          a register is read, or overwritten, before the wait for its load        waits
    races          two waves, or two lanes, access one byte of LDS unordered               races
    uninitialised  a value that was never written affects the result                       undefined
    undecided      no public source specifies the result of the instruction              unspecified
    clusters       signals of a cluster's barrier, and multicasts                           clusters

It checks every instruction before it is executed, in Python: benchmarks/observers.py measures the
speed. Races between workgroups on global memory are not detected.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from fly_target import registry
from fly_target.amd.facts import facts_of

from fly_run.emulator import state
from fly_run.emulator.engine import dispatch
from fly_run.emulator.isa.instruction import Immediate, Instruction
from fly_run.emulator.lowering.encode import Encoder
from fly_run.emulator.lowering.registers import Constants, Registers
from fly_run.emulator.semantics import table
from fly_run.emulator.semantics.base.access import Access, Atomic
from fly_run.emulator.strict import clusters, races, tensor, undefined, unspecified
from fly_run.emulator.strict.accesses import Destination, Values, destinations
from fly_run.emulator.strict.clusters import Cluster, Clusters
from fly_run.emulator.strict.dataflow import Effect, effects_of
from fly_run.emulator.strict.races import SharedBytes
from fly_run.emulator.strict.reports import Reports
from fly_run.emulator.strict.shadow import SHARED, Memory, Shadow
from fly_run.emulator.strict.waits import Counters, Outstanding
from fly_run.emulator.watch.observe import Count, Launch, Wants, WaveView

ROOM = 1 << 24  # bytes of constants
SIGNALS = ("s_barrier", "s_barrier_signal", "s_barrier_signal_isfirst")
BARRIERS = ("s_barrier", "s_barrier_wait")
CACHE = ("buffer_inv", "buffer_wb", "global_inv", "global_wb")
# gfx1250: copies between memory and LDS, and tensor data moves, have counters of their own.
ASYNC, ASYNC_COUNTER = "_async_", "asynccnt"
TENSOR, TENSOR_COUNTER = "fly_tensor_copy", "tensorcnt"
LDS_BARRIER = "_barrier_arrive_"
SCALAR_TIMES = ("s_memtime", "s_memrealtime")


@dataclass
class Group:
    """A workgroup: the state of its LDS for races and the undefined bytes, its cluster and its
    number there."""

    number: tuple[int, int, int]
    shared: SharedBytes
    undefined: Memory
    cluster: Cluster
    rank: int


@dataclass
class Track:
    """A wave since its start: it has signalled `signals` barriers and passed `barriers` of them,
    which are separate instructions on gfx12."""

    number: int
    group: Group
    counters: Counters
    shadow: Shadow
    signals: int = 0
    barriers: int = 0
    shared: dict[Outstanding, races.Access] = field(default_factory=dict)
    completed: list[races.Access] = field(default_factory=list)  # since a signal to the cluster


class Strict:
    """An Observer that raises Fault."""

    def __init__(self) -> None:
        self._effects: dict[int, tuple[Effect, ...]] = {}  # by pc
        self._tracks: dict[int, Track] = {}
        self._groups: dict[int, Group] = {}

    def wants(self, instruction: Instruction) -> Wants:
        return Wants.BEFORE

    def begin(self, launch: Launch) -> None:
        self._launch = launch
        self._report = Reports(launch)
        self._tracks.clear()
        self._groups.clear()
        self._effects.clear()
        self._clusters = Clusters(launch, self._report)
        allocation = launch.allocation
        self._base = state.VGPR + allocation.rows * state.ROW
        target, constants = registry.find(launch.target), Constants(self._base, ROOM)
        registers = Registers(allocation, constants, target, launch.lanes)
        self._encoder = Encoder(registers, table.operations_of(launch.target), {}, 0)
        kernel = launch.kernel
        start = dispatch.scalar_registers(kernel, target, bytes(kernel.kernarg_size), 0, 0, 0)
        self._scalars = len(start.sgprs)
        self._id_rows = dispatch.id_rows(kernel, target)

    def after(self, wave: WaveView, instruction: Instruction) -> None:
        """Never requested."""

    def end(self, executed: int, counts: Sequence[Count]) -> None:
        self._tracks.clear()
        self._groups.clear()

    def before(self, wave: WaveView, instruction: Instruction) -> None:
        if open_question := unspecified.question(instruction, wave.mode):
            message = f"no public source specifies {open_question}"
            hint = "see 'Unspecified behavior' in docs/emulator.md for what the emulator does"
            raise self._report.fault(wave, instruction, message, hint)
        track = self._track(wave)
        done = track.counters.wait(instruction)
        track.completed += races.order(done, track.shared, track.signals)
        self._pass_barrier(wave, track, instruction)
        effects = self._effects_of(instruction)
        active = wave.active()
        constants = self._encoder.registers.constants
        values = Values(wave, constants.data, self._base)
        group = track.group
        if instruction.mnemonic.startswith("s_endpgm"):
            self._clusters.end(wave, group.cluster, instruction)
        made = clusters.asked(instruction, effects, values, active)
        if made is not None:
            shadow = track.shadow
            self._clusters.check(wave, group.cluster, group.rank, instruction, made, shadow)
        reached: list[tuple[Effect, list[Destination]]] = []
        for effect in effects:
            self._check_waits(wave, track, instruction, effect)
            narrowed = self._narrowed(effect, effects, values, active)
            places = destinations(effect, values, active)
            shared = track.group.undefined
            use = undefined.step(track.shadow, effect, values, narrowed, places, shared)
            if use is not None:
                raise self._report.uninitialised(wave, instruction, use)
            self._check_lanes(wave, instruction, effect, values, places)
            reached.append((effect, places))
            values.wrote(effect)
        self._issue(wave, track, instruction, reached, values)

    # -- state

    def _track(self, wave: WaveView) -> Track:
        track = self._tracks.get(wave.address)
        if track is not None and track.group.number == wave.group:
            return track
        slot = wave.lds.ctypes.data
        group = self._groups.get(slot)
        if group is None or group.number != wave.group:
            size = len(wave.lds)
            unknown = Memory((size,), SHARED)
            cluster, rank = self._clusters.of(wave.group)
            group = Group(wave.group, SharedBytes(size), unknown, cluster, rank)
            self._groups[slot] = group
        launch = self._launch
        shadow = Shadow(self._base, launch.scratch, launch.lanes)
        shadow.start(self._scalars, self._id_rows)
        counters = Counters(facts_of(registry.find(launch.target)).generation)
        track = self._tracks[wave.address] = Track(wave.wave, group, counters, shadow)
        return track

    def _effects_of(self, instruction: Instruction) -> tuple[Effect, ...]:
        known = self._effects.get(instruction.pc)
        if known is None:
            steps = self._encoder.lower(instruction)
            encoder = self._encoder
            known = effects_of(instruction, steps, encoder.table, encoder.registers)
            self._effects[instruction.pc] = known
        return known

    def _narrowed(
        self, effect: Effect, effects: tuple[Effect, ...], values: Values, active: np.ndarray
    ) -> np.ndarray:
        """Returns the lanes that a step of a DPP instruction writes."""
        moves = [one for one in effects if one.operation.mnemonic in ("fly_dpp", "fly_dpp_64")]
        if not moves or effect in moves:
            return active
        step, lanes = moves[0].step, active
        bits = np.array([step.immediate & (1 << 64) - 1], np.uint64).view(np.uint8)
        lanes = lanes & np.unpackbits(bits, bitorder="little").astype(bool)
        if not step.extra:
            words = [values.word(step.operands[2] + 4 * lane) or 0 for lane in range(state.LANES)]
            numbers = np.array(words, np.uint32).view(np.int32)
            lanes = lanes & (numbers >= 0) & active[numbers % state.LANES]
        return lanes

    # -- waits

    def _check_waits(
        self, wave: WaveView, track: Track, instruction: Instruction, effect: Effect
    ) -> None:
        written = track.counters.written
        if not written:
            return
        for place in effect.reads:
            for word in place.words():
                if word in written:
                    raise self._report.too_early(
                        wave, track.counters, instruction, written[word], word, "read"
                    )
        for place in effect.writes:
            for word in place.words():
                if word in written and not _in_order(effect, written[word]):
                    raise self._report.too_early(
                        wave, track.counters, instruction, written[word], word, "overwritten"
                    )

    def _issue(
        self,
        wave: WaveView,
        track: Track,
        instruction: Instruction,
        reached: list[tuple[Effect, list[Destination]]],
        values: Values,
    ) -> None:
        """Counts a memory operation as outstanding, and records its access to LDS."""
        registers = range(state.VGPR, self._base)
        written = frozenset(
            word
            for effect, _ in reached
            for place in effect.writes
            for word in place.words()
            if word < state.SCC or word in registers
        )
        counters, name = track.counters, instruction.mnemonic
        made: dict[str, Outstanding] = {}
        shared: races.Access | None = None
        if ASYNC in name:
            # Between memory and LDS: one operation, which writes no register.
            copied = counters.issue(instruction, ASYNC_COUNTER, ASYNC, frozenset())
            made["memory"] = made["lds"] = copied
        for effect, places in reached:
            if effect.operation.mnemonic == TENSOR:
                self._move_tensor(wave, track, instruction, effect, values)
            for place in places:
                space = "memory" if place.space == "scratch" else place.space
                # A load from memory straight to LDS: both accesses complete with the load.
                straight = space == "lds" and effect.operation.form == "lds" and "memory" in made
                if straight:
                    made["lds"] = made["memory"]
                elif space not in made:
                    counter = counters.counter_of(effect, space)
                    made[space] = counters.issue(instruction, counter, space, written)
                if place.space == "lds":
                    kind = _kind(effect)
                    shared = shared or races.Access(instruction, track.number, kind, straight)
                    self._share(wave, track, shared, effect, place, _stored(effect, values))
        if shared is not None:
            track.shared[made["lds"]] = shared
        if not made and name.startswith("ds_"):  # moves between lanes
            counter = counters.counter_of(reached[0][0], "lds")
            counters.issue(instruction, counter, "lds", written)
        elif not made and name in SCALAR_TIMES:
            counter = counters.counter_of(reached[0][0], "scalar")
            counters.issue(instruction, counter, "scalar", written)
        elif not made and name.startswith(CACHE):
            late = counters.generation >= 12
            counter = "storecnt" if "_wb" in name and late else "loadcnt" if late else "vmcnt"
            counters.issue(instruction, counter, "memory", frozenset())

    def _move_tensor(
        self,
        wave: WaveView,
        track: Track,
        instruction: Instruction,
        effect: Effect,
        values: Values,
    ) -> None:
        """Counts a tensor data move, and records the bytes of LDS that it reads or writes."""
        if tensor.arrives(effect.step, values):
            raise self._report.lds_barrier(wave, instruction)
        made = track.counters.issue(instruction, TENSOR_COUNTER, TENSOR, frozenset())
        offsets = tensor.lds_bytes(effect.step, values, len(wave.lds))
        use = tensor.undefined_use(effect.step, track.shadow, track.group.undefined, offsets)
        if use is not None:
            raise self._report.uninitialised(wave, instruction, use)
        kind = "load" if tensor.stores(effect.step) else "store"
        access = races.Access(instruction, track.number, kind, straight=True)
        found = track.group.shared.access(access, offsets[:, None], self._passed(wave, track))
        if found is not None:
            raise self._report.race(wave, access, *found)
        if kind == "store":
            track.group.undefined.bytes[offsets] = 0
        track.shared[made] = access

    # -- races

    def _share(
        self,
        wave: WaveView,
        track: Track,
        made: races.Access,
        effect: Effect,
        place: Destination,
        rows: list[np.ndarray] | None,
    ) -> None:
        detail = effect.operation.detail
        assert isinstance(detail, Access | Atomic)
        lanes = np.flatnonzero(place.lanes)
        offsets = place.offsets[lanes, None] + np.arange(detail.size)
        data = races.moved(detail, lanes, rows) if rows and isinstance(detail, Access) else None
        found = track.group.shared.access(made, offsets, self._passed(wave, track), data)
        if found is not None:
            raise self._report.race(wave, made, *found)

    def _passed(self, wave: WaveView, track: Track) -> races.Passed:
        seen = ctypes.c_uint32.from_address(wave.address + state.CLUSTER_SEEN)
        return races.Passed(track.barriers, seen.value)

    def _check_lanes(
        self,
        wave: WaveView,
        instruction: Instruction,
        effect: Effect,
        values: Values,
        places: list[Destination],
    ) -> None:
        """Raises a fault if two lanes of one store put different values at one byte."""
        detail, rows = effect.operation.detail, _stored(effect, values)
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

    def _pass_barrier(self, wave: WaveView, track: Track, instruction: Instruction) -> None:
        if LDS_BARRIER in instruction.mnemonic:
            raise self._report.lds_barrier(wave, instruction)
        if clusters.is_barrier(instruction):
            if instruction.mnemonic.startswith("s_barrier_signal"):
                for access in track.completed:
                    access.joint = track.group.cluster.phase + 1
                track.completed.clear()
                self._clusters.signal(wave, track.group.cluster, track.group.rank, instruction)
            return
        if instruction.mnemonic.startswith("s_barrier_") and not _own_barrier(instruction):
            message = "--strict cannot tell which accesses a named barrier orders"
            raise self._report.fault(wave, instruction, message, "run this kernel without --strict")
        track.signals += instruction.mnemonic in SIGNALS
        if instruction.mnemonic not in BARRIERS:
            return
        if track.barriers == track.signals:
            message = "a wait for a barrier that the wave has not signaled: it would never end"
            raise self._report.fault(
                wave, instruction, message, "s_barrier_signal must come before"
            )
        track.barriers += 1


def _kind(effect: Effect) -> str:
    detail = effect.operation.detail
    return detail.kind if isinstance(detail, Access) else "atomic"


def _stored(effect: Effect, values: Values) -> list[np.ndarray] | None:
    """Returns the register rows of a store, if they are known; None for other steps."""
    if _kind(effect) != "store":
        return None
    rows = [values.row(word) for word in effect.reads[-1].words()]
    known = [row for row in rows if row is not None]
    return known if len(known) == len(rows) else None


def _in_order(effect: Effect, load: Outstanding) -> bool:
    """Whether a register write is always ordered after that of a load: vector memory and LDS each
    return in order."""
    form = effect.operation.form
    if load.kind == "memory":
        return form in ("global", "buffer", "scratch")
    return load.kind == "lds" and form == "lds"


def _own_barrier(instruction: Instruction) -> bool:
    """Whether the barrier is the workgroup's own (-1)."""
    operands = instruction.operands
    if not operands or not isinstance(operands[0], Immediate):
        return False
    return operands[0].value & 0xFFFF == 0xFFFF
