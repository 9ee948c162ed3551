"""Computes the addresses of a memory access from registers, before it happens."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fly_run.emulator import state
from fly_run.emulator.strict.dataflow import Effect, Place
from fly_run.emulator.watch.observe import WaveView

SIGN_32 = 1 << 31
# Spaces of forms that access only one.
SPACES = {"global": "memory", "lds": "lds", "scratch": "scratch", "smem": "scalar"}


@dataclass(frozen=True)
class Destination:
    """Lanes (booleans) of an access that go to one memory, "memory", "lds", "scratch" or "scalar";
    `offsets` are the first bytes in LDS or in the lane's private memory, otherwise unused."""

    space: str
    lanes: np.ndarray
    offsets: np.ndarray


class Values:
    """Registers of a wave before an instruction, for its steps. Registers that earlier steps
    copied, and lane addresses, are tracked too; other results of earlier steps are unknown."""

    def __init__(self, view: WaveView, constants: bytes | bytearray, base: int):
        self._view, self._constants, self._base = view, constants, base
        self._copies: dict[int, int] = {}
        self._computed: set[int] = set()
        self._addresses: dict[int, np.ndarray] = {}

    def wrote(self, effect: Effect) -> None:
        """Records that a step has been executed."""
        copied = effect.operation.mnemonic in ("v_mov_b32", "v_mov_b64")
        if effect.operation.mnemonic == "fly_lane_address":
            base = self.word(state.M0)
            assert base is not None
            lanes = np.arange(state.LANES, dtype=np.uint32) * np.uint32(effect.step.extra)
            base &= effect.step.immediate
            self._addresses[effect.writes[0].offset] = lanes + np.uint32(base)
        for place in effect.writes:
            for number, word in enumerate(place.words()):
                self._copies.pop(word, None)
                source = effect.reads[0] if effect.reads else place
                self._computed.add(word)
                if copied and source.lanes and place.lanes:
                    origin = list(source.words())[number]
                    if origin in self._copies or origin not in self._computed:
                        self._copies[word] = self._copies.get(origin, origin)

    @property
    def scc(self) -> int:
        return self._view.scc

    @property
    def private_base(self) -> int:
        """src_flat_scratch_base of this wave."""
        return state.GLOBAL_SCRATCH + self._view.wave * state.GLOBAL_SCRATCH_WAVE

    def row(self, word: int) -> np.ndarray | None:
        """Returns a row of u32 at this offset in the wave state."""
        if word in self._addresses:
            return self._addresses[word]
        known = word in self._copies or word not in self._computed
        number = (self._copies.get(word, word) - state.VGPR) // state.ROW
        if not known or not 0 <= number < len(self._view.vgprs):
            return None
        return self._view.vgprs[number]

    def word(self, offset: int) -> int | None:
        """Returns a dword of a scalar register or a constant."""
        if offset >= self._base:
            at = offset - self._base
            return int.from_bytes(self._constants[at : at + 4], "little")
        if offset in self._computed or offset >= state.SGPR + 512:
            return None
        return int(self._view.sgprs[offset // 4])

    def lanes(self, place: Place) -> np.ndarray | None:
        """Returns a place's value as u64 for each lane; for a mask each lane's bit."""
        if place.element == "mask":
            words = [self.word(word) for word in place.words()]
            if None in words:
                return None
            bits = np.array([*words, 0][:2], np.uint32).view(np.uint8)
            return np.unpackbits(bits, bitorder="little").astype(np.uint64)
        total = np.zeros(state.LANES if place.lanes else 1, np.uint64)
        for number, word in enumerate(place.words()):
            part = self.row(word) if place.lanes else self.word(word)
            if part is None:
                return None
            total = total | np.asarray(part, np.uint64) << np.uint64(32 * number)
        return total


def destinations(effect: Effect, values: Values, active: np.ndarray) -> list[Destination]:
    """Returns the destinations of a memory access; empty for other steps and unknown addresses."""
    form = effect.operation.form
    offsets = np.zeros(state.LANES, np.int64)
    immediate = effect.step.immediate
    addresses = [place for place in effect.reads if place.role == "address"]
    if form in ("global", "smem"):
        return [Destination(SPACES[form], active, offsets)]
    if form in ("lds", "scratch"):
        total = np.zeros(state.LANES, np.uint64)
        for place in addresses:
            part = values.lanes(place)
            if part is None:
                return []
            total = total + part
        whole = (total.astype(np.int64) + immediate) & 0xFFFF_FFFF
        lanes = active & (total != state.LDS_MASKED) if form == "lds" else active
        return [Destination(SPACES[form], lanes, whole)]
    if form == "flat":
        address = _flat_address(effect, addresses, values)
        if address is None:
            return []
        address = address + immediate
        upper, lower = address >> 32, address & 0xFFFF_FFFF
        shared = active & (upper == state.SHARED_APERTURE)
        private = active & (upper == state.PRIVATE_APERTURE)
        # Addresses that name a lane of this wave; those of other lanes are not followed.
        named = active & (address >> state.GLOBAL_SCRATCH_SHIFT == 1)
        if named.any():
            owner = address >> state.GLOBAL_SCRATCH_LANE & 31
            own = named & (owner == np.arange(state.LANES))
            inside = address - values.private_base & (1 << state.GLOBAL_SCRATCH_LANE) - 1
            lower = np.where(named, inside, lower)
            private = private | own
            active = active & ~(named & ~own)
        parts = (("lds", shared), ("scratch", private), ("memory", active & ~shared & ~private))
        found = [Destination(space, lanes, lower) for space, lanes in parts if lanes.any()]
        return found or [Destination("memory", active, lower)]
    if form == "buffer":
        return _buffer(addresses, values, active, immediate)
    return []


def _flat_address(effect: Effect, addresses: list[Place], values: Values) -> np.ndarray | None:
    """Returns the addresses without the constant offset: two registers, or a signed offset and a
    scalar base (variants g and h)."""
    parts = [values.lanes(place) for place in addresses]
    first, *more = parts
    if first is None or any(part is None for part in more):
        return None
    if not more:
        return first.astype(np.int64)
    offset = first.astype(np.uint32).view(np.int32).astype(np.int64)
    if effect.step.handler.endswith(".h"):
        offset = offset * effect.operation.detail.size
    assert more[0] is not None
    return offset + more[0].astype(np.int64)


def _buffer(
    addresses: list[Place], values: Values, active: np.ndarray, immediate: int
) -> list[Destination]:
    """Private memory is recognised by its resource; the scalar offset and the base count bytes of
    the whole wave."""
    *vector, resource, scalar = addresses
    low, high, *_ = (values.word(word) for word in resource.words())
    start = values.lanes(scalar)
    if low is None or high is None or start is None:
        return []
    offsets = np.full(state.LANES, immediate, np.int64)
    for place in vector:
        part = values.lanes(place)
        if part is None:
            return []
        offsets = offsets + part.astype(np.int64)
    if high & 0xFFFF != state.SCRATCH_BUFFER >> 32:
        return [Destination("memory", active, offsets)]
    own = offsets & 0xFFFF_FFFF  # the sum has 32 bits and wraps
    return [Destination("scratch", active, own + (low + int(start[0]) >> 6))]
