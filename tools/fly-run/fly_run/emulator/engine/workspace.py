"""State shared by launches of one kernel in one shape: initial registers, resident workgroups.

A kernel is often launched many times in the same shape, so this is set up once: later launches only
change the arguments.
"""

from __future__ import annotations

import ctypes
import math
import struct
from typing import TYPE_CHECKING

from fly_common.errors import InputError
from fly_target.amd.facts import facts_of

from fly_run.emulator import state
from fly_run.emulator.engine import dispatch
from fly_run.emulator.engine.arena import LAUNCH_AT, Arena, Region
from fly_run.emulator.engine.resident_workgroups import Layout, ResidentWorkgroups, round_up
from fly_run.emulator.watch.observe import Launch

if TYPE_CHECKING:
    from fly_run.emulator.engine.loading import Prepared

# Addresses of a launch's regions, spaced for the largest.
QUEUE_AT, PACKET_AT, KERNARG_AT = (LAUNCH_AT + (number << 20) for number in range(3))
DYNAMIC_STACK = 16 << 10  # more bytes a lane, if the compiler can't tell the stack's depth

Triple = tuple[int, int, int]
ALONE = (1, 1, 1)  # the cluster of a workgroup that is in none


class Workspace:
    """Memory for launches of `prepared` with this grid, block, cluster and LDS size (bytes, static
    and dynamic). Grid and cluster count workgroups. It serves one launch at a time. `crew` has the
    resident workgroups of each thread that has ever worked on such a launch, the launching thread's
    first; the first `working` of them do in this one. `nbytes` is the memory in use as of the last
    call of `grown`."""

    def __init__(
        self, prepared: Prepared, grid: Triple, block: Triple, lds: int, cluster: Triple = ALONE
    ):
        self.prepared, self.lds, self._cluster = prepared, lds, cluster
        self.arena: Arena = prepared.loaded.arena
        self.groups = math.prod(grid)
        self._clusters = self.groups // math.prod(cluster)
        kernel = prepared.kernel
        self.scratch = round_up(kernel.private_segment_fixed_size, 16)
        if kernel.uses_dynamic_stack:
            self.scratch += DYNAMIC_STACK
        self._queue = ctypes.create_string_buffer(dispatch.queue(), dispatch.QUEUE_BYTES)
        # Compilers widen argument loads up to the segment's alignment, so the padding is readable.
        readable = round_up(max(1, kernel.kernarg_size), dispatch.KERNARG_ALIGNMENT)
        self._kernarg = ctypes.create_string_buffer(readable)
        self._kernarg_at = ctypes.addressof(self._kernarg)
        hidden = dispatch.hidden_arguments(kernel, grid, block, lds, QUEUE_AT)
        self._explicit = min((offset for offset, _ in hidden), default=kernel.kernarg_size)
        for offset, value in hidden:
            ctypes.memmove(self._kernarg_at + offset, value, len(value))
        descriptor = prepared.loaded.base + kernel.descriptor
        sizes = self.scratch, lds
        packet = dispatch.packet(grid, block, *sizes, descriptor, KERNARG_AT)
        self._packet = ctypes.create_string_buffer(packet, len(packet))
        self._regions = (
            _region("the queue", QUEUE_AT, self._queue),
            _region("the dispatch packet", PACKET_AT, self._packet),
            _region("the kernel's arguments", KERNARG_AT, self._kernarg),
        )
        packed = facts_of(prepared.target).packed_work_item_ids
        self._id_rows = dispatch.id_rows(prepared.kernel, prepared.target)
        lanes = prepared.kernel.wavefront_size
        ids, masks = dispatch.work_items(block, lanes, self._id_rows, packed)
        self.waves = len(masks) // 8
        self._ids, self._ids_at = aligned(len(ids))
        ctypes.memmove(self._ids_at, ids, len(ids))
        self._masks = ctypes.create_string_buffer(masks, len(masks))
        self._make_template()
        self._tickets, self._tickets_at = aligned(64)
        self._taken = ctypes.c_uint64.from_address(self._tickets_at)
        members = math.prod(cluster)
        self._layout = Layout(self.waves, self._wave_stride, lds, self.scratch, members)
        self._fixed = self._fixed_context(grid)
        self.crew: list[ResidentWorkgroups] = []
        self.working = 0
        self._limit = self._rows = 0
        self.nbytes = 0

    def described(self, grid: Triple, block: Triple) -> Launch:
        """Returns the description of a launch for observers."""
        prepared = self.prepared
        return Launch(
            prepared.kernel,
            prepared.loaded.target,
            grid,
            block,
            self.lds,
            self.scratch,
            prepared.loaded.base,
            prepared.encoder.registers.allocation,
            prepared.loaded.code_object.lines,
            self._cluster,
        )

    def grown(self) -> int:
        """Returns by how many bytes the memory in use has grown since the last call."""
        before, self.nbytes = self.nbytes, sum(residents.nbytes for residents in self.crew)
        return self.nbytes - before

    def begin(self, kernarg: bytes, limit: int) -> None:
        """Prepares a launch with these arguments and this limit of instructions."""
        self.working = 0
        kernel = self.prepared.kernel
        if len(kernarg) > kernel.kernarg_size:
            raise InputError(
                f"{kernel.name} takes {kernel.kernarg_size} bytes of arguments, not {len(kernarg)}"
            )
        # The device's arguments follow the caller's and do not change.
        ctypes.memmove(self._kernarg_at, kernarg, min(len(kernarg), self._explicit))
        if kernel.kernarg_preload:
            self._start(self._kernarg.raw)
        self._taken.value = 0
        self._limit = limit
        self.arena.enter(self._regions)
        self._rows = self.arena.show_buffers()
        self.join()

    def join(self) -> ResidentWorkgroups:
        """Returns resident workgroups for one more thread."""
        if self.working == len(self.crew):
            self.crew.append(ResidentWorkgroups(self._layout, self._clusters, self._fixed))
        residents = self.crew[self.working]
        self.working += 1
        residents.begin(self._rows, self._limit)
        self._update(residents)
        return residents

    @property
    def members(self) -> list[ResidentWorkgroups]:
        """The resident workgroups of the threads that work on this launch."""
        return self.crew[: self.working]

    @property
    def executed(self) -> int:
        """The number of wave instructions that this launch has executed."""
        return sum(residents.get("executed") for residents in self.members)

    @property
    def done_groups(self) -> int:
        done = sum(residents.get("done_groups") for residents in self.members)
        return done * self._layout.cluster

    @property
    def pending_groups(self) -> int:
        """The number of workgroups that have not started."""
        return max(0, self._clusters - self._taken.value) * self._layout.cluster

    def live_wave_states(self) -> list[int]:
        """Returns the host addresses of the wave states of workgroups that have started and not
        ended."""
        return [wave for residents in self.members for wave in residents.live_wave_states()]

    def update_code(self) -> None:
        """Prepares the wave states for code that was added: its constants, its rows of registers.
        No thread may be running."""
        for residents in self.members:
            self._update(residents)

    def _update(self, residents: ResidentWorkgroups) -> None:
        rows = max(self._id_rows, self.prepared.encoder.registers.named.count)
        residents.set("named_bytes", rows * state.ROW)
        constants = self.prepared.constants
        if self._copied != len(constants.data):
            data = bytes(constants.data)
            ctypes.memmove(self._template_at + constants.base, data, len(data))
            self._copied = len(data)
        residents.copy_constants(constants)

    # -- set-up

    def _start(self, kernarg: bytes) -> dispatch.Start:
        """Sets the initial scalar registers of waves. Returns them with the places of the ids."""
        prepared, addresses = self.prepared, (KERNARG_AT, PACKET_AT, QUEUE_AT)
        start = dispatch.scalar_registers(prepared.kernel, prepared.target, kernarg, *addresses)
        data = struct.pack(f"<{len(start.sgprs)}I", *start.sgprs)
        ctypes.memmove(self._template_at, data, len(data))
        return start

    def _make_template(self) -> None:
        """Builds the wave state from which every wave is copied."""
        constants = self.prepared.constants
        self._wave_stride = constants.base + round_up(constants.capacity, state.ROW)
        self._template, self._template_at = aligned(self._wave_stride)
        mode = dispatch.mode_register(self.prepared.kernel, self.prepared.target)
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

    def _fixed_context(self, grid: Triple) -> bytes:
        """Returns the part of each thread's context that is the same for all launches;
        ResidentWorkgroups adds the rest."""
        prepared = self.prepared
        loaded, kernel = prepared.loaded, prepared.kernel
        start = self._start(self._kernarg.raw)
        x, y, z, yz = start.groups
        values = {
            "regions": self.arena.table,
            "load_base": loaded.base,
            "code_low": loaded.base + loaded.low,
            "code_dwords": loaded.size // 4,
            "code_map": ctypes.addressof(prepared.code_map),
            "end_group": self._clusters,
            "grid_x": grid[0] // self._cluster[0],
            "grid_y": grid[1] // self._cluster[1],
            "cluster_size": self._layout.cluster,
            "cluster_x": self._cluster[0],
            "cluster_y": self._cluster[1],
            "cluster_sgpr": start.cluster,
            "waves": self.waves,
            "tickets": self._tickets_at,
            "watch": prepared.watch.callback,
            "entry": prepared.programs[0].address_of(
                dispatch.entry_address(kernel, prepared.target)
            ),
            "template": self._template_at,
            "template_constants": prepared.constants.base,
            "ids": self._ids_at,
            "id_bytes": self._id_rows * state.ROW,
            "masks": ctypes.addressof(self._masks),
            "group_x_sgpr": x,
            "group_y_sgpr": y,
            "group_z_sgpr": z,
            "group_yz_sgpr": yz,
            "wave_sgpr": start.wave,
            "private_base": state.GLOBAL_SCRATCH * facts_of(prepared.target).global_scratch,
            "split_barriers": int(facts_of(prepared.target).split_barriers),
            "lanes": kernel.wavefront_size,
            "vgpr_bytes": prepared.encoder.registers.allocation.rows * state.ROW,
        }
        return struct.pack(
            f"<{len(state.CTX.names)}Q", *(values.get(name, 0) for name in state.CTX.names)
        )


def _region(name: str, low: int, memory: ctypes.Array[ctypes.c_char]) -> Region:
    return Region(name, low, len(memory), ctypes.addressof(memory), False)


def aligned(size: int) -> tuple[ctypes.Array[ctypes.c_char], int]:
    """Allocates zeroed memory that starts on a cache line; returns the owner and the address."""
    memory = ctypes.create_string_buffer(size + 64)
    address = ctypes.addressof(memory)
    return memory, address + -address % 64
