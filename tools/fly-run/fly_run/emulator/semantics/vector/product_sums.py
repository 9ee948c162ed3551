"""Runs of v_fmac_f32 into one register: sums of products, as matrix products without matrix
instructions have them. The sum stays in the host's registers; written back and read again by each
instruction, it takes four times as long."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from fly_run.emulator import state
from fly_run.emulator.irgen import Value
from fly_run.emulator.semantics.base.emit import HALF, Handler, load_row, read_vector, store_row
from fly_run.emulator.semantics.base.operation import Operation


def operations() -> Iterator[Operation]:
    for kinds in ("vv", "sv"):
        yield Operation(f"fly_fmac_run_{kinds}", "flow", body=_run(kinds), short=True)


def _run(kinds: str) -> Callable[[Handler], None]:
    """Executes as many v_fmac_f32 as the extra word says, two or more, this one first. All have
    the first operand as their result, which only the first also has as a factor."""

    def run(h: Handler) -> None:
        count = h.extra().zext("i64")
        end = h.op.at(count * state.OP_SIZE)
        mask = h.exec_mask()

        def sums(first: Value, active: Value) -> None:
            target = h.operand(0)

            def turn(carried: list[Value]) -> tuple[list[Value], Value]:
                op, total = carried
                factors = []
                for number, kind in enumerate(kinds):
                    offset = op.at(state.OP_OPERANDS + 4 * (number + 1)).load("i32")
                    place = h.wave.at(offset.zext("i64"))
                    factors.append(read_vector(place, "float", kind, first, HALF))
                total = h.intrinsic("llvm.fma", *factors, total)
                after = op.at(state.OP_SIZE)
                return [after, total], after.compare("ne", end)

            start = [h.op.at(0), load_row(target, first, HALF).bits("float")]
            total = h.loop(start, turn)[1]
            store_row(target, first, total.bits("i32"), active.cast("i1", HALF))

        sums(h.constant("i64", 0), mask.trunc(f"i{HALF}"))
        if h.lanes > HALF:
            high = mask.lshr(HALF)
            upper = h.constant("i64", HALF)
            h.when(high.compare("ne", 0), lambda: sums(upper, high.trunc(f"i{HALF}")))
        h.jump(end)

    return run
