"""`flydsl.expr.rocdl.tdm_ops`: the tensor data mover of gfx1250."""

from __future__ import annotations

from typing import Any

from fly_trace.backends.amd.rocdl.cdna5 import s_wait_tensorcnt

from fly.flydsl.expr.rocdl.universal import known


def tensor_wait(count: Any = 0) -> None:
    """Waits until at most `count` copies by the tensor data mover are under way."""
    s_wait_tensorcnt(known(count))


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    raise AttributeError(
        f"fly.flydsl has no tdm_ops.{name}: tensor data moves are there as atoms, "
        "fx.rocdl.cdna5.make_tdm_atom (docs/flydsl.md)"
    )
