"""Sums of floats in matrix instructions: the published models of CDNA2 and CDNA3.

Xie et al., "MMA-Sim" (arXiv 2511.10909) and their package mmasim 2.1.1, which has details that the
paper omits; reimplemented from their description:

    CDNA2, f16 and bf16     f32 multiplications and additions, subnormals flushed on input and
                            output; two or four products in pairs, then C
    CDNA3, f16, bf16, xf32  "TR-FDPA": 8 (xf32: 4) products truncated toward zero 24 bits below the
                            greatest exponent and added; that sum rounded down 32 bits below the
                            greater exponent of it and C, and C 24 bits below; their sum rounded
                            down 31 bits below its own exponent; one rounding to f32
    CDNA3, fp8 and bf8      "GTR-FDPA": 16 products, even and odd k separately; then as above
    f32, f64                fused multiply-adds along k

A product's exponent is the sum of its factors'; a zero has an exponent below all others. gfx950
is assumed to behave like gfx942 (docs/emulator.md); it has not been measured.
"""

from __future__ import annotations

import numpy as np

from oracle.arithmetic import floats

f32, f64, i64 = np.float32, np.float64, np.int64
LEAST = {"f16": -14, "bf16": -126, "xf32": -126, "f32": -126}
LEAST_SMALL = {"gfx942": {"fp8": -7, "bf8": -15}, "gfx950": {"fp8": -6, "bf8": -14}}
CUT, CUT_SUM = 24, 31
ZERO = -999  # the exponent of a product that is zero


def sums(a, b, c, kinds: tuple[str, str], target: str, name: str) -> np.ndarray:
    """Returns c + a · b along the last axis, which is k; all are float64 arrays that broadcast. The
    result is f32, or f64 for an f64 matrix."""
    steps = a.shape[-1]
    if kinds[0] in ("f32", "f64"):
        dtype = f32 if kinds[0] == "f32" else f64
        total = np.array(c, dtype)
        for k in range(steps):
            total = floats.fma(a[..., k].astype(dtype), b[..., k].astype(dtype), total)
        return total
    if target == "gfx90a":
        pairs = 2 if kinds[0] == "bf16" and "_1k" not in name else 4
        return _flushed_sums(a, b, c, 2.0 ** LEAST[kinds[0]], pairs)
    small = kinds[0] in ("fp8", "bf8")
    count = min(steps, 16 if small else 4 if kinds[0] == "xf32" else 8)
    least = [LEAST_SMALL[target][kind] if small else LEAST[kind] for kind in kinds]
    total = np.array(c, f64)
    for k in range(0, steps, count):
        total = _cut_sum(a[..., k : k + count], b[..., k : k + count], total, least, small)
    return total.astype(f32)


def _to_zero(x: np.ndarray, below: float, signed: bool) -> np.ndarray:
    return np.where(np.abs(x) < below, x * 0 if signed else x.dtype.type(0), x)


def _flushed_sums(a, b, c, least: float, pairs: int) -> np.ndarray:
    normal = f32(2.0**-126)
    a, b = (_to_zero(x, least, False).astype(f32) for x in (a, b))
    total = _to_zero(np.array(c, f32), normal, False)

    def flushed(x: np.ndarray) -> np.ndarray:
        return _to_zero(x, normal, True)

    products = flushed(a * b)
    for k in range(0, a.shape[-1], pairs):
        part = flushed(products[..., k] + products[..., k + 1])
        if pairs == 4:
            part = flushed(part + flushed(products[..., k + 2] + products[..., k + 3]))
        total = flushed(total + part)
    return total


def _parts(x: np.ndarray, least: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns a significand in [1, 2), or in [0, 1) with the smallest exponent, and the
    exponent."""
    significand, exponent = np.frexp(x)
    significand, exponent = significand * 2, exponent.astype(i64) - 1
    low = (exponent < least) | (x == 0)
    shifted = np.ldexp(significand, np.where(low, exponent - least, 0).astype(np.int32))
    return np.where(low & (x == 0), x, shifted), np.where(low, least, exponent)


def _scaled(x: np.ndarray, power: np.ndarray) -> np.ndarray:
    return np.ldexp(x, power.astype(np.int32))


def _added(significand: np.ndarray, exponent: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    exponent = np.where(significand == 0, ZERO, exponent)
    most = exponent.max(axis=-1)
    cut = np.trunc(_scaled(significand, exponent - most[..., None] + CUT))
    return cut.sum(axis=-1) * 2.0**-CUT, most


def _down(x: np.ndarray, power: np.ndarray, bits: int) -> np.ndarray:
    return np.floor(_scaled(x, power + bits)) * 2.0**-bits


def _cut_sum(a, b, c, least: list[int], halves: bool) -> np.ndarray:
    (sa, ea), (sb, eb), (sc, ec) = (
        _parts(x, low) for x, low in ((a, least[0]), (b, least[1]), (c, -126))
    )
    products, exponents = np.broadcast_arrays(sa * sb, ea + eb)
    if halves:
        even, even_most = _added(products[..., ::2], exponents[..., ::2])
        odd, odd_most = _added(products[..., 1::2], exponents[..., 1::2])
        most = np.maximum(even_most, odd_most)
        total = _down(even, even_most - most, CUT) + _down(odd, odd_most - most, CUT)
    else:
        too_large = exponents + (np.abs(products) >= 2) >= 128
        products = np.where(too_large, products * np.inf, products)
        total, most = _added(products, exponents)
    greater = np.maximum(most, ec)
    addend = _down(sc, ec - greater, CUT)
    if halves:
        addend = np.where(np.isfinite(sc) & (ec < greater - CUT - 1), 0, addend)
    total = _down(total, most - greater, CUT_SUM + 1) + addend
    significand, exponent = _parts(_scaled(total, greater), -126)
    total = _scaled(_down(significand, np.zeros_like(exponent), CUT_SUM), exponent)
    return total.astype(f32).astype(f64)
