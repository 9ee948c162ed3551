"""gfx1250's own WMMA and SWMMAC: small whole numbers, whose sums are exact, in registers by the
layouts that docs/emulator.md names; and the layouts of matrix atoms.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from emulator_support.matrix import execute_wave32
from fly_dialect.atoms.amd import wmma

from .test_atom_layouts import KINDS, NAMES, found, held, matrices, words
from .test_matrix_narrow import FORMATS, bits_of

TARGET = "gfx1250"
MODES = ("exact", "fast")
BYTES = ("fp8", "bf8")
# Registers of the instruction.
A, B, C, INDEX, SCALE_A, SCALE_B = 0, 32, 64, 100, 104, 106


def width(form: str) -> int:
    return {"iu8": 8, "iu4": 4, "f32": 32}.get(form) or FORMATS[form][0]


def span(first: int, count: int) -> str:
    return f"v[{first}:{first + count - 1}]" if count > 1 else f"v{first}"


def raw_bits(numbers: np.ndarray, form: str) -> np.ndarray:
    if form == "f32":
        return numbers.astype(np.float32).view(np.uint32).astype(np.uint64)
    if form.startswith("iu"):
        return numbers.astype(np.int64).astype(np.uint64) & np.uint64((1 << width(form)) - 1)
    return bits_of(numbers, form)


def packed(elements: np.ndarray, form: str) -> np.ndarray:
    """[lane, element] → [register, lane]."""
    bits, rows = width(form), []
    for raw in raw_bits(elements, form):
        whole = sum(int(one) << bits * number for number, one in enumerate(raw))
        count = elements.shape[1] * bits // 32
        rows.append([whole >> 32 * register & 0xFFFFFFFF for register in range(count)])
    return np.array(rows, np.uint32).T


def spots(lane: int, k: int, run: int) -> list[int]:
    """The k of a lane's elements: runs alternate between lanes below and from 16 on."""
    upper, run = lane // 16, run or k // 2
    return [(e // run * 2 + upper) * run + e % run for e in range(k // 2)]


def run_of(form: str, block_scaled: bool = False) -> int:
    if form == "f32":
        return 0
    return {16: 8, 8: 16, 6: 32, 4: 32}[width(form)]


def dealt(matrix: np.ndarray, form: str) -> np.ndarray:
    """Registers of A, or of B given by columns: [row, k] → [register, lane]."""
    k = matrix.shape[1]
    lanes = [matrix[lane % 16, spots(lane, k, run_of(form))] for lane in range(32)]
    return packed(np.array(lanes), form)


def numbers(rng: np.random.Generator, form: str, shape: tuple[int, int]) -> np.ndarray:
    if form.startswith("iu"):
        return rng.integers(-3, 4, shape).astype(float)
    return rng.choice([0.0, 1.0, -1.0, 2.0, -2.0, 3.0], shape)


def result_of(found_words: np.ndarray, result: str) -> np.ndarray:
    """[register, lane] → D [row, column], of 16 rows for each eight registers of 32 bits."""
    if result in ("f16", "bf16"):
        halves = np.stack([found_words & 0xFFFF, found_words >> 16], 1).reshape(-1, 32)
        if result == "f16":
            values = halves.astype(np.uint16).view(np.float16).astype(float)
        else:
            values = (halves.astype(np.uint32) << np.uint32(16)).view(np.float32).astype(float)
    else:
        values = found_words.view(np.int32 if result == "i32" else np.float32).astype(float)
    rows = []
    for tile in range(len(values) // 8):
        part = values[8 * tile : 8 * tile + 8]
        rows += [part[:, :16], part[:, 16:]]
    return np.concatenate(rows)


def c_words(c: np.ndarray, result: str) -> np.ndarray:
    """The inverse."""
    rows = np.concatenate(
        [
            np.concatenate([c[16 * t : 16 * t + 8], c[16 * t + 8 : 16 * t + 16]], axis=1)
            for t in range(len(c) // 16)
        ]
    )
    if result in ("f16", "bf16"):
        raw = bits_of(rows, result).astype(np.uint32)
        return raw[0::2] | raw[1::2] << np.uint32(16)
    kind = np.int32 if result == "i32" else np.float32
    return np.ascontiguousarray(rows.astype(kind)).view(np.uint32)


def run(
    mnemonic: str,
    parts: dict[int, np.ndarray],
    c: np.ndarray,
    result: str,
    mfma: str,
    behind: str = "",
    modifiers: str = "",
    sparse: bool = False,
) -> np.ndarray:
    old = c_words(c, result)
    d = span(C, len(old))
    third = span(INDEX, len(parts[INDEX])) if sparse else d
    text = (
        f"  {mnemonic} {d}, {span(A, len(parts[A]))}, {span(B, len(parts[B]))}, {third}"
        f"{behind}{modifiers}"
    )
    given = {**parts, C: old}
    loaded = [first + n for first, rows in given.items() for n in range(len(rows))]
    values = np.concatenate(list(given.values()))
    stored = [C + n for n in range(len(old))]
    return result_of(execute_wave32(text, TARGET, loaded, values, stored, mfma), result)


# Mnemonic's tail: result, k, elements of A and B.
DENSE = [
    ("f32", 4, "f32", "f32"),
    *((result, 32, kind, kind) for kind in ("f16", "bf16") for result in ("f32", kind)),
    *((r, k, a, b) for r in ("f32", "f16") for k in (64, 128) for a, b in product(BYTES, BYTES)),
    ("i32", 64, "iu8", "iu8"),
]


def tail(result: str, k: int, a: str, b: str) -> str:
    kinds = f"{a}_{b}" if a in BYTES else a
    return f"{result}_16x16x{k}_{kinds}"


def small_c(rng: np.random.Generator, result: str, rows: int = 16) -> np.ndarray:
    if result in ("f16", "bf16"):
        return rng.choice([0.0, 1.0, -1.0, 2.0, -2.0, 3.0], (rows, 16))
    return rng.integers(-8, 9, (rows, 16)).astype(float)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("result", "k", "a", "b"), DENSE)
def test_dense(result: str, k: int, a: str, b: str, mode: str) -> None:
    rng = np.random.default_rng(k)
    x, y, c = numbers(rng, a, (16, k)), numbers(rng, b, (16, k)), small_c(rng, result)
    modifiers = " neg_lo:[1,1,0]" if result == "i32" else ""
    parts = {A: dealt(x, a), B: dealt(y, b)}
    got = run(f"v_wmma_{tail(result, k, a, b)}", parts, c, result, mode, modifiers=modifiers)
    wanted = x @ y.T + c
    if result == "bf16":
        wanted = wanted.astype(np.float32)
        assert (np.abs(wanted) < 256).all()  # exact in bf16
    assert np.array_equal(got, wanted)


@pytest.mark.parametrize("signed_a", [False, True])
@pytest.mark.parametrize("signed_b", [False, True])
def test_signs_of_bytes(signed_a: bool, signed_b: bool) -> None:
    rng = np.random.default_rng(3)
    raw = rng.integers(0, 256, (2, 16, 64))
    x, y = (
        np.where(raw[n] > 127, raw[n] - 256, raw[n]) if signed else raw[n]
        for n, signed in enumerate((signed_a, signed_b))
    )
    c = rng.integers(-(2**20), 2**20, (16, 16)).astype(float)
    modifiers = f" neg_lo:[{int(signed_a)},{int(signed_b)},0]"
    parts = {A: dealt(raw[0], "iu8"), B: dealt(raw[1], "iu8")}
    got = run("v_wmma_i32_16x16x64_iu8", parts, c, "i32", "exact", modifiers=modifiers)
    assert np.array_equal(got, x @ y.T + c)


def test_bf16_from_floats() -> None:
    """V_WMMA_BF16F32: C is f32, D is bf16."""
    rng = np.random.default_rng(9)
    x, y = numbers(rng, "bf16", (16, 32)), numbers(rng, "bf16", (16, 32))
    c = small_c(rng, "f32")
    a, b, old = dealt(x, "bf16"), dealt(y, "bf16"), c_words(c, "f32")
    text = f"  v_wmma_bf16f32_16x16x32_bf16 v[120:123], {span(A, 8)}, {span(B, 8)}, {span(C, 8)}"
    loaded = [*range(A, A + 8), *range(B, B + 8), *range(C, C + 8)]
    values = np.concatenate([a, b, old])
    got = execute_wave32(text, TARGET, loaded, values, list(range(120, 124)), "exact")
    wanted = x @ y.T + c
    assert (np.abs(wanted) < 256).all()
    assert np.array_equal(result_of(got, "bf16"), wanted)


# Result, k, elements, the length of the runs of B along k.
SPARSE = [
    *((result, 64, kind, kind) for kind in ("f16", "bf16") for result in ("f32", kind)),
    *((r, 128, a, b) for r in ("f32", "f16") for a, b in product(BYTES, BYTES)),
    ("i32", 128, "iu8", "iu8"),
]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("result", "k", "a", "b"), SPARSE)
def test_sparse(result: str, k: int, a: str, b: str, mode: str) -> None:
    """Of each four k of A two are stored, and an index of two bits says which. The lanes below 16
    have the indices of the first half of k, the others those of the second, in order."""
    rng = np.random.default_rng(k + 1)
    share, run_length = k // 2, 2 * run_of(a)
    x, y = np.zeros((16, k)), numbers(rng, b, (16, k))
    stored, columns = np.zeros((32, share // 2)), np.zeros((32, share))
    indices = np.zeros((max(1, share // 32), 32), np.uint32)
    each = share // 2  # indices in a lane
    for lane in range(32):
        places = spots(lane, k, run_length)
        columns[lane] = y[lane % 16, places]
        for group in range(share // 4):
            first, second = sorted(rng.choice(4, 2, replace=False))
            values = numbers(rng, a, (1, 2))[0]
            x[lane % 16, places[4 * group + first]] = values[0]
            x[lane % 16, places[4 * group + second]] = values[1]
            stored[lane, 2 * group : 2 * group + 2] = values
            half, local = divmod(places[4 * group] // 2, each)
            code = np.uint32((first | second << 2) << 2 * (local % 16))
            indices[local // 16, lane % 16 + 16 * half] |= code
    c = small_c(rng, result)
    parts = {A: packed(stored, a), B: packed(columns, b), INDEX: indices}
    modifiers = " neg_lo:[1,1,0]" if result == "i32" else ""
    name = f"v_swmmac_{tail(result, k, a, b)}"
    got = run(name, parts, c, result, mode, modifiers=modifiers, sparse=True)
    assert np.array_equal(got, x @ y.T + c)


NARROW = ("fp8", "bf8", "fp6", "bf6", "fp4")


def formats(a: str, b: str) -> str:
    return f" matrix_a_fmt:MATRIX_FMT_{a.upper()} matrix_b_fmt:MATRIX_FMT_{b.upper()}"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("a", "b"), list(product(NARROW, NARROW)))
def test_narrow(a: str, b: str, mode: str) -> None:
    rng = np.random.default_rng(5)
    x, y, c = numbers(rng, a, (16, 128)), numbers(rng, b, (16, 128)), small_c(rng, "f32")
    parts = {A: dealt(x, a), B: dealt(y, b)}
    name = "v_wmma_f32_16x16x128_f8f6f4"
    assert np.array_equal(run(name, parts, c, "f32", mode, modifiers=formats(a, b)), x @ y.T + c)


@pytest.mark.parametrize("mode", MODES)
def test_thirty_two_rows(mode: str) -> None:
    rng = np.random.default_rng(6)
    x, y, c = (
        numbers(rng, "fp4", (32, 128)),
        numbers(rng, "fp4", (16, 128)),
        small_c(rng, "f32", 32),
    )
    parts = {A: np.concatenate([dealt(x[:16], "fp4"), dealt(x[16:], "fp4")]), B: dealt(y, "fp4")}
    got = run("v_wmma_f32_32x16x128_f4", parts, c, "f32", mode)
    assert np.array_equal(got, x @ y.T + c)


def scale_words(exponents: np.ndarray, upper: bool) -> np.ndarray:
    """Exponents [16 or 32 rows, blocks] → E8M0 bytes [register, lane], in the lanes of the rows."""
    rows, blocks = exponents.shape
    raw = (exponents + 127).astype(np.uint32)
    result = np.full((blocks // 4, 32), 0x7B7B7B7B, np.uint32)
    for row in range(rows):
        for word in range(blocks // 4):
            lane = row + 16 * upper
            code = sum(int(raw[row, 4 * word + byte]) << 8 * byte for byte in range(4))
            result[word, lane] = code
    return result


SCALED = [
    *((a, b, 32, upper) for a, b in product(NARROW, NARROW) for upper in (False,)),
    ("fp8", "fp4", 32, True),
    ("fp6", "bf8", 16, False),
    ("fp8", "fp8", 16, True),
    ("fp4", "fp4", 16, False),
]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("a", "b", "block", "upper"), SCALED)
def test_scaled(a: str, b: str, block: int, upper: bool, mode: str) -> None:
    rng = np.random.default_rng(8)
    x, y, c = numbers(rng, a, (16, 128)), numbers(rng, b, (16, 128)), small_c(rng, "f32")
    by = rng.integers(-2, 3, (2, 16, 128 // block))
    parts = {A: dealt(x, a), B: dealt(y, b)}
    parts[SCALE_A], parts[SCALE_B] = scale_words(by[0], upper), scale_words(by[1], upper)
    count = 128 // block // 4
    name = f"v_wmma_scale{16 if block == 16 else ''}_f32_16x16x128_f8f6f4"
    modifiers = formats(a, b)
    if upper:
        modifiers += " matrix_a_scale:MATRIX_SCALE_ROW1 matrix_b_scale:MATRIX_SCALE_ROW1"
    behind = f", {span(SCALE_A, count)}, {span(SCALE_B, count)}"
    got = run(name, parts, c, "f32", mode, behind, modifiers)
    wide = np.repeat(2.0**by, block, axis=2)
    assert np.array_equal(got, (x * wide[0]) @ (y * wide[1]).T + c)


def scales_of(raw: np.ndarray, form: str) -> np.ndarray:
    """The values of bytes: E8M0 of the OCP's Microscaling Formats; E5M3 is like OCP's E4M3 with
    five bits of exponent in place of sign and four."""
    raw = raw.astype(int)
    if form == "E8":
        return np.where(raw == 255, np.nan, 2.0 ** (raw - 127))
    bias, exponent, nan = (15, raw >> 3, 255) if form == "E5M3" else (7, raw >> 3 & 15, 127)
    fraction = (raw & 7) / 8
    value = np.where(
        exponent > 0, (1 + fraction) * 2.0 ** (exponent - bias), fraction * 2.0 ** (1 - bias)
    )
    value = np.where(raw & 128, -value, value) if form == "E4M3" else value
    return np.where(raw & nan == nan, np.nan, value)


# Formats, and the bytes of A and B: all, or those whose products f32 has. E8M0's extremes are
# 2^-127, which f32 has as a subnormal, and 2^127; 255 is NaN.
EVERY, NEAR = np.arange(256), np.arange(120, 135)
SCALE_BYTES = [
    ("E8", "E8", np.arange(40, 256, 43), NEAR),
    ("E8", "E8", np.arange(21), np.arange(147, 151)),
    ("E8", "E8", np.arange(235, 256), np.arange(100, 111)),
    ("E5M3", "E5M3", EVERY, EVERY),
    ("E4M3", "E4M3", EVERY, EVERY),
    ("E5M3", "E4M3", EVERY, EVERY),
    ("E4M3", "E5M3", EVERY, EVERY),
    ("E5M3", "E8", EVERY, NEAR),
]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("block", [32, 16])
@pytest.mark.parametrize("number", range(len(SCALE_BYTES)))
def test_values_of_scales(number: int, block: int, mode: str) -> None:
    """Only one block of k has elements other than 0, so that each sum is exact; a NaN among the
    other scales counts all the same."""
    form_a, form_b, bytes_a, bytes_b = SCALE_BYTES[number]
    rng, blocks = np.random.default_rng(number), 128 // block
    x, y = numbers(rng, "fp4", (16, 128)), numbers(rng, "fp4", (16, 128))
    chosen = number % blocks
    x[:, np.arange(128) // block != chosen] = 0
    raw = np.full((2, 16, blocks), 127 if form_a == "E8" else 56)
    raw[0, :, chosen], raw[1, :, chosen] = rng.choice(bytes_a, 16), rng.choice(bytes_b, 16)
    if form_b == "E8":
        raw[1][:, np.arange(blocks) != chosen] = 127
    raw[0, 3, (chosen + 1) % blocks] = 255  # NaN in each of the formats
    parts = {A: dealt(x, "fp4"), B: dealt(y, "fp4")}
    parts[SCALE_A], parts[SCALE_B] = (scale_words(one - 127, False) for one in raw)
    behind = f", {span(SCALE_A, blocks // 4)}, {span(SCALE_B, blocks // 4)}"
    kinds = (("a", form_a), ("b", form_b))
    modifiers = formats("fp4", "fp4")
    modifiers += "".join(
        f" matrix_{which}_scale_fmt:MATRIX_SCALE_FMT_{form}"
        for which, form in kinds
        if form != "E8"
    )
    name = f"v_wmma_scale{16 if block == 16 else ''}_f32_16x16x128_f8f6f4"
    got = run(name, parts, np.zeros((16, 16)), "f32", mode, behind, modifiers)
    by_a, by_b = scales_of(raw[0], form_a), scales_of(raw[1], form_b)
    wanted = (x @ y.T) * np.outer(by_a[:, chosen], by_b[:, chosen])
    wanted[np.isnan(by_a).any(1)] = np.nan
    wanted[:, np.isnan(by_b).any(1)] = np.nan
    assert set(np.isnan(wanted).ravel()) == {False, True}
    np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("side", [0, 1])
def test_scales_of_one_matrix(side: int) -> None:
    """The constant 0 in place of the other's: as Triton's products without scales have it."""
    rng = np.random.default_rng(9)
    x, y, c = numbers(rng, "fp8", (16, 128)), numbers(rng, "fp4", (16, 128)), small_c(rng, "f32")
    by = rng.integers(-2, 3, (16, 4))
    scales = (SCALE_A, SCALE_B)[side]
    parts = {A: dealt(x, "fp8"), B: dealt(y, "fp4"), scales: scale_words(by, False)}
    behind = f", {span(SCALE_A, 1)}, 0" if side == 0 else f", 0, {span(SCALE_B, 1)}"
    name = "v_wmma_scale_f32_16x16x128_f8f6f4"
    got = run(name, parts, c, "f32", MODES[0], behind, formats("fp8", "fp4"))
    wide = np.repeat(2.0**by, 32, axis=1)
    left, right = (x * wide, y) if side == 0 else (x, y * wide)
    assert np.array_equal(got, left @ right.T + c)


@pytest.mark.parametrize("block", [32, 16])
def test_scaled_thirty_two_rows(block: int) -> None:
    rng = np.random.default_rng(10)
    x, y, c = (
        numbers(rng, "fp4", (32, 128)),
        numbers(rng, "fp4", (16, 128)),
        small_c(rng, "f32", 32),
    )
    by_a = rng.integers(-2, 3, (32, 128 // block))
    by_b = rng.integers(-2, 3, (16, 128 // block))
    parts = {A: np.concatenate([dealt(x[:16], "fp4"), dealt(x[16:], "fp4")]), B: dealt(y, "fp4")}
    parts[SCALE_A], parts[SCALE_B] = scale_words(by_a, False), scale_words(by_b, False)
    count = 128 // block // 4
    name = f"v_wmma_scale{16 if block == 16 else ''}_f32_32x16x128_f4"
    behind = f", {span(SCALE_A, count)}, {span(SCALE_B, count)}"
    got = run(name, parts, c, "f32", "exact", behind)
    wide_a, wide_b = (np.repeat(2.0**by, block, axis=1) for by in (by_a, by_b))
    assert np.array_equal(got, (x * wide_a) @ (y * wide_b).T + c)


ATOMS = [form for form in wmma.GFX1250_FORMS if form.a != "i4"]


@pytest.mark.parametrize("form", ATOMS, ids=str)
def test_layouts_of_atoms(form: wmma.Form) -> None:
    """What an atom's layouts find after the instruction is A·B + C."""
    op = wmma.Gfx1250Wmma(form.m, form.n, form.k, form.a, form.b, form.acc)
    a, b, c = matrices(op)
    kinds = [NAMES.get(one, one).replace("i8", "iu8") for one in (op.a, op.b)]
    name = f"v_wmma_{tail(op.acc, op.k, *kinds)}"
    rows_a = words(held(op.thr_val_layout_a, a), op.a)
    rows_b = words(held(op.thr_val_layout_b, b), op.b)
    short = op.acc in ("f16", "bf16")
    per_thread = held(op.thr_val_layout_c, np.clip(c, -3, 3) if short else c)
    c = np.clip(c, -3, 3) if short else c
    rows_c = words(per_thread, op.acc)
    d = span(C, len(rows_c))
    text = f"  {name} {d}, {span(A, len(rows_a))}, {span(B, len(rows_b))}, {d}"
    loaded = [
        *range(A, A + len(rows_a)),
        *range(B, B + len(rows_b)),
        *range(C, C + len(rows_c)),
    ]
    values = np.concatenate([rows_a, rows_b, rows_c])
    raw = execute_wave32(text, TARGET, loaded, values, loaded[-len(rows_c) :], "exact")
    if short:
        halves = np.stack([raw & 0xFFFF, raw >> 16], 1).reshape(-1, 32).T
        if op.acc == "f16":
            got = np.ascontiguousarray(halves.astype(np.uint16)).view(np.float16).astype(float)
        else:
            got = (halves.astype(np.uint32) << np.uint32(16)).view(np.float32).astype(float)
    else:
        got = np.ascontiguousarray(raw.T).view(KINDS[op.acc])
    assert np.array_equal(found(op.thr_val_layout_c, got, op.m, op.n), a @ b.T + c)


@pytest.mark.parametrize("form", wmma.GFX1250_SCALED_FORMS, ids=str)
def test_layouts_of_scaled_atoms(form: wmma.Form) -> None:
    """The places of elements are those that the tests above give their scales."""
    op = wmma.Gfx1250WmmaScale(form.m, form.n, form.k, form.a, form.b, form.acc)
    rng = np.random.default_rng(12)
    a, b = numbers(rng, NAMES[op.a], (op.m, op.k)), numbers(rng, NAMES[op.b], (op.n, op.k))
    tiles = [dealt(a[row : row + 16], NAMES[op.a]) for row in range(0, op.m, 16)]
    assert np.array_equal(words(held(op.thr_val_layout_a, a), op.a), np.concatenate(tiles))
    assert np.array_equal(words(held(op.thr_val_layout_b, b), op.b), dealt(b, NAMES[op.b]))
    c = rng.integers(-8, 9, (op.m, op.n)).astype(float)
    assert np.array_equal(words(held(op.thr_val_layout_c, c), op.acc), c_words(c, op.acc))
