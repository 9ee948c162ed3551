"""Uninitialised values of a wave: where they are, where they go, and where they matter.

Registers, LDS and private memory start undefined, except for what the hardware sets. Undefined
bits may be copied, spilled and computed with: compilers do that where the result is not used. They
matter in an address, a branch, EXEC, an atomic, and in what is stored to global memory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from fly_run.emulator import state
from fly_run.emulator.accesses import Destination, Values
from fly_run.emulator.dataflow import MATRIX_FORMS, Effect, Place
from fly_run.emulator.definedness import WIDTHS, ones, rule_of
from fly_run.emulator.semantics.access import Access, Atomic
from fly_run.emulator.semantics.rdna_lanes import BOUND, INACTIVE

U64 = np.uint64
ALL_32 = 0xFFFF_FFFF
WIDE_STORE = 16  # bytes: a vector of three is stored as one of four, whose last dword is padding
SHARED, PRIVATE = -1, -2  # origins that are no register's offset in the wave state


@dataclass(frozen=True)
class Use:
    """An undefined value that matters: what it decides, in which lane (None: in the whole wave),
    and its origin, a register's offset in the wave state, SHARED or PRIVATE."""

    what: str
    lane: int | None
    origin: int


class Undefined:
    """The shadow of a wave: `bits` has a u32 for each dword of the wave state up to `end`, in which
    1 is undefined; `origins` says where an undefined dword's value comes from."""

    def __init__(self, end: int, scratch: int, lanes: int):
        self.bits = np.zeros(end // 4, np.uint32)
        self.origins = np.zeros(end // 4, np.int32)
        self.private = np.full((state.LANES, scratch), 0xFF, np.uint8)
        self._lanes = lanes
        self._end = end

    def start(self, scalars: int) -> None:
        """The state of a wave that begins: `scalars` registers, EXEC, v0 and the trap handler's
        registers are set."""
        self.bits[:] = 0
        self.bits[scalars : state.M0 // 4 + 1] = ALL_32
        self.bits[102:106] = self.bits[108:124] = 0
        self.bits[(state.VGPR + state.ROW) // 4 :] = ALL_32
        self.bits[state.SCC // 4] = ALL_32
        words = np.arange(len(self.bits), dtype=np.int32) * 4
        rows = state.VGPR + (words - state.VGPR) // state.ROW * state.ROW
        self.origins[:] = np.where(words >= state.VGPR, rows, words)

    # -- places

    def _row(self, word: int) -> slice:
        return slice(word // 4, word // 4 + state.LANES)

    def _read(self, place: Place) -> np.ndarray:
        """The shadow bits of a place, u64 for each lane, or for all together."""
        if place.offset >= self._end:  # a constant
            return np.zeros(1, U64)
        if place.element == "mask":
            words = np.zeros(2, np.uint32)
            at = place.offset // 4
            words[: place.count] = self.bits[at : at + place.count]
            return np.unpackbits(words.view(np.uint8), bitorder="little").astype(U64)
        total = np.zeros(state.LANES if place.lanes else 1, U64)
        for number, word in enumerate(place.words()):
            part = self.bits[self._row(word)] if place.lanes else self.bits[word // 4]
            # What has more than two dwords, a resource or data, is only asked whether any bit is.
            total = total | np.asarray(part, U64) << U64(32 * (number % 2))
        return total & ones(WIDTHS[place.element] if place.count == 1 else 64)

    def _origin(self, places: tuple[Place, ...]) -> int:
        """The origin of the first undefined value among places."""
        for place in places:
            for word in place.words() if place.offset < self._end else ():
                where = self._row(word) if place.lanes else slice(word // 4, word // 4 + 1)
                found = np.flatnonzero(self.bits[where])
                if len(found):
                    return int(self.origins[where][found[0]])
        return 0

    def _write(
        self, place: Place, bits: np.ndarray, active: np.ndarray, origin: int, keep: bool = False
    ) -> None:
        """Sets the shadow of a place; `keep` leaves the upper halves of registers alone."""
        if place.element == "mask":
            lanes = np.zeros(state.LANES, bool)
            lanes[:] = (bits != 0) & active
            words = np.packbits(lanes, bitorder="little").view(np.uint32)[: self._lanes // 32]
            at = place.offset // 4
            self.bits[at : at + len(words)] = words
            self.origins[at : at + len(words)] = origin
            return
        for number, word in enumerate(place.words()):
            part = (bits >> U64(32 * number) & U64(ALL_32)).astype(np.uint32)
            if not place.lanes:
                self.bits[word // 4], self.origins[word // 4] = part[0], origin
                continue
            row, origins = self.bits[self._row(word)], self.origins[self._row(word)]
            part = np.broadcast_to(part, row.shape)
            if keep:
                part = (row & np.uint32(0xFFFF_0000)) | (part & np.uint32(0xFFFF))
            changed = active & ((part & ~row) != 0)
            row[active] = part[active]
            origins[changed] = origin

    # -- steps

    def step(
        self,
        effect: Effect,
        values: Values,
        active: np.ndarray,
        places: list[Destination],
        shared: np.ndarray,
    ) -> Use | None:
        """What a step does to the shadow; a use that matters. `places` are where a memory access
        goes, `shared` the shadow of the workgroup's LDS, a byte for each byte."""
        form, name = effect.operation.form, effect.operation.mnemonic
        if form == "flow":
            return self._flow(effect)
        if isinstance(effect.operation.detail, Access | Atomic) or form == "smem":
            return self._memory(effect, active, places, shared)
        special = _multiply if form in MATRIX_FORMS else _SPECIAL.get(name)
        if special is not None:
            special(self, effect, values, active)
        else:
            self._compute(effect, values, active)
        return self._exec(effect)

    def _exec(self, effect: Effect) -> Use | None:
        """EXEC must be defined, of all lanes that the wave has."""
        if not any(state.EXEC in place.words() for place in effect.writes):
            return None
        words = self.bits[state.EXEC // 4 : state.EXEC // 4 + self._lanes // 32]
        if not words.any():
            return None
        return Use("which lanes go on", None, int(self.origins[state.EXEC // 4]))

    def _flow(self, effect: Effect) -> Use | None:
        """Branches and jumps: what they look at must be defined."""
        name = effect.operation.mnemonic
        for place in effect.reads:
            if place.offset == state.EXEC:
                continue
            bits = self._read(place)
            if place.offset == state.VCC:
                bits = bits & ones(self._lanes)
            if bits.any():
                what = "where a branch goes" if "branch" in name else "where a jump goes"
                return Use(what, None, self._origin((place,)))
        for place in effect.writes:
            self._write(place, np.zeros(1, U64), np.ones(state.LANES, bool), 0)
        return None

    def _compute(self, effect: Effect, values: Values, active: np.ndarray) -> None:
        operation = effect.operation
        reads = [self._read(place) for place in effect.reads]
        keep = operation.keeps_high
        if not any(bits.any() for bits in reads):
            for place in effect.writes:
                self._write(place, np.zeros(1, U64), active, 0, keep)
            return
        origin = self._origin(effect.reads)
        any_bit = np.bitwise_or.reduce(np.broadcast_arrays(*(bits != 0 for bits in reads)))
        rule = rule_of(operation.mnemonic)
        for number, place in enumerate(effect.writes):
            if number or place.element == "mask":
                bits = any_bit.astype(U64)
            else:
                known = [values.lanes(source) for source in effect.reads]
                bits = rule(reads, known, WIDTHS[place.element])
            if "saveexec" in operation.mnemonic:
                # The first result is EXEC as it was; EXEC becomes the combination.
                bits = np.zeros(1, U64) if number == 0 else bits
                if place.offset == state.EXEC:
                    known = [values.lanes(source) for source in effect.reads]
                    bits = rule(reads, known, 64)
            self._write(place, bits, active, origin, keep)

    # -- memory

    def _memory(
        self, effect: Effect, active: np.ndarray, places: list[Destination], shared: np.ndarray
    ) -> Use | None:
        detail = effect.operation.detail
        scalar = effect.operation.form == "smem"
        for place in effect.reads:
            bits = self._read(place)
            wrong = np.broadcast_to(bits != 0, active.shape) & (active if not scalar else True)
            if place.role == "address" and wrong.any():
                lane = int(np.flatnonzero(wrong)[0]) if place.lanes else None
                return Use("the address", lane, self._origin((place,)))
        data = [place for place in effect.reads if place.role == "value"]
        for where in places:
            memory = {"lds": shared, "scratch": self.private}.get(where.space)
            if isinstance(detail, Atomic):
                use = self._atomic(effect, data[0], where, memory)
            elif isinstance(detail, Access) and detail.kind == "store":
                use = self._store(data[0], detail, where, memory)
            else:
                use = None
                self._load(effect.writes[0], detail, where, memory)
            if use is not None:
                return use
        return None

    def _bytes(self, where: Destination, size: int) -> tuple[np.ndarray, np.ndarray]:
        """The lanes, and for each the offsets of its bytes."""
        lanes = np.flatnonzero(where.lanes)
        return lanes, where.offsets[lanes, None] + np.arange(size)

    def _index(self, memory: np.ndarray, lanes: np.ndarray, offsets: np.ndarray):
        """An index of bytes of LDS or of lanes' private memory; None where some are outside, which
        is a fault that the access itself will tell."""
        if len(lanes) and (offsets.min() < 0 or offsets.max() >= memory.shape[-1]):
            return None
        return offsets if memory.ndim == 1 else (lanes[:, None], offsets)

    def _load(
        self, place: Place, detail: object, where: Destination, memory: np.ndarray | None
    ) -> None:
        if not isinstance(detail, Access):  # a scalar load: all of it is defined
            for word in place.words():
                self.bits[word // 4] = 0
            return
        half = detail.half
        size = detail.size
        lanes, offsets = self._bytes(where, size)
        found = np.zeros((len(lanes), 4 * place.count), np.uint8)
        origin = 0
        if memory is not None and (index := self._index(memory, lanes, offsets)) is not None:
            found[:, :size] = memory[index]
            origin = SHARED if where.space == "lds" else PRIVATE
            if detail.signed and size < 4:
                found[:, size:] = np.where(found[:, size - 1 : size] & 0x80, 0xFF, 0)
        dwords = found.view(np.uint32)
        for number, word in enumerate(place.words()):
            row, origins = self.bits[self._row(word)], self.origins[self._row(word)]
            new = dwords[:, number]
            if half is not None:
                old = row[lanes]
                low = (old & np.uint32(0xFFFF_0000)) | (new & np.uint32(0xFFFF))
                high = (old & np.uint32(0xFFFF)) | (new << np.uint32(16))
                new = low if half == "low" else high
            row[lanes] = new
            if origin:
                origins[lanes[new != 0]] = origin

    def _store(
        self, place: Place, detail: Access, where: Destination, memory: np.ndarray | None
    ) -> Use | None:
        lanes, offsets = self._bytes(where, detail.size)
        rows = [self.bits[self._row(word)][lanes] for word in place.words()]
        if detail.half == "high":
            rows = [row >> np.uint32(16) for row in rows]
        dwords = np.stack(rows, 1) if len(lanes) else np.zeros((0, len(rows)), np.uint32)
        data = np.ascontiguousarray(dwords).view(np.uint8)[:, : detail.size]
        if memory is not None:
            index = self._index(memory, lanes, offsets)
            if index is not None:
                memory[index] = data
            return None
        matters = data[:, :12] if detail.size == WIDE_STORE else data
        wrong = np.flatnonzero(matters.any(1))
        if not len(wrong):
            return None
        return Use("what is stored", int(lanes[wrong[0]]), self._origin((place,)))

    def _atomic(
        self, effect: Effect, place: Place, where: Destination, memory: np.ndarray | None
    ) -> Use | None:
        wrong = np.flatnonzero((self._read(place) != 0) & where.lanes)
        if len(wrong):
            return Use("an atomic's operand", int(wrong[0]), self._origin((place,)))
        size = effect.operation.detail.size
        lanes, offsets = self._bytes(where, size)
        index = self._index(memory, lanes, offsets) if memory is not None else None
        if memory is not None and index is not None and memory[index].any():
            lane = int(lanes[np.flatnonzero(memory[index].any(1))[0]])
            return Use("what an atomic changes", lane, SHARED if memory.ndim == 1 else PRIVATE)
        for written in effect.writes:
            self._write(written, np.zeros(1, U64), where.lanes, 0)
        return None


# -- steps that move whole registers ----------------------------------------------------------

_Special = Callable[[Undefined, Effect, Values, np.ndarray], None]


def _lane_number(effect: Effect, values: Values, number: int) -> int:
    found = values.lanes(effect.reads[number])
    return int(found[0]) % state.LANES if found is not None else 0


def _read_lane(shadow: Undefined, effect: Effect, values: Values, active: np.ndarray) -> None:
    row = shadow._read(effect.reads[0])
    first = np.flatnonzero(active)
    lane = int(first[0]) if len(first) else 0
    if effect.operation.mnemonic == "v_readlane_b32":
        lane = _lane_number(effect, values, 1)
    origin = int(shadow.origins[effect.reads[0].offset // 4 + lane])
    shadow._write(effect.writes[0], row[lane : lane + 1], active, origin)


def _write_lane(shadow: Undefined, effect: Effect, values: Values, active: np.ndarray) -> None:
    only = np.zeros(state.LANES, bool)
    only[_lane_number(effect, values, 2)] = True
    bits = shadow._read(effect.reads[1])
    shadow._write(effect.writes[0], bits, only, shadow._origin((effect.reads[1],)))


def _by_table(shadow: Undefined, effect: Effect, values: Values, active: np.ndarray) -> None:
    """Lanes that a row of constants names; the numbers are not looked at where no lane is
    undefined."""
    source, table = effect.reads[0], effect.reads[1]
    bits = shadow._read(source)
    chosen = np.zeros(state.LANES, U64)
    if bits.any():
        words = [values.word(table.offset + 4 * lane) or 0 for lane in range(state.LANES)]
        numbers = np.array(words, np.uint32).view(np.int32)
        good = (numbers >= 0) & active[numbers % state.LANES]
        chosen = np.where(good, bits[numbers % state.LANES], U64(0))
    # What a DPP move leaves alone is a temporary, whose lanes are not used.
    everywhere = np.ones(state.LANES, bool)
    lanes = active if effect.operation.mnemonic.startswith("ds_") else everywhere
    shadow._write(effect.writes[0], chosen, lanes, shadow._origin((source,)))


def _permute(shadow: Undefined, effect: Effect, values: Values, active: np.ndarray) -> None:
    """ds_permute, ds_bpermute: lanes that registers name."""
    where, source = (shadow._read(place) for place in effect.reads)
    addresses = values.lanes(effect.reads[0])
    bits = np.where(where != 0, U64(ALL_32), U64(0))
    if source.any() and addresses is not None:
        number = (addresses.astype(np.int64) + effect.step.immediate >> 2) % state.LANES
        if effect.operation.mnemonic == "ds_bpermute_b32":
            bits = bits | np.where(active[number], source[number], U64(0))
        else:
            sent = np.zeros(state.LANES, U64)
            for lane in np.flatnonzero(active):
                sent[number[lane]] = source[lane]
            bits = bits | sent
    shadow._write(effect.writes[0], bits, active, shadow._origin(effect.reads))


def _permute_rows(shadow: Undefined, effect: Effect, values: Values, active: np.ndarray) -> None:
    """v_permlane16, v_permlanex16: a place in a row of 16 for each lane, from two scalars or from
    a register. A lane without a source keeps what it has, or reads 0."""
    old, source, *selects = (shadow._read(place) for place in effect.reads)
    if not any(bits.any() for bits in (old, source, *selects)):
        return
    lane, extra = np.arange(state.LANES), effect.step.extra
    if len(selects) == 2:
        low, high = (values.word(place.offset) or 0 for place in effect.reads[2:])
        places = np.array([(low | high << 32) >> 4 * (one % 16) & 15 for one in lane])
    else:
        found = values.lanes(effect.reads[2])
        places = lane % 16 if found is None else found.astype(np.int64) & 15
    other = 16 if "permlanex16" in effect.operation.mnemonic else 0
    number = (lane & -16 ^ other) | places
    valid = active[number] | bool(extra & INACTIVE)
    without = np.zeros_like(old) if extra & BOUND else old
    bits = np.where(valid, np.broadcast_to(source, lane.shape)[number], without)
    for select in selects:
        bits = np.where(select != 0, U64(ALL_32), bits)
    shadow._write(effect.writes[0], bits, active, shadow._origin(effect.reads))


def _swap(shadow: Undefined, effect: Effect, values: Values, active: np.ndarray) -> None:
    """v_permlane16_swap, v_permlane32_swap."""
    size = 16 if "16" in effect.operation.mnemonic else 32
    first, second = (shadow.bits[shadow._row(place.offset)] for place in effect.writes)
    lanes = np.flatnonzero(active & (np.arange(state.LANES) & size != 0))
    first[lanes], second[lanes ^ size] = second[lanes ^ size], first[lanes].copy()


def _indexed(shadow: Undefined, effect: Effect, values: Values, active: np.ndarray) -> None:
    """v_mov_b32 with relative registers."""
    index = (values.word(state.M0) or 0) & 0xFF
    target, source = effect.step.operands[:2]
    target += index * state.ROW if effect.step.extra & 8 else 0
    source += index * state.ROW if effect.step.extra & 1 else 0
    place = Place(source, 1, True)
    if max(source, target) < shadow._end:
        bits = shadow._read(place)
        shadow._write(Place(target, 1, True), bits, active, shadow._origin((place,)))


def _nothing(shadow: Undefined, effect: Effect, values: Values, active: np.ndarray) -> None:
    for place in effect.writes:
        shadow._write(place, np.zeros(1, U64), active, 0)


def _cselect(shadow: Undefined, effect: Effect, values: Values, active: np.ndarray) -> None:
    """s_cselect, s_cmov: one source, as SCC says."""
    *sources, scc = effect.reads
    place = effect.writes[0]
    bits = [shadow._read(source) for source in sources]
    if shadow._read(scc).any():
        undefined = np.array([ones(WIDTHS[place.element])], U64)
        shadow._write(place, undefined, active, shadow._origin((scc,)))
        return
    chosen = 0 if values.scc else 1
    shadow._write(place, bits[chosen], active, shadow._origin((sources[chosen],)))


def _multiply(shadow: Undefined, effect: Effect, values: Values, active: np.ndarray) -> None:
    """Matrix instructions work on all lanes. Which elements of the result an undefined element
    gets into is not worked out: all."""
    origin = shadow._origin(effect.reads)
    whole = np.array([ALL_32 if origin else 0], U64)
    (target,) = effect.writes
    for word in target.words():
        shadow._write(Place(word, 1, True), whole, np.ones(state.LANES, bool), origin)


_SPECIAL: dict[str, _Special] = {
    "v_readlane_b32": _read_lane,
    "v_readfirstlane_b32": _read_lane,
    "v_writelane_b32": _write_lane,
    "ds_swizzle_b32": _by_table,
    "fly_dpp": _by_table,
    "fly_dpp_64": _by_table,
    "ds_bpermute_b32": _permute,
    "ds_permute_b32": _permute,
    "v_permlane16_swap_b32": _swap,
    "v_permlane32_swap_b32": _swap,
    **{
        f"v_permlane{across}16{varies}_b32": _permute_rows
        for across in ("", "x")
        for varies in ("", "_var")
    },
    "fly_indexed_move": _indexed,
    **dict.fromkeys(("s_cselect_b32", "s_cselect_b64"), _cselect),
    **dict.fromkeys(("s_cmov_b32", "s_cmov_b64", "s_cmovk_i32"), _cselect),
    **dict.fromkeys(
        """
fly_use_control fly_restore_exec fly_read_pair fly_mode_single fly_mode_double
fly_set_mode fly_get_mode
""".split(),  # noqa: SIM905
        _nothing,
    ),
}
