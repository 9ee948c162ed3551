"""Triton's element types in NumPy: arrays, their values, and comparison after rounding."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

SMALL = 3  # the largest number of `small`
NUMPY = {
    "fp64": "f8",
    "fp32": "f4",
    "fp16": "f2",
    "bf16": "u2",
    "i8": "i1",
    "i16": "i2",
    "i32": "i4",
    "i64": "i8",
    "u8": "u1",
    "u16": "u2",
    "u32": "u4",
    **dict.fromkeys(("fp8e4b8", "fp8e5b16", "fp8e4nv", "fp8e5"), "u1"),
}
# Bits of the exponent and of the fraction, bias, whether there are infinities.
NARROW = {
    "fp8e4nv": (4, 3, 7, False),
    "fp8e5": (5, 2, 15, True),
    "fp8e4b8": (4, 3, 8, False),
    "fp8e5b16": (5, 2, 16, False),
    "e2m1": (2, 1, 1, False),
}
NARROW |= {"e4m3": NARROW["fp8e4nv"], "e5m2": NARROW["fp8e5"]}


@cache
def _values(kind: str) -> np.ndarray:
    """Returns the value of each code. Tests use no NaN, so only finite ones matter."""
    exponent, fraction, bias, infinite = NARROW[kind]
    made = []
    for code in range(2 ** (1 + exponent + fraction)):
        high, low = code >> fraction & (2**exponent - 1), code & (2**fraction - 1)
        size = (low + 2**fraction * (high > 0)) * 2.0 ** (max(high, 1) - bias - fraction)
        if infinite and high == 2**exponent - 1:
            size = np.inf if low == 0 else np.nan
        made.append(-size if code >> (exponent + fraction) else size)
    return np.array(made)


def array(values: np.ndarray, kind: str) -> np.ndarray:
    """Converts numbers to that type, rounded to nearest even; of eight bits only exact ones."""
    if kind == "bf16":
        bits = np.asarray(values, "f4").view("u4")
        return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype("u2")
    if kind in NARROW:
        known = {value: code for code, value in reversed([*enumerate(_values(kind).tolist())])}
        codes = [known[value] for value in np.asarray(values, "f8").ravel().tolist()]
        return np.array(codes, "u1").reshape(np.shape(values))
    return np.asarray(values).astype(NUMPY[kind])


def value(stored: np.ndarray, kind: str) -> np.ndarray:
    """Returns the numbers as f64."""
    if kind == "bf16":
        return (stored.astype("u4") << 16).view("f4").astype("f8")
    if kind in NARROW:
        return _values(kind)[stored]
    return stored.astype("f8")


def small(rng: np.random.Generator, shape: Any, kind: str) -> np.ndarray:
    """Returns integers whose sums of products are exact in any order."""
    return array(rng.integers(-SMALL, SMALL + 1, shape), kind)


def scaled(rng: np.random.Generator, rows: int, k: int, kind: str) -> np.ndarray:
    """Returns a matrix of an MX format; of four bits two values per byte, the lower half first."""
    if kind == "e2m1":
        return rng.integers(0, 256, (rows, k // 2)).astype("u1")
    return array(rng.integers(-2, 3, (rows, k)), kind)


def scaled_value(stored: np.ndarray, kind: str) -> np.ndarray:
    if kind == "e2m1":
        halves = np.stack([stored & 15, stored >> 4], 2).reshape(len(stored), -1)
        return _values(kind)[halves]
    return _values(kind)[stored]


@dataclass(frozen=True)
class Rounded:
    """Compares within `relative` and `absolute` of the value, then rounded to the type."""

    wanted: np.ndarray
    kind: str
    relative: float
    absolute: float = 0.0

    def __call__(self, found: np.ndarray) -> None:
        unit = {"bf16": 2.0**-8, "fp16": 2.0**-11, "fp32": 2.0**-24, "fp64": 0}[self.kind]
        got = value(found, self.kind)
        bound = np.abs(self.wanted) * (self.relative + unit) + self.absolute
        if self.kind == "fp16":
            bound = bound + 2.0**-25
        off = np.abs(got - self.wanted)
        wrong = ~(off <= bound)
        assert not wrong.any(), (
            f"{wrong.sum()} of {wrong.size} too far: {got[wrong][0]} for {self.wanted[wrong][0]}"
        )


def philox(seed: int, n: int) -> np.ndarray:
    """Returns the first word of Philox4x32-10 (Salmon et al., "Parallel Random Numbers: As Easy as
    1, 2, 3", SC 2011) for the counters 0 to n-1, as f32 in [0, 1)."""
    mask, counters = 2**32 - 1, [np.arange(n, dtype="u8"), *(np.zeros(n, "u8") for _ in range(3))]
    keys = [seed & mask, seed >> 32]
    for _ in range(10):
        high, low = counters[0] * np.uint64(0xD2511F53), counters[2] * np.uint64(0xCD9E8D57)
        counters = [
            low >> np.uint64(32) ^ counters[1] ^ np.uint64(keys[0]),
            low & np.uint64(mask),
            high >> np.uint64(32) ^ counters[3] ^ np.uint64(keys[1]),
            high & np.uint64(mask),
        ]
        keys = [(keys[0] + 0x9E3779B9) & mask, (keys[1] + 0xBB67AE85) & mask]
    signed = counters[0].astype("u4").view("i4").astype("i8")
    positive = np.where(signed < 0, -signed - 1, signed)
    return (positive.astype("f4") * np.float32(4.6566127342e-10)).astype("f4")


def bessel(x: float) -> float:
    """Returns J₀ by its integral, π⁻¹ ∫₀^π cos(x sin t) dt; the trapezoidal rule is exact in
    double."""
    t = np.linspace(0, np.pi, 201)
    y = np.cos(x * np.sin(t))
    return float((y[0] / 2 + y[1:-1].sum() + y[-1] / 2) / 200)
