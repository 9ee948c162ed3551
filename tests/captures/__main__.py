"""Compares the emulator with hardware: rocjitsu's captures of gfx1100 and gfx1201.

    PYTHONPATH=tests python -m captures FILE…

The files are in emulation/rocjitsu/tests/fixtures/float_dot of ROCm/rocm-systems, and are not
copied here: gfx1100_cases.h, gfx1201_cases.h, packed_operand_cases.h and packed_wmma_cases.h. They
cover v_dot2_f32_f16 and v_dot2_f32_bf16, dense matrix products with results in f32, f16 and bf16,
and the effects of modifiers and constants on them. Waves of 64, which the emulator does not
support, are skipped. Every bit of a result is compared, also of NaNs. The exit status is 1 if a
result differs.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from captures import header, machine

FORMS = ("f16", "bf16")
TARGETS = ("gfx1100", "gfx1201")
Outcome = tuple[str, str, np.ndarray]  # target, description, where it is correct


def main() -> int:
    if not sys.argv[1:]:
        print("captures: name the files: python -m captures FILE…", file=sys.stderr)
        return 2
    wrong = 0
    for path in sys.argv[1:]:
        found = header.arrays(Path(path))
        for kind in (dots, rows_of_matrices, whole_numbers, operands, packed_matrices):
            for target, what, right in kind(found):
                print(f"{target} {what}: {right.sum()} of {right.size} equal")
                wrong += int((~right).sum())
    return 1 if wrong else 0


def dots(found: dict[str, np.ndarray]) -> Iterator[Outcome]:
    """Rows of A, B, C and the result."""
    for target, prefix in zip(TARGETS, ("kDot2", "kGfx12Dot"), strict=True):
        for form in FORMS:
            cases = found.get(f"{prefix}{form.upper()}Cases", np.zeros(0, np.uint32))
            if cases.size:
                a, b, c, wanted = np.ascontiguousarray(cases.reshape(-1, 4).T)
                right = machine.dots(target, form, a, b, c) == wanted
                yield target, f"v_dot2_f32_{form}", right


def rows_of_matrices(found: dict[str, np.ndarray]) -> Iterator[Outcome]:
    """A row of A, a column of B, C, the results in waves of 32 and of 64; all rows are equal."""
    for form in FORMS:
        cases = found.get(f"kGfx12Wmma{form.upper()}Cases", np.zeros(0, np.uint32))
        right = []
        for case in cases.reshape(-1, 35):
            factors = [np.tile(case[first : first + 16], (16, 1)) for first in (0, 16)]
            c = np.full((16, 16), case[32])
            right.append((machine.matrix("gfx1201", "f32", form, factors, c) == case[33]).all())
        if right:
            yield "gfx1201", f"matrices of {form} to f32", np.array(right)


def whole_numbers(found: dict[str, np.ndarray]) -> Iterator[Outcome]:
    """One matrix, whose factors are given by a formula of rocjitsu's gfx11_dot2_test.cpp."""
    if "kWmmaIntegerResult" not in found:
        return
    wanted = found["kWmmaIntegerResult"].reshape(16, 16)
    place = np.arange(256).reshape(16, 16)
    a, b, c = place * 7 % 17 - 8, (place * 11 % 17 - 8).T, place * 13 % 129 - 64
    for form in FORMS:
        factors = [_raw(side, form) for side in (a, b)]
        addend = c.astype(np.float32).view(np.uint32)
        right = machine.matrix("gfx1100", "f32", form, factors, addend) == wanted
        yield "gfx1100", f"elements of a matrix of {form} to f32", right


def _raw(numbers: np.ndarray, form: str) -> np.ndarray:
    if form == "f16":
        return numbers.astype(np.float16).view(np.uint16)
    return (numbers.astype(np.float32).view(np.uint32) >> np.uint32(16)).astype(np.uint16)


def operands(found: dict[str, np.ndarray]) -> Iterator[Outcome]:
    """Rows of an instruction's two words, and all registers of A, B and C; D for each target."""
    if "kPackedOperandCases" not in found:
        return
    cases = found["kPackedOperandCases"].reshape(-1, 7)
    for number, target in enumerate(TARGETS):
        # gfx1201 has two results in a register, and the last of eight is not a result.
        last = cases[:, 5] if number == 0 else np.full(len(cases), machine.OLD, np.uint32)
        wanted = np.stack([cases[:, 5 + number], last], 1)
        known = machine.known(target, cases)
        print(f"{target} left out: {(~known).sum()}, which LLVM's disassembler does not know")
        right = (machine.words(target, cases[known]) == wanted[known]).all(axis=1)
        yield target, "modifiers and constants of matrices to f16 and bf16", right


def packed_matrices(found: dict[str, np.ndarray]) -> Iterator[Outcome]:
    """Inputs [form, number] of A, B and C by rows, results [target, wave, form, number]."""
    if "kPackedWmmaInputs" not in found:
        return
    inputs = found["kPackedWmmaInputs"].reshape(2, -1, 3, 16, 16)
    results = found["kPackedWmmaExpected"].reshape(2, 2, 2, -1, 16, 16)
    for number, target in enumerate(TARGETS):
        for kind, form in enumerate(FORMS):
            right = []
            for (a, b, c), wanted in zip(inputs[kind], results[number, 0, kind], strict=True):
                for upper in (0, 1) if target == "gfx1100" else (0,):
                    made = machine.matrix(target, form, form, [a, b.T], c & 0xFFFF, upper)
                    right.append(made == wanted)
            yield target, f"elements of matrices of {form} to {form}", np.array(right)


if __name__ == "__main__":
    sys.exit(main())
