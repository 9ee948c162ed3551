"""WMMA of gfx1100 and gfx1201: the emulator against the oracle's own reading of the manuals."""

from __future__ import annotations

import numpy as np
import pytest
from emulator_support.engine import launch as on_emulator
from fly_image.amd.code_object import CodeObject
from oracle.launching import build, launch
from oracle.probes import try_wmma

RUNS = [(target, mode) for target in try_wmma.MEASURED for mode in ("exact", "fast")]


def results(target: str, mode: str, *, whole: bool) -> tuple[np.ndarray, np.ndarray]:
    """What the emulator and the oracle make: uint32[instruction, lane, register]."""
    words = try_wmma.inputs(target, 3, whole=whole)
    outputs = np.zeros((len(words), 32, 8), np.uint32)
    data = build.assemble(try_wmma.program(target), target)
    run = launch.on_oracle(data, "probe", (1, 1, 1), (32, 1, 1), [words, outputs])
    on_emulator(CodeObject.parse(data), [words, outputs], block=32, mfma=mode)
    return outputs, run.arguments[1]


@pytest.mark.parametrize(("target", "mode"), RUNS)
def test_whole_numbers(target: str, mode: str) -> None:
    """Every sum is exact: bit for bit the same, whatever the order. But gfx1100 is a few units of
    its grid off where signs differ, as `fast` is not, and bf16 is cut off at every step."""
    found, wanted = results(target, mode, whole=True)
    inexact = (target, mode) == ("gfx1100", "fast")
    for (name, text), a, b in zip(try_wmma.instructions(target), found, wanted, strict=True):
        if inexact and not name.startswith("i32"):
            a, b = (floats(words, name) for words in (a, b))
            off = 0.5 if name.startswith("bf16") else 2.0**-14
            np.testing.assert_allclose(a, b, rtol=0, atol=off, err_msg=text)
        else:
            np.testing.assert_array_equal(a, b, err_msg=text)


def floats(words: np.ndarray, name: str) -> np.ndarray:
    """f32 results as they are; those of 16 bits in either half of a register as f32."""
    if name.startswith("f32"):
        return words.view(np.float32)
    if name.startswith("f16"):
        return words.view(np.float16).astype(np.float32)
    return np.stack([words << np.uint32(16), words & np.uint32(0xFFFF0000)]).view(np.float32)


@pytest.mark.parametrize(("target", "mode"), RUNS)
def test_any_numbers(target: str, mode: str) -> None:
    """f32 results: within what 16 products may lose; no model of these units is published."""
    found, wanted = results(target, mode, whole=False)
    for (name, text), a, b in zip(try_wmma.instructions(target), found, wanted, strict=True):
        if name.startswith("f32"):
            a, b = a.view(np.float32), b.view(np.float32)
            scale = np.nanmax(np.abs(b), initial=1)
            assert np.allclose(a, b, rtol=0, atol=scale * 2.0**-18, equal_nan=True), text


# -- SWMMAC, which the oracle does not have ------------------------------------------------------

# Mnemonic, k, bits of an element, the length of runs along k in a lane (0: one run), modifiers.
SPARSE = [
    ("v_swmmac_f32_16x16x32_f16", 32, 16, 8, "index_key:1"),
    ("v_swmmac_f32_16x16x32_f16", 32, 16, 8, ""),
    ("v_swmmac_f32_16x16x32_bf16", 32, 16, 8, "index_key:1"),
    ("v_swmmac_f16_16x16x32_f16", 32, 16, 8, ""),
    ("v_swmmac_i32_16x16x32_iu8", 32, 8, 0, "index_key:1 neg_lo:[1,1,0]"),
    ("v_swmmac_i32_16x16x32_iu4", 32, 4, 0, "neg_lo:[1,1,0]"),
    ("v_swmmac_i32_16x16x64_iu4", 64, 4, 0, "neg_lo:[1,1,0]"),
    ("v_swmmac_f32_16x16x32_fp8_fp8", 32, 8, 0, ""),
]
KERNEL = """
.text
.globl probe
.p2align 8
.type probe,@function
probe:
  s_load_b128 s[4:7], s[0:1], 0x0
  v_lshlrev_b32_e32 v40, 2, v0
  s_wait_kmcnt 0x0
{loads}
  s_wait_loadcnt 0x0
{text}
  s_nop 7
{stores}
  s_endpgm
"""


def element_bits(numbers: np.ndarray, name: str, bits: int) -> np.ndarray:
    """Small whole numbers as elements' raw bits."""
    if "bf16" in name:
        return numbers.astype(np.float32).view(np.uint32) >> 16
    if bits == 16:
        return numbers.astype(np.float16).view(np.uint16).astype(np.uint32)
    if "fp8" in name:
        table = {0: 0, 1: 0x38, 2: 0x40, 3: 0x44}
        wanted = [table[abs(int(n))] | (n < 0) << 7 for n in numbers.ravel()]
        return np.array(wanted, np.uint32).reshape(numbers.shape)
    return numbers.astype(np.int64).astype(np.uint32) & ((1 << bits) - 1)


def packed(elements: np.ndarray, bits: int) -> np.ndarray:
    """[lane, element] → [register, lane]."""
    grouped = elements.reshape(32, -1, 32 // bits).astype(np.uint64)
    shifts = np.arange(32 // bits, dtype=np.uint64) * np.uint64(bits)
    return (grouped << shifts).sum(-1).astype(np.uint32).T


def execute(
    mnemonic: str, a: np.ndarray, b: np.ndarray, indices: np.ndarray, modifiers: str = ""
) -> np.ndarray:
    """D [row, column], added to zeros. A and B are raw registers: uint32[register, lane]."""
    short = mnemonic.startswith(("v_swmmac_f16", "v_swmmac_bf16"))
    count = 4 if short else 8
    span = lambda first, n: f"v[{first}:{first + n - 1}]" if n > 1 else f"v{first}"  # noqa: E731
    text = f"  {mnemonic} {span(32, count)}, {span(8, len(a))}, {span(16, len(b))}, v24 {modifiers}"
    places = [*range(8, 8 + len(a)), *range(16, 16 + len(b)), 24, *range(32, 32 + count)]
    c = np.zeros((count, 32), np.uint32)
    values = np.concatenate([a, b, indices[None].astype(np.uint32), c])
    loads = [
        f"  global_load_b32 v{place}, v40, s[4:5] offset:{128 * number}"
        for number, place in enumerate(places)
    ]
    stores = [f"  global_store_b32 v40, v{32 + n}, s[6:7] offset:{128 * n}" for n in range(count)]
    head = KERNEL.format(loads="\n".join(loads), text=text, stores="\n".join(stores))
    ending = try_wmma.program("gfx1201").partition("  s_endpgm\n")[2]
    data = build.assemble(head + ending, "gfx1201")
    found = np.zeros((count, 32), np.uint32)
    on_emulator(CodeObject.parse(data), [np.ascontiguousarray(values), found], block=32)
    d = np.zeros((16, 16))
    for lane in range(32):
        for number in range(8):
            if short:
                word = found[number // 2, lane] >> 16 * (number % 2) & 0xFFFF
                is_half = mnemonic.startswith("v_swmmac_f16")
                value = np.uint16(word).view(np.float16) if is_half else brain(word)
            else:
                value = found[number, lane].view(np.int32 if "i32" in mnemonic else np.float32)
            d[lane // 16 * 8 + number, lane % 16] = value
    return d


def brain(codes: np.ndarray | int) -> np.ndarray:
    """What codes of bf16 are worth: float64."""
    return (np.asarray(codes, np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64)


@pytest.mark.parametrize(("mnemonic", "k", "bits", "run", "modifiers"), SPARSE)
def test_sparse(mnemonic: str, k: int, bits: int, run: int, modifiers: str) -> None:
    """gfx1201. The layout is that of AMD's matrix instruction calculator (RDNA4): a lane has half
    of all k, in runs that alternate between lanes below and from 16 on."""
    rng = np.random.default_rng(19)
    share = k // 2
    a, b = np.zeros((16, k)), rng.integers(-3, 4, (k, 16))
    held, indices = np.zeros((32, share // 2)), np.zeros(32, np.uint64)
    columns = np.zeros((32, share))
    shift = share if "index_key" in modifiers else 0
    for lane in range(32):
        upper, length = lane // 16, run or share
        spots = [(e // length * 2 + upper) * length + e % length for e in range(share)]
        columns[lane] = b[spots, lane % 16]
        for group in range(share // 4):
            first, second = rng.choice(4, 2, replace=False)
            values = rng.integers(-3, 4, 2)
            a[lane % 16, spots[4 * group + first]] = values[0]
            a[lane % 16, spots[4 * group + second]] = values[1]
            held[lane, 2 * group : 2 * group + 2] = values
            indices[lane] |= np.uint64((first | second << 2) << 4 * group + shift)
    rows = [packed(element_bits(x, mnemonic, bits), bits) for x in (held, columns)]
    assert np.array_equal(execute(mnemonic, *rows, indices, modifiers), a @ b)


def test_results_of_bf16_are_rounded_to_nearest_even() -> None:
    """Single products: of some half a unit is left. One row is infinite, one is no number."""
    a = np.array([*range(0x3F81, 0x3F9D, 2), 0x7F80, 0x7FC0], np.uint32)
    b = np.array([0x3FC0, 0xBFC0, 0x3F80, *range(0x3F82, 0x3F9B, 2)], np.uint32)
    rows = np.zeros((4, 32), np.uint32), np.zeros((8, 32), np.uint32)
    for row, codes in zip(rows, (a, b), strict=True):
        row[0, :16] = codes  # k 0; the lanes from 16 on have others
    found = execute("v_swmmac_bf16_16x16x32_bf16", *rows, np.full(32, 0x44444444))
    with np.errstate(invalid="ignore"):
        exact = brain(a)[:, None] * brain(b)
        unit = 2.0 ** (np.frexp(exact)[1] - 8)
        wanted = np.round(exact / unit) * unit
    np.testing.assert_array_equal(found, wanted)
