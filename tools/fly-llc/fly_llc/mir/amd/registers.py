"""AMD GPU registers as units: which names overlap, and the width of classes.

A unit is allocated as a whole: a 32-bit register (`v0`, `s7`, `a3`), a special register (`scc`), or
a virtual register of any width (`%12`). Half of a register counts as the whole.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable

from fly_llc.mir.instruction import Instruction
from fly_llc.mir.operand import Operand

_BANKS = {"vgpr": "v", "sgpr": "s", "agpr": "a", "ttmp": "t"}
_PART = re.compile(r"(vgpr|sgpr|agpr|ttmp)(\d+)")
_PAIRS = {name: (f"{name}_lo", f"{name}_hi") for name in ("vcc", "exec", "flat_scr", "xnack_mask")}
_CLASS = re.compile(r"(?P<bank>[a-z]+)_(?P<bits>\d{1,5})")
# The register file of a class. `av` is either vector file, and counts as vector.
_CLASS_BANKS = {"vgpr": "v", "vreg": "v", "av": "v", "agpr": "a", "areg": "a"}


@functools.lru_cache(maxsize=4096)
def units(register: str) -> frozenset[str]:
    """The units of a register, by its name in MIR: `$vgpr0_vgpr1` → {"v0", "v1"}."""
    if register.startswith("%"):
        return frozenset((register,))
    name = register.removeprefix("$")
    name = re.sub(r"_(?:lo16|hi16)\b", "", name)
    if parts := _PART.findall(name):
        return frozenset(f"{_BANKS[bank]}{number}" for bank, number in parts)
    return frozenset(_PAIRS.get(name, (name,)))


def of(operands: Iterable[Operand]) -> frozenset[str]:
    """The units of all registers among `operands`."""
    found: set[str] = set()
    for one in operands:
        if one.register is not None:
            found |= units(one.register)
    return frozenset(found)


def defined(instruction: Instruction) -> frozenset[str]:
    """The units that an instruction writes."""
    return of(instruction.defined)


def used(instruction: Instruction) -> frozenset[str]:
    """The units that an instruction reads. A write to a part of a virtual register preserves the
    rest, so it counts as a read."""
    partial = (one for one in instruction.results if one.sub and "undef" not in one.flags)
    return of(instruction.used) | of(partial)


def width(register_class: str) -> tuple[str, int]:
    """The bank of a register class ("v", "a" or "s") and its width in 32-bit registers:
    `vreg_64_align2` → ("v", 2)."""
    match = _CLASS.match(register_class)
    if match is None:
        return "s", 1
    return _CLASS_BANKS.get(match["bank"], "s"), max(1, int(match["bits"]) // 32)
