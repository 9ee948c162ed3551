"""Instructions that FlyDSL gives another form than MLIR's dialect has."""

from __future__ import annotations

from typing import Any

from fly.flydsl._mlir.dialects import rocdl as _dialect
from fly.flydsl.expr.rocdl.universal import known

__all__ = ["s_nop", "s_setprio", "s_wait_asynccnt", "wave_id"]


def s_setprio(priority: Any) -> None:
    """Sets the wave's priority, 0 to 3."""
    _dialect.s_setprio(int(known(priority)))


def s_nop(count: Any) -> None:
    """Waits `count` + 1 cycles."""
    _dialect.s_nop(int(known(count)))


def s_wait_asynccnt(count: Any = 0) -> None:
    """Waits until at most `count` asynchronous accesses are under way."""
    _dialect.s_wait_asynccnt(int(known(count)))


def wave_id() -> Any:
    """The number of the wave in its workgroup, of gfx1250."""
    from fly.flydsl.expr.typing import T

    return _dialect.wave_id(T.i32)
