"""How undefined bits spread through arithmetic: a shadow bit is 1 where a bit's value is unknown.

The rules are those of bit-precise memory checkers (Seward, Nethercote: "Using Valgrind to detect
undefined value errors with bit-precision", USENIX 2005): logic and shifts are exact, sums spread
upwards from the lowest undefined bit, everything else is undefined as a whole if any bit of a
source is. Sources are arrays of u64, one for each lane, of the element's width.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

U64 = np.uint64
ALL = U64(0xFFFF_FFFF_FFFF_FFFF)
ALL_32 = 0xFFFF_FFFF
ZERO = U64(0)
WIDTHS = {"half": 16, "i16": 16, "i32": 32, "float": 32, "i64": 64, "double": 64, "mask": 64}

Bits = np.ndarray
# Shadow bits of the sources, their values (None where not known), the result's width.
Rule = Callable[[list[Bits], "list[Bits | None]", int], Bits]


def ones(width: int) -> np.uint64:
    return ALL if width >= 64 else U64((1 << width) - 1)


def _or_else(value: Bits | None, default: np.uint64) -> Bits:
    return np.array([default], U64) if value is None else value


def _and(t: list[Bits], v: list[Bits | None], width: int) -> Bits:
    a, b = _or_else(v[0], ALL), _or_else(v[1], ALL)
    return (t[0] & t[1]) | (t[0] & b) | (t[1] & a)


def _and_not(t: list[Bits], v: list[Bits | None], width: int) -> Bits:
    return _and(t, [v[0], None if v[1] is None else ~v[1]], width)


def _or(t: list[Bits], v: list[Bits | None], width: int) -> Bits:
    a, b = _or_else(v[0], ZERO), _or_else(v[1], ZERO)
    return (t[0] & t[1]) | (t[0] & ~b) | (t[1] & ~a)


def _or_not(t: list[Bits], v: list[Bits | None], width: int) -> Bits:
    return _or(t, [v[0], None if v[1] is None else ~v[1]], width)


def _union(t: list[Bits], v: list[Bits | None], width: int) -> Bits:
    return np.bitwise_or.reduce(np.broadcast_arrays(*t))


def _whole(t: list[Bits], v: list[Bits | None], width: int) -> Bits:
    return np.where(_union(t, v, width) != 0, ones(width), ZERO)


def _upwards(t: list[Bits], v: list[Bits | None], width: int) -> Bits:
    """Carries and borrows go up: all bits from the lowest undefined one on."""
    both = _union(t, v, width)
    return (both | (~both + U64(1))) & ones(width)


def _low_24(t: list[Bits], v: list[Bits | None], width: int) -> Bits:
    """Products of 24-bit numbers; what stands above them in the sources is not looked at."""
    low = U64(0xFF_FFFF)
    factors = [part & low for part in t[:2]]
    return _upwards([*factors, *t[2:]], v, width)


def _shift(reverse: bool, move: Callable[[Bits, Bits], Bits]) -> Rule:
    def rule(t: list[Bits], v: list[Bits | None], width: int) -> Bits:
        data, amount = (1, 0) if reverse else (0, 1)
        by = v[amount]
        if by is None or (t[amount] & U64(width - 1)).any():
            return _whole(t, v, width)
        return move(t[data], by & U64(width - 1)) & ones(width)

    return rule


def _arithmetic(bits: Bits, by: Bits) -> Bits:
    """The undefined sign is copied down. Elements are 32 bits wide."""
    signed = (bits & U64(0xFFFF_FFFF)).astype(np.uint32).view(np.int32)
    return (signed >> by.astype(np.int32)).view(np.uint32).astype(U64)


LEFT = np.left_shift
RIGHT = np.right_shift


def _field(t: list[Bits], v: list[Bits | None], width: int) -> Bits:
    """v_bfe: a field whose sign, if it is copied, is the field's highest bit."""
    if v[1] is None or v[2] is None or t[1].any() or t[2].any():
        return _whole(t, v, width)
    start, size = v[1] & U64(31), v[2] & U64(31)
    return (t[0] >> start) & ((U64(1) << size) - U64(1))


def _signed_field(t: list[Bits], v: list[Bits | None], width: int) -> Bits:
    bits = _field(t, v, width)
    if v[2] is None:
        return bits
    size = v[2] & U64(31)
    sign = (bits >> (np.maximum(size, U64(1)) - U64(1))) & U64(1)
    return np.where(sign != 0, bits | (ones(width) ^ ((U64(1) << size) - U64(1))), bits)


def _then(first: Rule, second: Rule) -> Rule:
    """(a first b) second c; the middle value is not known."""

    def rule(t: list[Bits], v: list[Bits | None], width: int) -> Bits:
        return second([first(t[:2], v[:2], width), t[2]], [None, v[2]], width)

    return rule


def _select(t: list[Bits], v: list[Bits | None], width: int) -> Bits:
    """v_cndmask: the second source where the mask's bit is set."""
    mask = v[2]
    if mask is None:
        return _whole(t, v, width)
    chosen = np.where(mask != 0, *np.broadcast_arrays(t[1], t[0]))
    return np.where(t[2] != 0, ones(width), chosen)


def _bit_select(t: list[Bits], v: list[Bits | None], width: int) -> Bits:
    """v_bfi: the second source where the first one's bit is set, else the third."""
    if v[0] is None:
        return _union(t, v, width)
    return (v[0] & t[1]) | (~v[0] & t[2]) | t[0]


def _permute(t: list[Bits], v: list[Bits | None], width: int) -> Bits:
    """v_perm: bytes of the second source (0-3), the first (4-7), signs, 0 and 255."""
    selector = v[2]
    if selector is None or t[2].any():
        return _whole(t, v, width)
    both = (t[0] << U64(32)) | (t[1] & U64(0xFFFF_FFFF))
    result = np.zeros(np.broadcast(both, selector).shape, U64)
    for byte in range(4):
        number = (selector >> U64(8 * byte)) & U64(0xFF)
        plain = (both >> (np.minimum(number, U64(7)) * U64(8))) & U64(0xFF)
        shift = np.minimum(number - U64(8), U64(3)) * U64(16) + U64(15)
        sign = np.where((both >> shift) & U64(1) != 0, U64(0xFF), ZERO)
        value = np.where(number < 8, plain, np.where(number < 12, sign, ZERO))
        result |= value << U64(8 * byte)
    return result


def _align(t: list[Bits], v: list[Bits | None], width: int) -> Bits:
    """v_alignbit: two registers shifted right."""
    if v[2] is None or t[2].any():
        return _whole(t, v, width)
    return (((t[0] << U64(32)) | t[1]) >> (v[2] & U64(31))) & ones(width)


def _insert(t: list[Bits], v: list[Bits | None], width: int) -> Bits:
    """The encoder's fly_insert: (old & ~mask) | (value << by & mask), old being the last."""
    value, by, mask, old = t[0], v[1], v[2], t[-1]
    if by is None or mask is None:
        return _whole(t, v, width)
    return ((value << by) & mask) | (old & ~mask)


def _signs(t: list[Bits], v: list[Bits | None], width: int) -> Bits:
    """The encoder's changes of signs: (value & keep) ^ flip."""
    return t[0] if v[1] is None else t[0] & v[1]


def _pack(first: int, second: int) -> Rule:
    def rule(t: list[Bits], v: list[Bits | None], width: int) -> Bits:
        low, high = (t[0] >> U64(first)) & U64(0xFFFF), (t[1] >> U64(second)) & U64(0xFFFF)
        return low | high << U64(16)

    return rule


def _halves(t: list[Bits], v: list[Bits | None], width: int) -> Bits:
    """Packed 16-bit arithmetic: each half by itself."""
    both = _union(t, v, width)
    low = np.where(both & U64(0xFFFF) != 0, U64(0xFFFF), ZERO)
    return low | np.where(both & U64(0xFFFF_0000) != 0, U64(0xFFFF_0000), ZERO)


def _byte(number: int) -> Rule:
    """v_cvt_f32_ubyteN looks at one byte."""
    return lambda t, v, width: _whole([(t[0] >> U64(8 * number)) & U64(0xFF)], v, width)


_PATTERNS: tuple[tuple[str, Rule], ...] = (
    (r"[sv]_(and|nand)_b(16|32|64)|s_and_saveexec_b(32|64)", _and),
    (r"s_andn2_b(32|64)|s_andn2_saveexec_b(32|64)|s_and_not1\w*", _and_not),
    (r"[sv]_(or|nor)_b(16|32|64)|s_or_saveexec_b(32|64)", _or),
    (r"s_orn2_\w+|s_or_not1\w*", _or_not),
    (r"[sv]_(xor|xnor|not|mov|movk)_[bi](16|32|64)|s_xor_saveexec_b(32|64)", _union),
    (r"v_accvgpr_(read|write|mov)_b32|v_xor3_b32", _union),
    (r"v_(add|sub)(rev)?(_nc)?_[ui](16|32|64)|v_add3_u32|[sv]_mul_lo_u(16|32)", _upwards),
    (r"v_(add|addc|sub|subb|subrev|subbrev|add_ci|sub_ci|subrev_ci)_co(_ci)?_u32", _upwards),
    (r"s_(add|addc|sub|subb|mul)_[iu](32|64)|s_mulk_i32|s_addk_i32|s_(add|sub)_nc_u64", _upwards),
    (r"v_mad_(co_)?[ui]64_[ui]32", _upwards),
    (r"v_(mul|mad)_[ui]32_[ui]24", _low_24),
    (r"v_lshlrev_b(16|32|64)", _shift(True, LEFT)),
    (r"v_lshrrev_b(16|32|64)", _shift(True, RIGHT)),
    (r"v_ashrrev_i32", _shift(True, _arithmetic)),
    (r"s_lshl_b(32|64)", _shift(False, LEFT)),
    (r"s_lshr_b(32|64)", _shift(False, RIGHT)),
    (r"s_ashr_i32", _shift(False, _arithmetic)),
    (r"[v]_bfe_u32", _field),
    (r"[v]_bfe_i32", _signed_field),
    (r"v_lshl_or_b32", _then(_shift(False, LEFT), _or)),
    (r"v_lshl_add_u(32|64)", _then(_shift(False, LEFT), _upwards)),
    (r"v_and_or_b32", _then(_and, _or)),
    (r"v_or3_b32", _then(_or, _or)),
    (r"v_add_lshl_u32", _then(_upwards, _shift(False, LEFT))),
    (r"v_cndmask_b(16|32)", _select),
    (r"v_bfi_b32", _bit_select),
    (r"v_perm_b32", _permute),
    (r"v_alignbit_b32", _align),
    (r"fly_insert", _insert),
    (r"fly_sign_(32|64)", _signs),
    (r"s_pack_ll_b32_b16", _pack(0, 0)),
    (r"s_pack_lh_b32_b16", _pack(0, 16)),
    (r"s_pack_hh_b32_b16", _pack(16, 16)),
    (r"s_pack_hl_b32_b16", _pack(16, 0)),
    (r"(v|fly_flush_\w+)_pk_\w*16", _halves),
    *((rf"v_cvt_f32_ubyte{number}", _byte(number)) for number in range(4)),
)
_COMPILED = [(re.compile(pattern), rule) for pattern, rule in _PATTERNS]


def rule_of(mnemonic: str) -> Rule:
    """How undefined bits spread through an operation."""
    found = (rule for pattern, rule in _COMPILED if pattern.fullmatch(mnemonic))
    return next(found, _whole)
