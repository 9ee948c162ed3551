"""How matrix instructions sum, and their modifiers: published values, and what follows from layouts
that tests/fly_run/emulator/semantics/matrix/test_matrix_layout.py holds."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from emulator_support.matrix import LANES, execute, registers

# What Xie et al. (arXiv 2511.10909, table 8) measured for 2^23 + 2^13·(-2^10) - 0.5 - 0.25 - 0.125
# at the first four k of each instruction: the exact sum is -0.875.
PUBLISHED = [
    ("gfx90a", "v_mfma_f32_16x16x16f16", 4, np.float16, 0.0),
    ("gfx90a", "v_mfma_f32_16x16x16bf16_1k", 4, "bf16", 0.0),
    ("gfx90a", "v_mfma_f32_16x16x8bf16", 2, "bf16", -0.375),
    ("gfx942", "v_mfma_f32_16x16x16_f16", 4, np.float16, -0.5),
    ("gfx942", "v_mfma_f32_16x16x16_bf16", 4, "bf16", -0.5),
    ("gfx942", "v_mfma_f32_16x16x32_bf8_bf8", 8, "bf8_fnuz", -1.0),
]
FACTORS = ([-(2.0**13), -0.5, -0.25, -0.125], [2.0**10, 1.0, 1.0, 1.0])


def raw(numbers: np.ndarray, form: object) -> tuple[np.ndarray, int]:
    """Bits of numbers that the format has exactly, and how many bits they are."""
    numbers = np.asarray(numbers, np.float64)
    if form == np.float16:
        return numbers.astype(np.float16).view(np.uint16).astype(np.uint32), 16
    if form == "bf16":
        return numbers.astype(np.float32).view(np.uint32) >> 16, 16
    assert form == "bf8_fnuz"
    # Five bits of exponent with a bias of 16, two of fraction; powers of two only.
    _, exponent = np.frexp(numbers)
    bits = (exponent - 1 + 16 << 2) | (np.signbit(numbers) << 7)
    return np.where(numbers == 0, 0, bits).astype(np.uint32), 8


def packed(matrix: np.ndarray, count: int, form: object) -> np.ndarray:
    """[row, k] of a 16-row operand → [register, lane]: a lane has row lane % 16 and `count`
    consecutive k from count · (lane // 16) on."""
    bits, width = raw(matrix, form)
    lanes = range(LANES)
    per_lane = np.array([bits[lane % 16, count * (lane // 16) :][:count] for lane in lanes])
    grouped = per_lane.reshape(LANES, -1, 32 // width).astype(np.uint64)
    shifts = np.arange(32 // width, dtype=np.uint64) * np.uint64(width)
    return (grouped << shifts).sum(-1).astype(np.uint32).T


def multiply(
    target: str, mnemonic: str, count: int, form: object, a, b, c: float, **options
) -> np.ndarray:
    """[row, column] of A·Bᵀ + c for [16, K] operands."""
    operands = np.concatenate([packed(a, count, form), packed(b, count, form)])
    addend = np.full((4, LANES), np.float32(c).view(np.uint32))
    half = len(operands) // 2
    span = lambda first: f"v[{first}:{first + half - 1}]" if half > 1 else f"v{first}"  # noqa: E731
    loaded = registers("v", 0, len(operands)) + registers("v", 32, 4)
    text = f"{mnemonic} v[64:67], {span(0)}, {span(half)}, v[32:35]"
    values = np.concatenate([operands, addend])
    found = execute(text, target, loaded, values, registers("v", 64, 4), **options)
    # D: register r of lane l is row 4·(l // 16) + r, column l % 16.
    return found.view(np.float32).reshape(4, 4, 16).transpose(1, 0, 2).reshape(16, 16)


@pytest.mark.parametrize(("target", "mnemonic", "count", "form", "wanted"), PUBLISHED)
def test_published_sums(
    target: str, mnemonic: str, count: int, form: object, wanted: float
) -> None:
    a, b = (np.zeros((16, 4 * count)) for _ in range(2))
    a[:, :4], b[:, :4] = FACTORS
    found = multiply(target, mnemonic, count, form, a, b, 2.0**23)
    assert np.array_equal(found, np.full((16, 16), np.float32(wanted)))


@pytest.mark.parametrize(("target", "mnemonic", "count", "form", "wanted"), PUBLISHED[:5])
def test_fast_is_a_chain_of_fused_multiply_adds(
    target: str, mnemonic: str, count: int, form: object, wanted: float
) -> None:
    """In the chain each product but the first is added where ulps are small: nothing is lost."""
    a, b = (np.zeros((16, 4 * count)) for _ in range(2))
    a[:, :4], b[:, :4] = FACTORS
    found = multiply(target, mnemonic, count, form, a, b, 2.0**23, mfma="fast")
    assert np.array_equal(found, np.full((16, 16), np.float32(-0.875)))


@pytest.mark.parametrize(("target", "mnemonic", "count", "form"), [p[:4] for p in PUBLISHED[:5]])
def test_both_arithmetics_are_near_the_exact_sum(
    target: str, mnemonic: str, count: int, form: object
) -> None:
    rng = np.random.default_rng(7)
    a, b = rng.standard_normal((2, 16, 4 * count))
    keep = np.float16 if form == np.float16 else None
    cut = lambda x: (  # noqa: E731
        x.astype(keep).astype(float)
        if keep
        else (x.astype(np.float32).view(np.uint32) & 0xFFFF0000).view(np.float32).astype(float)
    )
    a, b = cut(a), cut(b)
    wanted = a @ b.T + 0.5
    # Every product and sum may lose an ulp of the greatest one.
    bound = (np.abs(a) @ np.abs(b.T) + 0.5) * a.shape[1] * 2.0**-23
    found = {
        name: multiply(target, mnemonic, count, form, a, b, 0.5, mfma=name)
        for name in ("exact", "fast")
    }
    for name, one in found.items():
        assert (np.abs(one - wanted) <= bound).all(), name
    assert not np.array_equal(found["exact"], found["fast"])


def test_special_values() -> None:
    """Infinities and NaNs anywhere, on CDNA3's model: they win over all else."""
    a, b = np.ones((16, 16)), np.ones((16, 16))
    a[0, 3], a[1, 5], a[2, 0], a[3, 1], a[3, 2] = np.inf, np.nan, -np.inf, np.inf, -np.inf
    b[4, 3] = 0.0
    with np.errstate(invalid="ignore"):
        wanted = (a @ b.T + 1).astype(np.float32)
    found = multiply("gfx942", "v_mfma_f32_16x16x16_f16", 4, np.float16, a, b, 1.0)
    assert np.array_equal(found, wanted, equal_nan=True)
    assert np.isnan(found[0, 4])


def test_a_product_of_bf16_overflows() -> None:
    a, b = np.zeros((16, 16)), np.zeros((16, 16))
    a[:, 0], b[:, 0] = 2.0**100, 2.0**28
    a[:, 9], b[:, 9] = -(2.0**100), 2.0**27
    found = multiply("gfx942", "v_mfma_f32_16x16x16_bf16", 4, "bf16", a, b, 0.0)
    assert np.isposinf(found).all()
    found = multiply("gfx942", "v_mfma_f32_16x16x16_bf16", 4, "bf16", a, b / 2, 0.0)
    assert np.array_equal(found, np.full((16, 16), np.float32(2.0**127 - 2.0**126)))


def test_subnormals() -> None:
    """CDNA2 takes them for zero; CDNA3 keeps f16's and those of the result."""
    a, b = np.zeros((16, 16)), np.zeros((16, 16))
    a[:, 0], b[:, 0] = 2.0**-24, 1.0
    for target, mnemonic, wanted in (
        ("gfx90a", "v_mfma_f32_16x16x16f16", 0.0),
        ("gfx942", "v_mfma_f32_16x16x16_f16", 2.0**-24),
    ):
        assert (multiply(target, mnemonic, 4, np.float16, a, b, 0.0) == wanted).all()
    a[:, 0], b[:, 0] = 2.0**-70, 2.0**-70
    found = multiply("gfx942", "v_mfma_f32_16x16x16_bf16", 4, "bf16", a, b, 0.0)
    assert np.array_equal(found, np.full((16, 16), np.float32(2.0**-140)))


# -- operands and modifiers --------------------------------------------------------------------

F32 = "v_mfma_f32_16x16x4_f32"
ROWS = np.random.default_rng(3).standard_normal((6, LANES)).astype(np.float32)


def product(text: str, target: str = "gfx942", stored=("v", 64), mode: str = "") -> np.ndarray:
    loaded = ("v0", "v1", *registers("v", 4, 4))
    values = ROWS.view(np.uint32)
    return execute(text, target, loaded, values, registers(*stored, 4), mode).view(np.float32)


def wanted_f32(c: np.ndarray) -> np.ndarray:
    """A chain along k by NumPy in double: near enough to tell operands apart."""
    a, b = ROWS[0].reshape(4, 16), ROWS[1].reshape(4, 16)
    d = np.einsum("ki,kj->ij", a.astype(float), b.astype(float))
    return d.reshape(4, 4, 16).transpose(1, 0, 2).reshape(4, LANES) + c


FORMS: dict[str, tuple[str, Callable[[], np.ndarray]]] = {
    "registers": (f"{F32} v[64:67], v0, v1, v[4:7]", lambda: ROWS[2:]),
    "no lane active": (
        f"s_mov_b64 exec, 0\n{F32} v[64:67], v0, v1, v[4:7]\ns_mov_b64 exec, -1",
        lambda: ROWS[2:],
    ),
    "constant zero": (f"{F32} v[64:67], v0, v1, 0", lambda: np.zeros((4, LANES))),
    "constant": (f"{F32} v[64:67], v0, v1, -4.0", lambda: np.full((4, LANES), -4.0)),
    "in place": (
        f"{F32} v[4:7], v0, v1, v[4:7]\n"
        + "\n".join(f"v_mov_b32 v{64 + n}, v{4 + n}" for n in range(4)),
        lambda: ROWS[2:],
    ),
    "onto a part of C": (
        f"{F32} v[6:9], v0, v1, v[4:7]\n"
        + "\n".join(f"v_mov_b32 v{64 + n}, v{6 + n}" for n in range(4)),
        lambda: ROWS[2:],
    ),
    "from a part of C": (
        "\n".join(f"v_mov_b32 v{13 - n}, v{7 - n}" for n in range(4))
        + f"\n{F32} v[8:11], v0, v1, v[10:13]\n"
        + "\n".join(f"v_mov_b32 v{64 + n}, v{8 + n}" for n in range(4)),
        lambda: ROWS[2:],
    ),
    "onto A and B": (
        f"{F32} v[0:3], v0, v1, v[4:7]\n"
        + "\n".join(f"v_mov_b32 v{64 + n}, v{n}" for n in range(4)),
        lambda: ROWS[2:],
    ),
    "accumulation registers": (
        "v_accvgpr_write_b32 a0, v0\nv_accvgpr_write_b32 a1, v1\n"
        + "\n".join(f"v_accvgpr_write_b32 a{4 + n}, v{4 + n}" for n in range(4))
        + f"\n{F32} a[8:11], a0, a1, a[4:7]\n"
        + "\n".join(f"v_accvgpr_read_b32 v{64 + n}, a{8 + n}" for n in range(4)),
        lambda: ROWS[2:],
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_operands(form: str) -> None:
    text, c = FORMS[form]
    assert np.allclose(product(text), wanted_f32(c()), rtol=1e-5, atol=1e-5)


def test_mode_does_not_matter() -> None:
    """Neither rounding towards zero nor flushed subnormals."""
    text, _ = FORMS["registers"]
    mode = ".amdhsa_float_round_mode_32 3\n.amdhsa_float_denorm_mode_32 0"
    assert np.array_equal(product(text, mode=mode), product(text))
    setreg = f"s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 8), 0xf\n{text}"
    assert np.array_equal(product(setreg), product(text))


def four_blocks(modifiers: str) -> np.ndarray:
    """16 × 16 × 1 for four blocks: [block, row, column]; A is v0 and B v1, a block 16 lanes."""
    text = f"v_mfma_f32_16x16x1_4b_f32 v[64:79], v0, v1, 0 {modifiers}"
    loaded = registers("v", 0, 2)
    found = execute(text, "gfx942", loaded, ROWS[:2].view(np.uint32), registers("v", 64, 16))
    # D: register r, lane l: block r // 4, row 4·(l // 16) + r % 4, column l % 16.
    return found.view(np.float32).reshape(4, 4, 4, 16).transpose(0, 2, 1, 3).reshape(4, 16, 16)


# Which block of A each block uses; which groups of 16 lanes of B the four groups use (CDNA3 ISA
# manual, "MFMA: CBSZ, ABID, BLGP").
BROADCASTS = {
    "": ([0, 1, 2, 3], [0, 1, 2, 3]),
    "cbsz:1": ([0, 0, 2, 2], [0, 1, 2, 3]),
    "cbsz:1 abid:1": ([1, 1, 3, 3], [0, 1, 2, 3]),
    "cbsz:2 abid:2": ([2, 2, 2, 2], [0, 1, 2, 3]),
    "blgp:1": ([0, 1, 2, 3], [0, 1, 0, 1]),
    "blgp:2": ([0, 1, 2, 3], [2, 3, 2, 3]),
    "blgp:3": ([0, 1, 2, 3], [1, 2, 3, 0]),
    "blgp:4": ([0, 1, 2, 3], [0, 0, 0, 0]),
    "blgp:7": ([0, 1, 2, 3], [3, 3, 3, 3]),
    "cbsz:2 abid:3 blgp:5": ([3, 3, 3, 3], [1, 1, 1, 1]),
}


@pytest.mark.parametrize("modifiers", BROADCASTS)
def test_broadcasts(modifiers: str) -> None:
    blocks, groups = BROADCASTS[modifiers]
    a, b = ROWS[0].reshape(4, 16)[blocks], ROWS[1].reshape(4, 16)[groups]
    assert np.array_equal(four_blocks(modifiers), a[:, :, None] * b[:, None, :])


def test_broadcast_of_small_blocks() -> None:
    text = "v_mfma_f32_4x4x1_16b_f32 v[64:67], v0, v1, 0 cbsz:3 abid:5"
    loaded = registers("v", 0, 2)
    found = execute(text, "gfx942", loaded, ROWS[:2].view(np.uint32), registers("v", 64, 4))
    a = ROWS[0].reshape(16, 4)[[5] * 8 + [13] * 8]
    wanted = a[:, :, None] * ROWS[1].reshape(16, 1, 4)
    assert np.array_equal(found.view(np.float32).reshape(4, 16, 4).transpose(1, 0, 2), wanted)


@pytest.mark.parametrize("signs", [(a, b, c) for a in (0, 1) for b in (0, 1) for c in (0, 1)])
@pytest.mark.parametrize("constant", [False, True])
def test_negation_of_doubles(signs: tuple[int, int, int], constant: bool) -> None:
    """blgp is neg there, on gfx942."""
    rng = np.random.default_rng(5)
    a, b, c = (rng.standard_normal((n, LANES)) for n in (1, 1, 4))
    split = lambda x: x.view(np.uint32).reshape(*x.shape, 2).transpose(0, 2, 1).reshape(-1, LANES)  # noqa: E731
    values = np.concatenate([split(x) for x in (a, b, c)])
    addend = "1.0" if constant else "v[4:11]"
    negated = ",".join(map(str, signs))
    text = f"v_mfma_f64_16x16x4_f64 v[64:71], v[0:1], v[2:3], {addend} neg:[{negated}]"
    loaded = registers("v", 0, 12)
    found = execute(text, "gfx942", loaded, values, registers("v", 64, 8))
    pairs = found.reshape(4, 2, LANES).astype(np.uint64)
    d = (pairs[:, 0] | pairs[:, 1] << np.uint64(32)).view(np.float64)
    sign = [1 - 2 * s for s in signs]
    c = np.ones((4, LANES)) if constant else c
    full = np.einsum("ki,kj->ij", a.reshape(4, 16), b.reshape(4, 16)).reshape(4, LANES)
    assert np.allclose(d, sign[0] * sign[1] * full + sign[2] * c, rtol=1e-12, atol=1e-12)
