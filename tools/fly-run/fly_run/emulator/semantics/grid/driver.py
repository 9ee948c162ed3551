"""The grid driver: schedules clusters of workgroups.

A slot holds one resident workgroup; the workgroups of a cluster, usually one, have consecutive
slots and are resident together. The waves of a workgroup run in turn, each until it ends, waits at
a barrier or has used its quantum, and the workgroups of a cluster do. When a cluster finishes
within its turn, the next one takes its slots at once; otherwise (it waits for another cluster, or
is long) the other slots get a turn, so that a wave that spins on a lock held by another workgroup
makes progress.
"""

from __future__ import annotations

from fly_run.emulator import state
from fly_run.emulator.irgen import Function, Value
from fly_run.emulator.semantics.grid import cluster, starting, workgroup

CTX = state.CTX


def functions() -> list[Function]:
    return [*starting.functions(), *workgroup.functions(), *cluster.functions(), _run_grid()]


def _pending(context: Value) -> Value:
    """Whether clusters are left to start."""
    taken = context.at(CTX.tickets).load("ptr").load_shared("i64")
    return taken.compare("ult", context.at(CTX.end_group).load("i64"))


def _run_grid() -> Function:
    """Runs clusters until the grid is done or Python is needed; returns a RUN_ constant. Call it
    again to continue."""
    f = Function("fly_run", "ptr %context", "i32")
    context = f.named("ptr", "%context")
    f.call_void("llvm.x86.sse.stmxcsr", context.at(CTX.saved_mxcsr), declare=True)
    context.at(CTX.control).store(f.constant("i32", 0))
    slots = context.at(CTX.slots).load("i64")
    base = context.at(CTX.slot_base).load("ptr")
    size = context.at(CTX.cluster_size).load("i64")
    stride = context.at(CTX.slot_stride).load("i64") * size
    alone = size.compare("eq", 1)
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
                """Runs the cluster at a place, and the next ones while each ends in its turn."""
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
                started = f.call("fly_start_cluster", "i1", context, slot)
                f.branch_if(started, taken, empty)
                f.block(taken)
                used = context.at(CTX.used_slots)
                seen = used.load("i64")
                more = number.compare("uge", seen)
                used.store(more.select(number + 1, seen))
                count_live(1)
                f.branch(busy)
                f.block(busy)
                result = f.choose(
                    alone,
                    lambda: f.call("fly_run_group", "i32", context, slot),
                    lambda: f.call("fly_run_cluster", "i32", context, slot),
                )
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
            # Places that were never needed are skipped: their memory is not committed yet.
            used = context.at(CTX.used_slots).load("i64")
            wanted = _pending(context) | after.compare("ult", used)
            return [after], wanted & after.compare("ult", slots)

        f.loop(carried, visit)
        return [zero], context.at(CTX.live_groups).load("i64").compare("ne", 0)

    f.loop([first], sweep)
    leave(state.RUN_DONE)
    return f
