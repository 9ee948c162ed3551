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

from collections.abc import Sequence

import numpy as np
from fly_target import registry
from fly_target.amd.facts import facts_of

from fly_run.emulator import state
from fly_run.emulator.engine import dispatch
from fly_run.emulator.isa.instruction import Immediate, Instruction
from fly_run.emulator.lowering.encode import Encoder
from fly_run.emulator.lowering.registers import Constants, Registers
from fly_run.emulator.semantics import table
from fly_run.emulator.strict import clusters, relative, unspecified
from fly_run.emulator.strict.accesses import Destination, Values, destinations
from fly_run.emulator.strict.clusters import Clusters
from fly_run.emulator.strict.dataflow import Effect, effects_of
from fly_run.emulator.strict.lds_barriers import LdsBarriers
from fly_run.emulator.strict.ordering import Timeline, named_number
from fly_run.emulator.strict.races import Access, SharedBytes
from fly_run.emulator.strict.reports import Reports
from fly_run.emulator.strict.sharing import (
    ASYNC,
    ASYNC_COUNTER,
    TENSOR,
    Group,
    Sharing,
    Track,
    kind_of,
)
from fly_run.emulator.strict.undefined import undefined_values
from fly_run.emulator.strict.undefined.shadow import SHARED, Memory, Shadow, Use
from fly_run.emulator.strict.waits import Counters, Outstanding
from fly_run.emulator.watch.observe import Count, Launch, Wants, WaveView

ROOM = 1 << 24  # bytes of constants
SIGNALS = ("s_barrier", "s_barrier_signal", "s_barrier_signal_isfirst")
BARRIERS = ("s_barrier", "s_barrier_wait")
CACHE = ("buffer_inv", "buffer_wb", "global_inv", "global_wb")
SCALAR_TIMES = ("s_memtime", "s_memrealtime")


class Strict:
    """An Observer that raises Fault."""

    def __init__(self) -> None:
        self._effects: dict[int, tuple[Effect, ...]] = {}  # by pc
        self._tracks: dict[int, Track] = {}
        self._groups: dict[int, Group] = {}

    def wants(self, instruction: Instruction) -> Wants:
        # What a load is shown of a barrier in LDS is undone after it.
        loads = instruction.mnemonic.startswith("ds_load_")
        return Wants.BEFORE | Wants.AFTER if loads else Wants.BEFORE

    def begin(self, launch: Launch) -> None:
        self._launch = launch
        self._report = Reports(launch)
        self._tracks.clear()
        self._groups.clear()
        self._effects.clear()
        self._clusters = Clusters(launch, self._report)
        self._sharing = Sharing(self._report)
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
        self._sharing.restore()

    def end(self, executed: int, counts: Sequence[Count]) -> None:
        self._tracks.clear()
        self._groups.clear()

    def before(self, wave: WaveView, instruction: Instruction) -> None:
        if open_question := unspecified.question(instruction, wave.mode):
            message = f"no public source specifies {open_question}"
            hint = "see 'Unspecified behavior' in docs/emulator.md for what the emulator does"
            raise self._report.fault(wave, instruction, message, hint)
        track = self._track(wave)
        track.timeline.go_on()
        track.wait(instruction)
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
        lanes = active
        for effect in effects:
            effect = relative.resolved(effect, values, track.shadow.end)
            if lanes is not active and relative.skipped(effect, lanes):
                continue
            self._check_waits(wave, track, instruction, effect)
            narrowed = self._narrowed(effect, effects, values, lanes)
            places = destinations(effect, values, lanes)
            shared = track.group.undefined
            use = undefined_values.step(track.shadow, effect, values, narrowed, places, shared)
            if use is not None:
                raise self._report.uninitialised(wave, instruction, use)
            self._sharing.check_lanes(wave, instruction, effect, values, places)
            reached.append((effect, places))
            values.wrote(effect)
            lanes = relative.narrowed(effect, values, active, lanes)
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
            arrived = LdsBarriers(rank, size)
            group = Group(wave.group, SharedBytes(size), unknown, cluster, rank, arrived)
            self._groups[slot] = group
        launch = self._launch
        shadow = Shadow(self._base, launch.scratch, launch.lanes)
        shadow.start(self._scalars, self._id_rows)
        counters = Counters(facts_of(registry.find(launch.target)).generation)
        timeline = Timeline((group.rank, wave.wave))
        track = Track(wave.wave, group, counters, shadow, timeline)
        self._tracks[wave.address] = track
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
        shared: Access | None = None
        if ASYNC in name:
            # Between memory and LDS: one operation, which writes no register.
            copied = counters.issue(instruction, ASYNC_COUNTER, ASYNC, frozenset())
            made["memory"] = made["lds"] = copied
        for effect, places in reached:
            if effect.operation.mnemonic == TENSOR:
                self._sharing.move_tensor(wave, track, instruction, effect, values)
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
                    shared = shared or track.access(instruction, kind_of(effect), straight)
                    issued = made["lds"]
                    self._sharing.access(wave, track, shared, issued, effect, place, values)
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

    # -- barriers

    def _pass_barrier(self, wave: WaveView, track: Track, instruction: Instruction) -> None:
        name, group, timeline = instruction.mnemonic, track.group, track.timeline
        if name.startswith("s_endpgm"):
            timeline.end(group.barrier)
        if not name.startswith("s_barrier"):
            return
        if clusters.is_barrier(instruction):
            if name.startswith("s_barrier_signal"):
                timeline.signal(group.cluster.barrier, group.cluster.phase + 1)
                self._clusters.signal(wave, group.cluster, group.rank, instruction)
            else:
                timeline.wait_cluster(group.cluster.barrier, wave)
            return
        if name != "s_barrier" and not _own_barrier(instruction):
            self._pass_named(wave, track, instruction)
            return
        if name in SIGNALS:
            timeline.signal_own(group.barrier)
        if name not in BARRIERS:
            return
        if timeline.barriers == timeline.signals:
            message = "a wait for a barrier that the wave has not signaled: it would never end"
            raise self._report.fault(
                wave, instruction, message, "s_barrier_signal must come before"
            )
        timeline.wait_own(group.barrier)

    def _pass_named(self, wave: WaveView, track: Track, instruction: Instruction) -> None:
        name = instruction.mnemonic
        if name == "s_barrier_leave":  # the one that the wave has joined; hands nothing over
            return
        by_m0 = not isinstance(instruction.operands[0], Immediate)
        if (by_m0 or name == "s_barrier_init") and track.shadow.bits[state.M0 // 4]:
            use = Use("which barrier this is, or how many signals it expects", None, state.M0)
            raise self._report.uninitialised(wave, instruction, use)
        track.group.named.step(track.timeline, wave, name, named_number(instruction, wave))


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
