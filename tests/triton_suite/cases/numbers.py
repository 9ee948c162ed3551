"""Arithmetic: random numbers, conversions, integers, math functions, a data-dependent loop."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from triton_suite import formats
from triton_suite.case import Case, Made, near, types_of


def numbers() -> Iterator[Case]:
    def dropout(rng: np.random.Generator) -> Made:
        n = 2000
        x = rng.standard_normal(n).astype("f4")
        kept = formats.philox(123, n) > np.float32(0.25)
        y = np.where(kept, x / np.float32(0.75), np.float32(0))
        arguments = [x, np.zeros_like(x), np.int32(n), np.float32(0.25), np.int32(123)]
        return arguments, (4, 1, 1), {"y": near(y, 3e-7)}

    yield Case("dropout", "dropout", types_of("x:*fp32 y:*fp32 n:i32 p:fp32 seed:i32"),
               {"BLOCK": 512}, dropout)  # fmt: skip

    for source, made in (
        *(("fp32", "fp16"), ("fp32", "bf16"), ("fp16", "fp32"), ("bf16", "fp32"), ("fp64", "fp32")),
        *(("fp32", "i32"), ("i32", "fp32"), ("i64", "fp32"), ("fp32", "i8"), ("fp16", "i16")),
        *(("u32", "fp64"), ("i8", "fp16"), ("fp64", "i64")),
    ):

        def convert(rng: np.random.Generator, source: str = source, made: str = made) -> Made:
            if source[0] in "iu":
                limits = np.iinfo(formats.NUMPY[source])
                least, most = max(limits.min, -(2**62)), min(limits.max, 2**62)
                x = rng.integers(least, most, 700, endpoint=True).astype(formats.NUMPY[source])
            else:
                x = formats.array(rng.standard_normal(700) * 40, source)
            values = formats.value(x, source) if source[0] not in "iu" else x
            y = formats.array(np.trunc(values) if made[0] in "iu" else values, made)
            return [x, np.zeros_like(y), np.int32(700)], (3, 1, 1), {"y": y}

        yield Case(f"convert-{source}-{made}", "convert", types_of(f"x:*{source} y:*{made} n:i32"),
                   {"BLOCK": 256}, convert)  # fmt: skip

    for kind in ("i32", "u32", "i64", "u64"):

        def integers(rng: np.random.Generator, kind: str = kind) -> Made:
            dtype = np.dtype(kind[0] + str(int(kind[1:]) // 8))
            limits = np.iinfo(dtype)
            n = 500
            a = rng.integers(limits.min, limits.max, n, dtype, True)
            b = (
                rng.integers(1, limits.max, n, dtype, True) >> rng.integers(0, 31, n).astype(dtype)
            ) | 1
            # Division truncates as in C, not as in Python.
            pairs = [(int(x), int(y)) for x, y in zip(a, b.astype(dtype), strict=True)]
            quotient = [abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1) for x, y in pairs]
            width, mask = dtype.itemsize * 8, 2 ** (dtype.itemsize * 8) - 1

            def wrapped(values: list[int]) -> np.ndarray:
                unsigned = np.array([v & mask for v in values], f"u{dtype.itemsize}")
                return unsigned.view(dtype)

            expected = {
                "quotient": wrapped(quotient),
                "remainder": wrapped(
                    [x - q * y for (x, y), q in zip(pairs, quotient, strict=True)]
                ),
                "shifted": wrapped([(x >> (y & 15)) ^ (x << (y & 7)) for x, y in pairs]),
                "high": wrapped([(x & mask) * (y & mask) >> width for x, y in pairs]),
            }
            arguments = [a, b.astype(dtype), *(np.zeros(n, dtype) for _ in range(4)), np.int32(n)]
            return arguments, (2, 1, 1), expected

        types = dict.fromkeys(("a", "b", "quotient", "remainder", "shifted", "high"), f"*{kind}")
        yield Case(f"integers-{kind}", "integers", types | {"n": "i32"}, {"BLOCK": 256}, integers)

    def functions(rng: np.random.Generator) -> Made:
        n = 300
        x = rng.uniform(0.01, 8, n).astype("f4")
        v = x.astype("f8")
        rows = [
            *(np.exp(v), np.exp2(v), np.log(v), np.log2(v), np.sin(v), np.cos(v), np.sqrt(v)),
            *(1 / np.sqrt(v), np.vectorize(math.erf)(v), v / (v + 3), np.floor(v) + np.ceil(v / 2)),
            *(1 / (1 + np.exp(-v)), np.tanh(v), np.arctan2(v, 2 - v), v**1.7, np.log1p(v)),
            *(np.vectorize(math.lgamma)(v), np.array([formats.bessel(a) for a in v])),
        ]
        y = np.stack(rows)
        wanted = near(y, 3e-6, 2e-6)
        return [x, np.zeros(y.shape, "f4"), np.int32(n)], (2, 1, 1), {"y": wanted}

    yield Case(
        "functions", "functions", types_of("x:*fp32 y:*fp32 n:i32"), {"BLOCK": 256}, functions
    )

    def collatz(rng: np.random.Generator) -> Made:
        x = rng.integers(1, 1000, 256).astype("i4")
        y = np.zeros_like(x)
        for at, n in enumerate(x.tolist()):
            while n != 1:
                n, y[at] = n // 2 if n % 2 == 0 else 3 * n + 1, y[at] + 1
        return [x, np.zeros_like(x)], (2, 1, 1), {"y": y}

    yield Case("collatz", "collatz", types_of("x:*i32 y:*i32"), {"BLOCK": 128}, collatz)
