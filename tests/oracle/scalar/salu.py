"""Tables of scalar ALU instructions: their results and SCC.

Functions take unsigned arrays [n] (of 32 or 64 bits as the mnemonic says) and return `(result,
scc)`; `scc` is None if SCC is unchanged.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from oracle.vector.integer import find_first_high, find_first_one, find_sign_change, reverse_bits

u32, u64, i32, i64 = np.uint32, np.uint64, np.int32, np.int64


def signed(x):
    return x.view(i32 if x.dtype == u32 else i64)


def width_of(x):
    return x.dtype.itemsize * 8


def nonzero(value):
    return value, value != 0


def overflowing(function):
    """Signed 32-bit arithmetic whose SCC is the overflow."""

    def apply(a, b):
        exact = function(signed(a).astype(i64), signed(b).astype(i64))
        result = (exact & 0xFFFFFFFF).astype(u32)
        return result, exact != signed(result)

    return apply


def shift(function):
    return lambda a, s: nonzero(function(a, (s & u32(width_of(a) - 1)).astype(a.dtype)))


def field(a, control):
    """S_BFE's fields: offset and width from S1's bits 4:0 (5:0) and 22:16."""
    bits = width_of(a)
    return control & u32(bits - 1), np.minimum(control >> u32(16) & u32(127), u32(bits))


def low_bits(a, count):
    """Returns the lowest `count` bits of `a`; count may be all of them."""
    bits = width_of(a)
    mask = np.where(
        count >= bits, ~a.dtype.type(0), (a.dtype.type(1) << (count % bits).astype(a.dtype)) - 1
    ).astype(a.dtype)
    return a & mask


def bfe_unsigned(a, control):
    offset, width = field(a, control)
    return nonzero(low_bits(a >> offset.astype(a.dtype), width))


def bfe_signed(a, control):
    offset, width = field(a, control)
    bits = width_of(a)
    kept = low_bits((signed(a) >> offset.astype(signed(a).dtype)).view(a.dtype), width)
    spare = np.clip(bits - width.astype(i64), 0, bits - 1).astype(a.dtype)
    result = (signed(kept << spare) >> spare.astype(signed(a).dtype)).view(a.dtype)
    return nonzero(np.where(width == 0, a.dtype.type(0), result))


def pick(better):
    """Minimum or maximum: SCC tells whether the first one was chosen. If both are equal it is not,
    although the manuals write >= for S_MAX: AMD's rocjitsu tests for that
    (tests/scalar_scc_test.cpp)."""
    return lambda a, b: (np.where(better(a, b), a, b), better(a, b))


def mask_of(size, offset, kind):
    bits = 8 * np.dtype(kind).itemsize
    return ((kind(1) << (size & u32(bits - 1)).astype(kind)) - kind(1)) << (
        offset & u32(bits - 1)
    ).astype(kind)


LOGIC: dict[str, Callable] = {
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "andn2": lambda a, b: a & ~b,
    "orn2": lambda a, b: a | ~b,
    "nand": lambda a, b: ~(a & b),
    "nor": lambda a, b: ~(a | b),
    "xnor": lambda a, b: ~(a ^ b),
}


def logical(function):
    return lambda a, b: nonzero(function(a, b))


# Two sources: mnemonic → (bits of S0, bits of S1, function)
SOP2: dict[str, tuple[int, int, Callable]] = {
    "s_add_u32": (32, 32, lambda a, b: (a + b, a + b < a)),
    "s_sub_u32": (32, 32, lambda a, b: (a - b, b > a)),
    "s_add_i32": (32, 32, overflowing(lambda a, b: a + b)),
    "s_sub_i32": (32, 32, overflowing(lambda a, b: a - b)),
    "s_min_i32": (32, 32, pick(lambda a, b: signed(a) < signed(b))),
    "s_min_u32": (32, 32, pick(lambda a, b: a < b)),
    "s_max_i32": (32, 32, pick(lambda a, b: signed(a) > signed(b))),
    "s_max_u32": (32, 32, pick(lambda a, b: a > b)),
    "s_mul_i32": (32, 32, lambda a, b: (a * b, None)),
    "s_mul_hi_u32": (
        32,
        32,
        lambda a, b: ((a.astype(u64) * b.astype(u64) >> u64(32)).astype(u32), None),
    ),
    "s_mul_hi_i32": (
        32,
        32,
        lambda a, b: ((signed(a).astype(i64) * signed(b) >> 32).astype(i32).view(u32), None),
    ),
    "s_lshl_b32": (32, 32, shift(lambda a, s: a << s)),
    "s_lshl_b64": (64, 32, shift(lambda a, s: a << s)),
    "s_lshr_b32": (32, 32, shift(lambda a, s: a >> s)),
    "s_lshr_b64": (64, 32, shift(lambda a, s: a >> s)),
    "s_ashr_i32": (32, 32, shift(lambda a, s: (signed(a) >> signed(s)).view(a.dtype))),
    "s_ashr_i64": (64, 32, shift(lambda a, s: (signed(a) >> signed(s)).view(a.dtype))),
    "s_bfm_b32": (32, 32, lambda a, b: (mask_of(a, b, u32), None)),
    "s_bfm_b64": (32, 32, lambda a, b: (mask_of(a, b, u64), None)),
    "s_bfe_u32": (32, 32, bfe_unsigned),
    "s_bfe_u64": (64, 32, bfe_unsigned),
    "s_bfe_i32": (32, 32, bfe_signed),
    "s_bfe_i64": (64, 32, bfe_signed),
    "s_absdiff_i32": (
        32,
        32,
        lambda a, b: nonzero(np.abs(signed(a - b)).view(u32)),
    ),
    "s_pack_ll_b32_b16": (32, 32, lambda a, b: ((a & u32(0xFFFF)) | b << u32(16), None)),
    "s_pack_lh_b32_b16": (32, 32, lambda a, b: ((a & u32(0xFFFF)) | (b & u32(0xFFFF0000)), None)),
    "s_pack_hh_b32_b16": (32, 32, lambda a, b: (a >> u32(16) | (b & u32(0xFFFF0000)), None)),
}
for _name, _function in LOGIC.items():
    SOP2[f"s_{_name}_b32"] = (32, 32, logical(_function))
    SOP2[f"s_{_name}_b64"] = (64, 64, logical(_function))
for _count in (1, 2, 3, 4):

    def _shift_add(a, b, k=_count):
        exact = (a.astype(u64) << u64(k)) + b
        return exact.astype(u32), exact > 0xFFFFFFFF

    SOP2[f"s_lshl{_count}_add_u32"] = (32, 32, _shift_add)


def whole_quads(a):
    """S_WQM: each group of four bits becomes all ones if any is one."""
    any_one = a | a >> a.dtype.type(1) | a >> a.dtype.type(2) | a >> a.dtype.type(3)
    ones = a.dtype.type(0x1111111111111111 & (1 << width_of(a)) - 1)
    return nonzero((any_one & ones) * a.dtype.type(15))


def quad_mask(a):
    any_one = a | a >> a.dtype.type(1) | a >> a.dtype.type(2) | a >> a.dtype.type(3)
    result = np.zeros_like(a)
    for k in range(width_of(a) // 4):
        result |= (any_one >> a.dtype.type(4 * k) & a.dtype.type(1)) << a.dtype.type(k)
    return nonzero(result)


def count_ones(a):
    return nonzero(np.bitwise_count(a).astype(u32))


def by_halves(low_first: bool, function):
    """A 64-bit search by its two dwords: -1 if neither half has one."""

    def apply(a):
        low, high = a.astype(u32), (a >> u64(32)).astype(u32)
        near, far = (low, high) if low_first else (high, low)
        missing = u32(0xFFFFFFFF)
        second = function(far)
        second = np.where(second == missing, missing, second + u32(32))
        return np.where(function(near) == missing, second, function(near)).astype(u32), None

    return apply


def sign_change_64(a):
    folded = a ^ (signed(a) >> i64(63)).view(u64)
    return by_halves(False, find_first_high)(folded)


def reverse_64(a):
    low, high = reverse_bits(a.astype(u32)), reverse_bits((a >> u64(32)).astype(u32))
    return low.astype(u64) << u64(32) | high, None


def extend(bits):
    def apply(a):
        top = u32(1 << (bits - 1))
        return ((a & u32((1 << bits) - 1)) ^ top) - top, None

    return apply


# One source: mnemonic → (bits of S0, function)
SOP1: dict[str, tuple[int, Callable]] = {
    "s_mov_b32": (32, lambda a: (a, None)),
    "s_mov_b64": (64, lambda a: (a, None)),
    "s_not_b32": (32, lambda a: nonzero(~a)),
    "s_not_b64": (64, lambda a: nonzero(~a)),
    "s_wqm_b32": (32, whole_quads),
    "s_wqm_b64": (64, whole_quads),
    "s_quadmask_b32": (32, quad_mask),
    "s_quadmask_b64": (64, quad_mask),
    "s_brev_b32": (32, lambda a: (reverse_bits(a), None)),
    "s_brev_b64": (64, reverse_64),
    "s_bcnt0_i32_b32": (32, lambda a: count_ones(~a)),
    "s_bcnt0_i32_b64": (64, lambda a: count_ones(~a)),
    "s_bcnt1_i32_b32": (32, count_ones),
    "s_bcnt1_i32_b64": (64, count_ones),
    "s_ff0_i32_b32": (32, lambda a: (find_first_one(~a), None)),
    "s_ff0_i32_b64": (64, lambda a: by_halves(True, find_first_one)(~a)),
    "s_ff1_i32_b32": (32, lambda a: (find_first_one(a), None)),
    "s_ff1_i32_b64": (64, by_halves(True, find_first_one)),
    "s_flbit_i32_b32": (32, lambda a: (find_first_high(a), None)),
    "s_flbit_i32_b64": (64, by_halves(False, find_first_high)),
    "s_flbit_i32": (32, lambda a: (find_sign_change(a), None)),
    "s_flbit_i32_i64": (64, sign_change_64),
    "s_sext_i32_i8": (32, extend(8)),
    "s_sext_i32_i16": (32, extend(16)),
    "s_abs_i32": (32, lambda a: nonzero(np.abs(signed(a)).view(u32))),
}

COMPARES: dict[str, Callable] = {
    "s_cmp_eq_u32": lambda a, b: a == b,
    "s_cmp_eq_i32": lambda a, b: a == b,
    "s_cmp_lg_u32": lambda a, b: a != b,
    "s_cmp_lg_i32": lambda a, b: a != b,
    "s_cmp_eq_u64": lambda a, b: a == b,
    "s_cmp_lg_u64": lambda a, b: a != b,
    "s_bitcmp0_b32": lambda a, b: (a >> (b & u32(31)) & u32(1)) == 0,
    "s_bitcmp1_b32": lambda a, b: (a >> (b & u32(31)) & u32(1)) == 1,
    "s_bitcmp0_b64": lambda a, b: (a >> (b & u32(63)).astype(u64) & u64(1)) == 0,
    "s_bitcmp1_b64": lambda a, b: (a >> (b & u32(63)).astype(u64) & u64(1)) == 1,
}
for _name, _function in {
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
}.items():
    COMPARES[f"s_cmp_{_name}_u32"] = _function
    COMPARES[f"s_cmp_{_name}_i32"] = lambda a, b, f=_function: f(signed(a), signed(b))
