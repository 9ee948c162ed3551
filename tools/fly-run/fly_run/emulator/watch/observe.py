"""Watching a kernel run: what an observer is told, and the micro-ops that tell it.

An observer says, once for each instruction, when it wants to hear of it:

    BEFORE, AFTER   a call with a view of the wave, at every execution: some microseconds each
    COUNT           nothing at once; native code counts executions and active lanes, and the
                    launch's end brings the sums: a few nanoseconds each
    MEASURE         COUNT, and native code looks at the addresses of memory accesses (measure)

What is wanted becomes micro-ops around those of the instruction (Encoder.weave), so a launch that
nobody observes runs the code it always runs. A branch that leads to an instruction leads to what
comes before it, too. Observed launches run on one thread, in the order of unobserved ones.
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
    """When an observer wants to hear of an instruction."""

    NOTHING = 0
    BEFORE = enum.auto()
    AFTER = enum.auto()
    COUNT = enum.auto()
    MEASURE = enum.auto()


@dataclass(frozen=True)
class Launch:
    """A launch that is observed. `grid` is in workgroups, `block` in work items; `lds` are the
    bytes of LDS of a workgroup, static and dynamic, `scratch` those of private memory of a work
    item; `lanes` is the width of a wave, 32 or 64; `base` is the guest address of the code object's
    address 0; `lines` has source lines by pc, where there is debug information."""

    kernel: Kernel
    target: str
    grid: Triple
    block: Triple
    lds: int
    scratch: int
    base: int
    allocation: Allocation
    lines: LineTable

    @property
    def lanes(self) -> int:
        return self.kernel.wavefront_size


@dataclass(frozen=True)
class Count:
    """What a launch did at one instruction. `times` counts waves that executed it, `lanes` the
    active lanes of them all; at `partial` of the times work items of the wave were inactive, at
    `idle` of them (a part of `partial`) all were. `accesses` are the instruction's own, where they
    were to be measured."""

    instruction: Instruction
    times: int
    lanes: int
    partial: int
    idle: int
    accesses: tuple[Measured, ...] = ()


class Enough(Exception):
    """Raised by an observer's `before` or `after`: it wants no more calls in this launch. When none
    of the observers does, the rest of the launch runs at almost its usual speed."""


class Observer(Protocol):
    """What hears of instructions. An exception from one of these, but for Enough, ends the launch
    and goes to who launched."""

    def begin(self, launch: Launch) -> None:
        """A launch begins."""
        ...

    def wants(self, instruction: Instruction) -> Wants:
        """When to tell of `instruction`. It is asked when a kernel's code is encoded: once for all
        launches of a device, and before `begin`."""
        ...

    def before(self, wave: WaveView, instruction: Instruction) -> None:
        """A wave is about to execute `instruction`. The view holds until this returns."""
        ...

    def after(self, wave: WaveView, instruction: Instruction) -> None:
        """A wave has executed `instruction`. Not told of one that ends in a fault, and not of
        branches, jumps, calls and s_endpgm."""
        ...

    def end(self, executed: int, counts: Sequence[Count]) -> None:
        """A launch has ended, in a fault perhaps, after `executed` wave instructions; `counts` has
        what was to be counted and has been executed, by ascending pc."""
        ...


class WaveView:
    """A wave's state between two instructions: NumPy arrays on the memory itself.

    `sgprs` are 128 u32 by their encoded number; `vgprs` has a row of 64 u32 for each vector
    register, in which a wave of 32 uses the first half, and accumulation registers lie from
    `launch.allocation.accumulation_base` on. `lds` are the workgroup's bytes, `scratch` a row of
    bytes for each lane.
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
        """EXEC: bit l is set where lane l is active."""
        return self._exec.value & (1 << self.launch.lanes) - 1

    @property
    def scc(self) -> int:
        return int(self._scc.value != 0)

    @property
    def mode(self) -> int:
        return self._mode.value

    @property
    def group(self) -> Triple:
        """The workgroup's place in the grid."""
        x, y, z = self._group
        return x, y, z

    @property
    def wave(self) -> int:
        """Which wave of its workgroup it is."""
        return self._wave.value

    def active(self) -> np.ndarray:
        """Booleans of all lanes of a row: whether each is active."""
        import numpy as np

        bits = np.array([self.exec_mask], np.uint64).view(np.uint8)
        return np.unpackbits(bits, bitorder="little").astype(bool)


# A call from native code, with the wave state's address and the number of a moment; the result
# is 0 to go on.
_CALLBACK = ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_uint64, ctypes.c_uint32)
_Told = Callable[[WaveView, Instruction], None]


@dataclass(frozen=True)
class _Place:
    """Where native code counts for an instruction."""

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
        self._moments: list[tuple[Instruction, list[tuple[Observer, _Told]]]] = []
        self._called: list[Observer] = []  # those that are called at all
        self._resting: list[Observer] = []  # those of them that have had enough
        self._places: list[_Place] = []
        self._views: dict[int, WaveView] = {}
        self._launch: Launch | None = None
        self._error: BaseException | None = None
        self._call = _CALLBACK(self._tell) if observers else None

    @property
    def callback(self) -> int:
        """The address that fly_watch calls."""
        return ctypes.cast(self._call, ctypes.c_void_p).value or 0 if self._call else 0

    def weave(self, instruction: Instruction, steps: list[Step]) -> list[Step]:
        """The steps of an instruction with what observers want of it."""
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
            woven.append(self._moment(instruction, before))
        woven += steps
        # What follows a branch is the landing of another straight run, which is counted from there.
        if after and instruction.target is None:
            woven.append(self._moment(instruction, after))
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
        """Raises what an observer has raised."""
        if self._error is not None:
            raise self._error

    def _moment(self, instruction: Instruction, told: list[tuple[Observer, _Told]]) -> Step:
        self._moments.append((instruction, told))
        return Step("fly_watch", extra=len(self._moments) - 1)

    def _count(self, instruction: Instruction, found: list[Meter]) -> Step:
        site = (ctypes.c_uint64 * len(state.SITE.names))()
        self._places.append(_Place(instruction, site, found))
        return Step("fly_count", site=ctypes.addressof(site))

    def _counts(self) -> list[Count]:
        """Code may have been encoded twice, where control got to it in two ways."""
        sums: dict[int, Count] = {}
        for place in self._places:
            count = place.read()
            if count.times:
                known = sums.get(count.instruction.pc)
                sums[count.instruction.pc] = _sum(known, count) if known else count
        return [sums[pc] for pc in sorted(sums)]

    def _tell(self, address: int, moment: int) -> int:
        try:
            view = self._views.get(address)
            if view is None:
                assert self._launch is not None
                view = self._views[address] = WaveView(address, self._launch)
            instruction, told = self._moments[moment]
            for observer, tell in told:
                if observer not in self._resting:
                    try:
                        tell(view, instruction)
                    except Enough:
                        self._rest(observer, address)
        except BaseException as error:  # native code can't pass it on: `check` does
            self._error = error
            return 1
        return 0

    def _rest(self, observer: Observer, address: int) -> None:
        """Calls `observer` no more in this launch. When all rest, native code calls no one."""
        self._resting.append(observer)
        if len(self._resting) == len(self._called):
            context = ctypes.c_uint64.from_address(address + state.CONTEXT).value
            ctypes.c_uint64.from_address(context + state.CTX.watch).value = 0


def _sum(a: Count, b: Count) -> Count:
    """Two counts of the same instruction together."""
    accesses = tuple(x.plus(y) for x, y in zip(a.accesses, b.accesses, strict=True))
    sums = (a.times + b.times, a.lanes + b.lanes, a.partial + b.partial, a.idle + b.idle)
    return Count(a.instruction, *sums, accesses)
