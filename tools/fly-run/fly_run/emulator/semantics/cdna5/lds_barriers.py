"""Barriers in LDS (gfx1250): words of 64 bits at which lanes and tensor data moves arrive.

    28:0 pending count    31:29 phase    47:32 the count to start the next phase with    63:48 zero

An arrival subtracts a number from the pending count. Where that would become negative, the count
starts again and the phase is decremented. A program that waits polls the phase, so `n` arrivals
need the count `n - 1`. Every active lane arrives, and a tensor data move once, when it is done.

Sources: MLIR's documentation of `amdgpu.ds_barrier_state`; Triton's BarrierOpToLLVM, whose programs
count lanes; public summaries of the CDNA5 ISA manual (11.2.2, table 70), according to which the
pending count's width is a setting of the hardware, of which compilers assume 29.
"""

from __future__ import annotations

from collections.abc import Iterator

from fly_run.emulator.irgen import Value
from fly_run.emulator.semantics.base.access import Atomic
from fly_run.emulator.semantics.base.emit import Handler
from fly_run.emulator.semantics.base.operation import Operation

WIDTH = 29  # of the pending count
PENDING, PHASES, RELOAD = (1 << WIDTH) - 1, 7, 0xFFFF


def operations() -> Iterator[Operation]:
    arrive = Atomic("i64", arrived, True)
    yield Operation("ds_atomic_barrier_arrive_rtn_b64", "lds", detail=arrive)
    yield Operation("fly_arrive_in_lds", "lds", detail=Atomic("i64", arrived, False))


def arrived(h: Handler, word: Value, update: Value) -> Value:
    """Returns the word after an arrival; the lower half of `update` counts."""
    pending, phase, reload = word & PENDING, word.lshr(WIDTH) & PHASES, word.lshr(32) & RELOAD
    amount = update & 0xFFFF_FFFF
    over = amount.compare("ugt", pending)
    pending = over.select(reload, pending - amount)
    phase = over.select((phase - 1) & PHASES, phase)
    return pending | phase << WIDTH | reload << 32
