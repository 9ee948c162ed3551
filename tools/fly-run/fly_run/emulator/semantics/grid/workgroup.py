"""Runs the waves of a workgroup in turn, and releases them from barriers."""

from __future__ import annotations

from fly_run.emulator import state
from fly_run.emulator.irgen import Function, Value, void
from fly_run.emulator.semantics.grid.starting import waves
from fly_run.emulator.semantics.scalar import named_barriers

CTX = state.CTX


def functions() -> list[Function]:
    return [_release(), _run_group()]


def _run_group() -> Function:
    """Gives each wave of a slot turns until all have ended, until a wave has used its quantum
    without reaching a barrier, or until they have used as much as all their quanta: waves may wait
    for another workgroup in a loop that has a barrier. Returns 0 to continue later, 1 if the
    workgroup is done, 2 if a wave needs Python, 3 if none goes on before its cluster's barrier is
    complete.

    A turn is a call of the wave's next handler. Kernels with many barriers spend much of their time
    here, so a turn's overhead is kept to a few loads and stores.
    """
    f = Function("fly_run_group", "ptr %context, ptr %slot", "i32")
    context, slot = f.named("ptr", "%context"), f.named("ptr", "%slot")
    first, stride, count = waves(context, slot)
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
            wave, ready, waiting, ran, last, differ = carried
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
            held = status.compare("eq", state.STATUS_BARRIER)
            signals, kind = (wave.at(one).load("i32") for one in (state.SIGNALS, state.WAITS_AT))
            others = held & waiting.compare("ne", 0)
            differ = differ | others.select(signals ^ last, 0) | held.select(kind ^ state.AT_OWN, 0)
            last = held.select(signals, last)
            waiting = waiting + held.zext("i64")
            after = wave.at(stride)
            return [after, ready, waiting, ran, last, differ], after.compare("ne", end)

        none = f.constant("i32", 0)
        start = [first, zero, zero, zero, none, none]
        _, ready, waiting, ran, _, differ = f.loop(start, turn)
        total = add(ran)
        some = waiting.compare("ne", 0)
        split = context.at(CTX.split_barriers).load("i64").compare("ne", 0)
        # The usual case: all live waves wait at the workgroup's barrier, equally often signalled.
        alike = differ.compare("eq", 0) & ready.compare("eq", 0)

        def release() -> None:
            stuck = f.call("fly_release", "i32", context, slot, ready)
            f.when(stuck.compare("ne", 0), lambda: f.ret(stuck))

        f.when(some & split & ~alike, release)
        f.when(ready.compare("ne", 0), lambda: f.ret(f.constant("i32", 0)))

        # All live waves are at the barrier; waves that have ended do not count.
        def free(carried: list[Value]) -> tuple[list[Value], Value]:
            (wave,) = carried
            place = wave.at(state.STATUS)
            held = place.load("i32").compare("eq", state.STATUS_BARRIER)
            f.when(held, lambda: place.store(f.constant("i32", state.STATUS_READY)))
            after = wave.at(stride)
            return [after], after.compare("ne", end)

        f.when(some & (alike | ~split), lambda: void(f.loop([first], free)))
        over = total.compare("ugt", limit.load("i64")) | total.compare("ugt", whole_turn)
        f.when(some & over, lambda: f.ret(f.constant("i32", 0)))
        return [waiting], some

    f.loop([zero], round_of_turns)
    f.ret(f.constant("i32", 1))
    return f


def _release() -> Function:
    """Releases the waves that wait at a named barrier or at their cluster's that was complete
    since, and those at the split barrier (gfx12) that every live wave has signalled as often as
    they have. Returns 0, or if no wave goes on and none is ready: 3 if one waits for its cluster,
    otherwise 2 after the first that waits has stopped with a fault. Without named barriers, the
    wave that has signalled least is always released."""
    f = Function("fly_release", "ptr %context, ptr %slot, i64 %ready", "i32")
    context, slot = f.named("ptr", "%context"), f.named("ptr", "%slot")
    first, stride, number = waves(context, slot)
    end = first.at(stride * number)

    def count(carried: list[Value]) -> tuple[list[Value], Value]:
        wave, least = carried
        live = wave.at(state.STATUS).load("i32").compare("ne", state.STATUS_DONE)
        signals = live.select(wave.at(state.SIGNALS).load("i32"), -1)
        after = wave.at(stride)
        return [after, f.intrinsic("llvm.umin", least, signals)], after.compare("ne", end)

    _, least = f.loop([first, f.constant("i32", -1)], count)

    def free(carried: list[Value]) -> tuple[list[Value], Value]:
        wave, moving, waiting, clustered = carried
        place, seen = wave.at(state.STATUS), wave.at(state.SEEN)
        held = place.load("i32").compare("eq", state.STATUS_BARRIER)
        kind = wave.at(state.WAITS_AT)
        named = kind.load("i32").compare("eq", state.AT_NAMED)
        joint = kind.load("i32").compare("eq", state.AT_CLUSTER)
        barrier = named_barriers.barrier_of(wave, wave.at(state.JOINED).load("i32"))
        times = barrier.at(state.COMPLETED).load("i32")
        whole = wave.at(state.CLUSTER_BARRIER).load("ptr").at(state.COMPLETED).load("i32")
        passed = wave.at(state.CLUSTER_SEEN)
        met = wave.at(state.SIGNALS).load("i32").compare("ule", least)
        met = named.select(times.compare("ne", seen.load("i32")), met)
        met = held & joint.select(whole.compare("ne", passed.load("i32")), met)

        def go_on() -> None:
            place.store(f.constant("i32", state.STATUS_READY))
            seen.store(named.select(times, seen.load("i32")))
            passed.store(joint.select(whole, passed.load("i32")))
            kind.store(f.constant("i32", state.AT_OWN))

        f.when(met, go_on)
        here = (held & waiting.compare("eq", 0)).select(wave.convert("ptrtoint", "i64"), waiting)
        clustered = clustered + (held & joint).zext("i64")
        after = wave.at(stride)
        return [after, moving + met.zext("i64"), here, clustered], after.compare("ne", end)

    zero = f.constant("i64", 0)
    ready = f.named("i64", "%ready")
    _, moving, waiting, clustered = f.loop([first, ready, zero, zero], free)
    stuck = moving.compare("eq", 0)
    f.when(stuck & clustered.compare("ne", 0), lambda: f.ret(f.constant("i32", 3)))

    def stop() -> None:
        stop_at_barrier(f, context, waiting.convert("inttoptr", "ptr"), "deadlock")
        f.ret(f.constant("i32", 2))

    f.when(stuck, stop)
    f.ret(f.constant("i32", 0))
    return f


def stop_at_barrier(f: Function, context: Value, wave: Value, kind: str) -> None:
    """Stops a wave that waits at a barrier with a fault, at the wait itself."""
    op = wave.at(state.OP)
    op.store(op.load("ptr").at(-state.OP_SIZE))
    wave.at(state.STATUS).store(f.constant("i32", state.STATUS_FAULT))
    wave.at(state.FAULT_KIND).store(f.constant("i32", state.FAULT[kind]))
    context.at(CTX.stopped_wave).store(wave)


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
