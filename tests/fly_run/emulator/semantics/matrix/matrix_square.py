"""Matrix instructions on gfx9, of 16 × 16 and of sixteen blocks of 4 × 4: A and B as codes of their
format, D by rows and columns. The oracle's tables and NumPy decode the codes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from emulator_support.matrix import LANES, execute, registers
from oracle.arithmetic import minifloat

SIDE = 16
GROUPS = LANES // SIDE  # lane groups that share the k of a row of 16 × 16


@dataclass(frozen=True)
class Case:
    """An instruction, the format of A and B, the number of elements of each per lane, and the
    modifier that selects the format; `flushes`: exact arithmetic reads a subnormal factor as 0."""

    target: str
    mnemonic: str
    form: str
    elements: int
    modifiers: str = ""
    flushes: bool = False

    @property
    def blocks(self) -> int:
        return 16 if "_4x4x" in self.mnemonic else 1

    @property
    def side(self) -> int:
        return 4 if self.blocks > 1 else SIDE

    def __str__(self) -> str:
        return f"{self.target} {self.form} {self.mnemonic}"


def bits_of(form: str) -> int:
    plain = {"f64": 64, "f32": 32, "xf32": 32, "f16": 16, "bf16": 16, "i8": 8}
    return plain.get(form) or minifloat.OCP[form].bits


def decoded(codes: np.ndarray, form: str, target: str) -> np.ndarray:
    """Returns the values of codes (uint64), as float64."""
    if form == "f64":
        return codes.view(np.float64)
    if form == "f32":
        with np.errstate(invalid="ignore"):  # a signalling NaN
            return codes.astype(np.uint32).view(np.float32).astype(np.float64)
    if form == "xf32":  # ten fraction bits
        return decoded(codes & ~np.uint64(0x1FFF), "f32", target)
    if form == "bf16":
        return decoded(codes << np.uint64(16), "f32", target)
    if form == "f16":
        return codes.astype(np.uint16).view(np.float16).astype(np.float64)
    if form == "i8":
        return codes.astype(np.uint8).view(np.int8).astype(np.float64)
    return minifloat.formats(target)[form].decode(codes)


def packed(elements: np.ndarray, width: int) -> np.ndarray:
    """Packs [wave, lane, element] into [wave, register, lane], low bits first."""
    steps = np.arange(width, dtype=np.uint64)
    bits = (elements[..., None] >> steps & np.uint64(1)).astype(np.uint8)
    words = np.packbits(bits.reshape(*elements.shape[:2], -1), axis=-1, bitorder="little")
    return words.view(np.uint32).transpose(0, 2, 1)


def factor(case: Case, codes: np.ndarray) -> np.ndarray:
    """Returns the values of codes [wave, lane, element] of A: [wave, block, row, k]; for B, columns
    take the place of rows."""
    values = decoded(codes, case.form, case.target)
    waves, _, elements = values.shape
    if case.blocks > 1:  # lane l has row l % 4 of block l // 4
        return values.reshape(waves, case.blocks, -1, elements)
    # Lane l has row l % 16, and its k start at `elements` · (l // 16).
    shares = values.reshape(waves, GROUPS, SIDE, elements).transpose(0, 2, 1, 3)
    return shares.reshape(waves, 1, SIDE, -1)


def addend(case: Case, c: np.ndarray) -> np.ndarray:
    """Converts C [wave, block, row, column] of f32 to registers: uint32[wave, register, lane]."""
    if case.blocks > 1:  # register r of lane l is row r, column l % 4 of block l // 4
        rows = c.transpose(0, 2, 1, 3)
    else:  # register r of lane l is row 4·(l // 16) + r, column l % 16
        rows = c.reshape(len(c), GROUPS, 4, SIDE).transpose(0, 2, 1, 3)
    return np.ascontiguousarray(rows).view(np.uint32).reshape(len(c), 4, LANES)


def multiply(
    case: Case,
    a: np.ndarray,
    b: np.ndarray,
    c: np.ndarray,
    mode: str,
    scales: np.ndarray | None = None,
) -> np.ndarray:
    """Returns D of each wave: [wave, row, column] of f32, i32 or f64; for 4 × 4, [wave, block, row,
    column] of f32. A and B are codes, [wave, lane, element]; C is uint32[wave, register, lane], and
    so are the scales of A and B, one register each, if the instruction has them."""
    width = bits_of(case.form)
    factors = [packed(x, width) for x in (a, b)]
    count, results = factors[0].shape[1], c.shape[1]
    span = lambda first, n: f"v[{first}:{first + n - 1}]" if n > 1 else f"v{first}"  # noqa: E731
    text = (
        f"{case.mnemonic} {span(32, results)}, {span(0, count)}, {span(8, count)},"
        f" {span(16, results)}{', v24, v25' if scales is not None else ''} {case.modifiers}"
    )
    loaded = registers("v", 0, count) + registers("v", 8, count) + registers("v", 16, results)
    if scales is not None:
        loaded += ("v24", "v25")
    values = np.concatenate([*factors, c, *([] if scales is None else [scales])], axis=1)
    found = execute(
        text, case.target, loaded, values, registers("v", 32, results), mfma=mode
    ).reshape(len(a), results, LANES)
    if case.form == "f64":
        pairs = found.reshape(len(a), 4, 2, LANES).astype(np.uint64)
        found = (pairs[:, :, 0] | pairs[:, :, 1] << np.uint64(32)).view(np.float64)
        return found.reshape(len(a), SIDE, SIDE)
    values = found.view(np.int32 if case.form == "i8" else np.float32)
    if case.blocks > 1:
        return values.reshape(len(a), 4, case.blocks, 4).transpose(0, 2, 1, 3)
    return values.reshape(len(a), 4, GROUPS, SIDE).transpose(0, 2, 1, 3).reshape(-1, SIDE, SIDE)
