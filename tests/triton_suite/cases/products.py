"""Matrix products: plain, scaled, persistent, as a convolution."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from kernels.case import TARGETS

from triton_suite import formats
from triton_suite.case import Case, Made, types_of

LDS = 65536  # bytes of a workgroup, on all but gfx950
GFX9 = ("gfx90a", "gfx942", "gfx950")
# Operands, sum, targets.
PRODUCTS = (
    ("fp16", "fp32", TARGETS),
    ("fp16", "fp16", TARGETS),
    ("bf16", "fp32", TARGETS),
    ("bf16", "bf16", TARGETS),
    ("fp32", "fp32", TARGETS),
    ("fp64", "fp64", GFX9),
    ("i8", "i32", TARGETS),
    ("fp8e4b8", "fp32", ("gfx942",)),
    ("fp8e5b16", "fp32", ("gfx942",)),
    ("fp8e4nv", "fp32", ("gfx950", "gfx1201", "gfx1250")),
    ("fp8e5", "fp32", ("gfx950", "gfx1201", "gfx1250")),
)
# M, N, K, tile, by columns, options
PLAINLY = (100, 72, 90, (64, 64, 32), False, {"num_warps": 4, "num_stages": 2})
TILES = (
    PLAINLY,
    (128, 128, 128, (128, 128, 64), True, {"num_warps": 8, "num_stages": 2}),
    (64, 96, 192, (32, 32, 64), True, {"num_warps": 2, "num_stages": 3}),
    (
        64,
        64,
        128,
        (64, 32, 64),
        False,
        {"num_warps": 4, "num_stages": 1, "matrix_instr_nonkdim": 16},
    ),
    (
        64,
        64,
        128,
        (64, 64, 32),
        True,
        {"num_warps": 4, "num_stages": 2, "matrix_instr_nonkdim": 32},
    ),
    (16, 256, 256, (16, 64, 128), False, {"num_warps": 4, "num_stages": 2, "kpack": 2}),
)


def products() -> Iterator[Case]:
    for left, total, targets in PRODUCTS:
        for number, (M, N, K, tile, columns, options) in enumerate(TILES):

            def make(
                rng: np.random.Generator,
                kinds: tuple[str, str] = (left, total),
                sizes: tuple[int, int, int] = (M, N, K),
                tile: tuple[int, int, int] = tile,
                columns: bool = columns,
            ) -> Made:
                M, N, K = sizes
                a = formats.small(rng, (M, K), kinds[0])
                b = formats.small(rng, (N, K) if columns else (K, N), kinds[0])
                right = formats.value(b, kinds[0])
                exact = formats.value(a, kinds[0]) @ (right.T if columns else right)
                c = formats.array(exact, kinds[1])
                grid = math.ceil(M / tile[0]) * math.ceil(N / tile[1])
                arguments = [a, b, np.zeros_like(c), *map(np.int32, (M, N, K))]
                return arguments, (grid, 1, 1), {"c": c}

            constants = dict(zip(("BM", "BN", "BK"), tile, strict=True))
            constants |= {"GROUP": 4, "PRECISION": "ieee", "TB": columns}
            if sum(tile[:2]) * tile[2] * np.dtype(formats.NUMPY[left]).itemsize > LDS:
                continue
            types = types_of(f"a:*{left} b:*{left} c:*{total} M:i32 N:i32 K:i32")
            name = f"matmul-{left}-{total}-{number}"
            terms = K if left in ("fp16", "bf16") else 0
            yield Case(name, "matmul", types, constants, make, options, targets, terms)

    for left, right in (("e2m1", "e2m1"), ("e4m3", "e2m1"), ("e5m2", "e4m3"), ("e4m3", "e4m3")):

        def scaled(rng: np.random.Generator, kinds: tuple[str, str] = (left, right)) -> Made:
            M, N, K = 64, 64, 256
            a, b = (
                formats.scaled(rng, rows, K, kind) for rows, kind in zip((M, N), kinds, strict=True)
            )
            scales = [rng.integers(125, 130, (rows, K // 32)).astype("u1") for rows in (M, N)]
            values = [
                formats.scaled_value(x, kind) * np.repeat(2.0 ** (s.astype("f8") - 127), 32, 1)
                for x, kind, s in zip((a, b), kinds, scales, strict=True)
            ]
            c = values[0] @ values[1].T
            arguments = [a, scales[0], b, scales[1], np.zeros(c.shape, "f4")]
            arguments += map(np.int32, (M, N, K))
            return arguments, (2, 1, 1), {"c": c.astype("f4")}

        packed = [2 if kind == "e2m1" else 1 for kind in (left, right)]
        constants = {"BM": 32, "BN": 64, "BK": 128, "FA": left, "FB": right}
        constants |= {"PA": packed[0], "PB": packed[1]}
        kinds = [{"e2m1": "u8", "e4m3": "fp8e4nv", "e5m2": "fp8e5"}[k] for k in (left, right)]
        types = types_of(f"a:*{kinds[0]} sa:*u8 b:*{kinds[1]} sb:*u8 c:*fp32 M:i32 N:i32 K:i32")
        yield Case(f"scaled-{left}-{right}", "scaled_matmul", types, constants, scaled,
                   {"num_warps": 4}, ("gfx942", "gfx950", "gfx1201", "gfx1250"))  # fmt: skip

    def persistent(rng: np.random.Generator) -> Made:
        M, N, K = 192, 128, 128
        a, b = formats.small(rng, (M, K), "fp16"), formats.small(rng, (N, K), "fp16")
        c = (a.astype("f8") @ b.astype("f8").T).astype("f2")
        arguments = [a, b, np.zeros_like(c), *map(np.int32, (M, N, K, 6))]
        return arguments, (4, 1, 1), {"c": c}

    yield Case("persistent", "persistent",
               types_of("a:*fp16 b:*fp16 c:*fp16 M:i32 N:i32 K:i32 tiles:i32"),
               {"BM": 64, "BN": 64, "BK": 32}, persistent, terms=128)  # fmt: skip

    def convolution(rng: np.random.Generator) -> Made:
        x, w = formats.small(rng, (16, 12, 14), "fp16"), formats.small(rng, (32, 16, 3, 3), "fp16")
        windows = np.lib.stride_tricks.sliding_window_view(x.astype("f8"), (3, 3), (1, 2))
        y = np.einsum("cyxuv,ocuv->oyx", windows, w.astype("f8")).astype("f4")
        return [x, w, np.zeros_like(y), np.int32(12), np.int32(14)], (2, 1, 1), {"y": y}

    constants = {"C": 16, "KH": 3, "KW": 3, "OUT": 32, "BLOCK": 64}
    types = types_of("x:*fp16 w:*fp16 y:*fp32 H:i32 W:i32")
    yield Case("convolution", "convolution", types, constants, convolution, terms=144)
