"""Scalar ALU instructions: what each computes, and what it leaves in SCC.

Functions take unsigned arrays [n] (of 32 or 64 bits as the mnemonic says) and give `(result, scc)`;
`scc` is None where SCC stays.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from oracle.text import Instruction
from oracle.valu import find_first_high, find_first_one, find_sign_change, reverse_bits
from oracle.waves import EXEC, M0, Waves

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
    """S_BFE's pieces: offset and width out of S1's bits 4:0 (5:0) and 22:16."""
    bits = width_of(a)
    return control & u32(bits - 1), np.minimum(control >> u32(16) & u32(127), u32(bits))


def low_bits(a, count):
    """The lowest `count` bits of `a`, where count may be all of them."""
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
    """Minimum or maximum: SCC says that the first one was chosen."""
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
    """S_WQM: each group of four bits becomes all ones where any is one."""
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
    """A 64-bit search by its two dwords: -1 where neither half has one."""

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


def put(w: Waves, ins: Instruction, value, scc) -> None:
    target = ins.operands[0].index
    if value.dtype == u64:
        w.put_s64(target, value)
    else:
        w.put_s32(target, value)
    if scc is not None:
        w.put_scc(np.broadcast_to(scc, w.n))


def build(ins: Instruction) -> Callable[[Waves], None] | None:
    name, operands = ins.mnemonic, ins.operands
    if name in SOP2:
        left, right, function = SOP2[name]
        return lambda w: put(
            w,
            ins,
            *function(w.read_scalar(operands[1], left), w.read_scalar(operands[2], right)),
        )
    if name in SOP1:
        width, one = SOP1[name]
        return lambda w: put(w, ins, *one(w.read_scalar(operands[1], width)))
    if name in COMPARES:
        compare = COMPARES[name]
        left = 64 if name.endswith("64") else 32
        right = 32 if name.startswith("s_bitcmp") else left
        return lambda w: w.put_scc(
            compare(w.read_scalar(operands[0], left), w.read_scalar(operands[1], right))
        )
    if match := re.fullmatch(r"s_(\w+)_saveexec_b64", name):
        return _save_exec(ins, match[1])
    if match := re.fullmatch(r"s_(andn[12]|orn[12])_wrexec_b64", name):
        return _save_exec(ins, match[1], result_to_target=True)
    function = SPECIAL.get(name) or (_compare_constant if name.startswith("s_cmpk_") else None)
    return (lambda w: function(w, ins)) if function else None


def _save_exec(ins: Instruction, name: str, result_to_target: bool = False):
    """EXEC = S0 op EXEC; the old EXEC (the new one for wrexec) goes to the destination."""
    if name in ("andn1", "orn1"):
        combine = LOGIC["andn2" if name == "andn1" else "orn2"]

        def function(source, old):
            return combine(old, source)
    else:
        function = LOGIC[name]
    target, source = ins.operands

    def step(w: Waves) -> None:
        old = w.s64(EXEC).copy()
        new = function(w.read_scalar(source, 64), old)
        w.put_s64(EXEC, new)
        w.put_s64(target.index, new if result_to_target else old)
        w.put_scc(np.broadcast_to(new != 0, w.n))

    return step


def _add_carry(w: Waves, ins: Instruction) -> None:
    a, b = (w.read_scalar(o, 32).astype(u64) for o in ins.operands[1:])
    if ins.mnemonic == "s_addc_u32":
        total = a + b + w.get_scc()
        put(w, ins, total.astype(u32), total > 0xFFFFFFFF)
    else:
        b = b + w.get_scc()
        put(w, ins, (a - b).astype(u32), b > a)


def _select(w: Waves, ins: Instruction) -> None:
    width = 64 if ins.mnemonic.endswith("b64") else 32
    a, b = (w.read_scalar(o, width) for o in ins.operands[1:])
    put(w, ins, np.where(w.get_scc(), a, b), None)


def _move_if(w: Waves, ins: Instruction) -> None:
    width = 64 if ins.mnemonic.endswith("b64") else 32
    old, new = (w.read_scalar(o, width) for o in ins.operands)
    put(w, ins, np.where(w.get_scc(), new, old), None)


def _constant16(ins: Instruction) -> int:
    value = int(ins.operands[1].value) & 0xFFFF
    return value - 0x10000 if value & 0x8000 else value


def _move_constant(w: Waves, ins: Instruction) -> None:
    value = np.full(w.n, _constant16(ins) & 0xFFFFFFFF, u32)
    if ins.mnemonic == "s_cmovk_i32":
        value = np.where(w.get_scc(), value, w.read_scalar(ins.operands[0], 32))
    put(w, ins, value, None)


def _arithmetic_constant(w: Waves, ins: Instruction) -> None:
    old, value = w.read_scalar(ins.operands[0], 32), np.array([_constant16(ins)], i32).view(u32)
    function = SOP2["s_add_i32" if ins.mnemonic == "s_addk_i32" else "s_mul_i32"][2]
    put(w, ins, *function(old, value))


def _compare_constant(w: Waves, ins: Instruction) -> None:
    unsigned = ins.mnemonic.endswith("u32")
    value = int(ins.operands[1].value) & 0xFFFF if unsigned else _constant16(ins) & 0xFFFFFFFF
    compare = COMPARES[ins.mnemonic.replace("cmpk", "cmp")]
    w.put_scc(compare(w.read_scalar(ins.operands[0], 32), np.array([value], u32)))


def _set_bit(w: Waves, ins: Instruction) -> None:
    kind, width = (u64, 64) if ins.mnemonic.endswith("b64") else (u32, 32)
    old = w.read_scalar(ins.operands[0], width)
    bit = kind(1) << (w.read_scalar(ins.operands[1], 32) & u32(width - 1)).astype(kind)
    put(w, ins, old | bit if "bitset1" in ins.mnemonic else old & ~bit, None)


def _replicate(w: Waves, ins: Instruction) -> None:
    source = w.read_scalar(ins.operands[1], 32).astype(u64)
    result = np.zeros_like(source)
    for k in range(32):
        result |= (source >> u64(k) & u64(1)) * u64(3) << u64(2 * k)
    put(w, ins, result, None)


def _relative(w: Waves, ins: Instruction) -> None:
    """S_MOVRELS, S_MOVRELD: a register number plus M0, which may differ from wave to wave."""
    wide = ins.mnemonic.endswith("b64")
    offset = w.s32(M0).astype(i64)
    rows = w.row_numbers()
    target, source = (np.full(w.n, o.index) for o in ins.operands)
    if "movrels" in ins.mnemonic:
        source = source + offset
    else:
        target = target + offset
    for part in range(2 if wide else 1):
        w.sgpr[target + part, rows] = w.sgpr[source + part, rows]
    w.select(w.rows)


SPECIAL: dict[str, Callable[[Waves, Instruction], None]] = {
    "s_addc_u32": _add_carry,
    "s_subb_u32": _add_carry,
    "s_cselect_b32": _select,
    "s_cselect_b64": _select,
    "s_cmov_b32": _move_if,
    "s_cmov_b64": _move_if,
    "s_movk_i32": _move_constant,
    "s_cmovk_i32": _move_constant,
    "s_addk_i32": _arithmetic_constant,
    "s_mulk_i32": _arithmetic_constant,
    "s_bitset0_b32": _set_bit,
    "s_bitset1_b32": _set_bit,
    "s_bitset0_b64": _set_bit,
    "s_bitset1_b64": _set_bit,
    "s_bitreplicate_b64_b32": _replicate,
    "s_movrels_b32": _relative,
    "s_movrels_b64": _relative,
    "s_movreld_b32": _relative,
    "s_movreld_b64": _relative,
}
