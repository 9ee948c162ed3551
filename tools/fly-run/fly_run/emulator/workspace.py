"""What launches of one kernel in one shape share: registers at the start, resident workgroups.

A kernel is often launched many times in the same shape, so this is made once: another launch
only brings its arguments.
"""

from __future__ import annotations

import ctypes
import mmap
import struct
from typing import TYPE_CHECKING

from fly_common.errors import InputError

from fly_run.emulator import dispatch, state
from fly_run.emulator.arena import Arena

if TYPE_CHECKING:
    from fly_run.emulator.loading import Prepared

QUANTUM = 1 << 16  # instructions a wave runs before the next one's turn
SLOT_MEMORY = 256 << 20  # bytes that resident workgroups may take together
MOST_SLOTS = 256
DYNAMIC_STACK = 16 << 10  # bytes a lane more, where the compiler can't tell the stack's depth
PAD = state.ROW  # around LDS: a run of lanes may move bytes beside it, unchanged

Triple = tuple[int, int, int]


class Workspace:
    """Memory of the launches of `prepared` with this grid, block and LDS size (bytes, static and
    dynamic). One launch at a time uses it."""

    def __init__(self, prepared: Prepared, arena: Arena, grid: Triple, block: Triple, lds: int):
        self.prepared, self.arena, self.lds = prepared, arena, lds
        self.groups = grid[0] * grid[1] * grid[2]
        kernel = prepared.kernel
        self.scratch = round_up(kernel.private_segment_fixed_size, 16)
        if kernel.uses_dynamic_stack:
            self.scratch += DYNAMIC_STACK
        self._regions: list[str] = []
        self._queue = ctypes.create_string_buffer(dispatch.queue(), dispatch.QUEUE_BYTES)
        self._queue_address = self._bind("the queue", self._queue)
        # Compilers widen argument loads up to the segment's alignment: what lies there is readable.
        readable = round_up(max(1, kernel.kernarg_size), dispatch.KERNARG_ALIGNMENT)
        self._kernarg = ctypes.create_string_buffer(readable)
        self._kernarg_address = self._bind("the kernel's arguments", self._kernarg)
        hidden = dispatch.hidden_arguments(kernel, grid, block, lds, self._queue_address)
        self._explicit = min((offset for offset, _ in hidden), default=kernel.kernarg_size)
        for offset, value in hidden:
            ctypes.memmove(ctypes.addressof(self._kernarg) + offset, value, len(value))
        descriptor = prepared.loaded.base + kernel.descriptor
        sizes = self.scratch, lds
        packet = dispatch.packet(grid, block, *sizes, descriptor, self._kernarg_address)
        self._packet = ctypes.create_string_buffer(packet, len(packet))
        self._packet_address = self._bind("the dispatch packet", self._packet)
        ids, masks = dispatch.work_items(block)
        self.waves = len(masks) // 8
        self._ids, self._ids_at = aligned(len(ids))
        ctypes.memmove(self._ids_at, ids, len(ids))
        self._masks = ctypes.create_string_buffer(masks, len(masks))
        self._make_template()
        self._make_slots()
        self._context = ctypes.create_string_buffer(state.CTX.size)
        self._fields = {
            name: ctypes.c_uint64.from_buffer(self._context, offset)
            for name, offset in state.CTX.offsets.items()
        }
        self._fixed = self._fixed_context(grid)

    @property
    def context(self) -> int:
        return ctypes.addressof(self._context)

    def close(self) -> None:
        """Takes this workspace's regions out of the arena."""
        for name in self._regions:
            self.arena.drop(name, owner=id(self))

    def begin(self, kernarg: bytes, limit: int) -> None:
        """Makes everything ready for a launch with these arguments, and this limit of
        instructions."""
        kernel = self.prepared.kernel
        if len(kernarg) > kernel.kernarg_size:
            raise InputError(
                f"{kernel.name} takes {kernel.kernarg_size} bytes of arguments, not {len(kernarg)}"
            )
        # What the device fills lies behind what the caller fills, and stays.
        ctypes.memmove(self._kernarg, kernarg, min(len(kernarg), self._explicit))
        if kernel.kernarg_preload:
            self._start(self._kernarg.raw)
        # A launch that ended in a fault has left workgroups in their slots.
        for slot in range(self.get("used_slots")):
            self._slot_word(slot, state.SLOT_ACTIVE).value = 0
            self._seen_slots = max(self._seen_slots, slot + 1)
        ctypes.memmove(self._context, self._fixed, len(self._fixed))
        self.set("region_count", len(self.arena))
        self.set("limit", limit)
        self.set("quantum", min(QUANTUM, limit))
        self.update_constants()
        prepared = self.prepared
        if prepared.arena_version != self.arena.version:
            for program in prepared.programs:
                program.forget_regions()
            prepared.arena_version = self.arena.version

    def set(self, name: str, value: int) -> None:
        """Sets a field of the context."""
        self._fields[name].value = value

    def get(self, name: str) -> int:
        return self._fields[name].value

    def wave_states(self) -> list[int]:
        """The host addresses of the wave states in use in this launch."""
        return [
            self._slot_base
            + slot * self._slot_stride
            + state.SLOT_HEADER
            + wave * self._wave_stride
            for slot in range(self.get("used_slots"))
            for wave in range(self.waves)
        ]

    def update_constants(self) -> None:
        """Brings constants that were added to the code up to date in all wave states."""
        constants = self.prepared.constants
        self.set("template_constants_size", round_up(max(1, len(constants.data)), state.ROW))
        if self._copied == len(constants.data):
            return
        data = bytes(constants.data)
        for wave in [self._template_at, *self.wave_states()]:
            ctypes.memmove(wave + constants.base, data, len(data))
        for slot in range(self.get("used_slots"), self._seen_slots):
            self._slot_word(slot, state.SLOT_PREPARED).value = 0
        self._copied = len(data)

    # -- set-up

    def _bind(self, name: str, memory: ctypes.Array[ctypes.c_char]) -> int:
        self._regions.append(name)
        address = ctypes.addressof(memory)
        return self.arena.bind(name, address, len(memory), False, owner=id(self))

    def _slot_word(self, slot: int, place: int) -> ctypes.c_uint64:
        return ctypes.c_uint64.from_address(self._slot_base + slot * self._slot_stride + place)

    def _start(self, kernarg: bytes) -> dispatch.Triple:
        """Sets the scalar registers that waves start with. The result is where the workgroup's
        numbers go."""
        addresses = self._kernarg_address, self._packet_address, self._queue_address
        start = dispatch.scalar_registers(self.prepared.kernel, kernarg, *addresses)
        data = struct.pack(f"<{len(start.sgprs)}I", *start.sgprs)
        ctypes.memmove(self._template_at, data, len(data))
        return start.groups

    def _make_template(self) -> None:
        """The wave state that every wave starts as a copy of."""
        constants = self.prepared.constants
        self._wave_stride = constants.base + round_up(constants.capacity, state.ROW)
        self._template, self._template_at = aligned(self._wave_stride)
        mode = dispatch.mode_register(self.prepared.kernel)
        single, double = dispatch.control_words(mode)
        vector = self.prepared.encoder.registers.allocation.vector
        for place, value in (
            (state.MODE, mode),
            (state.MXCSR_SINGLE, single),
            (state.MXCSR_DOUBLE, double),
            (state.VGPR_LIMIT, state.VGPR + vector * state.ROW),
        ):
            ctypes.c_uint32.from_address(self._template_at + place).value = value
        self._copied = -1

    def _make_slots(self) -> None:
        """Memory for resident workgroups: reserved, and only used where a workgroup gets there."""
        self._lds_offset = state.SLOT_HEADER + self.waves * self._wave_stride + PAD
        self._scratch_offset = self._lds_offset + round_up(self.lds, PAD) + PAD
        scratch = self.waves * state.LANES * self.scratch
        self._slot_stride = round_up(self._scratch_offset + scratch + PAD, mmap.PAGESIZE)
        most = max(1, SLOT_MEMORY // self._slot_stride)
        self._slots = min(self.groups, most, MOST_SLOTS)
        self._memory = mmap.mmap(-1, self._slots * self._slot_stride)
        self._slot_base = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        self._seen_slots = 0

    def _fixed_context(self, grid: Triple) -> bytes:
        """The context at the start of any launch; `begin` adds what differs."""
        prepared = self.prepared
        loaded, kernel = prepared.loaded, prepared.kernel
        x, y, z = self._start(self._kernarg.raw)
        values = {
            "regions": self.arena.table,
            "load_base": loaded.base,
            "code_low": loaded.base + loaded.low,
            "code_bytes": loaded.size,
            "code_map": ctypes.addressof(prepared.code_map),
            "end_group": self.groups,
            "grid_x": grid[0],
            "grid_y": grid[1],
            "waves": self.waves,
            "slots": self._slots,
            "slot_base": self._slot_base,
            "slot_stride": self._slot_stride,
            "wave_stride": self._wave_stride,
            "lds_offset": self._lds_offset,
            "lds_size": self.lds,
            "scratch_offset": self._scratch_offset,
            "scratch_size": self.scratch,
            "entry": prepared.programs[0].address_of(dispatch.entry_address(kernel)),
            "template": self._template_at,
            "template_constants": prepared.constants.base,
            "ids": self._ids_at,
            "masks": ctypes.addressof(self._masks),
            "group_x_sgpr": x,
            "group_y_sgpr": y,
            "group_z_sgpr": z,
            "vgpr_bytes": prepared.encoder.registers.allocation.rows * state.ROW,
        }
        return struct.pack(
            f"<{len(state.CTX.names)}Q", *(values.get(name, 0) for name in state.CTX.names)
        )


def round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit


def aligned(size: int) -> tuple[ctypes.Array[ctypes.c_char], int]:
    """Zeroed memory that starts on a cache line: the owner, and the address."""
    memory = ctypes.create_string_buffer(size + 64)
    address = ctypes.addressof(memory)
    return memory, address + -address % 64
