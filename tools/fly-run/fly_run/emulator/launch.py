"""One launch: its memory, its registers, and the loop that runs it."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Callable
from typing import Any

from fly_common.errors import Fault, InputError

from fly_run.emulator import dispatch, faults, state
from fly_run.emulator.arena import Arena
from fly_run.emulator.loading import Prepared

QUANTUM = 1 << 16  # instructions a wave runs before the next one's turn
FIRST_SLICE, SLICE = 1 << 21, 1 << 25  # instructions between two looks by Python
SLOT_MEMORY = 256 << 20  # bytes that resident workgroups may take together
MOST_SLOTS = 256
DYNAMIC_STACK = 16 << 10  # bytes a lane more, where the compiler can't tell the stack's depth
FOREVER = (1 << 62) - 1

Triple = tuple[int, int, int]
Progress = Callable[[int, int], None]


class Launch:
    """One launch in progress: its memory, and the loop that runs it."""

    def __init__(
        self,
        prepared: Prepared,
        arena: Arena,
        grid: Triple,
        block: Triple,
        kernarg: bytes,
        lds: int,
        limit: int | None,
    ):
        self._prepared, self._loaded, self._arena = prepared, prepared.loaded, arena
        self._limit = FOREVER if limit is None else limit
        kernel = prepared.kernel
        self._grid, self._lds = grid, lds
        self._groups = grid[0] * grid[1] * grid[2]
        self._scratch = round_up(kernel.private_segment_fixed_size, 16)
        if kernel.uses_dynamic_stack:
            self._scratch += DYNAMIC_STACK
        self._queue = ctypes.create_string_buffer(dispatch.queue(), dispatch.QUEUE_BYTES)
        queue_address = self._bind("the queue", self._queue)
        filled = dispatch.fill_hidden(kernel, kernarg, grid, block, lds, queue_address)
        # Compilers widen argument loads up to the segment's alignment: what lies there is readable.
        readable = round_up(max(1, len(filled)), dispatch.KERNARG_ALIGNMENT)
        self._kernarg = ctypes.create_string_buffer(filled, readable)
        kernarg_address = self._bind("the kernel's arguments", self._kernarg)
        descriptor = self._loaded.base + kernel.descriptor
        sizes = self._scratch, lds
        data = dispatch.packet(grid, block, *sizes, descriptor, kernarg_address)
        self._packet = ctypes.create_string_buffer(data, len(data))
        packet_address = self._bind("the dispatch packet", self._packet)
        start = dispatch.scalar_registers(
            kernel, filled, kernarg_address, packet_address, queue_address
        )
        ids, masks = dispatch.work_items(block)
        self._waves = len(masks) // 8
        self._ids, self._ids_at = aligned(len(ids))
        ctypes.memmove(self._ids_at, ids, len(ids))
        self._masks = ctypes.create_string_buffer(masks, len(masks))
        self._make_template(start)
        self._make_slots()
        self._make_context(start)

    def _bind(self, name: str, memory: ctypes.Array[ctypes.c_char]) -> int:
        """Memory of this launch that kernels may read."""
        return self._arena.bind(name, ctypes.addressof(memory), len(memory), False)

    def _make_template(self, start: dispatch.Start) -> None:
        """The wave state that every wave starts as a copy of."""
        constants = self._prepared.constants
        self._constants_end = constants.base + round_up(constants.capacity, 64)
        self._template, self._template_at = aligned(self._constants_end)
        for number, value in enumerate(start.sgprs):
            ctypes.c_uint32.from_address(self._template_at + 4 * number).value = value
        mode = dispatch.mode_register(self._prepared.kernel)
        single, double = dispatch.control_words(mode)
        limit = state.VGPR + self._prepared.encoder.registers.allocation.vector * state.ROW
        for offset, value in (
            (state.MODE, mode),
            (state.MXCSR_SINGLE, single),
            (state.MXCSR_DOUBLE, double),
            (state.VGPR_LIMIT, limit),
        ):
            ctypes.c_uint32.from_address(self._template_at + offset).value = value
        self._copied_constants = 0
        self._copy_constants([self._template_at])

    def _copy_constants(self, waves: list[int]) -> None:
        """Brings the constants in the wave states at these addresses up to date."""
        constants = self._prepared.constants
        data = bytes(constants.data)
        for wave in waves:
            ctypes.memmove(wave + constants.base, data, len(data))
        self._copied_constants = len(data)

    def _make_slots(self) -> None:
        """Memory for resident workgroups: reserved, and only used where a workgroup gets there."""
        self._wave_stride = self._constants_end
        self._lds_offset = state.SLOT_HEADER + self._waves * self._wave_stride
        self._scratch_offset = self._lds_offset + round_up(self._lds, 64)
        scratch = self._waves * state.LANES * self._scratch
        # A page of its own between slots: a host prefetch or a masked move stays inside.
        self._slot_stride = round_up(self._scratch_offset + scratch + 64, 4096)
        most = max(1, SLOT_MEMORY // self._slot_stride)
        self._slots = min(self._groups, most, MOST_SLOTS)
        self._memory = mmap.mmap(-1, self._slots * self._slot_stride)
        self._slot_base = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))

    def _make_context(self, start: dispatch.Start) -> None:
        arena, constants = self._arena, self._prepared.constants
        self._context = ctypes.create_string_buffer(state.CTX.size)
        x, y, z = start.groups
        entry = dispatch.entry_address(self._prepared.kernel)
        values = {
            "regions": arena.table,
            "region_count": len(arena),
            "load_base": self._loaded.base,
            "code_low": self._loaded.base + self._loaded.low,
            "code_bytes": self._loaded.size,
            "code_map": ctypes.addressof(self._prepared.code_map),
            "end_group": self._groups,
            "grid_x": self._grid[0],
            "grid_y": self._grid[1],
            "waves": self._waves,
            "slots": self._slots,
            "slot_base": self._slot_base,
            "slot_stride": self._slot_stride,
            "wave_stride": self._wave_stride,
            "lds_offset": self._lds_offset,
            "lds_size": self._lds,
            "scratch_offset": self._scratch_offset,
            "scratch_size": self._scratch,
            "entry": self._prepared.programs[0].address_of(entry),
            "quantum": min(QUANTUM, self._limit),
            "limit": self._limit,
            "template": self._template_at,
            "template_constants": constants.base,
            "template_constants_size": round_up(max(64, len(constants.data)), 64),
            "ids": self._ids_at,
            "masks": ctypes.addressof(self._masks),
            "group_x_sgpr": x,
            "group_y_sgpr": y,
            "group_z_sgpr": z,
            "vgpr_bytes": self._prepared.encoder.registers.allocation.rows * state.ROW,
        }
        for name, value in values.items():
            self._set(name, value)
        if self._prepared.arena_version != arena.version:
            for program in self._prepared.programs:
                program.forget_regions()
            self._prepared.arena_version = arena.version

    def _set(self, name: str, value: int) -> None:
        offset = getattr(state.CTX, name)
        ctypes.c_uint64.from_buffer(self._context, offset).value = value

    def _get(self, name: str) -> int:
        offset = getattr(state.CTX, name)
        return ctypes.c_uint64.from_buffer(self._context, offset).value

    @property
    def executed(self) -> int:
        return self._get("executed")

    def run(self, run: Any, progress: Progress | None) -> None:
        """Runs the grid by the library's driver, `run`."""
        context = ctypes.addressof(self._context)
        length = FIRST_SLICE
        while True:
            self._set("slice_end", self.executed + length)
            # The call lets other Python threads run; a signal's handler runs when it returns.
            result = run(context)
            if result == state.RUN_FAULT:
                self._attend()
            elif result == state.RUN_TIMEOUT:
                raise self._timeout()
            if progress is not None:
                progress(self._get("done_groups"), self._groups)
            if result == state.RUN_DONE:
                return
            length = SLICE

    def _attend(self) -> None:
        """Looks after the wave that stopped: new code to decode, or a fault."""
        wave = self._get("stopped_wave")
        record = faults.Record.read(wave)
        status = ctypes.c_uint32.from_address(wave + state.STATUS)
        op = ctypes.c_uint64.from_address(wave + state.OP)
        instruction = self._prepared.instruction_at(op.value)
        kernel = self._prepared.kernel
        if status.value != state.STATUS_DECODE:
            raise faults.describe(
                record, kernel.name, instruction, self._arena, self._lds, self._scratch
            )
        pc = record.address - self._loaded.base
        try:
            if pc % 4:
                raise InputError(f"pc 0x{pc:x} is no multiple of 4")
            program = self._prepared.add_code(pc)
        except InputError as error:
            where = faults.place(kernel.name, instruction, record.group, record.wave)
            raise Fault(
                f"jump to 0x{record.address:x}: {error.message}; {where}", hint=error.hint
            ) from None
        self._copy_constants([self._template_at, *self._prepared_waves()])
        size = round_up(max(64, self._copied_constants), 64)
        self._set("template_constants_size", size)
        op.value = program.address_of(pc)
        landing = ctypes.c_uint64.from_address(wave + state.LANDING)
        landing.value = ctypes.c_uint32.from_address(op.value + state.OP_INDEX).value
        status.value = state.STATUS_READY

    def _prepared_waves(self) -> list[int]:
        """The wave states that constants have been copied to already."""
        found = []
        for slot in range(self._slots):
            base = self._slot_base + slot * self._slot_stride
            if ctypes.c_uint64.from_address(base + state.SLOT_PREPARED).value:
                first = base + state.SLOT_HEADER
                found += [first + wave * self._wave_stride for wave in range(self._waves)]
        return found

    def _timeout(self) -> Fault:
        """Names a wave that has not ended, and how many wait for it."""
        spinning = waiting = None
        count = 0
        for wave in self._prepared_waves():
            status = ctypes.c_uint32.from_address(wave + state.STATUS).value
            if status == state.STATUS_READY:
                spinning = spinning or wave
            elif status == state.STATUS_BARRIER:
                waiting, count = wave, count + 1
        wave = spinning or waiting
        where = f"kernel {self._prepared.kernel.name}"
        if wave is not None:
            record = faults.Record.read(wave)
            op = ctypes.c_uint64.from_address(wave + state.OP).value
            where = faults.place(
                self._prepared.kernel.name,
                self._prepared.instruction_at(op),
                record.group,
                record.wave,
            )
        waits = f"; {count} waves wait at a barrier" if count else ""
        return Fault(
            f"timeout: {self.executed} wave-instructions executed, the limit is {self._limit};"
            f" {where}{waits}",
            hint="raise --max-instructions if the kernel is only long",
        )


def round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit


def aligned(size: int) -> tuple[ctypes.Array[ctypes.c_char], int]:
    """Zeroed memory that starts on a cache line: the owner, and the address."""
    memory = ctypes.create_string_buffer(size + 64)
    address = ctypes.addressof(memory)
    return memory, address + -address % 64
