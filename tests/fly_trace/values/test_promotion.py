"""The promotion table against the rules of docs/types.md and NumPy's; and Python numbers."""

from __future__ import annotations

import numpy as np
import pytest
from fly_numerics.element_types import ELEMENT_TYPES
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
    U8,
    U64,
    U128,
    DType,
    PromotionError,
    check_fits,
    rounded,
)
from fly_trace.values.promotion import TYPES, default, promote, weak

from . import type_tables
from .exact_numbers import common

PAIRS = [(a, b) for a in DTYPES.values() for b in DTYPES.values()]


@pytest.mark.parametrize(("a", "b"), PAIRS, ids=lambda dtype: dtype.name)
def test_by_the_rules(a: DType, b: DType) -> None:
    expected = common(a.name, b.name)
    if expected is None:
        with pytest.raises(PromotionError, match="no common type"):
            promote(a, b)
    else:
        assert promote(a, b) is DTYPES[expected]


def test_integers_are_numpys() -> None:
    """Where NumPy has an integer type that represents all values of both."""
    names = [name for name in DTYPES if name[0] in "iu" and "128" not in name]
    long = {"i": "int", "u": "uint"}
    kinds = {name: np.dtype(long[name[0]] + name[1:]) for name in names}
    for a in names:
        for b in names:
            numpys = np.result_type(kinds[a], kinds[b])
            found = TYPES[DTYPES[a], DTYPES[b]]
            assert (found is None) == (numpys.kind == "f")
            if found is not None:
                assert kinds[found.name] == numpys


def test_symmetric_and_complete() -> None:
    assert len(TYPES) == len(DTYPES) ** 2
    for (a, b), result in TYPES.items():
        assert TYPES[b, a] is result
        assert TYPES[a, a] is a


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
        (2**128 - 1, U128, U128),
        (0.5, U128, F64),
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


def test_the_page_has_the_tables() -> None:
    text = type_tables.PAGE.read_text()
    assert type_tables.page(text) == text, "run: python tests/fly_trace/values/type_tables.py"


def test_the_tables_of_others() -> None:
    """The tables of other tools are whole and symmetric."""
    flydsl, torch = type_tables.table(type_tables.FLYDSL), type_tables.table(type_tables.TORCH)
    assert all(flydsl[a, b] == flydsl[b, a] for a, b in flydsl)
    assert all(torch[a, b] == torch[b, a] for a, b in torch)
    assert flydsl.keys() == {(a.name, b.name) for a, b in TYPES}


def test_torch_promotes_as_the_page_says() -> None:
    torch = pytest.importorskip("torch")
    for (a, b), cell in type_tables.table(type_tables.TORCH).items():
        first, second = (getattr(torch, ELEMENT_TYPES[name].long_name) for name in (a, b))
        try:
            found = torch.promote_types(first, second)
        except RuntimeError:
            found = None
        expected = None if cell == "----" else getattr(torch, ELEMENT_TYPES[cell].long_name)
        assert found == expected, (a, b)
