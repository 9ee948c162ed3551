"""Buffer resources: the address of each lane of a buffer access (CDNA3 ISA manual, "Buffer
addressing"; LLVM's and Mesa's notes on NUM_RECORDS).

    index  = the lane's index (idxen) + the lane's number (ADD_TID_ENABLE)
    offset = the lane's offset (offen) + the constant offset
    place  = index · stride + offset, or swizzled
    address = base + place + the scalar offset

There are three kinds of range checks. Structured (the instruction has an index and the resource a
stride): the index must be below NUM_RECORDS. Private (the lane's number is added and there is no
index): no check, and the offset has 32 bits and wraps. Raw (otherwise): each dword's place must be
below NUM_RECORDS, in bytes. The scalar offset is not checked. A load out of range gives 0, a store
is dropped; a raw access is checked per dword.

gfx1250's resources have other fields: 57 bits of base, 45 of NUM_RECORDS, which always counts
bytes, and a stride with a scale (LLVM: lowerPointerAsRsrcIntrin; the upper fields are those of
rocjitsu's decode_buffer_resource). Every access is checked like a raw one; if the resource says so,
the offset without the index must also be within the stride. How it swizzles is not documented.
"""

from __future__ import annotations

from dataclasses import dataclass

from fly_run.emulator import state
from fly_run.emulator.irgen import Value
from fly_run.emulator.semantics.base.access import (
    ALIGNED,
    BUFFER_INDEX,
    BUFFER_OFFSET,
    BUFFER_WIDE,
    WRITES,
)
from fly_run.emulator.semantics.base.emit import ROW
from fly_run.emulator.semantics.memory.resolver import (
    Resolver,
    check_alignment,
    cleared_sink,
    mapped,
    private_place,
)

ELEMENT = 4  # size in bytes of an element of a swizzled buffer
SCALES = (1, 4, 8, 32)  # of the stride in gfx1250's resources


@dataclass(frozen=True)
class WideResource:
    """The fields of gfx1250's resource, each an i64 unless noted."""

    base: Value
    stride: Value
    records: Value
    swizzled: Value  # i1
    within_stride: Value  # i1: the offset without the index is checked against the stride

    @staticmethod
    def read(place: Value) -> WideResource:
        low, high = (place.at(8 * n).load("i64", align=4) for n in range(2))
        scale = high.lshr(58) & 3
        factor = scale.like(SCALES[0])
        for number, times in enumerate(SCALES[1:], 1):
            factor = scale.compare("eq", number).select(times, factor)
        return WideResource(
            base=low & (1 << 57) - 1,
            stride=(high.lshr(44) & 0x3FFF) * factor,
            records=low.lshr(57) | (high & (1 << 38) - 1) << 7,
            swizzled=(high.lshr(60) & 1).compare("ne", 0),
            within_stride=(high.lshr(61) & 1).compare("ne", 0),
        )


@dataclass(frozen=True)
class Resource:
    """The fields of a resource, each an i64 unless noted."""

    base: Value
    stride: Value
    records: Value
    swizzled: Value  # i1
    index_stride: Value  # number of contiguous indices
    adds_lane: Value  # i1
    within_stride: Value  # i1
    unknown: Value  # i1: it swizzles in a way that is not documented

    @staticmethod
    def read(place: Value, is_wide: Value) -> Resource:
        """Reads either kind."""
        usual, wide = Resource._usual(place), WideResource.read(place)

        def either(name: str) -> Value:
            return is_wide.select(getattr(wide, name), getattr(usual, name))

        return Resource(
            base=either("base"),
            stride=either("stride"),
            records=either("records"),
            swizzled=usual.swizzled & ~is_wide,
            index_stride=usual.index_stride,
            adds_lane=usual.adds_lane & ~is_wide,
            within_stride=wide.within_stride & is_wide,
            unknown=wide.swizzled & is_wide,
        )

    @staticmethod
    def _usual(place: Value) -> Resource:
        words = [place.at(4 * n).load("i32").zext("i64") for n in range(4)]
        adds_lane = (words[3] & (1 << 23)).compare("ne", 0)
        # With ADD_TID_ENABLE the data format field holds bits 17:14 of the stride.
        more = adds_lane.select((words[3].lshr(15) & 15) << 14, 0)
        return Resource(
            base=(words[0] | (words[1] << 32)) & 0xFFFF_FFFF_FFFF,
            stride=(words[1].lshr(16) & 0x3FFF) | more,
            records=words[2],
            swizzled=words[1].lshr(31).compare("ne", 0),
            index_stride=words[2].like(8) << (words[3].lshr(21) & 3),
            adds_lane=adds_lane,
            within_stride=adds_lane,  # `read` replaces these
            unknown=adds_lane,
        )

    def place(self, index: Value, offset: Value) -> Value:
        """Returns the offset from the base, in bytes."""
        linear = index * self.stride + offset
        rows = index.binary("udiv", self.index_stride)
        column = index.binary("urem", self.index_stride)
        element, inside = offset.lshr(2), offset & (ELEMENT - 1)
        swizzled = (rows * self.stride + element * ELEMENT) * self.index_stride
        return self.swizzled.select(swizzled + column * ELEMENT + inside, linear)


@dataclass(frozen=True)
class Lane:
    """The address of a lane of a buffer access. `room` is the number of bytes left in range from
    there, if the first is in range (`below`); `inside`: all are, or the index is."""

    offset: Value
    address: Value
    room: Value
    below: Value
    inside: Value


class BufferAccess:
    """The operands of a buffer access of `size` bytes a lane: operand 1 holds the lanes' index and
    offset, as given by the extra word, operand 2 the resource, operand 3 the scalar offset."""

    def __init__(self, wave: Value, op: Value, size: Value):
        self._vector, resource, scalar = (
            wave.at(op.at(state.OP_OPERANDS + 4 * n).load("i32").zext("i64")) for n in (1, 2, 3)
        )
        self.size = size
        self.scalar = scalar.load("i32").zext("i64")
        kinds = op.at(state.OP_EXTRA).load("i32")
        self._wide = (kinds & BUFFER_WIDE).compare("ne", 0)
        self.resource = Resource.read(resource, self._wide)
        # Private memory (gfx90a) has its own resource, recognised by its base.
        high = self.resource.base.lshr(32)
        self.private = high.compare("eq", state.SCRATCH_BUFFER >> 32)
        self._has_index = (kinds & BUFFER_INDEX).compare("ne", 0)
        self._has_offset = (kinds & BUFFER_OFFSET).compare("ne", 0)
        # If there are both, the offset follows the index.
        self._second = self._vector.at(self._has_index.select(self.scalar.like(ROW), 0))
        self._constant = op.at(state.OP_IMMEDIATE).load("i64")
        strided = self._has_index & self.resource.stride.compare("ne", 0)
        self.structured = strided & ~self._wide
        self.unchecked = self.resource.adds_lane & ~self._has_index

    def lane(self, lane: Value) -> Lane:
        resource = self.resource
        own_index = self._vector.at(lane << 2).load("i32").zext("i64")
        own_offset = self._second.at(lane << 2).load("i32").zext("i64")
        index = self._has_index.select(own_index, 0) + resource.adds_lane.select(lane, 0)
        offset = self._has_offset.select(own_offset, 0) + self._constant
        # Without a range check the sum has 32 bits and wraps: LLVM adds a constant to a negative
        # offset there (AMDGPUISelDAGToDAG, SelectMUBUFScratchOffen). With one, a sum beyond 32 bits
        # is out of range.
        offset = self.unchecked.select(offset & 0xFFFF_FFFF, offset)
        place = resource.place(index, offset)
        room = resource.records - place
        below = place.compare("ult", resource.records)
        inner = resource.stride - offset
        room = resource.within_stride.select(
            room.function.intrinsic("llvm.umin", room, inner), room
        )
        below = below & (~resource.within_stride | offset.compare("ult", resource.stride))
        raw = below & self.size.compare("ule", room)
        inside = self.structured.select(index.compare("ult", resource.records), raw)
        inside = self.unchecked | inside
        return Lane(offset, resource.base + place + self.scalar, room, below, inside)


def resolve_buffer() -> Resolver:
    """Builds `fly_resolve_buffer`. In private memory the offset is per lane, and the scalar offset
    counts the bytes of the whole wave, 64 times the lane's."""
    f = Resolver("fly_resolve_buffer")
    access = BufferAccess(f.wave, f.op, f.size)
    per_dword = ~access.structured & f.size.compare("ugt", 4) & ~f.has(ALIGNED)

    def resolve(lane: Value) -> None:
        place = f.address(lane)
        own = access.lane(lane)
        f.fault_unless(~access.resource.unknown, "swizzled", lane, access.resource.base)
        after = f"next{f.fresh()}"

        def in_private() -> None:
            start = (access.resource.base & 0xFFFFFFFF) + access.scalar
            place.store(private_place(f, lane, own.offset + start.lshr(6)))
            f.branch(after)

        f.when(access.private, in_private)

        def outside() -> None:
            sink = cleared_sink(f, lane)
            partly = per_dword & own.below
            f.when(partly, lambda: _some_dwords(f, lane, own, sink))
            zeros = f.wave.at(state.ZEROS).convert("ptrtoint", "i64")
            aside = sink.convert("ptrtoint", "i64")
            place.store((f.has(WRITES) | partly).select(aside, zeros))
            f.branch(after)

        f.when(~own.inside, outside)
        check_alignment(f, lane, own.address)
        place.store(mapped(f, lane, own.address, f.size))
        f.branch(after)
        f.block(after)

    f.for_lanes(f.exec_mask(), resolve)
    f.ret(f.constant("i1", 1))
    return f


def _some_dwords(f: Resolver, lane: Value, own: Lane, sink: Value) -> None:
    """Moves the dwords that are in range: a load's to the sink, where the handler finds them
    followed by zeros, a store's to memory."""
    count = own.room.lshr(2)

    def move() -> None:
        host = mapped(f, lane, own.address, count << 2).convert("inttoptr", "ptr")
        data_at = f.op.at(state.OP_OPERANDS).load("i32").zext("i64")
        data = f.wave.at(data_at).at(lane << 2)
        stores = f.has(WRITES)

        def turn(carried: list[Value]) -> tuple[list[Value], Value]:
            (number,) = carried
            source = stores.select(data.at(number * ROW), host.at(number << 2))
            target = stores.select(host.at(number << 2), sink.at(number << 2))
            target.store(source.load("i32", align=1), align=1)
            following = number + 1
            return [following], following.compare("ult", count)

        f.loop([f.constant("i64", 0)], turn)

    f.when(count.compare("ne", 0), move)
