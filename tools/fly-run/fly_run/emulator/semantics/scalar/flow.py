"""Control flow, and instructions without effect in the emulator.

Only branches count instructions and yield when the quantum is used up, so that straight-line code
costs no bookkeeping. A branch's link is its target micro-op.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from fly_run.emulator import state
from fly_run.emulator.irgen import Value
from fly_run.emulator.semantics.base.emit import Handler
from fly_run.emulator.semantics.base.operation import SINCE_GFX11, Operation
from fly_run.emulator.semantics.scalar import cluster_barrier, named_barriers

CONDITIONS: dict[str, Callable[[Handler], Value]] = {
    "s_cbranch_scc0": lambda h: ~h.scc(),
    "s_cbranch_scc1": lambda h: h.scc(),
    "s_cbranch_vccz": lambda h: h.wave.at(state.VCC).load("i64").compare("eq", 0),
    "s_cbranch_vccnz": lambda h: h.wave.at(state.VCC).load("i64").compare("ne", 0),
    # Emitted by the encoder, for waves of 32 lanes.
    "fly_branch_vcc_lo_zero": lambda h: h.wave.at(state.VCC).load("i32").compare("eq", 0),
    "fly_branch_vcc_lo_nonzero": lambda h: h.wave.at(state.VCC).load("i32").compare("ne", 0),
    "s_cbranch_execz": lambda h: h.exec_mask().compare("eq", 0),
    "s_cbranch_execnz": lambda h: h.exec_mask().compare("ne", 0),
}

# Timing, caches and hints: they affect time and the order of memory accesses, and here every
# access completes before the next instruction starts.
NOTHING = tuple(
    """
s_nop s_waitcnt s_waitcnt_depctr s_setprio s_inst_prefetch s_icache_inv s_dcache_inv
s_dcache_wb s_dcache_inv_vol s_dcache_wb_vol s_incperflevel s_decperflevel s_ttracedata
s_set_gpr_idx_off s_sendmsg s_wakeup sched_barrier s_atc_probe s_atc_probe_buffer
s_dcache_discard s_dcache_discard_x2 v_clrexcp
buffer_wbl2 buffer_inv buffer_wbinvl1 buffer_wbinvl1_vol buffer_invl2 v_nop
""".split()  # noqa: SIM905
)
NOTHING_RDNA = tuple(
    """
s_delay_alu s_clause s_waitcnt_vscnt s_waitcnt_vmcnt s_waitcnt_expcnt s_waitcnt_lgkmcnt s_wait_alu
s_wait_loadcnt s_wait_loadcnt_dscnt s_wait_storecnt s_wait_storecnt_dscnt s_wait_dscnt s_wait_kmcnt
s_wait_samplecnt s_wait_bvhcnt s_wait_expcnt s_wait_event s_wait_idle s_set_inst_prefetch_distance
s_wait_asynccnt s_wait_tensorcnt s_wait_xcnt s_set_vgpr_msb s_setprio_inc_wg
s_ttracedata_imm s_singleuse_vdst s_prefetch_inst s_prefetch_inst_pc_rel s_prefetch_data
s_prefetch_data_pc_rel s_buffer_prefetch_data s_gl1_inv s_version v_pipeflush
ds_nop buffer_gl0_inv buffer_gl1_inv global_inv global_wb global_wbinv
""".split()  # noqa: SIM905
)


def operations() -> Iterator[Operation]:
    for name in NOTHING:
        yield Operation(name, "nothing")
    for name in NOTHING_RDNA:
        yield Operation(name, "nothing", traits=SINCE_GFX11)
    for name in ("s_sleep_var", "s_monitor_sleep"):
        yield Operation(name, "flow", body=_sleep, traits=SINCE_GFX11)
    for name, condition in CONDITIONS.items():
        yield Operation(name, "flow", body=_conditional(condition))
    for name, body in (BODIES | named_barriers.BODIES | cluster_barrier.BODIES).items():
        yield Operation(name, "flow", body=body)


def emit_flow(operation: Operation, name: str) -> Handler:
    handler = Handler(name)
    assert operation.body is not None
    operation.body(handler)
    return handler


def emit_nothing(operation: Operation, name: str) -> Handler:
    handler = Handler(name)
    handler.next()
    return handler


def _go(h: Handler, left: Value, target: Value) -> None:
    """Continues at `target`, now or on this wave's next turn."""
    h.land(target)

    def rest() -> None:
        h.wave.at(state.OP).store(target)
        h.wave.at(state.STATUS).store(h.constant("i32", state.STATUS_READY))
        h.ret()

    h.when(left.compare("sle", 0), rest)
    h.jump(target)


def _conditional(condition: Callable[[Handler], Value]) -> Callable[[Handler], None]:
    def run(h: Handler) -> None:
        taken = condition(h)
        left, _ = h.count_only()
        target = taken.select(h.op.at(state.OP_LINK).load("ptr"), h.op.at(state.OP_SIZE))
        _go(h, left, target)

    return run


def _branch(h: Handler) -> None:
    left, _ = h.count_only()
    _go(h, left, h.op.at(state.OP_LINK).load("ptr"))


def _barrier(h: Handler) -> None:
    h.stop(state.STATUS_BARRIER, h.op.at(state.OP_SIZE))


def _sleep(h: Handler) -> None:
    """Ends the wave's turn: it waits for something that another wave does."""
    h.stop(state.STATUS_READY, h.op.at(state.OP_SIZE))


def _signal_barrier(h: Handler) -> None:
    """Signals a split barrier (gfx12): the driver releases a waiting wave when every live wave has
    signalled as often as it has."""
    signals = h.wave.at(state.SIGNALS)
    signals.store(signals.load("i32") + 1)
    h.next()


def _end(h: Handler) -> None:
    h.stop(state.STATUS_DONE, h.op)


def _code_address(h: Handler) -> Value:
    """Returns the guest address of the next instruction, whose pc is in the immediate."""
    context = h.wave.at(state.CONTEXT).load("ptr")
    return context.at(state.CTX.load_base).load("i64") + h.immediate()


def _get_pc(h: Handler) -> None:
    h.operand(0).store(_code_address(h))
    h.next()


def _jump_to(h: Handler, address: Value) -> None:
    """Jumps to the micro-op of a guest address; stops for Python to decode it if it is new."""
    context = h.wave.at(state.CONTEXT).load("ptr")
    offset = address - context.at(state.CTX.code_low).load("i64")
    # In dwords. The lowest bits become the highest, so a misaligned address is out of range.
    index = h.intrinsic("llvm.fshr", offset, offset, offset.like(2))
    inside = index.compare("ult", context.at(state.CTX.code_dwords).load("i64"))
    left = h.count()

    def decode() -> None:
        h.wave.at(state.FAULT_ADDRESS).store(address)
        h.wave.at(state.OP).store(h.op)
        h.wave.at(state.STATUS).store(h.constant("i32", state.STATUS_DECODE))
        h.ret()

    h.when(~inside, decode)
    target = context.at(state.CTX.code_map).load("ptr").at(index << 3).load("ptr")
    h.when(target.compare("eq", h.named("ptr", "null")), decode)
    _go(h, left, target)


def _set_pc(h: Handler) -> None:
    _jump_to(h, h.operand(0).load("i64"))


def _swap_pc(h: Handler) -> None:
    target = h.operand(1).load("i64")
    h.operand(0).store(_code_address(h))
    _jump_to(h, target)


def _call(h: Handler) -> None:
    h.operand(0).store(_code_address(h))
    _branch(h)


def _begin_halves(h: Handler) -> None:
    """s_subvector_loop_begin (RDNA3 ISA manual, SOPK): starts a loop over the halves of a wave of
    64 lanes that have active lanes. Operand 0 keeps the high half of EXEC while the loop runs for
    the low one, and 0 if it runs for the high one only. Without active lanes it is skipped."""
    low, high = h.wave.at(state.EXEC), h.wave.at(state.EXEC + 4)
    first, second = low.load("i32"), high.load("i32")
    none = h.exec_mask().compare("eq", 0)
    only_high = first.compare("eq", 0)
    left = h.count()

    def start() -> None:
        h.operand(0).store(only_high.select(0, second))
        high.store(only_high.select(second, 0))

    h.when(~none, start)
    _go(h, left, none.select(h.op.at(state.OP_LINK).load("ptr"), h.op.at(state.OP_SIZE)))


def _end_halves(h: Handler) -> None:
    """s_subvector_loop_end: after the low half goes back for the high one, if operand 0 has active
    lanes of it, and keeps the low half there; after the high half restores the low one."""
    low, high = h.wave.at(state.EXEC), h.wave.at(state.EXEC + 4)
    first, second = low.load("i32"), high.load("i32")
    kept = h.operand(0).load("i32")
    was_high = second.compare("ne", 0)
    again = ~was_high & kept.compare("ne", 0)
    left = h.count()
    low.store(was_high.select(kept, again.select(0, first)))
    high.store(was_high.select(second, kept))
    h.operand(0).store(again.select(first, kept))
    _go(h, left, again.select(h.op.at(state.OP_LINK).load("ptr"), h.op.at(state.OP_SIZE)))


def _trap(h: Handler) -> None:
    h.fault("trap")


def _end_of_code(h: Handler) -> None:
    h.fault("end of code")


def _clock(h: Handler) -> None:
    """Returns the number of instructions executed so far: a monotonic clock."""
    context = h.wave.at(state.CONTEXT).load("ptr")
    before = context.at(state.CTX.executed).load("i64")
    index = h.op.at(state.OP_INDEX).load("i32").zext("i64")
    h.operand(0).store(before - h.wave.at(state.QUANTUM).load("i64") + index)
    h.next()


BODIES: dict[str, Callable[[Handler], None]] = {
    "s_branch": _branch,
    "s_barrier": _barrier,
    "s_barrier_signal": _signal_barrier,
    "s_barrier_wait": _barrier,
    "s_sleep": _sleep,
    "s_endpgm": _end,
    "s_endpgm_saved": _end,
    "s_getpc_b64": _get_pc,
    "s_setpc_b64": _set_pc,
    "s_swappc_b64": _swap_pc,
    "s_call_b64": _call,
    "s_subvector_loop_begin": _begin_halves,
    "s_subvector_loop_end": _end_halves,
    "s_trap": _trap,
    "s_memtime": _clock,
    "s_memrealtime": _clock,
    # Emitted by the encoder: follows the last instruction.
    "fly_end_of_code": _end_of_code,
}
