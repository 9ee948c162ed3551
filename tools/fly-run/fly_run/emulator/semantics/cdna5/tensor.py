"""The tensor data mover of gfx1250: TENSOR_LOAD_TO_LDS and TENSOR_STORE_FROM_LDS copy a tile of a
tensor of up to five dimensions between memory and LDS, as four groups of scalar registers describe.

    group 0   word 0: bit 0 valid, 30 row indices of 32 bits, 31 gather; word 1: address in LDS;
              words 2, 3: address in memory (57 bits), type in the upper two bits
    group 1   multicast mask (16 bits), log2 of an element's bytes (2), barrier (1), iterate (1),
              pad (1), early timeout (1), pad interval (3), pad amount (7), barrier address (16),
              tensor dims 0 and 1 (32 each), tile dims 0, 1 and 2 (16 each), strides 0 and 1 (48)
    group 2   tensor dims 2 and 3 (32 each), stride 2 (48), tile dim 3 (16); if it iterates: the
              tensor's dim 2, the increments in LDS (32) and in memory (48), the count less one (16)
    group 3   stride 3 (48), tensor dim 4 (32), tile dim 4 (16)

Sizes and strides count elements; dimension 0 is contiguous, and stride d leads from one of
dimension d + 1 to the next. Coordinates beyond the tensor load zeros and are not stored. With
padding, 2^(interval + 1) dwords in LDS are followed by a gap of amount + 1 dwords; stores have
none. A gather has row indices in groups 2 and 3, eight or sixteen, of which the tile's dim 1 says
how many are used.

Sources: FlyDSL's tdm_ops.py and CopyAtom.cpp, Triton's TDMUtility.cpp, which agree; for iteration
and gather public quotations of the CDNA5 ISA manual. Multicast has no effect besides: every
workgroup of the mask makes the same request. A move that has copied something arrives once at the
barrier in LDS that its descriptor names, in units of 8 bytes (MLIR's `amdgpu.make_dma_descriptor`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from fly_run.emulator import state
from fly_run.emulator.irgen import Value
from fly_run.emulator.semantics.base.emit import Handler
from fly_run.emulator.semantics.base.operation import Operation
from fly_run.emulator.semantics.cdna5 import lds_barriers

STORES, EXTENDED = 1, 2  # of the extra word: it stores; there are groups 2 and 3
USER_TYPE = 2
DIMENSIONS = 5
# First bit, and width: in group 1 unless noted.
TENSOR = ((1, 48, 32), (1, 80, 32), (2, 0, 32), (2, 32, 32), (3, 48, 32))
TILE = ((1, 112, 16), (1, 128, 16), (1, 144, 16), (2, 112, 16), (3, 80, 16))
STRIDE = ((1, 160, 48), (1, 208, 48), (2, 64, 48), (3, 0, 48))


def operations() -> Iterator[Operation]:
    yield Operation("fly_tensor_copy", "custom", body=_copy)


class Descriptor:
    """The fields of a descriptor, each an i64 unless noted. Operands 0 to 3 are its groups."""

    def __init__(self, h: Handler):
        self._groups = [h.operand(number) for number in range(4)]
        self.extended = (h.extra() & EXTENDED).compare("ne", 0)
        self.stores = (h.extra() & STORES).compare("ne", 0)
        first, self.kind = self._word(0, 0), self.field(0, 126, 2)
        self.valid = (first & 1).compare("ne", 0)
        self.gathers = (first.lshr(31) & 1).compare("ne", 0)
        self.wide_indices = (first.lshr(30) & 1).compare("ne", 0)
        self.lds = self._word(0, 1)
        self.memory = self.field(0, 64, 57)
        control = self._word(1, 0)
        self.shift = control.lshr(16) & 3
        self.signals = (control.lshr(18) & 1).compare("ne", 0)
        self.iterates = (control.lshr(19) & 1).compare("ne", 0) & ~self.gathers & self.extended
        self.pads = (control.lshr(20) & 1).compare("ne", 0) & ~self.stores
        self.interval = control.like(4) << ((control.lshr(22) & 7) + 1)
        self.amount = ((control.lshr(25) & 127) + 1) << 2

    def _word(self, group: int, number: int) -> Value:
        return self._groups[group].at(4 * number).load("i32", align=4).zext("i64")

    def field(self, group: int, start: int, width: int) -> Value:
        word, shift = divmod(start, 32)
        value = self._word(group, word).lshr(shift)
        have = 32 - shift
        while have < width:
            word += 1
            value = value | (self._word(group, word) << have)
            have += 32
        return value & ((1 << width) - 1)

    def index(self, number: Value) -> Value:
        """The row of a gather. Its indices are in groups 2 and 3, which may be apart."""
        rows = self.wide_indices.select(number << 2, number << 1)
        second = rows.compare("uge", 16)
        place = second.select(self._groups[3].at(rows - 16), self._groups[2].at(rows))
        wide = place.at(0).load("i16", align=2).zext("i64")
        upper = self.wide_indices.select(place.at(2), place).load("i16", align=2).zext("i64")
        return self.wide_indices.select(wide | (upper << 16), wide)


@dataclass(frozen=True)
class Extent:
    """A dimension of the tile: how many coordinates it has, how many of the tensor there are from
    its start on, and the distance of neighbours in elements."""

    count: Value
    limit: Value
    stride: Value


def _extents(h: Handler, d: Descriptor) -> list[Extent]:
    found = []
    one, zero = h.constant("i64", 1), h.constant("i64", 0)
    for number in range(DIMENSIONS):
        tile, tensor = d.field(*TILE[number]), d.field(*TENSOR[number])
        stride = d.field(*STRIDE[number - 1]) if number else one
        used = tile.compare("ne", 0)
        if number >= 2:
            used = used & d.extended & ~d.gathers
        if number >= 3:
            used = used & ~d.iterates
        if number:
            found.append(Extent(used.select(tile, one), used.select(tensor, one), stride))
        else:
            found.append(Extent(used.select(tile, zero), tensor, stride))
    return found


def _copy(h: Handler) -> None:
    d = Descriptor(h)
    zero = h.constant("i64", 0)

    def work() -> None:
        strange = d.kind.compare("ne", USER_TYPE)
        h.when(strange, lambda: h.fault("tensor"))
        extents = _extents(h, d)
        times = d.iterates.select(d.field(2, 112, 16) + 1, 1)
        in_lds, in_memory = d.field(2, 32, 32), d.field(2, 64, 48)
        columns = extents[0]
        row_bytes = columns.count << d.shift
        inner = _least(h, columns.count, columns.limit)

        def row(memory: Value, inside: Value, done: Value, start: Value) -> Value:
            """Copies a row; `done` is the number of bytes before it in LDS, without padding."""
            valid = inside.select(inner, zero) << d.shift
            _row(h, d, memory, start, done, row_bytes, valid)
            return done + row_bytes

        def iteration(carried: list[Value]) -> tuple[list[Value], Value]:
            (turn,) = carried
            moved = d.iterates.select(turn, 0)
            memory = d.memory + ((moved * in_memory) << d.shift)
            start = d.lds + ((moved * in_lds) << d.shift)
            _rows(h, d, extents, memory, start, row)
            after = turn + 1
            return [after], after.compare("ult", times)

        def copy() -> None:
            h.loop([zero], iteration)
            h.when(d.signals, lambda: _arrive(h, d.field(1, 32, 16) << 3))

        h.when(columns.count.compare("ne", 0), copy)

    h.when(d.valid, work)


def _least(h: Handler, a: Value, b: Value) -> Value:
    return h.intrinsic("llvm.umin", a, b)


def _rows(
    h: Handler,
    d: Descriptor,
    extents: list[Extent],
    memory: Value,
    start: Value,
    row: Callable[..., Value],
) -> None:
    """Visits the rows of a tile in the order of LDS, by one counter for all outer dimensions."""
    outer = extents[1:]
    total = outer[0].count
    for extent in outer[1:]:
        total = total * extent.count
    yes = h.constant("i1", 1)

    def turn(carried: list[Value]) -> tuple[list[Value], Value]:
        number, done = carried
        rest, inside, distance = number, yes, h.constant("i64", 0)
        for place, extent in enumerate(outer):
            at = rest.binary("urem", extent.count)
            rest = rest.binary("udiv", extent.count)
            if place == 0:
                # The index is only read where it exists.
                gathered = h.choose(d.gathers, lambda at=at: d.index(at & 15), lambda at=at: at | 0)
                at = gathered
            inside = inside & at.compare("ult", extent.limit)
            distance = distance + at * extent.stride
        done = row(memory + (distance << d.shift), inside, done, start)
        after = number + 1
        return [after, done], after.compare("ult", total)

    h.loop([h.constant("i64", 0), h.constant("i64", 0)], turn)


def _arrive(h: Handler, address: Value) -> None:
    """Arrives at the barrier at this address in LDS."""
    outside = (address + 8).compare("ugt", h.wave.at(state.LDS_SIZE).load("i64"))
    h.when(outside, lambda: _fault(h, "lds", address, h.constant("i64", 8)))
    place = h.wave.at(state.LDS_BASE).load("ptr").at(address)
    word = place.load("i64", align=8)
    place.store(lds_barriers.arrived(h, word, h.constant("i64", 1)), align=8)


def _fault(h: Handler, kind: str, address: Value, size: Value) -> None:
    number = h.constant("i32", state.FAULT[kind])
    h.call_void("fly_record_fault", h.wave, number, h.constant("i64", 0), address, size)
    h.stop(state.STATUS_FAULT, h.op)


def _row(
    h: Handler, d: Descriptor, memory: Value, start: Value, done: Value, size: Value, valid: Value
) -> None:
    zero = h.constant("i64", 0)
    limit = h.wave.at(state.LDS_SIZE).load("i64")

    def padded(offset: Value) -> Value:
        gaps = offset.binary("udiv", d.interval) * d.amount
        return start + offset + d.pads.select(gaps, zero)

    # Of what is not stored, nothing is read: programs rely on it for the gap after the last row.
    reach = d.stores.select(valid, size)
    last = padded(done + reach - 1)
    outside = reach.compare("ne", 0) & last.compare("uge", limit)

    def fault(kind: str, address: Value, count: Value) -> None:
        _fault(h, kind, address, count)

    h.when(outside, lambda: fault("lds", last, h.constant("i64", 1)))
    lds = h.wave.at(state.LDS_BASE).load("ptr")

    def host() -> Value:
        region = h.call("fly_find_region", "ptr", h.wave, memory, valid)
        missing = region.compare("eq", h.named("ptr", "null"))
        h.when(missing, lambda: fault("unmapped", memory, valid))
        writable = (region.at(state.REGION_FLAGS).load("i64") & state.WRITABLE).compare("ne", 0)
        h.when(d.stores & ~writable, lambda: fault("read-only", memory, valid))
        moved = memory + region.at(state.REGION_DELTA).load("i64")
        return moved.convert("inttoptr", "ptr")

    base = h.choose(valid.compare("ne", 0), host, lambda: lds.at(0))

    def part(unit: int, element: str) -> None:
        def move(carried: list[Value]) -> tuple[list[Value], Value]:
            (at,) = carried
            place, source = lds.at(padded(done + at)), base.at(at)
            good = at.compare("ult", valid)

            def load() -> None:
                value = h.choose(
                    good,
                    lambda: source.load(element, align=1),
                    lambda: h.constant(element, 0) | 0,
                )
                place.store(value, align=1)

            def store() -> None:
                h.when(good, lambda: source.store(place.load(element, align=1), align=1))

            h.when(~d.stores, load)
            h.when(d.stores, store)
            after = at + unit
            return [after], after.compare("ult", size)

        h.loop([zero], move)

    whole = ((size | valid | start) & 3).compare("eq", 0)
    h.when(whole, lambda: part(4, "i32"))
    h.when(~whole, lambda: part(1, "i8"))
