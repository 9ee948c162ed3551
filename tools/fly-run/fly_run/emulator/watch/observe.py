"""Observers of running kernels, and the micro-ops that notify them.

An observer says, once for each instruction, when it wants to be notified:

    BEFORE, AFTER   a call with a view of the wave, at every execution: some microseconds each
    COUNT           no calls; native code counts executions and active lanes, and the sums are
                    passed at the end of the launch: a few nanoseconds each
    MEASURE         like COUNT, and native code measures memory accesses (see `measure`)

These become micro-ops around those of the instruction (Encoder.weave), so an unobserved launch has
no overhead. A branch to an instruction goes to the micro-ops before it, too. Observed launches run
on one thread, in the same order as unobserved ones.
"""

from __future__ import annotations

import ctypes
import enum
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from fly_run.emulator import state
from fly_run.emulator.isa.instruction import Instruction
from fly_run.emulator.lowering.steps import Step
from fly_run.emulator.semantics.base.operation import Operation
from fly_run.emulator.watch.measure import Measured, Meter, clear, meters

if TYPE_CHECKING:
    import numpy as np
    from fly_image.amd.code_object import Kernel
    from fly_image.dwarf import LineTable

    from fly_run.emulator.lowering.registers import Allocation

Triple = tuple[int, int, int]


class Wants(enum.Flag):
    """When an observer wants to be notified of an instruction."""

    NOTHING = 0
    BEFORE = enum.auto()
    AFTER = enum.auto()
    COUNT = enum.auto()
    MEASURE = enum.auto()


@dataclass(frozen=True)
class Launch:
    """An observed launch. `grid` is in workgroups, `block` in work items; `lds` is the size of a
    workgroup's LDS, static and dynamic, `scratch` that of a work item's private memory, both in
    bytes; `lanes` is the width of a wave, 32 or 64; `base` is the guest address of the code
    object's address 0; `lines` has source lines by pc, if there is debug information; `cluster` is
    the size of a cluster in workgroups."""

    kernel: Kernel
    target: str
    grid: Triple
    block: Triple
    lds: int
    scratch: int
    base: int
    allocation: Allocation
    lines: LineTable
    cluster: Triple = (1, 1, 1)

    @property
    def lanes(self) -> int:
        return self.kernel.wavefront_size


@dataclass(frozen=True)
class Count:
    """The counts of a launch at one instruction. `times` is the number of executions by waves,
    `lanes` the sum of their active lanes; in `partial` of the executions work items of the wave
    were inactive, in `idle` of them (included in `partial`) all were. `accesses` are the
    instruction's own, if measured."""

    instruction: Instruction
    times: int
    lanes: int
    partial: int
    idle: int
    accesses: tuple[Measured, ...] = ()


class Enough(Exception):
    """Raised by an observer's `before` or `after` to get no more calls in this launch. When all
    observers have raised it, the rest of the launch runs at almost full speed."""


class Observer(Protocol):
    """The interface of observers. An exception from a method, except Enough, ends the launch and is
    raised to its caller."""

    def begin(self, launch: Launch) -> None:
        """Called when a launch starts."""
        ...

    def wants(self, instruction: Instruction) -> Wants:
        """Says when to notify of `instruction`. Called when a kernel's code is encoded: once for
        all launches of a device, and before `begin`."""
        ...

    def before(self, wave: WaveView, instruction: Instruction) -> None:
        """Called before a wave executes `instruction`. The view is valid until this returns."""
        ...

    def after(self, wave: WaveView, instruction: Instruction) -> None:
        """Called after a wave has executed `instruction`. Not called for one that faults, nor for
        branches, jumps, calls and s_endpgm."""
        ...

    def end(self, executed: int, counts: Sequence[Count]) -> None:
        """Called when a launch has ended, possibly in a fault, after `executed` wave instructions;
        `counts` has the requested counts of executed instructions, by ascending pc."""
        ...


class WaveView:
    """A wave's state between two instructions, as NumPy arrays that alias the memory.

    `sgprs` are 128 u32 by their encoded number; `vgprs` has a row of 64 u32 for each vector
    register, of which a wave of 32 uses the first half; accumulation registers start at
    `launch.allocation.accumulation_base`. `lds` has the workgroup's bytes, `scratch` a row of bytes
    for each lane.
    """

    def __init__(self, address: int, launch: Launch):
        import numpy as np

        self.address, self.launch = address, launch

        def view(place: int, count: int, kind: type[np.generic]) -> np.ndarray:
            size = count * np.dtype(kind).itemsize
            memory = (ctypes.c_char * size).from_address(place)
            return np.frombuffer(memoryview(memory), kind)

        rows = launch.allocation.rows
        self.sgprs = view(address + state.SGPR, 128, np.uint32)
        self.vgprs = view(address + state.VGPR, rows * state.LANES, np.uint32)
        self.vgprs = self.vgprs.reshape(rows, state.LANES)
        lds = ctypes.c_uint64.from_address(address + state.LDS_BASE).value
        scratch = ctypes.c_uint64.from_address(address + state.SCRATCH_BASE).value
        self.lds = view(lds, launch.lds, np.uint8)
        self.scratch = view(scratch, state.LANES * launch.scratch, np.uint8)
        self.scratch = self.scratch.reshape(state.LANES, launch.scratch)
        self._exec = ctypes.c_uint64.from_address(address + state.EXEC)
        self._scc = ctypes.c_uint32.from_address(address + state.SCC)
        self._mode = ctypes.c_uint32.from_address(address + state.MODE)
        self._group = (ctypes.c_uint32 * 3).from_address(address + state.GROUP)
        self._wave = ctypes.c_uint32.from_address(address + state.WAVE)

    @property
    def exec_mask(self) -> int:
        """EXEC: bit l is set if lane l is active."""
        return self._exec.value & (1 << self.launch.lanes) - 1

    @property
    def scc(self) -> int:
        return int(self._scc.value != 0)

    @property
    def mode(self) -> int:
        return self._mode.value

    @property
    def group(self) -> Triple:
        """The workgroup's id in the grid."""
        x, y, z = self._group
        return x, y, z

    @property
    def wave(self) -> int:
        """The number of the wave in its workgroup."""
        return self._wave.value

    def active(self) -> np.ndarray:
        """Returns whether each lane of a row is active, as booleans."""
        import numpy as np

        bits = np.array([self.exec_mask], np.uint64).view(np.uint8)
        return np.unpackbits(bits, bitorder="little").astype(bool)


# The callback from native code, with the wave state's address and the number of an event; it
# returns 0 to continue.
_CALLBACK = ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_uint64, ctypes.c_uint32)
_Callback = Callable[[WaveView, Instruction], None]


@dataclass(frozen=True)
class _Place:
    """The native counters of an instruction."""

    instruction: Instruction
    site: ctypes.Array[ctypes.c_uint64]
    meters: list[Meter]

    def read(self) -> Count:
        times, lanes, partial, idle = self.site
        accesses = tuple(meter.read(times, lanes) for meter in self.meters)
        return Count(self.instruction, times, lanes, partial, idle, accesses)

    def clear(self) -> None:
        ctypes.memset(self.site, 0, state.SITE.size)
        for meter in self.meters:
            clear(meter)


class Watch:
    """The observers of one kernel's micro-ops. `table` has the operations of its `target`."""

    def __init__(self, observers: tuple[Observer, ...], table: dict[str, Operation], target: str):
        self._observers, self._table, self._target = observers, table, target
        self._events: list[tuple[Instruction, list[tuple[Observer, _Callback]]]] = []
        self._called: list[Observer] = []  # those with BEFORE or AFTER
        self._resting: list[Observer] = []  # those that have raised Enough
        self._places: list[_Place] = []
        self._views: dict[int, WaveView] = {}
        self._launch: Launch | None = None
        self._error: BaseException | None = None
        self._call = _CALLBACK(self._notify) if observers else None

    @property
    def callback(self) -> int:
        """The address that fly_watch calls."""
        return ctypes.cast(self._call, ctypes.c_void_p).value or 0 if self._call else 0

    def weave(self, instruction: Instruction, steps: list[Step]) -> list[Step]:
        """Returns the steps of an instruction with the observers' steps around them."""
        wants = [(observer, observer.wants(instruction)) for observer in self._observers]
        before = [(one, one.before) for one, want in wants if Wants.BEFORE in want]
        after = [(one, one.after) for one, want in wants if Wants.AFTER in want]
        called = [one for one, _ in [*before, *after] if one not in self._called]
        self._called += dict.fromkeys(called)
        woven: list[Step] = []
        found: list[Meter] = []
        if any(Wants.MEASURE in want for _, want in wants):
            steps, found = meters(steps, self._table, self._target)
        if any(want & (Wants.COUNT | Wants.MEASURE) for _, want in wants):
            woven.append(self._count(instruction, found))
        if before:
            woven.append(self._notify_step(instruction, before))
        woven += steps
        # A branch's successor starts another straight-line run, which is counted separately.
        if after and instruction.target is None:
            woven.append(self._notify_step(instruction, after))
        return woven

    def begin(self, launch: Launch) -> None:
        self._launch, self._error = launch, None
        self._views.clear()
        self._resting.clear()
        for place in self._places:
            place.clear()
        for observer in self._observers:
            observer.begin(launch)

    def end(self, executed: int) -> None:
        if self._observers:
            counts = self._counts()
            for observer in self._observers:
                observer.end(executed, counts)

    def check(self) -> None:
        """Raises the exception of an observer, if there was one."""
        if self._error is not None:
            raise self._error

    def _notify_step(
        self, instruction: Instruction, callbacks: list[tuple[Observer, _Callback]]
    ) -> Step:
        self._events.append((instruction, callbacks))
        return Step("fly_watch", extra=len(self._events) - 1)

    def _count(self, instruction: Instruction, found: list[Meter]) -> Step:
        site = (ctypes.c_uint64 * len(state.SITE.names))()
        self._places.append(_Place(instruction, site, found))
        return Step("fly_count", site=ctypes.addressof(site))

    def _counts(self) -> list[Count]:
        """Merges counts, because code reached in two ways may have been encoded twice."""
        sums: dict[int, Count] = {}
        for place in self._places:
            count = place.read()
            if count.times:
                known = sums.get(count.instruction.pc)
                sums[count.instruction.pc] = _sum(known, count) if known else count
        return [sums[pc] for pc in sorted(sums)]

    def _notify(self, address: int, event: int) -> int:
        try:
            view = self._views.get(address)
            if view is None:
                assert self._launch is not None
                view = self._views[address] = WaveView(address, self._launch)
            instruction, callbacks = self._events[event]
            for observer, callback in callbacks:
                if observer not in self._resting:
                    try:
                        callback(view, instruction)
                    except Enough:
                        self._stop_calling(observer, address)
        except BaseException as error:  # native code can't propagate it: `check` raises it
            self._error = error
            return 1
        return 0

    def _stop_calling(self, observer: Observer, address: int) -> None:
        """Stops calling `observer` in this launch. When all have stopped, native code makes no
        calls."""
        self._resting.append(observer)
        if len(self._resting) == len(self._called):
            context = ctypes.c_uint64.from_address(address + state.CONTEXT).value
            ctypes.c_uint64.from_address(context + state.CTX.watch).value = 0


def _sum(a: Count, b: Count) -> Count:
    """Merges two counts of the same instruction."""
    accesses = tuple(x.plus(y) for x, y in zip(a.accesses, b.accesses, strict=True))
    sums = (a.times + b.times, a.lanes + b.lanes, a.partial + b.partial, a.idle + b.idle)
    return Count(a.instruction, *sums, accesses)
