"""`flydsl.expr.rocdl.cdna3`: gfx942."""

from __future__ import annotations

from typing import Any

from fly_trace.backends.amd.waits import cdna3_s_waitcnt

from fly.flydsl.expr.rocdl.universal import known

__all__ = ["s_waitcnt"]


def s_waitcnt(vmcnt: Any = None, lgkmcnt: Any = None, expcnt: Any = None) -> None:
    """Waits until at most so many accesses are under way, in gfx9's encoding."""
    cdna3_s_waitcnt(known(vmcnt), known(lgkmcnt), known(expcnt))
