"""The resident workgroups of one thread of a launch, and the context in which they run."""

from __future__ import annotations

import ctypes
import mmap
from dataclasses import dataclass

from fly_run.emulator import state
from fly_run.emulator.lowering.registers import Constants

QUANTUM = 1 << 16  # instructions a wave runs before the next one's turn
SLOT_MEMORY = 256 << 20  # maximum memory of a thread's resident workgroups, in bytes
MOST_SLOTS = 256
PAD = state.ROW  # around LDS: a run of lanes may rewrite adjacent bytes, unchanged


@dataclass(frozen=True)
class Layout:
    """The layout of a slot: `waves` wave states of `wave_stride` bytes, `lds` bytes, and `scratch`
    bytes for each lane. `cluster` slots hold the workgroups of a cluster."""

    waves: int
    wave_stride: int
    lds: int
    scratch: int
    cluster: int

    @property
    def lds_offset(self) -> int:
        return state.SLOT_HEADER + self.waves * self.wave_stride + PAD

    @property
    def scratch_offset(self) -> int:
        return self.lds_offset + round_up(self.lds, PAD) + PAD

    @property
    def stride(self) -> int:
        scratch = self.waves * state.LANES * self.scratch
        return round_up(self.scratch_offset + scratch + PAD, mmap.PAGESIZE)


class ResidentWorkgroups:
    """Slots for the workgroups of the clusters that are resident at once, at most `clusters`.
    `fixed` is the part of the context that all threads of all launches of a workspace share."""

    def __init__(self, layout: Layout, clusters: int, fixed: bytes):
        self._layout, self._fixed = layout, fixed
        self._cluster_stride = layout.stride * layout.cluster
        most = max(1, SLOT_MEMORY // self._cluster_stride)
        self._places = min(clusters, most, MOST_SLOTS)
        # Memory is only reserved here, and committed when a workgroup uses it. It is private, so
        # that a process that forks and its child have separate waves.
        private = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        self._memory = mmap.mmap(-1, self._places * self._cluster_stride, private)
        self._base = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        self._matrix = ctypes.create_string_buffer(state.MATRIX_SIZE + 64)
        self._seen_places = 0
        self._copied = -1
        self._context = ctypes.create_string_buffer(state.CTX.size)
        self.context = ctypes.addressof(self._context)
        self._fields = {
            name: ctypes.c_uint64.from_buffer(self._context, offset)
            for name, offset in state.CTX.offsets.items()
        }
        self._start = self._fixed  # the context at the start of launches with this limit
        self._limit = -1

    @property
    def nbytes(self) -> int:
        """The size of the slots that have ever been used."""
        return max(self._seen_places, self._fields["used_slots"].value) * self._cluster_stride

    def set(self, name: str, value: int) -> None:
        """Sets a field of the context."""
        self._fields[name].value = value

    def get(self, name: str) -> int:
        return self._fields[name].value

    def begin(self, regions: int, limit: int) -> None:
        """Empties the slots for a launch that may execute `limit` instructions."""
        fields = self._fields
        used = fields["used_slots"].value
        self._seen_places = max(self._seen_places, used)
        if fields["live_groups"].value:
            # A launch that ended in a fault has left workgroups in their slots.
            for place in range(used):
                self._slot_word(place * self._layout.cluster, state.SLOT_ACTIVE).value = 0
        if limit != self._limit:
            self._limit, self._start = limit, self._starting(limit)
        ctypes.memmove(self.context, self._start, len(self._start))
        fields["region_count"].value = regions

    def _starting(self, limit: int) -> bytes:
        """Returns the context at the start of a launch with this limit, except the region count."""
        layout = self._layout
        made = ctypes.create_string_buffer(self._fixed, state.CTX.size)
        for name, value in (
            ("slots", self._places),
            ("slot_base", self._base),
            ("slot_stride", layout.stride),
            ("wave_stride", layout.wave_stride),
            ("lds_offset", layout.lds_offset),
            ("lds_size", layout.lds),
            ("scratch_offset", layout.scratch_offset),
            ("scratch_size", layout.scratch),
            ("limit", limit),
            ("matrix", ctypes.addressof(self._matrix) + -ctypes.addressof(self._matrix) % 64),
            ("quantum", min(QUANTUM, limit)),
        ):
            ctypes.c_uint64.from_buffer(made, state.CTX.offsets[name]).value = value
        return made.raw

    def wave_states(self) -> list[int]:
        """Returns the host addresses of the wave states in use in this launch."""
        layout = self._layout
        return [
            self._base + slot * layout.stride + state.SLOT_HEADER + wave * layout.wave_stride
            for slot in range(self.get("used_slots") * layout.cluster)
            for wave in range(layout.waves)
        ]

    def live_wave_states(self) -> list[int]:
        """Returns those of the clusters that have started and not ended."""
        cluster = self._layout.cluster
        count = self._layout.waves * cluster
        active = [
            self._slot_word(place * cluster, state.SLOT_ACTIVE).value
            for place in range(self.get("used_slots"))
        ]
        return [wave for number, wave in enumerate(self.wave_states()) if active[number // count]]

    def copy_constants(self, constants: Constants) -> None:
        """Copies constants that were added since into all wave states."""
        self.set("template_constants_size", round_up(max(1, len(constants.data)), state.ROW))
        if self._copied == len(constants.data):
            return
        data = bytes(constants.data)
        for wave in self.wave_states():
            ctypes.memmove(wave + constants.base, data, len(data))
        cluster = self._layout.cluster
        for slot in range(self.get("used_slots") * cluster, self._seen_places * cluster):
            self._slot_word(slot, state.SLOT_PREPARED).value = 0
        self._copied = len(data)

    def _slot_word(self, slot: int, place: int) -> ctypes.c_uint64:
        return ctypes.c_uint64.from_address(self._base + slot * self._layout.stride + place)


def round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit
