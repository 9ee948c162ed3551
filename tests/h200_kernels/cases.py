"""Inputs and expected results: those of the examples, and of the kernels of this folder."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from h200_kernels import matrix_cases, primitive_cases
from h200_kernels.case import Case, Values
from h200_kernels.kernels import BLOCK, FUNCTIONS, SLOTS

TESTS = Path(__file__).parents[1]
sys.path.insert(0, str(TESTS / "examples"))
from example_cases import CASES as EXAMPLES  # noqa: E402

# The tensors of saxpy_wide have 2 GB, and top_k returns two.
OMITTED = ("saxpy_wide", "top_k")


def normal(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


def magnitudes(seed: int, count: int, dtype: type) -> np.ndarray:
    """Returns numbers of all magnitudes from 1e-8 to 1e8, of both signs, and special ones."""
    random = np.random.default_rng(seed)
    x = 10.0 ** random.uniform(-8, 8, count) * random.choice([-1, 1], count)
    x[: count // 2] = random.uniform(-20, 20, count // 2)
    special = [0.0, -0.0, 1, -1, 0.5, 2, np.inf, -np.inf, np.nan, 88.7, -103.2, 1e-40, 3e38]
    x[: len(special)] = special
    return x.astype(dtype)


# Names of NumPy's functions that differ, and functions that NumPy lacks.
_REFERENCES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "erf": np.vectorize(math.erf, otypes=[float]),
    "erfc": np.vectorize(math.erfc, otypes=[float]),
}


def mathematics(values: Values) -> Mapping[str, np.ndarray]:
    x = values["X"].astype(np.float64)
    with np.errstate(all="ignore"):
        rows = [
            (_REFERENCES.get(name) or getattr(np, name))(row)
            for name, row in zip(FUNCTIONS, x, strict=True)
        ]
    return {"Y": np.array(rows)}


def fast(values: Values) -> Mapping[str, np.ndarray]:
    x = values["X"].astype(np.float64)
    rows = (np.exp(x), np.exp2(x), np.log2(np.abs(x) + 2), np.sin(x), np.cos(x), np.tanh(x))
    return {"Y": np.array(rows)}


def powers(values: Values) -> Mapping[str, np.ndarray]:
    x, y = (values[name].astype(np.float64) for name in "XY")
    return {"Z": np.array([x**y, np.arctan2(x, y)])}


def thread_in_block(count: int) -> np.ndarray:
    """The threads of blocks of 64, a row for each of `count` warps."""
    return np.arange(32 * count).reshape(count, 32) % 64


def warps(values: Values) -> Mapping[str, np.ndarray]:
    x = values["X"].reshape(4, 32)
    half, lane = x.astype(np.float16), np.arange(32)
    up = np.where(lane >= 3, half[:, np.maximum(lane - 3, 0)], half)
    down = np.where(lane % 16 < 13, half[:, np.minimum(lane + 3, 31)], half)
    # The sixth: lane + 5 is not in the group of four, so that each lane keeps its own value.
    by = thread_in_block(4) % 3
    above = lane % 8 >= by
    other = (
        *(half[:, lane ^ 5], up, down, np.broadcast_to(half[:, 7:8], (4, 32))),
        *(half[:, lane ^ 3], half, np.take_along_axis(half, np.where(above, lane - by, lane), 1)),
        half[:, lane - lane % 8 + 5],
    )
    thread = thread_in_block(4)

    def all_lanes(numbers: Any) -> np.ndarray:
        return np.broadcast_to(np.asarray(numbers, np.int64).reshape(4, 1), (4, 32))

    integers = (
        all_lanes(((x > 0) * (1 << lane.astype(np.int64))).sum(1)),
        all_lanes(thread.sum(1)),
        all_lanes(thread.max(1)),
        np.broadcast_to(lane + 3200, (4, 32)),
        all_lanes((x > 2).any(1)),
        np.broadcast_to(0x11111111 << (lane % 4), (4, 32)),
    )
    item = np.arange(128).reshape(4, 32)
    following = np.where(lane < 31, item + 1, item)
    return {
        "H": np.array(other).reshape(8, 128),
        "N": np.array(integers).reshape(6, 128).astype(np.uint32).view(np.int32),
        "D": x[:, lane ^ 16].astype(np.float64).reshape(128),
        "W": (following * 5_000_000_000).reshape(128),
    }


def large(values: Values) -> Mapping[str, np.ndarray]:
    x = values["X"]
    thread = np.arange(SLOTS) % BLOCK
    return {"Y": x[::-1] + 2 * x[::-1] + 4 * x[BLOCK - 1 - thread]}


def atomics(values: Values) -> Mapping[str, np.ndarray]:
    i = np.arange(8 * BLOCK)
    counts = [*np.bincount(i % 7), i.max(), -i.max(), np.bitwise_xor.reduce(i), i.max(), 5]
    return {
        "counts": np.array(counts, np.int32),
        "wide": np.array([(i << 20).sum(), i.max() << 33]),
        "sums": np.array([0.5 * i.size, 0.25 * i.size, i.max()], np.float32),
    }


def narrow(values: Values) -> Mapping[str, np.ndarray]:
    """Returns the codes of X in the formats E4M3FN and E5M2, and their values."""
    found = {}
    for code, value, mantissa, bias, most in (
        ("E4", "Y", 3, 7, 448.0),
        ("E5", "Z", 2, 15, 57344.0),
    ):
        x = values["X"].astype(np.float64)
        with np.errstate(all="ignore"):
            exponent = np.maximum(np.floor(np.log2(np.abs(x))), 1 - bias)
            step = 2.0 ** (exponent - mantissa)
            rounded = np.where(np.isfinite(x) & (x != 0), np.round(x / step) * step, x)
            over = np.abs(rounded) > most
            rounded = np.where(over, np.nan if code == "E4" else np.sign(x) * np.inf, rounded)
            low = np.maximum(np.floor(np.log2(np.abs(rounded))), 1 - bias)
            fraction = np.abs(rounded) / 2.0 ** (low - mantissa)
            codes = (low + bias - 1) * 2**mantissa + fraction
        codes = np.where(rounded == 0, 0, codes)
        codes = np.where(np.isinf(rounded), 0x7C, codes)
        codes = np.where(np.isnan(rounded), 0x7F, codes)
        negative = np.signbit(x) & ~np.isnan(x)
        found[code] = (np.nan_to_num(codes).astype(np.int64) + 128 * negative).astype(np.uint8)
        found[value] = rounded.astype(np.float32)
    return found


def integers(values: Values) -> Mapping[str, np.ndarray]:
    a, b = values["A"], values["B"]
    with np.errstate(over="ignore"):
        return {"C": np.array([a // b, a % b, a * b + (a >> 3)])}


def bfloat(x: np.ndarray) -> np.ndarray:
    """Rounds f32 to bf16, and returns the bits."""
    bits = x.astype(np.float32).view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def widened(x: np.ndarray) -> np.ndarray:
    return (x.astype(np.uint32) << 16).view(np.float32)


def bfloats(values: Values) -> Mapping[str, np.ndarray]:
    a, b = widened(values["A"]), widened(values["B"])
    product = widened(bfloat(a * b))
    total = widened(bfloat(product + a))
    return {"C": bfloat(total - np.maximum(a, b))}


def _inputs(count: int, dtype: type) -> Values:
    rows = [magnitudes(40 + row, count, dtype) for row in range(len(FUNCTIONS))]
    return {"X": np.array(rows), "Y": np.zeros((len(FUNCTIONS), count), dtype)}


def _numbers(seed: int) -> np.ndarray:
    """Returns integers of all magnitudes, none of which is 0."""
    random = np.random.default_rng(seed)
    x = random.integers(-(2**62), 2**62, 4 * BLOCK) >> random.integers(0, 60, 4 * BLOCK)
    return np.where(x == 0, 3, x)


# Around the greatest numbers of E4M3FN and E5M2.
EDGES = np.array([464, 464.1, 61440, 61439, 448, 57344, -464, -61440], np.float32)
KERNELS = Path(__file__).parent / "kernels.py"
OWN = (
    Case(KERNELS, "math_f32", lambda: _inputs(64 * BLOCK, np.float32), mathematics, ulp=3),
    Case(KERNELS, "math_f64", lambda: _inputs(4 * BLOCK, np.float64), mathematics, 4e-15, 1e-300),
    Case(
        KERNELS,
        "fast_math",
        lambda: {"X": normal(60, 4 * BLOCK), "Y": np.zeros((6, 4 * BLOCK), np.float32)},
        fast,
        rtol=1e-3,
        atol=1e-5,
    ),
    Case(
        KERNELS,
        "powers",
        lambda: {
            "X": np.abs(normal(61, 4 * BLOCK)),
            "Y": normal(62, 4 * BLOCK) * 8,
            "Z": np.zeros((2, 4 * BLOCK), np.float32),
        },
        powers,
        ulp=1,
    ),
    Case(
        KERNELS,
        "warps",
        lambda: {
            "X": normal(63, 128),
            "H": np.zeros((8, 128), np.float16),
            "N": np.zeros((6, 128), np.int32),
            "D": np.zeros(128),
            "W": np.zeros(128, np.int64),
        },
        warps,
    ),
    Case(
        KERNELS,
        "large_shared",
        lambda: {"X": normal(64, SLOTS), "Y": np.zeros(SLOTS, np.float32)},
        large,
        rtol=1e-5,
        atol=1e-5,
    ),
    Case(
        KERNELS,
        "atomics",
        lambda: {
            "counts": np.zeros(12, np.int32),
            "wide": np.zeros(2, np.int64),
            "sums": np.zeros(3, np.float32),
        },
        atomics,
    ),
    Case(
        KERNELS,
        "narrow_floats",
        lambda: {
            "X": np.concatenate(
                [magnitudes(65, 64, np.float32), normal(66, BLOCK - 72) * 100, EDGES]
            ),
            "E4": np.zeros(BLOCK, np.uint8),
            "E5": np.zeros(BLOCK, np.uint8),
            "Y": np.zeros(BLOCK, np.float32),
            "Z": np.zeros(BLOCK, np.float32),
        },
        narrow,
    ),
    Case(
        KERNELS,
        "integers",
        lambda: {"A": _numbers(67), "B": _numbers(68), "C": np.zeros((3, 4 * BLOCK), np.int64)},
        integers,
    ),
    Case(
        KERNELS,
        "bfloats",
        lambda: {
            "A": bfloat(normal(69, 4 * BLOCK)),
            "B": bfloat(normal(70, 4 * BLOCK)),
            "C": np.zeros(4 * BLOCK, np.uint16),
        },
        bfloats,
    ),
    *primitive_cases.CASES,
    *matrix_cases.CASES,
)


def cases() -> list[Case]:
    """Returns all cases: the examples that need no other vendor's instructions, and our own."""
    examples = TESTS.parent / "examples"
    made = [
        Case(
            examples / one.file,
            one.entry,
            one.make,
            one.expect,
            one.rtol,
            one.atol,
            0.0,
            one.returns,
        )
        for one in EXAMPLES
        if not one.traits and one.entry not in OMITTED and not isinstance(one.returns, tuple)
    ]
    return [*made, *OWN]
