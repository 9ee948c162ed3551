"""Micro-ops of observers (fly_run.emulator.watch.observe), which surround an instruction's own and
leave the wave unchanged. No instruction has these names."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from fly_run.emulator import state
from fly_run.emulator.irgen import Value
from fly_run.emulator.semantics.base.emit import Handler
from fly_run.emulator.semantics.base.operation import Operation


def operations() -> Iterator[Operation]:
    for name, body in CUSTOM.items():
        yield Operation(name, "custom", body=body)


def _watch(h: Handler) -> None:
    """Calls Python with the wave and the number in the extra word. Python runs with the host's own
    control word, as a called function may expect; the wave's is restored afterwards. Without
    listeners the address to call is null."""
    context = h.wave.at(state.CONTEXT).load("ptr")
    callback = context.at(state.CTX.watch).load("ptr")

    def call() -> None:
        h.call_void("llvm.x86.sse.ldmxcsr", context.at(state.CTX.saved_mxcsr), declare=True)
        h.call_void("llvm.x86.avx.vzeroupper", declare=True)
        answer = h.value("i32", 0, f"call i32 {callback.name}(ptr %wave, i32 {h.extra().name})")
        h.call_void("llvm.x86.sse.ldmxcsr", h.wave.at(state.MXCSR_SINGLE), declare=True)
        h.when(answer.compare("ne", 0), lambda: h.fault("observer"))

    h.when(callback.compare("ne", h.named("ptr", "null")), call)


def _count(h: Handler) -> None:
    """Increments the counters of the site in the link: executions, active lanes, executions with
    inactive work items in the wave, executions with no active lane."""
    site = h.op.at(state.OP_LINK).load("ptr")
    mask = h.exec_mask()
    context = h.wave.at(state.CONTEXT).load("ptr")
    number = h.wave.at(state.WAVE).load("i32").zext("i64")
    items = context.at(state.CTX.masks).load("ptr").at(number << 3).load("i64")

    def add(name: str, value: Value) -> None:
        counter = site.at(state.SITE.offsets[name])
        counter.store(counter.load("i64") + value)

    add("times", h.constant("i64", 1))
    add("lanes", h.intrinsic("llvm.ctpop", mask))
    add("partial", (mask & items).compare("ne", items).zext("i64"))
    add("idle", mask.compare("eq", 0).zext("i64"))


CUSTOM: dict[str, Callable[[Handler], None]] = {"fly_watch": _watch, "fly_count": _count}
