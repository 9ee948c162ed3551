"""The grid driver: schedules waves.

A slot holds one resident workgroup. Its waves run in turn, each until it ends, waits at a barrier
or has used its quantum. When a workgroup finishes within its turn, the next one takes its slot at
once; otherwise (it waits for another workgroup, or is long) the other slots get a turn, so that a
wave that spins on a lock held by another workgroup makes progress.
"""

from __future__ import annotations

from fly_run.emulator import state
from fly_run.emulator.irgen import Function, Value, void
from fly_run.emulator.semantics.base.emit import LANES, ROW
from fly_run.emulator.semantics.scalar import named_barriers

CTX = state.CTX


def functions() -> list[Function]:
    return [_prepare_slot(), _start_group(), _release(), _run_group(), _run_grid()]


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


def _waves(f: Function, context: Value, slot: Value):
    """Returns the first wave of a slot, the stride between waves, and their number."""
    return (
        slot.at(state.SLOT_HEADER),
        context.at(CTX.wave_stride).load("i64"),
        context.at(CTX.waves).load("i64"),
    )


def _prepare_slot() -> Function:
    """Copies the state shared by all waves into a slot's waves, once."""
    f = Function("fly_prepare_slot", "ptr %context, ptr %slot")
    context, slot = f.named("ptr", "%context"), f.named("ptr", "%slot")
    first, stride, count = _waves(f, context, slot)
    template = context.at(CTX.template).load("ptr")
    constants = context.at(CTX.template_constants).load("i64")
    size = context.at(CTX.template_constants_size).load("i64")
    lane_scratch = context.at(CTX.scratch_size).load("i64")

    def turn(carried: list[Value]) -> tuple[list[Value], Value]:
        (number,) = carried
        wave = first.at(number * stride)
        _copy(f, wave, template, f.constant("i64", state.ADDRESS))
        _copy(f, wave.at(constants), template.at(constants), size)
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
        wave.at(state.WAVE).store(number.trunc("i32"))
        after = number + 1
        return [after], after.compare("ult", count)

    f.loop([f.constant("i64", 0)], turn)
    slot.at(state.SLOT_PREPARED).store(f.constant("i64", 1))
    f.ret()
    return f


def _start_group() -> Function:
    """Puts the next workgroup into a slot with its initial registers. False if another thread took
    the last one."""
    f = Function("fly_start_group", "ptr %context, ptr %slot", "i1")
    context, slot = f.named("ptr", "%context"), f.named("ptr", "%slot")
    linear = context.at(CTX.tickets).load("ptr").take_ticket()
    end = context.at(CTX.end_group).load("i64")
    f.when(linear.compare("uge", end), lambda: f.ret(f.constant("i1", 0)))
    f.when(
        slot.at(state.SLOT_PREPARED).load("i64").compare("eq", 0),
        lambda: f.call_void("fly_prepare_slot", context, slot),
    )
    slot.at(state.SLOT_ACTIVE).store(f.constant("i64", 1))
    width, height = context.at(CTX.grid_x).load("i64"), context.at(CTX.grid_y).load("i64")

    def move() -> None:
        """Other threads took workgroups meanwhile: computes the place in the grid by division."""
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
    lds = slot.at(context.at(CTX.lds_offset).load("i64"))
    _fill(f, lds, (context.at(CTX.lds_size).load("i64") + ROW - 1) & -ROW)
    barriers = slot.at(state.SLOT_BARRIERS)
    for offset in range(0, state.SLOT_HEADER - state.SLOT_BARRIERS, 64):
        barriers.at(offset).store(f.constant("i32", 0, 16), align=64)
    first, stride, count = _waves(f, context, slot)
    template = context.at(CTX.template).load("ptr")
    vgpr_bytes = context.at(CTX.vgpr_bytes).load("i64")

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
        ):
            place = context.at(getattr(CTX, name)).load("i64")
            used = place.compare("ne", -1)
            f.when(used, lambda p=place, v=value: wave.at(p).store(v.trunc("i32")))
        for n, group in enumerate((x, y, z)):
            wave.at(state.GROUP + 4 * n).store(group.trunc("i32"))
        vgprs = wave.at(state.VGPR)
        _fill(f, vgprs, vgpr_bytes)
        id_bytes = context.at(CTX.id_bytes).load("i64")
        _copy(f, vgprs, context.at(CTX.ids).load("ptr").at(number * id_bytes), id_bytes)
        wave.at(state.EXEC).store(context.at(CTX.masks).load("ptr").at(number << 3).load("i64"))
        mode = template.at(state.MODE).load("i32")
        wave.at(state.MODE).store(mode)
        for control in (state.MXCSR_SINGLE, state.MXCSR_DOUBLE):
            wave.at(control).store(template.at(control).load("i32"))
        wave.at(state.SCC).store(f.constant("i32", 0))
        for word in (state.SIGNALS, state.JOINED, state.SEEN, state.WAITS_NAMED):
            wave.at(word).store(f.constant("i32", 0))
        wave.at(state.OP).store(context.at(CTX.entry).load("ptr"))
        index = context.at(CTX.entry).load("ptr").at(state.OP_INDEX).load("i32")
        wave.at(state.LANDING).store(index.zext("i64"))
        wave.at(state.STATUS).store(f.constant("i32", state.STATUS_READY))
        after = number + 1
        return [after], after.compare("ult", count)

    f.loop([f.constant("i64", 0)], turn)
    f.ret(f.constant("i1", 1))
    return f


def _run_group() -> Function:
    """Gives each wave of a slot turns until all have ended, until a wave has used its quantum
    without reaching a barrier, or until they have used as much as all their quanta: waves may wait
    for another workgroup in a loop that has a barrier. Returns 0 to continue later, 1 if the
    workgroup is done, 2 if a wave needs Python.

    A turn is a call of the wave's next handler. Kernels with many barriers spend much of their time
    here, so a turn's overhead is kept to a few loads and stores.
    """
    f = Function("fly_run_group", "ptr %context, ptr %slot", "i32")
    context, slot = f.named("ptr", "%context"), f.named("ptr", "%slot")
    first, stride, count = _waves(f, context, slot)
    end = first.at(stride * count)
    zero = f.constant("i64", 0)
    executed, limit = context.at(CTX.executed), context.at(CTX.limit)
    whole_turn = executed.load("i64") + context.at(CTX.quantum).load("i64") * count

    def add(ran: Value) -> Value:
        total = executed.load("i64") + ran
        executed.store(total)
        return total

    def round_of_turns(unused: list[Value]) -> tuple[list[Value], Value]:
        # Waves get no more turns than the limit allows, and at least one instruction.
        left = limit.load("i64") - executed.load("i64")
        quantum = f.intrinsic("llvm.smin", context.at(CTX.quantum).load("i64"), left + 1)
        quantum = f.intrinsic("llvm.smax", quantum, quantum.like(1))

        def turn(carried: list[Value]) -> tuple[list[Value], Value]:
            wave, ready, waiting, ran = carried
            place = wave.at(state.STATUS)

            def run() -> Value:
                _run_wave(f, context, wave, quantum)
                return quantum - wave.at(state.QUANTUM).load("i64")

            started = place.load("i32").compare("eq", state.STATUS_READY)
            ran = ran + f.choose(started, run, lambda: zero | 0)
            status = place.load("i32")

            def stopped() -> None:
                context.at(CTX.stopped_wave).store(wave)
                add(ran)
                f.ret(f.constant("i32", 2))

            f.when(status.compare("uge", state.STATUS_FAULT), stopped)
            ready = ready + status.compare("eq", state.STATUS_READY).zext("i64")
            waiting = waiting + status.compare("eq", state.STATUS_BARRIER).zext("i64")
            after = wave.at(stride)
            return [after, ready, waiting, ran], after.compare("ne", end)

        _, ready, waiting, ran = f.loop([first, zero, zero, zero], turn)
        total = add(ran)
        some = waiting.compare("ne", 0)
        split = context.at(CTX.split_barriers).load("i64").compare("ne", 0)

        def release() -> None:
            stuck = f.call("fly_release", "i1", context, slot, ready)
            f.when(stuck, lambda: f.ret(f.constant("i32", 2)))

        f.when(some & split, release)
        f.when(ready.compare("ne", 0), lambda: f.ret(f.constant("i32", 0)))

        # All live waves are at the barrier; waves that have ended do not count.
        def free(carried: list[Value]) -> tuple[list[Value], Value]:
            (wave,) = carried
            place = wave.at(state.STATUS)
            held = place.load("i32").compare("eq", state.STATUS_BARRIER)
            f.when(held, lambda: place.store(f.constant("i32", state.STATUS_READY)))
            after = wave.at(stride)
            return [after], after.compare("ne", end)

        f.when(some & ~split, lambda: void(f.loop([first], free)))
        over = total.compare("ugt", limit.load("i64")) | total.compare("ugt", whole_turn)
        f.when(some & over, lambda: f.ret(f.constant("i32", 0)))
        return [waiting], some

    f.loop([zero], round_of_turns)
    f.ret(f.constant("i32", 1))
    return f


def _release() -> Function:
    """Releases the waves that wait at a named barrier that was complete since, and those at the
    split barrier (gfx12) that every live wave has signalled as often as they have. If there is no
    ready wave either, the first that waits stops with a fault, and the result is true: without
    named barriers, the wave that has signalled least is always released."""
    f = Function("fly_release", "ptr %context, ptr %slot, i64 %ready", "i1")
    context, slot = f.named("ptr", "%context"), f.named("ptr", "%slot")
    first, stride, waves = _waves(f, context, slot)
    end = first.at(stride * waves)

    def count(carried: list[Value]) -> tuple[list[Value], Value]:
        wave, least = carried
        live = wave.at(state.STATUS).load("i32").compare("ne", state.STATUS_DONE)
        signals = live.select(wave.at(state.SIGNALS).load("i32"), -1)
        after = wave.at(stride)
        return [after, f.intrinsic("llvm.umin", least, signals)], after.compare("ne", end)

    _, least = f.loop([first, f.constant("i32", -1)], count)

    def free(carried: list[Value]) -> tuple[list[Value], Value]:
        wave, moving, waiting = carried
        place, seen = wave.at(state.STATUS), wave.at(state.SEEN)
        held = place.load("i32").compare("eq", state.STATUS_BARRIER)
        named = wave.at(state.WAITS_NAMED).load("i32").compare("ne", 0)
        barrier = named_barriers.barrier_of(wave, wave.at(state.JOINED).load("i32"))
        times = barrier.at(state.COMPLETED).load("i32")
        met = wave.at(state.SIGNALS).load("i32").compare("ule", least)
        met = held & named.select(times.compare("ne", seen.load("i32")), met)

        def go_on() -> None:
            place.store(f.constant("i32", state.STATUS_READY))
            seen.store(named.select(times, seen.load("i32")))
            wave.at(state.WAITS_NAMED).store(f.constant("i32", 0))

        f.when(met, go_on)
        here = (held & waiting.compare("eq", 0)).select(wave.convert("ptrtoint", "i64"), waiting)
        after = wave.at(stride)
        return [after, moving + met.zext("i64"), here], after.compare("ne", end)

    zero = f.constant("i64", 0)
    _, moving, waiting = f.loop([first, f.named("i64", "%ready"), zero], free)

    def stop() -> None:
        wave = waiting.convert("inttoptr", "ptr")
        op = wave.at(state.OP)
        op.store(op.load("ptr").at(-state.OP_SIZE))  # the wait itself
        wave.at(state.STATUS).store(f.constant("i32", state.STATUS_FAULT))
        wave.at(state.FAULT_KIND).store(f.constant("i32", state.FAULT["deadlock"]))
        context.at(CTX.stopped_wave).store(wave)
        f.ret(f.constant("i1", 1))

    f.when(moving.compare("eq", 0), stop)
    f.ret(f.constant("i1", 0))
    return f


def _run_wave(f: Function, context: Value, wave: Value, quantum: Value) -> None:
    """Runs a wave until it has used its quantum, waits, ends, or needs Python."""
    wave.at(state.QUANTUM).store(quantum)
    # Loading the control word costs as much as a few instructions, and most waves share one.
    control, current = wave.at(state.MXCSR_SINGLE), context.at(CTX.control)
    wanted = control.load("i32")

    def change() -> None:
        f.call_void("llvm.x86.sse.ldmxcsr", control, declare=True)
        current.store(wanted)

    f.when(wanted.compare("ne", current.load("i32")), change)
    op = wave.at(state.OP).load("ptr")
    handler = op.at(state.OP_HANDLER).load("ptr")
    f.line(f"call void {handler.name}(ptr {wave.name}, ptr {op.name})")


def _pending(context: Value) -> Value:
    """Whether workgroups are left to start."""
    taken = context.at(CTX.tickets).load("ptr").load_shared("i64")
    return taken.compare("ult", context.at(CTX.end_group).load("i64"))


def _run_grid() -> Function:
    """Runs workgroups until the grid is done or Python is needed; returns a RUN_ constant. Call it
    again to continue."""
    f = Function("fly_run", "ptr %context", "i32")
    context = f.named("ptr", "%context")
    f.call_void("llvm.x86.sse.stmxcsr", context.at(CTX.saved_mxcsr), declare=True)
    context.at(CTX.control).store(f.constant("i32", 0))
    slots = context.at(CTX.slots).load("i64")
    base = context.at(CTX.slot_base).load("ptr")
    stride = context.at(CTX.slot_stride).load("i64")
    zero = f.constant("i64", 0)

    def leave(result: int) -> None:
        f.call_void("llvm.x86.sse.ldmxcsr", context.at(CTX.saved_mxcsr), declare=True)
        f.call_void("llvm.x86.avx.vzeroupper", declare=True)
        f.ret(f.constant("i32", result))

    def check_budget() -> None:
        executed = context.at(CTX.executed).load("i64")
        over = executed.compare("ugt", context.at(CTX.limit).load("i64"))
        f.when(over, lambda: leave(state.RUN_TIMEOUT))
        f.when(
            executed.compare("ugt", context.at(CTX.slice_end).load("i64")),
            lambda: leave(state.RUN_SLICE),
        )

    def count_live(change: int) -> None:
        live = context.at(CTX.live_groups)
        live.store(live.load("i64") + change)

    # A slice resumes with the slot after the last one's, so that short slices are fair.
    following = context.at(CTX.next_slot)
    number = following.load("i64")
    used = context.at(CTX.used_slots).load("i64")
    fresh = number.compare("eq", used) & number.compare("ult", slots) & _pending(context)
    first = (number.compare("ult", used) | fresh).select(number, 0)

    def sweep(carried: list[Value]) -> tuple[list[Value], Value]:
        def visit(carried: list[Value]) -> tuple[list[Value], Value]:
            (number,) = carried
            slot = base.at(number * stride)
            following.store(number + 1)

            def serve(unused: list[Value]) -> tuple[list[Value], Value]:
                """Runs the workgroup of a slot, and the next ones while each ends in its turn."""
                idle = slot.at(state.SLOT_ACTIVE).load("i64").compare("eq", 0)
                pending = _pending(context)
                start, busy = f"start{f.fresh()}", f"busy{f.fresh()}"
                check, empty = f"check{f.fresh()}", f"empty{f.fresh()}"
                taken, served = f"taken{f.fresh()}", f"served{f.fresh()}"
                f.branch_if(idle, check, busy)
                f.block(check)
                f.branch_if(pending, start, empty)
                f.block(empty)
                f.branch(served)
                f.block(start)
                started = f.call("fly_start_group", "i1", context, slot)
                f.branch_if(started, taken, empty)
                f.block(taken)
                used = context.at(CTX.used_slots)
                seen = used.load("i64")
                more = number.compare("uge", seen)
                used.store(more.select(number + 1, seen))
                count_live(1)
                f.branch(busy)
                f.block(busy)
                result = f.call("fly_run_group", "i32", context, slot)
                f.when(result.compare("eq", 2), lambda: leave(state.RUN_FAULT))
                finished = result.compare("eq", 1)

                def finish() -> None:
                    slot.at(state.SLOT_ACTIVE).store(zero)
                    count_live(-1)
                    done = context.at(CTX.done_groups)
                    done.store(done.load("i64") + 1)

                f.when(finished, finish)
                check_budget()
                end = f.label
                f.branch(served)
                f.block(served)
                again = f.value("i1", 0, f"phi i1 [false, %{empty}], [{finished.name}, %{end}]")
                return [zero], again

            f.loop([zero], serve)
            after = number + 1
            # Slots that were never needed are skipped: their memory is not committed yet.
            used = context.at(CTX.used_slots).load("i64")
            wanted = _pending(context) | after.compare("ult", used)
            return [after], wanted & after.compare("ult", slots)

        f.loop(carried, visit)
        return [zero], context.at(CTX.live_groups).load("i64").compare("ne", 0)

    f.loop([first], sweep)
    leave(state.RUN_DONE)
    return f
