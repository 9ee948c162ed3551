"""Sparse matrices, and gfx950's 8-, 6- and 4-bit ones with and without scales: small whole numbers
whose products and sums f32 has exactly, so that both arithmetics must give the exact result.

Formats are read here from their definitions (OCP 8-bit Floating Point Specification; OCP
Microscaling Formats 1.0, section 5); layouts from AMD's matrix instruction calculator and, for
f8f6f4, from the CDNA4 ISA manual, "8-bit and Smaller Matrix Operations and Layouts".
"""

from __future__ import annotations

import numpy as np
import pytest
from emulator_support.matrix import LANES, execute, registers

# Name: bits, bits of exponent and fraction, bias; special patterns are not used here.
FORMATS = {
    "f16": (16, 5, 10, 15),
    "bf16": (16, 8, 7, 127),
    "fp8": (8, 4, 3, 7),
    "bf8": (8, 5, 2, 15),
    "fp8 fnuz": (8, 4, 3, 8),
    "bf8 fnuz": (8, 5, 2, 16),
    "fp6": (6, 2, 3, 1),
    "bf6": (6, 3, 2, 3),
    "fp4": (4, 2, 1, 1),
}
NUMBERS = np.array([0.0, 1.0, -1.0, 2.0, -2.0, 3.0, 0.5, -1.5])
MODES = ("exact", "fast")


def bits_of(numbers: np.ndarray, form: str) -> np.ndarray:
    """Raw bits of numbers among `NUMBERS`: found by decoding each pattern of the format."""
    if form == "i8":
        return numbers.astype(np.int8).view(np.uint8).astype(np.uint64)
    width, exponent, fraction, bias = FORMATS[form]
    table = {}
    for raw in range(1 << width):
        field, digits = raw >> fraction & (1 << exponent) - 1, raw & (1 << fraction) - 1
        value = (digits / 2**fraction + (field > 0)) * 2.0 ** (max(field, 1) - bias)
        table.setdefault(-value if raw >> width - 1 and value else value, raw)
    return np.array([table[number] for number in numbers.ravel()], np.uint64).reshape(numbers.shape)


def pack(per_lane: np.ndarray, form: str) -> np.ndarray:
    """[lane, element] → [register, lane]: elements side by side, low bits first."""
    width = 8 if form == "i8" else FORMATS[form][0]
    result = np.zeros((per_lane.shape[1] * width // 32, LANES), np.uint32)
    for lane, elements in enumerate(bits_of(per_lane, form)):
        whole = sum(int(raw) << width * number for number, raw in enumerate(elements))
        for register in range(len(result)):
            result[register, lane] = whole >> 32 * register & 0xFFFFFFFF
    return result


def unpack_d(found: np.ndarray, m: int, is_integer: bool) -> np.ndarray:
    """[row, column] of D: 16 × 16 and 32 × 32 layouts."""
    values = found.view(np.int32 if is_integer else np.float32)
    d = np.zeros((m, m))
    for register in range(len(values)):
        for lane in range(LANES):
            row = register // 4 * 8 + lane // 32 * 4 if m == 32 else lane // 16 * 4
            d[row + register % 4, lane % m] = values[register, lane]
    return d


def span(first: int, count: int) -> str:
    return f"v[{first}:{first + count - 1}]"


# -- sparse ----------------------------------------------------------------------------------------

# Target, mnemonic, size, k, format of A and B, modifiers and the first bit of the indices there.
SPARSE = [
    ("gfx942", "v_smfmac_f32_16x16x32_f16", 16, 32, "f16", "", 0),
    ("gfx942", "v_smfmac_f32_16x16x32_f16", 16, 32, "f16", "abid:3", 24),
    ("gfx942", "v_smfmac_f32_16x16x32_f16", 16, 32, "f16", "cbsz:1 abid:3", 0),
    ("gfx942", "v_smfmac_f32_32x32x16_f16", 32, 16, "f16", "abid:1", 8),
    ("gfx942", "v_smfmac_f32_16x16x32_bf16", 16, 32, "bf16", "abid:2", 16),
    ("gfx942", "v_smfmac_f32_32x32x16_bf16", 32, 16, "bf16", "", 0),
    ("gfx942", "v_smfmac_i32_16x16x64_i8", 16, 64, "i8", "abid:1", 16),
    ("gfx942", "v_smfmac_i32_32x32x32_i8", 32, 32, "i8", "", 0),
    ("gfx942", "v_smfmac_f32_16x16x64_fp8_fp8", 16, 64, "fp8 fnuz", "", 0),
    ("gfx942", "v_smfmac_f32_32x32x32_bf8_bf8", 32, 32, "bf8 fnuz", "abid:1", 16),
    ("gfx950", "v_smfmac_f32_16x16x64_f16", 16, 64, "f16", "abid:1", 16),
    ("gfx950", "v_smfmac_f32_32x32x32_bf16", 32, 32, "bf16", "", 0),
    ("gfx950", "v_smfmac_i32_16x16x128_i8", 16, 128, "i8", "", 0),
    ("gfx950", "v_smfmac_f32_32x32x64_fp8_fp8", 32, 64, "fp8", "", 0),
    ("gfx950", "v_smfmac_f32_16x16x128_bf8_bf8", 16, 128, "bf8", "", 0),
]


@pytest.mark.parametrize(("target", "mnemonic", "m", "k", "form", "modifiers", "shift"), SPARSE)
def test_sparse(target: str, mnemonic: str, m: int, k: int, form: str, modifiers, shift) -> None:
    """Two of each four consecutive k of A are there; a lane has `k / groups` consecutive k."""
    rng = np.random.default_rng(11)
    some = NUMBERS[:6] if form == "i8" else NUMBERS
    a, b = np.zeros((m, k)), rng.choice(some, (k, m))
    share = k * m // LANES  # of B in a lane
    held = np.zeros((LANES, share // 2))
    indices = np.zeros(LANES, np.uint64)
    for lane in range(LANES):
        for group in range(share // 4):
            first, second = rng.choice(4, 2, replace=False)
            at = lane // m * share + 4 * group
            values = rng.choice(some, 2)
            a[lane % m, at + first], a[lane % m, at + second] = values
            held[lane, 2 * group : 2 * group + 2] = values
            indices[lane] |= np.uint64((first | second << 2) << 4 * group + shift)
    lanes_b = np.array(
        [b[lane // m * share : (lane // m + 1) * share, lane % m] for lane in range(LANES)]
    )
    rows_a, rows_b = pack(held, form), pack(lanes_b, form)
    # Other sets of indices hold what would be seen.
    used = np.uint64((1 << share) - 1 << shift) & np.uint64(0xFFFFFFFF)
    indices = (indices & used) | (np.uint64(0x9E4E4E9E) & ~used)
    count = m * m // LANES
    c = rng.integers(-8, 8, (count, LANES))
    c = (c.astype(np.int32) if form == "i8" else c.astype(np.float32)).view(np.uint32)
    text = (
        f"{mnemonic} {span(64, count)}, {span(0, len(rows_a))}, {span(8, len(rows_b))}, v16"
        f" {modifiers}"
    )
    loaded = registers("v", 0, len(rows_a)) + registers("v", 8, len(rows_b))
    loaded += ("v16", *registers("v", 64, count))
    values = np.concatenate([rows_a, rows_b, indices[None].astype(np.uint32), c])
    wanted = a @ b + unpack_d(c, m, form == "i8")
    for mode in MODES:
        found = execute(text, target, loaded, values, registers("v", 64, count), mfma=mode)
        assert np.array_equal(unpack_d(found, m, form == "i8"), wanted), mode


# -- f8f6f4 ----------------------------------------------------------------------------------------

CODES = {"fp8": 0, "bf8": 1, "fp6": 2, "bf6": 3, "fp4": 4}
PAIRS = [
    *((form, form) for form in CODES),
    *(("fp8", "bf8"), ("fp6", "fp4"), ("bf6", "fp6"), ("fp8", "fp4"), ("bf6", "bf8")),
]


def k_of(lane: int, element: int, m: int, in_runs: bool) -> int:
    """8-bit operands: 16 consecutive k of each group of lanes, then 16 more; others: 32 at once."""
    group = lane // m
    if not in_runs:
        return 32 * group + element
    return element // 16 * (16 * LANES // m) + 16 * group + element % 16


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
@pytest.mark.parametrize("m", [16, 32])
@pytest.mark.parametrize("scaled", [False, True])
def test_narrow(pair: tuple[str, str], m: int, scaled: bool) -> None:
    rng = np.random.default_rng(13)
    k = 128 if m == 16 else 64
    a, b = rng.choice(NUMBERS, (m, k)), rng.choice(NUMBERS, (m, k))
    row, rows = np.arange(LANES)[:, None] % m, []
    for x, form in zip((a, b), pair, strict=True):
        in_runs = FORMATS[form][0] == 8
        spots = np.array([[k_of(lane, e, m, in_runs) for e in range(32)] for lane in range(LANES)])
        rows.append(pack(x[row, spots], form))
    # A scale a row and 32 consecutive k: in byte 2 of A's dword and byte 1 of B's.
    exponents = rng.integers(-2, 3, (2, m, k // 32)) if scaled else np.zeros((2, m, k // 32), int)
    scales = [
        np.array([e[lane % m, lane // m] + 127 for lane in range(LANES)], np.uint32)
        for e in exponents
    ]
    words = [scales[0] << 16 | 0x55005555, scales[1] << 8 | 0xAAAA00AA]
    count = m * m // LANES
    size = f"{m}x{m}x{k}"
    operands = f"{span(64, count)}, {span(0, len(rows[0]))}, {span(8, len(rows[1]))}, 2.0"
    formats = f"cbsz:{CODES[pair[0]]} blgp:{CODES[pair[1]]}"
    if scaled:
        select = "op_sel:[0,1,0] op_sel_hi:[1,0,0]"
        text = f"v_mfma_scale_f32_{size}_f8f6f4 {operands}, v16, v17 {select} {formats}"
    else:
        text = f"v_mfma_f32_{size}_f8f6f4 {operands} {formats}"
    loaded = registers("v", 0, len(rows[0])) + registers("v", 8, len(rows[1])) + ("v16", "v17")
    values = np.concatenate([*rows, np.array(words, np.uint32)])
    factor = [np.repeat(2.0**e, 32, axis=1) for e in exponents]
    wanted = (a * factor[0]) @ (b * factor[1]).T + 2
    for mode in MODES:
        found = execute(text, "gfx950", loaded, values, registers("v", 64, count), mfma=mode)
        assert np.array_equal(unpack_d(found, m, False), wanted), mode


@pytest.mark.parametrize("mode", MODES)
def test_a_scale_that_is_no_number(mode: str) -> None:
    """255 is NaN: for its row and its 32 k, whatever is there."""
    ones = pack(np.ones((LANES, 32)), "fp4")
    scale = np.full(LANES, 127, np.uint32)
    bad = scale.copy()
    bad[5] = 255  # row 5, the first 32 k
    text = (
        "v_mfma_scale_f32_16x16x128_f8f6f4 v[64:67], v[0:3], v[8:11], 0, v16, v17"
        " op_sel_hi:[0,0,0] cbsz:4 blgp:4"
    )
    loaded = registers("v", 0, 4) + registers("v", 8, 4) + ("v16", "v17")
    values = np.concatenate([ones, ones, bad[None], scale[None]])
    found = execute(text, "gfx950", loaded, values, registers("v", 64, 4), mfma=mode)
    d = unpack_d(found, 16, False)
    assert np.isnan(d[5]).all()
    assert (np.delete(d, 5, 0) == 128).all()


MIXED = [(a, b, size) for a, b in (("fp8", "bf8"), ("bf8", "fp8")) for size in ((16, 32), (32, 16))]


@pytest.mark.parametrize("target", ["gfx942", "gfx950"])
@pytest.mark.parametrize(("first", "second", "size"), MIXED)
def test_mixed_bytes(target: str, first: str, second: str, size: tuple[int, int]) -> None:
    """fp8 with bf8: FNUZ formats on gfx942, OCP's on gfx950."""
    rng = np.random.default_rng(17)
    m, k = size
    kind = " fnuz" if target == "gfx942" else ""
    a, b = rng.choice(NUMBERS, (m, k)), rng.choice(NUMBERS, (m, k))
    lanes = range(LANES)
    shares = [np.array([x[lane % m, 8 * (lane // m) :][:8] for lane in lanes]) for x in (a, b)]
    rows = [pack(x, form + kind) for x, form in zip(shares, (first, second), strict=True)]
    count = m * m // LANES
    text = f"v_mfma_f32_{m}x{m}x{k}_{first}_{second} {span(64, count)}, v[0:1], v[2:3], 0"
    values = np.concatenate(rows)
    for mode in MODES:
        stored = registers("v", 64, count)
        found = execute(text, target, registers("v", 0, 4), values, stored, mfma=mode)
        assert np.array_equal(unpack_d(found, m, False), a @ b.T), mode
