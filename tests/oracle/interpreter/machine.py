"""The test oracle: a lockstep interpreter of AMD GPU machine code in NumPy.

It is an independent implementation of the ISA manuals (AMD Instinct MI200 and MI300, RDNA3 and
RDNA4) and of LLVM's AMDGPUUsage, and shares no code with the emulator. The waves of a chunk of
workgroups execute together: an instruction is one NumPy operation on an array [waves, 64]. Waves
that diverge at a branch are grouped by pc; the group with the lowest pc runs, so that groups
reconverge. A chunk of 512 to 2048 waves is fastest (`Oracle(chunk_waves=…)`).

    oracle = Oracle()
    a = oracle.bind("A", array)
    oracle.launch(hsaco, "kernel", grid=(4, 1, 1), block=(256, 1, 1), kernarg=bytes, dynamic_lds=0)
    oracle.synchronize()                 # results are in the bound arrays
"""

from __future__ import annotations

import functools
import itertools
from dataclasses import dataclass

import numpy as np

from oracle.interpreter import rdna
from oracle.interpreter.decoding import Decoded, decode
from oracle.program import hsaco
from oracle.state import abi, modes
from oracle.state.abi import SCRATCH_BASE
from oracle.state.memory import Fault, Memory, padded
from oracle.state.waves import EXEC, POISON, VCC, Waves

CODE_BASE = 0x2000_0000_0000
RUNNING, WAITING, DONE = range(3)


class Runaway(Exception):
    """The launch exceeded the limit of wave-instructions."""


@dataclass(frozen=True)
class Launch:
    code: hsaco.CodeObject
    kernel: hsaco.Kernel
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    lds_bytes: int
    kernarg: int
    packet: int
    decoded: dict[int, Decoded]


class Oracle:
    """`executed` counts wave-instructions over all launches. `poison`: initialise registers and LDS
    with signalling NaNs, instead of leaving their content."""

    def __init__(
        self, chunk_waves: int = 1024, max_instructions: int = 1 << 40, poison: bool = True
    ):
        self.poison = poison
        self.memory = Memory()
        self.chunk_waves = chunk_waves
        self.max_instructions = max_instructions
        self.executed = 0

    def bind(self, name: str, array: np.ndarray, writable: bool = True) -> int:
        return self.memory.bind(name, array, writable)

    def synchronize(self) -> None:
        self.memory.synchronize()

    def launch(self, data, kernel, grid, block, kernarg=b"", dynamic_lds=0) -> None:
        code = hsaco.read(data)
        chosen = code.kernels[kernel]
        placed = [
            self.memory.place(
                f"code{k}", _bytes(content), len(content), False, base=CODE_BASE + address
            )
            for k, (address, content) in enumerate(code.segments)
        ]
        content = abi.kernarg_bytes(chosen, kernarg, grid, block, dynamic_lds)
        kernarg_region = self.memory.place("kernarg", _bytes(content), len(content), False)
        packet = abi.packet_bytes(chosen, grid, block, dynamic_lds, kernarg_region.base)
        packet_region = self.memory.place("packet", _bytes(packet), len(packet), False)
        launch = Launch(
            code,
            chosen,
            grid,
            block,
            chosen.lds_bytes + dynamic_lds,
            kernarg_region.base,
            packet_region.base,
            _decoded(data, kernel),
        )
        try:
            self._run(launch)
        finally:
            for region in (*placed, kernarg_region, packet_region):
                self.memory.remove(region)

    def _run(self, launch: Launch) -> None:
        items = launch.block[0] * launch.block[1] * launch.block[2]
        waves = -(-items // launch.kernel.lanes)
        at_once = max(1, self.chunk_waves // waves)
        # x is the fastest dimension of the dispatch order.
        groups = itertools.product(*(range(n) for n in reversed(launch.grid)))
        while batch := list(itertools.islice(groups, at_once)):
            chunk = Chunk(self, launch, [group[::-1] for group in batch], waves)
            with np.errstate(all="ignore"):
                chunk.run()


@functools.lru_cache(maxsize=64)
def _decoded(data: bytes, kernel: str) -> dict[int, Decoded]:
    """Returns the decoded instructions of a kernel by pc, which are cached across launches."""
    return {}


def _bytes(content: bytes) -> np.ndarray:
    data = padded(len(content))
    data[: len(content)] = np.frombuffer(content, np.uint8)
    return data


class Chunk:
    """Some workgroups of a launch, executing in lockstep."""

    def __init__(self, oracle: Oracle, launch: Launch, groups, waves: int):
        self.oracle, self.launch, self.memory = oracle, launch, oracle.memory
        kernel, count = launch.kernel, len(groups) * waves
        self.count = count
        self.group_of = np.repeat(np.arange(len(groups)), waves)
        # gfx1250's granules are twice as large.
        vgprs = kernel.vgprs * (2 if launch.code.target == "gfx1250" else 1)
        self.waves = Waves(self, count, vgprs, kernel.first_agpr, oracle.poison, kernel.lanes)
        fill = POISON if oracle.poison else 0
        self.lds_stride = (launch.lds_bytes + 15) // 16 * 16
        self.lds = padded(self.lds_stride * len(groups), fill)
        size = kernel.scratch_bytes * 64
        self.scratch_stride = size
        self.scratch = padded(size * count, fill)
        self.decoded = launch.decoded
        self.scratch_starts = np.arange(count) * self.scratch_stride
        self.scratch_region = None
        if self.scratch_stride:
            self.scratch_region = self.memory.place(
                "scratch", self.scratch, self.scratch.size, True, base=SCRATCH_BASE
            )
        self.waves.mode[...] = self.mode = rdna.float_mode(kernel.float_mode, launch.code.target)
        self.by_registers = launch.code.target == "gfx90a"
        preload, first = kernel.preload & 0x7F, kernel.preload >> 7
        arguments = self.memory.read_bytes(launch.kernarg + 4 * first, 4 * preload)
        abi.set_up(
            self.waves,
            launch.code.target,
            kernel,
            np.array(groups),
            launch.block,
            {1: launch.packet, 3: launch.kernarg, 5: SCRATCH_BASE},
            np.ascontiguousarray(arguments).view(np.uint32),
            self.scratch_starts if self.by_registers else None,
        )
        # Skips the prologue for firmware that can't preload, which gfx1250 doesn't have.
        prologue = preload and launch.code.target != "gfx1250"
        self.entry = kernel.entry + (256 if prologue else 0)

    # LDS and scratch

    def lds_offsets(self, w: Waves, addresses: np.ndarray, lanes, size: int) -> np.ndarray:
        highest = int((addresses if lanes is None else addresses[lanes]).max(initial=0))
        if highest + size > self.launch.lds_bytes and (lanes is None or lanes.any()):
            raise Fault(
                f"LDS address {highest:#x} is outside the workgroup's {self.launch.lds_bytes} bytes"
            )
        base = self.group_of[w.row_numbers()] * self.lds_stride
        return addresses.view(np.int64) + base[:, None]

    def scratch_offsets(self, w: Waves, offsets: np.ndarray) -> np.ndarray:
        """Converts lane addresses to bytes of `scratch`: dwords of the 64 lanes are contiguous."""
        if self.by_registers:
            base = w.s64(102).astype(np.int64) - SCRATCH_BASE  # FLAT_SCRATCH, set by the kernel
        else:
            base = self.scratch_starts[w.row_numbers()]
        inner = offsets.astype(np.int64)
        lane = np.arange(64) * 4
        return base[:, None] + (inner >> 2) * 256 + lane + (inner & 3)

    # Execution

    def run(self) -> None:
        try:
            self._run()
        finally:
            if self.scratch_region is not None:
                self.memory.remove(self.scratch_region)

    def _run(self) -> None:
        self.state = np.full(self.count, RUNNING)
        self.resume = np.zeros(self.count, np.int64)
        self.signals, self.waits = np.zeros((2, self.count), np.int64)
        self.pending: dict[int, list[np.ndarray]] = {self.entry: [np.arange(self.count)]}
        while self.pending:
            pc = min(self.pending)
            parts = self.pending.pop(pc)
            rows = parts[0] if len(parts) == 1 else np.sort(np.concatenate(parts))
            self.waves.select(None if len(rows) == self.count else rows)
            self._run_group(pc, rows)
        if (self.state == WAITING).any():
            raise Fault("barrier that some waves never reach")

    def _run_group(self, pc: int, rows: np.ndarray) -> None:
        """Runs until the rows diverge, wait, end, or reach another group."""
        w, oracle, count = self.waves, self.oracle, len(rows)
        limit = min(self.pending, default=1 << 62)
        while pc < limit:
            decoded = self.decoded.get(pc) or self._decode(pc)
            oracle.executed += count
            if oracle.executed > oracle.max_instructions:
                raise Runaway(f"at pc {pc:#x} {decoded.text}")
            if decoded.step is not None:
                try:
                    if w.set_mode:
                        self._under_modes(decoded, pc)
                    else:
                        decoded.step(w)
                except Fault as fault:
                    raise Fault(f"pc {pc:#x} {decoded.text}: {fault}") from None
                pc += decoded.size
                continue
            targets = self._flow(decoded, pc, rows)
            if isinstance(targets, int):
                pc = targets
                continue
            for target, part in targets:
                self.pending.setdefault(target, []).append(part)
            return
        self.pending.setdefault(pc, []).append(rows)

    def _decode(self, pc: int) -> Decoded:
        line = self.launch.code.lines.get(pc)
        if line is None:
            raise Fault(f"no instruction at pc {pc:#x}")
        decoded = decode(line.text, line.words, self.launch.code.target, self.mode)
        self.decoded[pc] = decoded
        return decoded

    def _under_modes(self, decoded: Decoded, pc: int) -> None:
        """Runs a step of waves with different MODEs: those of one MODE together."""
        w, rows = self.waves, self.waves.rows
        numbers, states = w.row_numbers(), modes.states(w)
        words = self.launch.code.lines[pc].words
        for state in np.unique(states):
            own = decode(decoded.text, words, self.launch.code.target, int(state))
            assert own.step is not None
            if len(states) > 1 and (states != state).any():
                w.select(numbers[states == state])
            own.step(w)
        w.select(rows)

    def _flow(self, decoded: Decoded, pc: int, rows: np.ndarray):
        """Returns the next pc of all rows, or a list of (pc, rows)."""
        ins, w, after = decoded.instruction, self.waves, pc + decoded.size
        name = decoded.flow
        if name == "s_endpgm":
            self.state[rows] = DONE
            return self._release()
        if name in ("s_barrier", "s_barrier_signal"):
            self.signals[rows] += 1
        if name in ("s_barrier", "s_barrier_wait"):
            self.state[rows] = WAITING
            self.resume[rows] = after
            self.waits[rows] += 1
            return self._release()
        if name == "s_barrier_signal":
            return [(after, rows), *self._release()]
        if name == "s_trap":
            raise Fault(f"{ins.text} at pc {pc:#x}")
        if name == "s_getpc_b64":
            w.put_s64(ins.operands[0].index, np.full(w.n, CODE_BASE + after, np.uint64))
            return after
        if name in ("s_setpc_b64", "s_swappc_b64"):
            target = np.broadcast_to(w.read_scalar(ins.operands[-1], 64), w.n).copy()
            if name == "s_swappc_b64":
                w.put_s64(ins.operands[0].index, np.full(w.n, CODE_BASE + after, np.uint64))
            return _parted(target.astype(np.int64) - CODE_BASE, rows)
        offset = int(ins.operands[-1].value) & 0xFFFF
        target = after + 4 * (offset - 0x10000 if offset & 0x8000 else offset)
        if name == "s_call_b64":
            w.put_s64(ins.operands[0].index, np.full(w.n, CODE_BASE + after, np.uint64))
            return target
        if name == "s_branch":
            return target
        taken = CONDITIONS[name](w)
        if taken.all():
            return target
        if not taken.any():
            return after
        return [(target, rows[taken]), (after, rows[~taken])]

    def _release(self):
        """Releases the waves that wait for a barrier that every unfinished wave of their workgroup
        has signalled."""
        live = self.state != DONE
        fewest = np.full(self.group_of[-1] + 1, np.iinfo(np.int64).max)
        np.minimum.at(fewest, self.group_of[live], self.signals[live])
        rows = np.flatnonzero((self.state == WAITING) & (fewest[self.group_of] >= self.waits))
        if rows.size == 0:
            return []
        self.state[rows] = RUNNING
        return _released(self.resume[rows], rows)


def _released(targets: np.ndarray, rows: np.ndarray) -> list[tuple[int, np.ndarray]]:
    return [(int(pc), rows[targets == pc]) for pc in np.unique(targets)]


def _parted(targets: np.ndarray, rows: np.ndarray):
    if (targets == targets[0]).all():
        return int(targets[0])
    return _released(targets, rows)


CONDITIONS = {
    "s_cbranch_scc0": lambda w: ~w.get_scc(),
    "s_cbranch_scc1": lambda w: w.get_scc().copy(),
    "s_cbranch_vccz": lambda w: w.mask(VCC) == 0,
    "s_cbranch_vccnz": lambda w: w.mask(VCC) != 0,
    "s_cbranch_execz": lambda w: w.mask(EXEC) == 0,
    "s_cbranch_execnz": lambda w: w.mask(EXEC) != 0,
}
