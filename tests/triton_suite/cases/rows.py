"""Sums, softmax and layer normalisation of rows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from triton_suite import formats
from triton_suite.case import Case, Made, near, types_of


def rows() -> Iterator[Case]:
    for kind, warps in (("fp32", 4), ("fp16", 8), ("bf16", 2), ("fp64", 1), ("i8", 4)):

        def add(rng: np.random.Generator, kind: str = kind) -> Made:
            n = 1500
            a, b = (formats.small(rng, n, kind) for _ in range(2))
            total = formats.value(a, kind) + formats.value(b, kind)
            c = formats.array(total, kind)
            return [a, b, np.zeros_like(c), np.int32(n)], (3, 1, 1), {"c": c}

        types = types_of(f"a:*{kind} b:*{kind} c:*{kind} n:i32")
        yield Case(f"add-{kind}", "add", types, {"BLOCK": 512}, add, {"num_warps": warps})

    for kind, columns, block, warps in (
        *(("fp32", 781, 1024, 8), ("fp16", 130, 256, 1), ("bf16", 1000, 1024, 4)),
    ):

        def softmax(rng: np.random.Generator, kind: str = kind, columns: int = columns) -> Made:
            x = formats.array(rng.standard_normal((5, columns)) * 4, kind)
            v = formats.value(x, kind)
            e = np.exp(v - v.max(1, keepdims=True))
            wanted = formats.Rounded(e / e.sum(1, keepdims=True), kind, 2e-6)
            return [x, np.zeros_like(x), np.int32(columns)], (5, 1, 1), {"y": wanted}

        types = types_of(f"x:*{kind} y:*{kind} columns:i32")
        yield Case(f"softmax-{kind}", "softmax", types, {"BLOCK": block}, softmax,
                   {"num_warps": warps})  # fmt: skip

        def layernorm(rng: np.random.Generator, kind: str = kind, columns: int = columns) -> Made:
            x = formats.array(rng.standard_normal((4, columns)) + 1, kind)
            gamma, beta = (rng.standard_normal(columns).astype("f4") for _ in range(2))
            v = formats.value(x, kind)
            centred = v - v.mean(1, keepdims=True)
            norm = centred / np.sqrt((centred**2).mean(1, keepdims=True) + 1e-5)
            wanted = formats.Rounded(norm * gamma + beta, kind, 1e-6, 4e-6)
            y = np.zeros_like(x)
            arguments = [x, gamma, beta, y, np.int32(columns), np.float32(1e-5)]
            return arguments, (4, 1, 1), {"y": wanted}

        types = types_of(f"x:*{kind} gamma:*fp32 beta:*fp32 y:*{kind} columns:i32 eps:fp32")
        yield Case(f"layernorm-{kind}", "layernorm", types, {"BLOCK": block}, layernorm,
                   {"num_warps": warps})  # fmt: skip

    def gradient(rng: np.random.Generator) -> Made:
        x, dy = (rng.standard_normal((12, 200)).astype("f4") for _ in range(2))
        v = x.astype("f8")
        centred = v - v.mean(1, keepdims=True)
        wanted = (dy * centred / np.sqrt((centred**2).mean(1, keepdims=True) + 1e-5)).sum(0)
        arguments = [x, dy, np.zeros(200, "f4"), np.zeros(1, "i4"), np.int32(200)]
        return (
            arguments,
            (12, 1, 1),
            {"dgamma": near(wanted, 1e-5, 1e-5), "lock": np.zeros(1, "i4")},
        )

    yield Case("layernorm-gradient", "layernorm_gradient",
               types_of("x:*fp32 dy:*fp32 dgamma:*fp32 lock:*i32 columns:i32"),
               {"BLOCK": 256}, gradient)  # fmt: skip
