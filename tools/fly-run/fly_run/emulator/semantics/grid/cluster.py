"""Runs the workgroups of a cluster in turn, until all have ended or none goes on."""

from __future__ import annotations

from fly_run.emulator import state
from fly_run.emulator.irgen import Function, Value
from fly_run.emulator.semantics.grid.starting import waves
from fly_run.emulator.semantics.grid.workgroup import stop_at_barrier

CTX = state.CTX


def functions() -> list[Function]:
    return [_run_cluster()]


def _run_cluster() -> Function:
    """Gives each workgroup of a cluster turns. Returns 0 to continue later, 1 if all are done, 2 if
    a wave needs Python."""
    f = Function("fly_run_cluster", "ptr %context, ptr %slot", "i32")
    context, slot = f.named("ptr", "%context"), f.named("ptr", "%slot")
    size, stride = (context.at(one).load("i64") for one in (CTX.cluster_size, CTX.slot_stride))
    executed = context.at(CTX.executed)
    zero = f.constant("i64", 0)

    def sweep(unused: list[Value]) -> tuple[list[Value], Value]:
        before = executed.load("i64")

        def turn(carried: list[Value]) -> tuple[list[Value], Value]:
            rank, done, held = carried
            result = f.call("fly_run_group", "i32", context, slot.at(rank * stride))
            f.when(result.compare("eq", 2), lambda: f.ret(result))
            done = done + result.compare("eq", 1).zext("i64")
            held = held + result.compare("eq", 3).zext("i64")
            after = rank + 1
            return [after, done, held], after.compare("ult", size)

        _, done, held = f.loop([zero, zero, zero], turn)
        f.when(done.compare("eq", size), lambda: f.ret(f.constant("i32", 1)))
        ran = executed.load("i64")
        late = ran.compare("ugt", context.at(CTX.slice_end).load("i64"))
        late = late | ran.compare("ugt", context.at(CTX.limit).load("i64"))
        f.when(late | (done + held).compare("ne", size), lambda: f.ret(f.constant("i32", 0)))

        def stop() -> None:
            _stop_first(f, context, slot)
            f.ret(f.constant("i32", 2))

        f.when(ran.compare("eq", before), stop)
        return [zero], f.constant("i1", 1)

    f.loop([zero], sweep)
    f.ret(f.constant("i32", 0))
    return f


def _stop_first(f: Function, context: Value, slot: Value) -> None:
    """Stops the first wave of a cluster that waits at the cluster's barrier."""
    size, apart = (context.at(one).load("i64") for one in (CTX.cluster_size, CTX.slot_stride))

    def group(carried: list[Value]) -> tuple[list[Value], Value]:
        (rank,) = carried
        first, stride, count = waves(context, slot.at(rank * apart))
        end = first.at(stride * count)

        def turn(carried: list[Value]) -> tuple[list[Value], Value]:
            (wave,) = carried
            held = wave.at(state.STATUS).load("i32").compare("eq", state.STATUS_BARRIER)
            joint = wave.at(state.WAITS_AT).load("i32").compare("eq", state.AT_CLUSTER)

            def stop() -> None:
                stop_at_barrier(f, context, wave, "cluster deadlock")
                f.ret(f.constant("i32", 2))

            f.when(held & joint, stop)
            after = wave.at(stride)
            return [after], after.compare("ne", end)

        f.loop([first], turn)
        after = rank + 1
        return [after], after.compare("ult", size)

    f.loop([f.constant("i64", 0)], group)
