"""What lies in which lane: a single element of A at a time, and what meets it in D.

`LAYOUTS` is written down from AMD's own tables, as its matrix instruction calculator prints them
(github.com/ROCm/amd_matrix_instruction_calculator, "Register to matrix element mapping", CDNA2 and
CDNA3; gfx950's wider ones continue them): Python expressions of `lane`, and of `element`, the
number of an element in a lane's registers, low bits first. Nothing here comes from the emulator.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import pytest
from emulator_support.matrix import LANES, execute, registers


@dataclass(frozen=True)
class Layout:
    """Rows of A (columns of B), k and block; rows and columns of D and their block, where
    `element` counts D's elements in a lane."""

    row: str
    k: str  # `count` is how many elements a lane has
    block: str
    d_row: str
    d_column: str
    d_block: str


LAYOUTS = {
    "32x32x2b": Layout(
        "lane % 32",
        "element",
        "lane // 32",
        "8 * (element // 4) % 32 + 4 * (lane // 32) + element % 4",
        "lane % 32",
        "element // 16",
    ),
    "16x16x4b": Layout(
        "lane % 16",
        "element",
        "lane // 16",
        "4 * (lane // 16) + element % 4",
        "lane % 16",
        "element // 4",
    ),
    "4x4x16b": Layout("lane % 4", "element", "lane // 4", "element", "lane % 4", "lane // 4"),
    "32x32": Layout(
        "lane % 32",
        "count * (lane // 32) + element",
        "0",
        "8 * (element // 4) % 32 + 4 * (lane // 32) + element % 4",
        "lane % 32",
        "0",
    ),
    "16x16": Layout(
        "lane % 16",
        "count * (lane // 16) + element",
        "0",
        "4 * (lane // 16) + element % 4",
        "lane % 16",
        "0",
    ),
    "16x16 f64": Layout(
        "lane % 16", "lane // 16", "0", "4 * element + lane // 16", "lane % 16", "0"
    ),
    "4x4 f64": Layout(
        "lane % 4", "lane // 16", "lane // 4 % 4", "lane // 16", "lane % 4", "lane // 4 % 4"
    ),
}


@dataclass(frozen=True)
class Case:
    """An instruction: elements of A and B in a lane, those of D, and their formats."""

    target: str
    mnemonic: str
    layout: str
    count: int
    results: int
    form: str

    def __str__(self) -> str:
        return f"{self.target} {self.mnemonic}"


def cases(target: str, text: str) -> list[Case]:
    """Lines of: layout, elements in a lane, elements of D, format, mnemonics."""
    found = []
    for line in text.strip().splitlines():
        layout, count, results, form, *mnemonics = re.split(r"\s\s+|(?<=\S)\s(?=v_)", line.strip())
        found += [Case(target, m, layout, int(count), int(results), form) for m in mnemonics]
    return found


CASES = [
    *cases(
        "gfx90a",
        """
        32x32x2b   1  32  f32   v_mfma_f32_32x32x1f32
        16x16x4b   1  16  f32   v_mfma_f32_16x16x1f32
        4x4x16b    1  4   f32   v_mfma_f32_4x4x1f32
        32x32      1  16  f32   v_mfma_f32_32x32x2f32
        16x16      1  4   f32   v_mfma_f32_16x16x4f32
        32x32x2b   4  32  f16   v_mfma_f32_32x32x4f16
        16x16x4b   4  16  f16   v_mfma_f32_16x16x4f16
        4x4x16b    4  4   f16   v_mfma_f32_4x4x4f16
        32x32      4  16  f16   v_mfma_f32_32x32x8f16
        16x16      4  4   f16   v_mfma_f32_16x16x16f16
        32x32x2b   4  32  bf16  v_mfma_f32_32x32x4bf16_1k
        16x16x4b   4  16  bf16  v_mfma_f32_16x16x4bf16_1k
        4x4x16b    4  4   bf16  v_mfma_f32_4x4x4bf16_1k
        32x32      4  16  bf16  v_mfma_f32_32x32x8bf16_1k
        16x16      4  4   bf16  v_mfma_f32_16x16x16bf16_1k
        32x32x2b   2  32  bf16  v_mfma_f32_32x32x2bf16
        16x16x4b   2  16  bf16  v_mfma_f32_16x16x2bf16
        4x4x16b    2  4   bf16  v_mfma_f32_4x4x2bf16
        32x32      2  16  bf16  v_mfma_f32_32x32x4bf16
        16x16      2  4   bf16  v_mfma_f32_16x16x8bf16
        32x32x2b   4  32  i8    v_mfma_i32_32x32x4i8
        16x16x4b   4  16  i8    v_mfma_i32_16x16x4i8
        4x4x16b    4  4   i8    v_mfma_i32_4x4x4i8
        32x32      4  16  i8    v_mfma_i32_32x32x8i8
        16x16      4  4   i8    v_mfma_i32_16x16x16i8
        16x16 f64  1  4   f64   v_mfma_f64_16x16x4f64
        4x4 f64    1  1   f64   v_mfma_f64_4x4x4f64
        """,
    ),
    *cases(
        "gfx942",
        """
        32x32x2b   1  32  f32   v_mfma_f32_32x32x1_2b_f32
        16x16x4b   1  16  f32   v_mfma_f32_16x16x1_4b_f32
        4x4x16b    1  4   f32   v_mfma_f32_4x4x1_16b_f32
        32x32      1  16  f32   v_mfma_f32_32x32x2_f32
        16x16      1  4   f32   v_mfma_f32_16x16x4_f32
        32x32      2  16  f32   v_mfma_f32_32x32x4_xf32
        16x16      2  4   f32   v_mfma_f32_16x16x8_xf32
        32x32x2b   4  32  f16   v_mfma_f32_32x32x4_2b_f16
        16x16x4b   4  16  f16   v_mfma_f32_16x16x4_4b_f16
        4x4x16b    4  4   f16   v_mfma_f32_4x4x4_16b_f16
        32x32      4  16  f16   v_mfma_f32_32x32x8_f16
        16x16      4  4   f16   v_mfma_f32_16x16x16_f16
        32x32x2b   4  32  bf16  v_mfma_f32_32x32x4_2b_bf16
        16x16x4b   4  16  bf16  v_mfma_f32_16x16x4_4b_bf16
        4x4x16b    4  4   bf16  v_mfma_f32_4x4x4_16b_bf16
        32x32      4  16  bf16  v_mfma_f32_32x32x8_bf16
        16x16      4  4   bf16  v_mfma_f32_16x16x16_bf16
        32x32x2b   4  32  i8    v_mfma_i32_32x32x4_2b_i8
        16x16x4b   4  16  i8    v_mfma_i32_16x16x4_4b_i8
        4x4x16b    4  4   i8    v_mfma_i32_4x4x4_16b_i8
        32x32      8  16  i8    v_mfma_i32_32x32x16_i8
        16x16      8  4   i8    v_mfma_i32_16x16x32_i8
        32x32      8  16  fp8   v_mfma_f32_32x32x16_fp8_fp8
        32x32      8  16  bf8   v_mfma_f32_32x32x16_bf8_bf8
        16x16      8  4   fp8   v_mfma_f32_16x16x32_fp8_fp8
        16x16      8  4   bf8   v_mfma_f32_16x16x32_bf8_bf8
        16x16 f64  1  4   f64   v_mfma_f64_16x16x4_f64
        4x4 f64    1  1   f64   v_mfma_f64_4x4x4_4b_f64
        """,
    ),
    *cases(
        "gfx950",
        """
        32x32      8  16   f16   v_mfma_f32_32x32x16_f16
        16x16      8  4    f16   v_mfma_f32_16x16x32_f16
        32x32      8  16   bf16  v_mfma_f32_32x32x16_bf16
        16x16      8  4    bf16  v_mfma_f32_16x16x32_bf16
        32x32      16  16  i8    v_mfma_i32_32x32x32_i8
        16x16      16  4   i8    v_mfma_i32_16x16x64_i8
        32x32      8  16   fp8o  v_mfma_f32_32x32x16_fp8_fp8
        16x16      8  4    bf8o  v_mfma_f32_16x16x32_bf8_bf8
        """,
    ),
]

# Raw bits of 1, and of eight different small numbers that every format has, with their values.
ONE = {"f32": 0x3F800000, "f16": 0x3C00, "bf16": 0x3F80, "i8": 1, "fp8": 0x40, "bf8": 0x40}
ONE |= {"fp8o": 0x38, "bf8o": 0x3C}
DIGITS = {
    "i8": [(n, n) for n in range(8)],
    "f32": [(int(np.float32(n).view(np.uint32)), n) for n in range(8)],
    "f16": [(int(np.float16(n).view(np.uint16)), n) for n in range(8)],
    "bf16": [(int(np.float32(n).view(np.uint32)) >> 16, n) for n in range(8)],
    # 0, then powers of two: the exponent field alone.
    **{
        form: [(0, 0)] + [(ONE[form] + (n << shift), 2**n) for n in range(7)]
        for form, shift in (("fp8", 3), ("bf8", 2), ("fp8o", 3), ("bf8o", 2))
    },
}
BITS = {"f32": 32, "f16": 16, "bf16": 16} | dict.fromkeys(("i8", "fp8", "bf8", "fp8o", "bf8o"), 8)


def places(case: Case) -> tuple[np.ndarray, np.ndarray]:
    """Row, k, block of each [lane, element] of A; row, column, block of each of D."""
    layout = LAYOUTS[case.layout]
    inputs = [layout.row, layout.k, layout.block]
    outputs = [layout.d_row, layout.d_column, layout.d_block]
    made = []
    for count, texts in ((case.count, inputs), (case.results, outputs)):
        compiled = [compile(text, "layout", "eval") for text in texts]
        made.append(
            np.array(
                [
                    [
                        [
                            eval(c, {"lane": lane, "element": element, "count": count})
                            for c in compiled
                        ]
                        for element in range(count)
                    ]
                    for lane in range(LANES)
                ]
            )
        )
    return made[0], made[1]


def pack(numbers: np.ndarray, bits: int) -> np.ndarray:
    """[…, lane, element] of raw bits → [register, …, lane] of dwords; f64 as pairs."""
    per = max(1, 32 // bits)
    shape = (*numbers.shape[:-1], numbers.shape[-1] // per, per)
    shifts = (np.arange(per, dtype=np.uint64) * bits).astype(np.uint64)
    words = (numbers.reshape(shape).astype(np.uint64) << shifts).sum(-1, dtype=np.uint64)
    return np.moveaxis(words.astype(np.uint32), -1, -2)


def expected(case: Case, digits: np.ndarray) -> np.ndarray:
    """D [probe, register element, lane] where probe p has a 1 at A's element p and B holds
    `digits` [lane, element]."""
    a, d = places(case)
    size = a.reshape(-1, 3).max(0) + 1
    b = np.zeros((size[2], size[1], size[0]))
    b[a[..., 2], a[..., 1], a[..., 0]] = digits
    rows, columns, blocks = np.moveaxis(d, -1, 0)
    every = []
    for row, k, block in a.reshape(-1, 3):
        hit = (rows == row) & (blocks == block)
        every.append(np.where(hit, b[block, k, columns], 0).T)
    return np.array(every)


def run(case: Case, one_hot: np.ndarray, digits: np.ndarray) -> np.ndarray:
    """[probe, element of D, lane]."""
    wide = case.form == "f64"
    results = case.results * (2 if wide else 1)
    a_count = one_hot.shape[1]
    loaded = registers("v", 0, a_count) + registers("v", 16, a_count)
    values = np.concatenate([one_hot, np.broadcast_to(digits, one_hot.shape)], axis=1)
    last = lambda first, count: f"v[{first}:{first + count - 1}]" if count > 1 else f"v{first}"  # noqa: E731
    text = f"{case.mnemonic} {last(64, results)}, {last(0, a_count)}, {last(16, a_count)}, 0"
    raw = execute(text, case.target, loaded, values, registers("v", 64, results))
    if wide:
        pairs = raw.reshape(len(raw), case.results, 2, LANES).astype(np.uint64)
        return (pairs[:, :, 0] | pairs[:, :, 1] << np.uint64(32)).view(np.float64)
    return raw.view(np.int32) if case.form == "i8" else raw.view(np.float32)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_layout(case: Case) -> None:
    """B's elements are numbered in digits; a 1 in A shows which of them meets it, and where."""
    positions = LANES * case.count
    hot = np.eye(positions, dtype=np.uint64).reshape(positions, LANES, case.count)
    number = np.arange(positions).reshape(LANES, case.count)
    if case.form == "f64":
        bits = np.float64(1).view(np.uint64)
        split = lambda x: np.stack([x & np.uint64(0xFFFFFFFF), x >> np.uint64(32)], -1)  # noqa: E731
        one_hot = np.moveaxis(split(hot[..., 0] * bits), -1, -2)
        values = (number + 1).astype(np.float64)
        digits = np.moveaxis(split(values[:, 0].view(np.uint64)), -1, -2)
        assert np.array_equal(run(case, one_hot, digits), expected(case, values))
        return
    one_hot = pack(hot * np.uint64(ONE[case.form]), BITS[case.form])
    raw, value = (np.array(column) for column in zip(*DIGITS[case.form], strict=True))
    for power in range(int(np.ceil(np.log2(positions) / 3))):
        digit = number >> 3 * power & 7
        found = run(case, one_hot, pack(raw[digit], BITS[case.form]))
        assert np.array_equal(found, expected(case, value[digit])), f"digit {power}"


def test_each_dense_instruction_has_a_layout() -> None:
    """What the disassembler knows as a dense matrix instruction of one format is tried here."""
    from fly_run.emulator import coverage

    tried = {(case.target, case.mnemonic) for case in CASES}
    shared = {case.mnemonic for case in CASES if case.target == "gfx942"}
    for target in ("gfx90a", "gfx942", "gfx950"):
        every = {name for name in coverage.universe(target) if name.startswith("v_mfma_")}
        mixed = re.compile(r"(fp8_bf8|bf8_fp8|f8f6f4|ld_scale_b32)$")
        missing = {
            name
            for name in every
            if (target, name) not in tried
            and not (target == "gfx950" and name in shared)
            and not mixed.search(name)
        }
        assert not missing
