"""Propagation of undefined bits through arithmetic: a shadow bit is 1 if a bit's value is unknown.

The rules are those of bit-precise memory checkers (Seward, Nethercote: "Using Valgrind to detect
undefined value errors with bit-precision", USENIX 2005): logic and shifts are exact, in sums
undefinedness spreads upwards from the lowest undefined bit, and any other result is wholly
undefined if any bit of a source is. Sources are arrays of u64, one for each lane, of the element's
width.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

U64 = np.uint64
ALL = U64(0xFFFF_FFFF_FFFF_FFFF)
ALL_32 = 0xFFFF_FFFF
ZERO = U64(0)
WIDTHS = {"half": 16, "i16": 16, "i32": 32, "float": 32, "i64": 64, "double": 64, "mask": 64}

Bits = np.ndarray
# (shadow bits of the sources, their values or None if unknown, the result's width) → shadow bits
Rule = Callable[[list[Bits], "list[Bits | None]", int], Bits]


def ones(width: int) -> np.uint64:
    return ALL if width >= 64 else U64((1 << width) - 1)


def _or_else(value: Bits | None, default: np.uint64) -> Bits:
    return np.array([default], U64) if value is None else value


def and_(t: list[Bits], v: list[Bits | None], width: int) -> Bits:
    a, b = _or_else(v[0], ALL), _or_else(v[1], ALL)
    return (t[0] & t[1]) | (t[0] & b) | (t[1] & a)


def and_not(t: list[Bits], v: list[Bits | None], width: int) -> Bits:
    return and_(t, [v[0], None if v[1] is None else ~v[1]], width)


def or_(t: list[Bits], v: list[Bits | None], width: int) -> Bits:
    a, b = _or_else(v[0], ZERO), _or_else(v[1], ZERO)
    return (t[0] & t[1]) | (t[0] & ~b) | (t[1] & ~a)


def or_not(t: list[Bits], v: list[Bits | None], width: int) -> Bits:
    return or_(t, [v[0], None if v[1] is None else ~v[1]], width)


def union(t: list[Bits], v: list[Bits | None], width: int) -> Bits:
    return np.bitwise_or.reduce(np.broadcast_arrays(*t))


def whole(t: list[Bits], v: list[Bits | None], width: int) -> Bits:
    return np.where(union(t, v, width) != 0, ones(width), ZERO)


def upwards(t: list[Bits], v: list[Bits | None], width: int) -> Bits:
    """Carries and borrows propagate up: all bits from the lowest undefined one on."""
    both = union(t, v, width)
    return (both | (~both + U64(1))) & ones(width)


def low_24(t: list[Bits], v: list[Bits | None], width: int) -> Bits:
    """Products of 24-bit numbers; the sources' upper bits are ignored."""
    low = U64(0xFF_FFFF)
    factors = [part & low for part in t[:2]]
    return upwards([*factors, *t[2:]], v, width)


def shift(reverse: bool, move: Callable[[Bits, Bits], Bits], most: int | None = None) -> Rule:
    """`most`: the greatest amount, by default the width minus one."""

    def rule(t: list[Bits], v: list[Bits | None], width: int) -> Bits:
        data, amount = (1, 0) if reverse else (0, 1)
        by, used = v[amount], U64(width - 1 if most is None else most)
        if by is None or (t[amount] & used).any():
            return whole(t, v, width)
        return move(t[data], by & used) & ones(width)

    return rule


def arithmetic(width: int) -> Callable[[Bits, Bits], Bits]:
    """The undefined sign is copied down."""
    spare = U64(64 - width)

    def move(bits: Bits, by: Bits) -> Bits:
        signed = (bits << spare).view(np.int64)
        return (signed >> (by + spare).astype(np.int64).clip(0, 63)).view(U64)

    return move


LEFT = np.left_shift
RIGHT = np.right_shift


def field(t: list[Bits], v: list[Bits | None], width: int) -> Bits:
    """v_bfe_u32."""
    if v[1] is None or v[2] is None or ((t[1] | t[2]) & U64(31)).any():
        return whole(t, v, width)
    start, size = v[1] & U64(31), v[2] & U64(31)
    return (t[0] >> start) & ((U64(1) << size) - U64(1))


def signed_field(t: list[Bits], v: list[Bits | None], width: int) -> Bits:
    """v_bfe_i32: the field's highest bit, or the register's if the field extends past it, is copied
    upwards."""
    bits = field(t, v, width)
    if v[1] is None or v[2] is None or ((t[1] | t[2]) & U64(31)).any():
        return bits
    size = np.minimum(v[2] & U64(31), U64(32) - (v[1] & U64(31)))
    sign = (bits >> (np.maximum(size, U64(1)) - U64(1))) & U64(1)
    return np.where(sign != 0, bits | (ones(width) ^ ((U64(1) << size) - U64(1))), bits)


def then(first: Rule, second: Rule) -> Rule:
    """(a first b) second c; the intermediate value is unknown."""

    def rule(t: list[Bits], v: list[Bits | None], width: int) -> Bits:
        return second([first(t[:2], v[:2], width), t[2]], [None, v[2]], width)

    return rule


def select(t: list[Bits], v: list[Bits | None], width: int) -> Bits:
    """v_cndmask: the second source if the mask's bit is set."""
    mask = v[2]
    if mask is None:
        return whole(t, v, width)
    chosen = np.where(mask != 0, *np.broadcast_arrays(t[1], t[0]))
    return np.where(t[2] != 0, ones(width), chosen)


def bit_select(t: list[Bits], v: list[Bits | None], width: int) -> Bits:
    """v_bfi: the second source where the first one's bit is set, otherwise the third."""
    if v[0] is None:
        return union(t, v, width)
    return (v[0] & t[1]) | (~v[0] & t[2]) | t[0]


def permute(t: list[Bits], v: list[Bits | None], width: int) -> Bits:
    """v_perm: bytes of the second source (0-3), the first (4-7), signs, 0 and 255."""
    selector = v[2]
    if selector is None or t[2].any():
        return whole(t, v, width)
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


def align(unit: int) -> Rule:
    """v_alignbit, v_alignbyte: two registers shifted right by bits, or by bytes."""

    def rule(t: list[Bits], v: list[Bits | None], width: int) -> Bits:
        if v[2] is None or t[2].any():
            return whole(t, v, width)
        by = (v[2] & U64(32 // unit - 1)) * U64(unit)
        return (((t[0] << U64(32)) | t[1]) >> by) & ones(width)

    return rule


def insert(t: list[Bits], v: list[Bits | None], width: int) -> Bits:
    """The encoder's fly_insert: (old & ~mask) | (value << by & mask); old is the last source."""
    value, by, mask, old = t[0], v[1], v[2], t[-1]
    if by is None or mask is None:
        return whole(t, v, width)
    return ((value << by) & mask) | (old & ~mask)


def signs(t: list[Bits], v: list[Bits | None], width: int) -> Bits:
    """The encoder's sign changes: (value & keep) ^ flip."""
    return t[0] if v[1] is None else t[0] & v[1]


def pack(first: int, second: int) -> Rule:
    def rule(t: list[Bits], v: list[Bits | None], width: int) -> Bits:
        low, high = (t[0] >> U64(first)) & U64(0xFFFF), (t[1] >> U64(second)) & U64(0xFFFF)
        return low | high << U64(16)

    return rule


def halves(t: list[Bits], v: list[Bits | None], width: int) -> Bits:
    """Packed 16-bit arithmetic: each half separately."""
    both = union(t, v, width)
    low = np.where(both & U64(0xFFFF) != 0, U64(0xFFFF), ZERO)
    return low | np.where(both & U64(0xFFFF_0000) != 0, U64(0xFFFF_0000), ZERO)


def part(start: int, size: int) -> Rule:
    """Uses only a part of its source."""
    return lambda t, v, width: whole([(t[0] >> U64(start)) & ones(size)], v, width)


def extend(size: int, signed: bool) -> Rule:
    """The lowest bits, zero- or sign-extended."""

    def rule(t: list[Bits], v: list[Bits | None], width: int) -> Bits:
        bits = t[0] & ones(size)
        upper = ones(width) & ~ones(size)
        sign = (bits >> U64(size - 1)) & U64(1)
        return np.where((sign != 0) & signed, bits | upper, bits)

    return rule


def scalar_field(bits: int, signed: bool) -> Rule:
    """s_bfe: the second source has the offset in bits 4:0 (5:0) and the size in 22:16."""

    def rule(t: list[Bits], v: list[Bits | None], width: int) -> Bits:
        used = U64(0x7F0000 | (bits - 1))
        if v[1] is None or (t[1] & used).any():
            return whole(t, v, width)
        start = int(v[1][0]) & (bits - 1)
        size = min(int(v[1][0]) >> 16 & 0x7F, bits)
        if size == 0:
            return np.zeros(1, U64)
        # Above the register's end there are zeros, or copies of its sign.
        moved = extend(bits - start, signed)([t[0] >> U64(start)], [None], bits)
        return extend(size, signed)([moved], [None], bits) if size < bits else moved

    return rule


def placed(start: int, rule: Rule) -> Rule:
    """Shifts the 32-bit result of a rule up."""
    return lambda t, v, width: (rule(t, v, 32) << U64(start)) & ones(width)


def each_half(t: list[Bits], v: list[Bits | None], width: int) -> Bits:
    """Packs two values, each from its own source."""
    low, high = (np.where(bits != 0, U64(0xFFFF), ZERO) for bits in t[:2])
    return low | high << U64(16)


def each_byte(t: list[Bits], v: list[Bits | None], width: int) -> Bits:
    """Packs two values into the lowest bytes, each from its own source."""
    low, high = (np.where(bits != 0, U64(0xFF), ZERO) for bits in t[:2])
    return low | high << U64(8)


def saturated_bytes(t: list[Bits], v: list[Bits | None], width: int) -> Bits:
    """v_sat_pk_u8_i16: a byte of each half."""
    low, high = t[0] & U64(0xFFFF), t[0] >> U64(16)
    return each_byte([low, high], v, width)


def byte_into(t: list[Bits], v: list[Bits | None], width: int) -> Bits:
    """v_cvt_pk_u8, v_cvt_pkaccum_u8: inserts a byte into the old value, which is the last
    source."""
    if v[1] is None or (t[1] & U64(3)).any():
        return whole(t, v, width)
    shift = (v[1] & U64(3)) * U64(8)
    new = np.where(t[0] != 0, U64(0xFF), ZERO) << shift
    return new | (t[-1] & ~(U64(0xFF) << shift))


def reverse(t: list[Bits], v: list[Bits | None], width: int) -> Bits:
    """Reverses the bits."""
    bytes_ = np.ascontiguousarray(t[0]).view(np.uint8)
    flipped = np.packbits(np.unpackbits(bytes_, bitorder="little"), bitorder="big")
    return flipped.view(U64).byteswap() >> U64(64 - width)


def replicate(t: list[Bits], v: list[Bits | None], width: int) -> Bits:
    """s_bitreplicate: each bit twice."""
    return np.array([sum(3 << 2 * n for n in range(32) if int(t[0][0]) >> n & 1)], U64)


def set_bit(t: list[Bits], v: list[Bits | None], width: int) -> Bits:
    """s_bitset: the last source is the old value of the register."""
    if v[0] is None or (t[0] & U64(width - 1)).any():
        return whole(t, v, width)
    return t[-1] & ~(U64(1) << (v[0] & U64(width - 1)))


def test_bit(bits: int) -> Rule:
    """s_bitcmp: one bit of the first source."""

    def rule(t: list[Bits], v: list[Bits | None], width: int) -> Bits:
        if v[1] is None or (t[1] & U64(bits - 1)).any():
            return whole(t, v, width)
        return whole([(t[0] >> (v[1] & U64(bits - 1))) & U64(1)], v, width)

    return rule


def quads(packed: bool) -> Rule:
    """s_wqm, s_quadmask: whether any bit of four is set."""

    def rule(t: list[Bits], v: list[Bits | None], width: int) -> Bits:
        source = int(t[0][0])
        found = [n for n in range(width // 4) if source >> 4 * n & 15]
        return np.array([sum(1 << n if packed else 15 << 4 * n for n in found)], U64)

    return rule


def shifted_sum(by: int) -> Rule:
    """s_lshlN_add: the first source shifted left, plus the second."""
    return lambda t, v, width: upwards([t[0] << U64(by), t[1]], v, width)


def swapped_and(t: list[Bits], v: list[Bits | None], width: int) -> Bits:
    """~a & b."""
    return and_not([t[1], t[0]], [v[1], v[0]], width)


def swapped_or(t: list[Bits], v: list[Bits | None], width: int) -> Bits:
    """~a | b."""
    return or_not([t[1], t[0]], [v[1], v[0]], width)


def truth_table(table: int) -> Rule:
    """v_bitop3: a bit is undefined if undefined sources leave both results possible."""

    def rule(t: list[Bits], v: list[Bits | None], width: int) -> Bits:
        possible = [np.zeros(1, U64), np.zeros(1, U64)]
        for row in range(8):
            fits = np.array([ALL], U64)
            for bits, value, wanted in zip(t, v, (row >> 2, row >> 1, row), strict=True):
                if value is not None:
                    fits = fits & (bits | (value if wanted & 1 else ~value))
            possible[table >> row & 1] = possible[table >> row & 1] | fits
        return possible[0] & possible[1] & ones(width)

    return rule
