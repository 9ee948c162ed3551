"""Atomic operations on global memory."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from triton_suite import formats
from triton_suite.case import Case, Made, types_of


def atomics() -> Iterator[Case]:
    def histogram(rng: np.random.Generator) -> Made:
        x = rng.integers(0, 64, 1900).astype("i4")
        y = np.bincount(x, minlength=64).astype("i4")
        return [x, np.zeros_like(y), np.int32(1900)], (2, 1, 1), {"y": y}

    yield Case("histogram", "histogram", types_of("x:*i32 y:*i32 n:i32"),
               {"BLOCK": 1024, "BINS": 64}, histogram)  # fmt: skip

    def combined(rng: np.random.Generator) -> Made:
        # Not negative: Triton 3.9.0 combines lanes of one address by umin and umax first, and gets
        # minima and maxima of mixed signs wrong.
        n = 900
        x, index = rng.integers(0, 1000, n).astype("i4"), rng.integers(0, 16, n).astype("i4")
        starts = [rng.integers(0, 1000, 16).astype("i4") for _ in range(4)]
        wanted = [start.copy() for start in starts]
        for operation, y in zip(
            (np.add, np.minimum, np.maximum, np.bitwise_xor), wanted, strict=True
        ):
            operation.at(y, index, x)
        exchanged = rng.integers(-1000, 1000, n).astype("i4")
        names = ("added", "least", "most", "either")
        expected = {**dict(zip(names, wanted, strict=True)), "exchanged": exchanged + 1}
        arguments = [x, index, *starts, exchanged.copy(), np.int32(n)]
        return arguments, (4, 1, 1), expected

    names = ["x", "index", "added", "least", "most", "either", "exchanged"]
    yield Case("atomics", "atomics", dict.fromkeys(names, "*i32") | {"n": "i32"},
               {"BLOCK": 256}, combined)  # fmt: skip

    for kind in ("fp32", "fp16", "bf16", "fp64", "i64"):

        def added(rng: np.random.Generator, kind: str = kind) -> Made:
            n = 600
            x, index = formats.small(rng, n, kind), rng.integers(0, 34, n).astype("i4")
            y = np.zeros(34)  # even: 16-bit elements are added in pairs
            np.add.at(y, index, formats.value(x, kind))
            made = formats.array(y, kind)
            return [x, index, np.zeros_like(made), np.int32(n)], (3, 1, 1), {"y": made}

        types = types_of(f"x:*{kind} index:*i32 y:*{kind} n:i32")
        yield Case(f"atomic-add-{kind}", "add_atomically", types, {"BLOCK": 256}, added)

    def swapped(rng: np.random.Generator) -> Made:
        x = np.where(rng.integers(0, 2, 512) > 0, np.arange(512), -1).astype("i4")
        after = np.where(x >= 0, np.arange(512) * 3, x).astype("i4")
        return [x, np.zeros_like(x)], (2, 1, 1), {"x": after, "y": x.copy()}

    yield Case("compare-and-swap", "compare_and_swap", types_of("x:*i32 y:*i32"),
               {"BLOCK": 256}, swapped)  # fmt: skip
