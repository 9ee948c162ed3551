"""Communication between lanes and waves: sorts, scans, reductions, gathers, layout changes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from triton_suite import formats
from triton_suite.case import Case, Made, near, types_of


def between_lanes() -> Iterator[Case]:
    for down in (False, True):
        for kind, columns in (("fp32", 256), ("i32", 128), ("i8", 512), ("fp16", 64)):

            def sort(
                rng: np.random.Generator,
                down: bool = down,
                kind: str = kind,
                columns: int = columns,
            ) -> Made:
                x = rng.integers(-100, 100, (3, columns)).astype(formats.NUMPY[kind])
                y = np.sort(x, 1)[:, ::-1] if down else np.sort(x, 1)
                return [x, np.zeros_like(x)], (3, 1, 1), {"y": np.ascontiguousarray(y)}

            yield Case(f"sort-{kind}-{down}", "sort_rows", types_of(f"x:*{kind} y:*{kind}"),
                       {"COLUMNS": columns, "DOWN": down}, sort)  # fmt: skip

    def scans(rng: np.random.Generator) -> Made:
        x = rng.integers(-100, 100, (3, 512)).astype("i4")
        sums = x.cumsum(1, dtype="i4")
        products = ((x & 1) * 2 - 1).cumprod(1, dtype="i4")
        back = np.ascontiguousarray(x[:, ::-1].cumsum(1, dtype="i4")[:, ::-1])
        empty = [np.zeros_like(x) for _ in range(3)]
        return [x, *empty], (3, 1, 1), {"sums": sums, "products": products, "back": back}

    yield Case("scans", "scans", types_of("x:*i32 sums:*i32 products:*i32 back:*i32"),
               {"COLUMNS": 512}, scans)  # fmt: skip

    def recurrence(rng: np.random.Generator) -> Made:
        a, b = rng.uniform(-0.9, 0.9, (2, 512)), rng.standard_normal((2, 512))
        a, b = a.astype("f4"), b.astype("f4")
        y, last = np.zeros((2, 512)), np.zeros(2)
        for j in range(512):
            last = y[:, j] = a[:, j].astype("f8") * last + b[:, j]
        return [a, b, np.zeros_like(b)], (2, 1, 1), {"y": near(y, 1e-5, 1e-5)}

    yield Case("recurrence", "recurrence", types_of("a:*fp32 b:*fp32 y:*fp32"),
               {"COLUMNS": 512}, recurrence)  # fmt: skip

    def extremes(rng: np.random.Generator) -> Made:
        x = rng.integers(-50, 50, (64, 32)).astype("f4")
        wanted = {
            "least": x.min(0),
            "most": x.max(1),
            "where_least": x.argmin(0).astype("i4"),
            "where_most": x.argmax(1).astype("i4"),
        }
        return [x, *map(np.zeros_like, wanted.values())], (1, 1, 1), wanted

    yield Case("extremes", "extremes",
               types_of("x:*fp32 least:*fp32 most:*fp32 where_least:*i32 where_most:*i32"),
               {"R": 64, "C": 32}, extremes)  # fmt: skip

    def parity(rng: np.random.Generator) -> Made:
        x = rng.integers(-(2**31), 2**31, (32, 64)).astype("i4")
        y = np.append(np.bitwise_xor.reduce(x, 1), np.bitwise_xor.reduce(x, None))
        return [x, np.zeros_like(y)], (1, 1, 1), {"y": y}

    yield Case("parity", "parity", types_of("x:*i32 y:*i32"), {"R": 32, "C": 64}, parity)

    for R, C in ((32, 64), (8, 128)):

        def gather(rng: np.random.Generator, R: int = R, C: int = C) -> Made:
            x = rng.standard_normal((R, C)).astype("f4")
            index = rng.integers(0, C, (R, C)).astype("i4")
            y = np.take_along_axis(x, index, 1)
            return [x, index, np.zeros_like(y)], (1, 1, 1), {"y": y}

        yield Case(f"gather-{C}", "gather_rows", types_of("x:*fp32 index:*i32 y:*fp32"),
                   {"R": R, "C": C}, gather)  # fmt: skip

    for kind in ("fp32", "fp16", "i8", "i64"):

        def transpose(rng: np.random.Generator, kind: str = kind) -> Made:
            x = rng.integers(-100, 100, (100, 70)).astype(formats.NUMPY[kind])
            y = np.ascontiguousarray(x.T)
            arguments = [x, np.zeros_like(y), np.int32(100), np.int32(70)]
            return arguments, (4, 2, 1), {"y": y}

        yield Case(f"transpose-{kind}", "transpose", types_of(f"x:*{kind} y:*{kind} M:i32 N:i32"),
                   {"BM": 32, "BN": 64}, transpose)  # fmt: skip

    def shapes(rng: np.random.Generator) -> Made:
        x = rng.integers(-100, 100, 512).astype("i4")
        joined = np.stack([x, x * 2], 1).ravel()
        turned = np.ascontiguousarray(x.reshape(16, 4, 8).transpose(2, 0, 1)).ravel()
        wanted = {
            "joined": joined,
            "left": x[::2].copy(),
            "right": x[1::2].copy(),
            "turned": turned,
        }
        return [x, *map(np.zeros_like, wanted.values())], (1, 1, 1), wanted

    yield Case("shapes", "shapes", types_of("x:*i32 joined:*i32 left:*i32 right:*i32 turned:*i32"),
               {"N": 512}, shapes)  # fmt: skip
