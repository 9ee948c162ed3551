"""The form of an entry in the oracle's tables of vector instructions.

`VALU[mnemonic] = Op("f32: f32 f32", function)`: the destination's type, the sources' types, and a
function of NumPy arrays of those types. Types: b/u/i/f and a width. vector.py handles source
modifiers, clamp, output scale, DPP, SDWA and partial register writes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Op:
    """`ieee`: the function takes the IEEE mode bit as a keyword. `tied`: the last source is the
    destination's old value. `high`: the effect of a 16-bit result on the register's upper half."""

    result: str
    sources: tuple[str, ...]
    function: Callable
    ieee: bool = False
    tied: bool = False
    keeps_high: bool = False


VALU: dict[str, Op] = {}


def define(names: str, signature: str, function: Callable, **options) -> None:
    result, _, sources = signature.partition(":")
    for name in names.split():
        VALU["v_" + name] = Op(result, tuple(sources.split()), function, **options)
