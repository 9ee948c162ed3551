"""Atomic operations on memory and LDS that are new on gfx11 and gfx12."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from oracle.arithmetic import floats
from oracle.memory.access import Space, atomic_step, base_of, flat_address
from oracle.memory.atomics import Atomic
from oracle.program.text import Instruction
from oracle.state.waves import Waves
from oracle.vector.floating import to_brain

u16, u32, u64 = np.uint16, np.uint32, np.uint64


def subtract_clamped(old, data):
    """GLOBAL_ATOMIC_CSUB, and gfx12's SUB_CLAMP: saturates at 0."""
    return np.where(old < data, old.dtype.type(0), old - data)


def subtract_if(old, data):
    """COND_SUB: subtracts only if the result is not below 0."""
    return np.where(old >= data, old - data, old)


def brain_sums(old, data):
    """PK_ADD_BF16: both halves, each sum rounded to nearest even."""
    total = np.zeros_like(old)
    for shift in (u32(0), u32(16)):
        a, b = (((x >> shift) << u32(16)).view(np.float32) for x in (old, data))
        total |= to_brain(a + b).astype(u32) << shift
    return total


def exchange(kind: str) -> Atomic:
    """Compare and swap, the new value first: DS has memory's order from gfx11 on."""
    return Atomic(kind, lambda o, new, expected: np.where(o == expected, new, o), None, 2)


SHARED: dict[str, Atomic] = {
    "sub_clamp_u32": Atomic("u32", subtract_clamped),
    "cond_sub_u32": Atomic("u32", subtract_if),
    "pk_add_bf16": Atomic("u32", brain_sums),
}
DS: dict[str, Atomic] = {
    **SHARED,
    "cmpstore_b32": exchange("u32"),
    "cmpstore_b64": exchange("u64"),
}
GLOBAL: dict[str, Atomic] = {
    **SHARED,
    "csub_u32": SHARED["sub_clamp_u32"],
    "cmpswap_f32": exchange("f32"),
}
for _name in ("min_f32", "min_num_f32"):
    GLOBAL[_name] = Atomic("f32", lambda o, d: floats.minimum(o, d, True))
for _name in ("max_f32", "max_num_f32"):
    GLOBAL[_name] = Atomic("f32", lambda o, d: floats.maximum(o, d, True))


def build(ins: Instruction) -> Callable[[Waves], None] | None:
    family, _, rest = ins.mnemonic.partition("_")
    operands = list(ins.operands)
    if family == "ds" and rest.replace("_rtn", "") in DS:
        target = operands.pop(0) if "_rtn" in rest else None
        vector, *data = operands
        offset = u32(ins.modifiers.get("offset", 0))
        return atomic_step(
            DS[rest.replace("_rtn", "")],
            Space("lds"),
            lambda w: (w.read(vector, 32) + offset).astype(u64),
            data,
            target,
        )
    operation = rest.removeprefix("atomic_")
    if family not in ("global", "flat") or operation not in GLOBAL:
        return None
    base = base_of(family, operands)
    target = operands.pop(0) if "glc" in ins.modifiers else None
    vector, data = operands
    atomic = GLOBAL[operation]
    return atomic_step(
        atomic,
        Space("global" if family == "global" else "flat"),
        lambda w: flat_address(w, ins, vector, base, atomic.size),
        [data],
        target,
    )
