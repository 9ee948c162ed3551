"""The promotion table against NumPy's, the differences named one by one; and Python numbers."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import numpy as np
import pytest
from fly_trace.values.dtypes import (
    BF16,
    BOOL,
    DTYPES,
    F16,
    F32,
    F64,
    I8,
    I32,
    I64,
    PROMOTION,
    PROMOTION_TEXT,
    U8,
    U64,
    DType,
    PromotionError,
    check_fits,
    default,
    promote,
    rounded,
    weak,
)

NUMPY = {
    name: np.dtype(
        {"f": "float", "i": "int", "u": "uint"}[name[0]] + name[1:] if name != "bool" else name
    )
    for name in DTYPES
    if name != "bf16"
}


def deliberate(a: DType, b: DType) -> str | None:
    """Why a pair differs from NumPy; None where it must agree."""
    kinds = {a.kind, b.kind}
    if "float" in kinds and kinds & {"int", "uint"}:
        return "an integer takes the float's type"
    if U64 in (a, b) and "int" in kinds:
        return "no type holds both"
    return None


@pytest.mark.parametrize(("first", "second"), [*itertools.product(NUMPY, NUMPY)])
def test_like_numpy(first: str, second: str) -> None:
    a, b = DTYPES[first], DTYPES[second]
    reason = deliberate(a, b)
    if reason == "no type holds both":
        with pytest.raises(PromotionError, match="no common type"):
            promote(a, b)
    elif reason:
        assert promote(a, b) is (a if a.is_float else b)
    else:
        assert NUMPY[promote(a, b).name] == np.result_type(NUMPY[first], NUMPY[second])


def test_bf16() -> None:
    for dtype in DTYPES.values():
        expected = {"f16": F32, "f32": F32, "f64": F64}.get(dtype.name, BF16)
        assert promote(BF16, dtype) is expected


def test_symmetric_and_complete() -> None:
    assert len(PROMOTION) == len(DTYPES) ** 2
    for (a, b), result in PROMOTION.items():
        assert PROMOTION[b, a] is result
        assert PROMOTION[a, a] is a


def test_the_manual_has_this_table() -> None:
    manual = Path(__file__).parents[2] / "docs" / "language.md"
    block = re.search(r"```promotion\n(.*?)```", manual.read_text(), re.DOTALL)
    assert block is not None
    shown = [line.split() for line in block[1].strip().splitlines()]
    assert shown == [line.split() for line in PROMOTION_TEXT.strip().splitlines()]


@pytest.mark.parametrize(
    ("number", "dtype", "expected"),
    [
        (1, I8, I8),
        (1, F16, F16),
        (2.0, F32, F32),
        (2.0, F16, F16),
        (2.5, I64, F32),
        (2.5, BOOL, F32),
        (1, BOOL, I32),
        (2**40, BOOL, I64),
        (True, I8, I8),
        (True, F64, F64),
        (float("inf"), F16, F16),
        (65519.0, F16, F16),
        (3.4028235e38, F32, F32),
        (255, U8, U8),
        (2**64 - 1, U64, U64),
    ],
)
def test_weak(number: float, dtype: DType, expected: DType) -> None:
    assert weak(number, dtype) is expected


@pytest.mark.parametrize(
    ("number", "dtype"),
    [(128, I8), (-1, U8), (256, U8), (65520.0, F16), (1e39, F32), (2**63, I64), (-1, U64),
     (1e39, BF16), (2**128, F32)],
)  # fmt: skip
def test_weak_overflow(number: float, dtype: DType) -> None:
    with pytest.raises(PromotionError, match="doesn't fit"):
        weak(number, dtype)


def test_default() -> None:
    assert [default(n) for n in (True, 1, 2**31 - 1, 2**31, 0.5)] == [BOOL, I32, I32, I64, F32]
    with pytest.raises(PromotionError):
        default(2**63)


@pytest.mark.parametrize("name", ["f16", "f32"])
def test_rounded(name: str) -> None:
    kind = {"f16": np.float16, "f32": np.float32}[name]
    for number in (0.1, 1 / 3, -2.7e-8, 65519.0, 1e-5, 2049.0, 0.0, -0.0):
        assert rounded(number, DTYPES[name]) == float(kind(number))


def test_rounded_bf16() -> None:
    # By exhaustive neighbours: the nearest of all finite bf16, ties to the even pattern.
    patterns = np.arange(0x7F80, dtype=np.uint32)
    values = (patterns << 16).view(np.float32).astype(np.float64)
    numbers = [
        0.1,
        1.0,
        1 / 3,
        1.00390625,
        1.01171875,
        3.0e38,
        1e-38,
        9.2e-41,
        4.6e-41,
        257.0,
        259.0,
    ]
    for number in numbers:
        distance = np.abs(values - number)
        nearest = np.flatnonzero(distance == distance.min())
        best = (
            next((i for i in nearest if i % 2 == 0), nearest[0]) if len(nearest) > 1 else nearest[0]
        )
        assert rounded(number, BF16) == values[best]
        assert rounded(-number, BF16) == -values[best]


def test_check_fits_says_the_range() -> None:
    with pytest.raises(PromotionError, match=r"300 doesn't fit in i8 \(-128 to 127\)"):
        check_fits(300, I8)
