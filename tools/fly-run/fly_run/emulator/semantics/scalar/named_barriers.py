"""Named barriers (gfx1250), and signals of the workgroup's own barrier that tell the first wave.

A barrier has an expected and an arrived number of signals. When they become equal, by a signal or
because a wave leaves, arrived is 0 again, and each wave that has joined the barrier wakes up, or
does not stop at its next wait. A wave has joined one barrier at most. Sources: LLVM's execution
model of barriers (AMDGPUExecutionSynchronization) and its lowering of the intrinsics: bits 5:0 of
M0 are the number, bits 21:16 the expected signals, where 0 retains them.

Here a barrier counts how often it was complete, and a wave remembers the count that it has seen.
"""

from __future__ import annotations

from collections.abc import Callable

from fly_run.emulator import state
from fly_run.emulator.irgen import Value
from fly_run.emulator.semantics.base.emit import Handler

FAULT = "named barrier"


def barrier_of(wave: Value, number: Value) -> Value:
    """Returns a pointer to a barrier of the wave's workgroup."""
    slot = wave.at(state.SLOT).load("ptr")
    return slot.at(state.SLOT_BARRIERS).at(number.zext("i64") << 4)


def _refuse(h: Handler, wrong: Value) -> None:
    h.when(wrong, lambda: h.fault(FAULT))


def _number(h: Handler) -> Value:
    number = h.operand(0).load("i32") & 63
    _refuse(h, (number - 1).compare("uge", state.NAMED_BARRIERS))
    return number


def _members(h: Handler) -> Value:
    return h.operand(1).load("i32").lshr(16) & 63


def _initialize(h: Handler) -> None:
    barrier, members = barrier_of(h.wave, _number(h)), _members(h)
    _refuse(h, members.compare("eq", 0))
    barrier.at(state.EXPECTED).store(members)
    barrier.at(state.ARRIVED).store(h.constant("i32", 0))
    h.next()


def _join(h: Handler) -> None:
    number = _number(h)
    h.wave.at(state.JOINED).store(number)
    h.wave.at(state.SEEN).store(barrier_of(h.wave, number).at(state.COMPLETED).load("i32"))
    h.next()


def _update(h: Handler, barrier: Value, expected: Value, arrived: Value) -> None:
    """Stores the numbers, or completes the barrier."""
    complete = arrived.compare("ne", 0) & arrived.compare("uge", expected)
    barrier.at(state.EXPECTED).store(expected)
    barrier.at(state.ARRIVED).store(complete.select(0, arrived))
    times = barrier.at(state.COMPLETED)
    times.store(times.load("i32") + complete.zext("i32"))


def _signal(h: Handler) -> Value:
    """Returns whether the signal is the first one since the barrier was complete."""
    barrier, members = barrier_of(h.wave, _number(h)), _members(h)
    expected = members.compare("eq", 0).select(barrier.at(state.EXPECTED).load("i32"), members)
    _refuse(h, expected.compare("eq", 0))
    arrived = barrier.at(state.ARRIVED).load("i32")
    _update(h, barrier, expected, arrived + 1)
    return arrived.compare("eq", 0)


def _signal_named(h: Handler) -> None:
    _signal(h)
    h.next()


def _signal_named_first(h: Handler) -> None:
    h.set_scc(_signal(h))
    h.next()


def _leave(h: Handler) -> None:
    number = h.wave.at(state.JOINED).load("i32")
    barrier = barrier_of(h.wave, number)
    expected = barrier.at(state.EXPECTED).load("i32")
    _refuse(h, number.compare("eq", 0) | expected.compare("eq", 0))
    h.wave.at(state.JOINED).store(h.constant("i32", 0))
    _update(h, barrier, expected - 1, barrier.at(state.ARRIVED).load("i32"))
    h.next()


def _wait_named(h: Handler) -> None:
    number = h.wave.at(state.JOINED).load("i32")
    _refuse(h, number.compare("eq", 0))
    times, seen = barrier_of(h.wave, number).at(state.COMPLETED).load("i32"), h.wave.at(state.SEEN)

    def stop() -> None:
        h.wave.at(state.WAITS_AT).store(h.constant("i32", state.AT_NAMED))
        h.stop(state.STATUS_BARRIER, h.op.at(state.OP_SIZE))

    h.when(times.compare("eq", seen.load("i32")), stop)
    seen.store(times)
    h.next()


def _signal_first(h: Handler) -> None:
    """Signals the workgroup's barrier. SCC: no other wave has signalled it as often."""
    slot = h.wave.at(state.SLOT).load("ptr")
    context = h.wave.at(state.CONTEXT).load("ptr")
    stride = context.at(state.CTX.wave_stride).load("i64")
    first = slot.at(state.SLOT_HEADER)
    end = first.at(stride * context.at(state.CTX.waves).load("i64"))

    def turn(carried: list[Value]) -> tuple[list[Value], Value]:
        wave, most = carried
        most = h.intrinsic("llvm.umax", most, wave.at(state.SIGNALS).load("i32"))
        after = wave.at(stride)
        return [after, most], after.compare("ne", end)

    own = h.wave.at(state.SIGNALS)
    before = own.load("i32")
    _, most = h.loop([first, before], turn)
    own.store(before + 1)
    h.set_scc(most.compare("eq", before))
    h.next()


# Emitted by the lowering, by the barrier's number.
BODIES: dict[str, Callable[[Handler], None]] = {
    "fly_signal_first": _signal_first,
    "fly_named_init": _initialize,
    "fly_named_join": _join,
    "fly_named_signal": _signal_named,
    "fly_named_signal_first": _signal_named_first,
    "fly_named_wait": _wait_named,
    "fly_named_leave": _leave,
}
