"""Tables of vector ALU instructions, lane by lane, written from the ISA manual.

This module has compares and carries; integer.py and floating.py fill VALU with the rest.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from oracle.arithmetic import floats
from oracle.vector import floating as _floating  # noqa: F401  for the entries that it defines
from oracle.vector import rare as _rare  # noqa: F401  the same
from oracle.vector.integer import wide
from oracle.vector.table import VALU, Op

__all__ = ["CARRY", "VALU", "VOPC", "Op", "multiply_add", "multiply_add_signed"]

u32, u64 = np.uint32, np.uint64

# Compares

CONDITIONS = {
    "f": lambda a, b: np.zeros(np.broadcast_shapes(a.shape, b.shape), bool),
    "lt": lambda a, b: a < b,
    "eq": lambda a, b: a == b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "lg": lambda a, b: (a < b) | (a > b),
    "ge": lambda a, b: a >= b,
    "o": lambda a, b: ~(np.isnan(a) | np.isnan(b)),
    "u": lambda a, b: np.isnan(a) | np.isnan(b),
    "nge": lambda a, b: ~(a >= b),
    "nlg": lambda a, b: ~((a < b) | (a > b)),
    "ngt": lambda a, b: ~(a > b),
    "nle": lambda a, b: ~(a <= b),
    "neq": lambda a, b: ~(a == b),
    "nlt": lambda a, b: ~(a < b),
    "tru": lambda a, b: np.ones(np.broadcast_shapes(a.shape, b.shape), bool),
    "ne": lambda a, b: a != b,
    "t": lambda a, b: np.ones(np.broadcast_shapes(a.shape, b.shape), bool),
}
FLOAT_CONDITIONS = [name for name in CONDITIONS if name not in ("ne", "t")]
INTEGER_CONDITIONS = ["f", "lt", "eq", "le", "gt", "ne", "ge", "t"]

VOPC: dict[str, Op] = {}
for prefix in ("v_cmp_", "v_cmpx_"):
    for t in ("f16", "f32", "f64"):
        for condition in FLOAT_CONDITIONS:
            VOPC[f"{prefix}{condition}_{t}"] = Op("mask", (t, t), CONDITIONS[condition])
        mask_type = "b16" if t == "f16" else "b32"
        VOPC[f"{prefix}class_{t}"] = Op(
            "mask", (t, mask_type), lambda a, b: floats.classify(a) & b.astype(u32) != 0
        )
    for t in ("i16", "u16", "i32", "u32", "i64", "u64"):
        for condition in INTEGER_CONDITIONS:
            VOPC[f"{prefix}{condition}_{t}"] = Op("mask", (t, t), CONDITIONS[condition])

# Arithmetic with a carry: (result, carry out) of two sources and a carry in


def add_carry(a, b, carry):
    total = a.astype(u64) + b + carry
    return total.astype(u32), total > 0xFFFFFFFF


def subtract_borrow(a, b, borrow):
    return a - b - borrow.astype(u32), a.astype(u64) < b.astype(u64) + borrow


CARRY: dict[str, tuple[Callable, bool, bool]] = {
    # mnemonic: (function, takes a carry, sources exchanged)
    "v_add_co_u32": (add_carry, False, False),
    "v_addc_co_u32": (add_carry, True, False),
    "v_sub_co_u32": (subtract_borrow, False, False),
    "v_subb_co_u32": (subtract_borrow, True, False),
    "v_subrev_co_u32": (subtract_borrow, False, True),
    "v_subbrev_co_u32": (subtract_borrow, True, True),
}


def multiply_add(a, b, c):
    """V_MAD_U64_U32: (a * b + c, whether it overflowed 64 bits)."""
    total = a.astype(u64) * b.astype(u64) + c
    return total, total < c


def multiply_add_signed(a, b, c):
    product = wide(a) * wide(b)
    total = product + c
    # Overflow: the operands agree in sign and the sum doesn't.
    return total, ((product ^ total) & (c ^ total)) < 0
