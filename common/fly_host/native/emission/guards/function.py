"""Functions of a launcher that guard one argument. Parameters that are guarded alike share one:
launchers of many tensors are then not much longer than those of few."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fly_host.native.emission.frame import MISS, UNREADABLE, Frame

Written = Callable[[Frame], Any]

_TEXT = """
define internal zeroext i1 {name}(ptr %table, ptr %object, ptr %dtype, ptr %out) nounwind {{
entry:
{body}
  ret i1 true
{unreadable}:
  call void @PyErr_Clear()
  br label {miss}
{missed}:
  ret i1 false
}}
"""


_C_TEXT = """
define internal zeroext i1 {name}(ptr %table, ptr %object, ptr %dtype, ptr %out) nounwind {{
entry:
{body}
  ret i1 true
{missed}:
  ret i1 false
}}
"""


def guard(frame: Frame, key: tuple[Any, ...], write: Written) -> tuple[str, Any]:
    """The name of the function for guards of this key, and what `write` returned for it.

    `write` writes the function's code to a frame of its own, where it has `%object`, `%dtype` and
    room for what it reads at `%out`. The function returns whether the argument fits.
    """
    if key not in frame.guards:
        inner = frame.inner()
        told = write(inner)
        name = f"@guard{len(frame.guards)}"
        text = (_C_TEXT if frame.way.for_c else _TEXT).format(
            name=name,
            body="\n".join([*inner.code.allocations, *inner.code.lines]),
            miss=MISS,
            missed=MISS[1:],
            unreadable=UNREADABLE[1:],
        )
        frame.guards[key] = (name, text, told)
    name, _, told = frame.guards[key]
    return name, told


def call(frame: Frame, name: str, object: str, room: str, dtype: str = "null") -> None:
    """Goes on where an argument fits; what was read is at `room`."""
    passed = f"ptr %table, ptr {object}, ptr {dtype}, ptr {room}"
    fits = frame.code.value(f"call zeroext i1 {name}({passed})")
    frame.code.require(fits, MISS)
