"""Puts the workgroups of a cluster into their slots, with their initial registers.

A workgroup that is in no cluster is a cluster of one. Sources of a wave's place in its cluster:
LLVM's lowering of the intrinsics (SIISelLowering: lowerWorkGroupId; AMDGPUArgumentUsageInfo). The
registers that have a workgroup's id have its cluster's instead. TTMP6 has the workgroup's place in
its cluster and the cluster's size less one, x, y and z, and in bits 27:24 the number of its
workgroups less one. IB_STS2 has the workgroup's number, x first, in bits 24:21, and in bits 9:6
anything but 0 in a cluster.
"""

from __future__ import annotations

from dataclasses import dataclass

from fly_run.emulator import state
from fly_run.emulator.irgen import Function, Value, void
from fly_run.emulator.semantics.base.emit import HALF, LANES, ROW

CTX = state.CTX
# Words of a wave about barriers, which are 0 at its start.
WAITING = (state.SIGNALS, state.JOINED, state.SEEN, state.WAITS_AT, state.CLUSTER_SEEN)


def functions() -> list[Function]:
    return [_prepare_slot(), _start_group(), _start_cluster()]


def waves(context: Value, slot: Value) -> tuple[Value, Value, Value]:
    """Returns the first wave of a slot, the stride between waves, and their number."""
    return (
        slot.at(state.SLOT_HEADER),
        context.at(CTX.wave_stride).load("i64"),
        context.at(CTX.waves).load("i64"),
    )


def _copy(f: Function, target: Value, source: Value, size: Value) -> None:
    """Copies a multiple of 256 bytes, at least 256, between 64-byte aligned addresses."""

    def turn(carried: list[Value]) -> tuple[list[Value], Value]:
        (offset,) = carried
        target.at(offset).store(source.at(offset).load("i32", LANES, align=64), align=64)
        after = offset + ROW
        return [after], after.compare("ult", size)

    f.loop([f.constant("i64", 0)], turn)


def _fill(f: Function, target: Value, size: Value) -> None:
    """Fills a multiple of 256 bytes, possibly none, with poison."""
    poison = f.constant("i32", state.POISON, LANES)

    def turn(carried: list[Value]) -> tuple[list[Value], Value]:
        (offset,) = carried
        target.at(offset).store(poison, align=64)
        after = offset + ROW
        return [after], after.compare("ult", size)

    f.when(size.compare("ne", 0), lambda: void(f.loop([f.constant("i64", 0)], turn)))


def _start_rows(
    f: Function, rows: Value, ids: Value, ids_end: Value, end: Value, lanes: int
) -> None:
    """Sets the first `lanes` lanes of the rows up to `end` bytes: those up to `ids_end`, at least
    one, to `ids`, the others to poison."""

    def copy(carried: list[Value]) -> tuple[list[Value], Value]:
        (offset,) = carried
        rows.at(offset).store(ids.at(offset).load("i32", lanes, align=64), align=64)
        after = offset + ROW
        return [after], after.compare("ult", ids_end)

    def fill(carried: list[Value]) -> tuple[list[Value], Value]:
        (offset,) = carried
        rows.at(offset).store(f.constant("i32", state.POISON, lanes), align=64)
        after = offset + ROW
        return [after], after.compare("ult", end)

    f.loop([f.constant("i64", 0)], copy)
    f.when(ids_end.compare("ult", end), lambda: void(f.loop([ids_end], fill)))


def _prepare_slot() -> Function:
    """Copies the state shared by all waves into a slot's waves, once. `cluster` is the cluster's
    first slot, where its barrier has the number 0."""
    f = Function("fly_prepare_slot", "ptr %context, ptr %slot, ptr %cluster")
    context, slot = f.named("ptr", "%context"), f.named("ptr", "%slot")
    first, stride, count = waves(context, slot)
    barrier = f.named("ptr", "%cluster").at(state.SLOT_BARRIERS)
    template = context.at(CTX.template).load("ptr")
    constants = context.at(CTX.template_constants).load("i64")
    size = context.at(CTX.template_constants_size).load("i64")
    lane_scratch = context.at(CTX.scratch_size).load("i64")
    vgpr_bytes = context.at(CTX.vgpr_bytes).load("i64")

    def turn(carried: list[Value]) -> tuple[list[Value], Value]:
        (number,) = carried
        wave = first.at(number * stride)
        _copy(f, wave, template, f.constant("i64", state.ADDRESS))
        _copy(f, wave.at(constants), template.at(constants), size)
        _fill(f, wave.at(state.VGPR), vgpr_bytes)
        wave.at(state.CONTEXT).store(context)
        wave.at(state.LDS_BASE).store(slot.at(context.at(CTX.lds_offset).load("i64")))
        wave.at(state.LDS_SIZE).store(context.at(CTX.lds_size).load("i64"))
        scratch = slot.at(context.at(CTX.scratch_offset).load("i64"))
        wave.at(state.SCRATCH_BASE).store(scratch.at(number * lane_scratch * LANES))
        wave.at(state.SCRATCH_SIZE).store(lane_scratch)
        base = context.at(CTX.private_base).load("i64")
        apart = base.compare("ne", 0).select(number * state.GLOBAL_SCRATCH_WAVE, 0)
        wave.at(state.PRIVATE_BASE).store(base + apart)
        wave.at(state.SLOT).store(slot)
        wave.at(state.CLUSTER_BARRIER).store(barrier)
        wave.at(state.WAVE).store(number.trunc("i32"))
        after = number + 1
        return [after], after.compare("ult", count)

    f.loop([f.constant("i64", 0)], turn)
    slot.at(state.SLOT_PREPARED).store(f.constant("i64", 1))
    f.ret()
    return f


@dataclass(frozen=True)
class _Member:
    """A workgroup of a cluster: its id in the grid, and its place in the cluster as TTMP6 and
    IB_STS2 have it, each an i64."""

    workgroup: tuple[Value, Value, Value]
    place: Value
    status: Value


def _member(context: Value, cluster: tuple[Value, Value, Value], rank: Value) -> _Member:
    x, y, z = cluster
    size = context.at(CTX.cluster_size).load("i64")
    width = context.at(CTX.cluster_x).load("i64")
    height = context.at(CTX.cluster_y).load("i64")
    depth = size.binary("udiv", width * height)
    row, column = rank.binary("udiv", width), rank.binary("urem", width)
    line, plane = row.binary("urem", height), row.binary("udiv", height)
    place = column | line << 4 | plane << 8 | width - 1 << 12 | height - 1 << 16
    place = place | depth - 1 << 20 | size - 1 << 24
    status = size.compare("ugt", 1).select(rank << 21 | 1 << 6, 0)
    return _Member((x * width + column, y * height + line, z * depth + plane), place, status)


def _start_group() -> Function:
    """Puts workgroup number `rank` of the cluster at x, y, z into a slot."""
    f = Function(
        "fly_start_group",
        "ptr %context, ptr %slot, ptr %cluster, i64 %rank, i64 %x, i64 %y, i64 %z",
    )
    context, slot = f.named("ptr", "%context"), f.named("ptr", "%slot")
    x, y, z = (f.named("i64", f"%{axis}") for axis in "xyz")
    member = _member(context, (x, y, z), f.named("i64", "%rank"))
    f.when(
        slot.at(state.SLOT_PREPARED).load("i64").compare("eq", 0),
        lambda: f.call_void("fly_prepare_slot", context, slot, f.named("ptr", "%cluster")),
    )
    lds = slot.at(context.at(CTX.lds_offset).load("i64"))
    _fill(f, lds, (context.at(CTX.lds_size).load("i64") + ROW - 1) & -ROW)
    barriers = slot.at(state.SLOT_BARRIERS)
    for offset in range(0, state.SLOT_HEADER - state.SLOT_BARRIERS, 64):
        barriers.at(offset).store(f.constant("i32", 0, 16), align=64)
    first, stride, count = waves(context, slot)
    template = context.at(CTX.template).load("ptr")
    named_bytes = context.at(CTX.named_bytes).load("i64")
    narrow = context.at(CTX.lanes).load("i64").compare("ne", LANES)

    def turn(carried: list[Value]) -> tuple[list[Value], Value]:
        (number,) = carried
        wave = first.at(number * stride)
        _copy(f, wave, template, f.constant("i64", 512))
        for value, name in (
            (x, "group_x_sgpr"),
            (y, "group_y_sgpr"),
            (z, "group_z_sgpr"),
            (y | (z << 16), "group_yz_sgpr"),
            (number << 25, "wave_sgpr"),
            (member.place, "cluster_sgpr"),
        ):
            place = context.at(getattr(CTX, name)).load("i64")
            used = place.compare("ne", -1)
            f.when(used, lambda p=place, v=value: wave.at(p).store(v.trunc("i32")))
        for n, group in enumerate(member.workgroup):
            wave.at(state.GROUP + 4 * n).store(group.trunc("i32"))
        # Nothing has changed the rows that the code does not name, and the upper lanes of a wave of
        # 32, which are never active.
        vgprs = wave.at(state.VGPR)
        id_bytes = context.at(CTX.id_bytes).load("i64")
        ids = context.at(CTX.ids).load("ptr").at(number * id_bytes)
        for lanes, chosen in ((LANES, ~narrow), (HALF, narrow)):
            f.when(
                chosen,
                lambda lanes=lanes: _start_rows(f, vgprs, ids, id_bytes, named_bytes, lanes),
            )
        wave.at(state.EXEC).store(context.at(CTX.masks).load("ptr").at(number << 3).load("i64"))
        mode = template.at(state.MODE).load("i32")
        wave.at(state.MODE).store(mode)
        for control in (state.MXCSR_SINGLE, state.MXCSR_DOUBLE):
            wave.at(control).store(template.at(control).load("i32"))
        wave.at(state.SCC).store(f.constant("i32", 0))
        wave.at(state.IB_STS2).store(member.status.trunc("i32"))
        for word in WAITING:
            wave.at(word).store(f.constant("i32", 0))
        wave.at(state.OP).store(context.at(CTX.entry).load("ptr"))
        index = context.at(CTX.entry).load("ptr").at(state.OP_INDEX).load("i32")
        wave.at(state.LANDING).store(index.zext("i64"))
        wave.at(state.STATUS).store(f.constant("i32", state.STATUS_READY))
        after = number + 1
        return [after], after.compare("ult", count)

    f.loop([f.constant("i64", 0)], turn)
    f.ret()
    return f


def _start_cluster() -> Function:
    """Puts the next cluster into consecutive slots, from `slot` on. False if another thread took
    the last one."""
    f = Function("fly_start_cluster", "ptr %context, ptr %slot", "i1")
    context, slot = f.named("ptr", "%context"), f.named("ptr", "%slot")
    linear = context.at(CTX.tickets).load("ptr").take_ticket()
    end = context.at(CTX.end_group).load("i64")
    f.when(linear.compare("uge", end), lambda: f.ret(f.constant("i1", 0)))
    slot.at(state.SLOT_ACTIVE).store(f.constant("i64", 1))
    width, height = context.at(CTX.grid_x).load("i64"), context.at(CTX.grid_y).load("i64")

    def move() -> None:
        """Other threads took clusters meanwhile: computes the place in the grid by division."""
        row = linear.binary("udiv", width)
        context.at(CTX.next_x).store(linear.binary("urem", width))
        context.at(CTX.next_y).store(row.binary("urem", height))
        context.at(CTX.next_z).store(row.binary("udiv", height))

    f.when(linear.compare("ne", context.at(CTX.next_group).load("i64")), move)
    context.at(CTX.next_group).store(linear + 1)
    x, y, z = (context.at(place).load("i64") for place in (CTX.next_x, CTX.next_y, CTX.next_z))
    row_done = (x + 1).compare("eq", width)
    plane_done = row_done & (y + 1).compare("eq", height)
    context.at(CTX.next_x).store(row_done.select(0, x + 1))
    context.at(CTX.next_y).store(plane_done.select(0, y + row_done.zext("i64")))
    context.at(CTX.next_z).store(z + plane_done.zext("i64"))
    size, stride = (context.at(one).load("i64") for one in (CTX.cluster_size, CTX.slot_stride))

    def start(carried: list[Value]) -> tuple[list[Value], Value]:
        (rank,) = carried
        f.call_void("fly_start_group", context, slot.at(rank * stride), slot, rank, x, y, z)
        after = rank + 1
        return [after], after.compare("ult", size)

    f.loop([f.constant("i64", 0)], start)
    # Outside of a cluster nothing is expected, and signals and waits have no effect.
    expected = size.compare("ugt", 1).select(size, 0).trunc("i32")
    slot.at(state.SLOT_BARRIERS + state.EXPECTED).store(expected)
    f.ret(f.constant("i1", 1))
    return f
