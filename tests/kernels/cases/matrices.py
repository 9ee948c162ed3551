"""Products by matrix instructions. Small integers are exact in every format and any order of sums,
so all targets must agree except INEXACT ones; there, and for other values, results must be within
the error bound of the arithmetic."""

from __future__ import annotations

from typing import Any

import numpy as np
from chosen_targets import chosen

from kernels.case import EXACT, INEXACT, Launch, Near, case

Random = np.random.Generator
Array = np.ndarray
MFMA = chosen("gfx9")
F32 = chosen("gfx9", "CDNA5")
F64 = chosen("CDNA2", "CDNA3", "CDNA4")
M, N, K = 32, 64, 128


def product(a: Array, b: Array, out: Array, expected: Any, tile: int = 16) -> Launch:
    sizes = [np.int32(N), np.int32(K)]
    grid = (N // tile, M // tile, 1)
    return Launch([a, b, out, *sizes], grid, (64, 1, 1), expected={2: expected})


def whole(
    rng: Random, most: int, given: str, result: str, tile: int = 16, exact: bool = True
) -> Launch:
    """Integers up to `most`, whose sums are all exact."""
    a, b = (rng.integers(-most, most + 1, shape) for shape in ((M, K), (K, N)))
    out = np.zeros((M, N), result)
    expected = (a @ b).astype(result) if exact else _about(a, b)
    return product(a.astype(given), b.astype(given), out, expected, tile)


def _about(a: Array, b: Array) -> Near:
    """A step adds two products to C, each of the three off by up to a unit and that of a ones'
    complement; a unit is at most 2^-24 of the sum of magnitudes."""
    return Near((a @ b).astype("f8"), 2 * K * 2.0**-24 * (abs(a) @ abs(b)))


def _real(rng: Random, given: str, result: str, unit: float) -> Launch:
    """Normal values. `unit`: the error bound of a term, and of each of the K partial sums, relative
    to the sum of magnitudes."""
    a, b = (rng.standard_normal(shape).astype(given) for shape in ((M, K), (K, N)))
    wide = a.astype("f8"), b.astype("f8")
    bound = 2 * K * unit * (abs(wide[0]) @ abs(wide[1]))
    return product(a, b, np.zeros((M, N), result), Near(wide[0] @ wide[1], bound))


def _bf16(values: Array) -> Array:
    """Converts values with at most eight significant bits."""
    return (np.ascontiguousarray(values, "f4").view("u4") >> 16).astype("u2")


def _whole_bf16(rng: Random, exact: bool = True) -> Launch:
    a, b = (rng.integers(-99, 100, shape) for shape in ((M, K), (K, N)))
    expected = (a @ b).astype("f4") if exact else _about(a, b)
    return product(_bf16(a), _bf16(b), np.zeros((M, N), "f4"), expected)


@case("matrix", host=False, targets=EXACT)
def gemm_f16(rng: Random) -> Launch:
    return whole(rng, 200, "f2", "f4")


@case("matrix", host=False, targets=INEXACT, kernel="gemm_f16")
def gemm_f16_off(rng: Random) -> Launch:
    return whole(rng, 200, "f2", "f4", exact=False)


@case("matrix", host=False, portable=False, kernel="gemm_f16")
def gemm_f16_real(rng: Random) -> Launch:
    return _real(rng, "f2", "f4", 2.0**-23)


@case("matrix", host=False, targets=EXACT)
def gemm_bf16(rng: Random) -> Launch:
    return _whole_bf16(rng)


@case("matrix", host=False, targets=INEXACT, kernel="gemm_bf16")
def gemm_bf16_off(rng: Random) -> Launch:
    return _whole_bf16(rng, exact=False)


@case("matrix", host=False)
def gemm_i8(rng: Random) -> Launch:
    launch = whole(rng, 127, "i1", "i4")
    launch.arguments[0][0, :] = launch.arguments[1][:, 0] = -128
    a, b = (array.astype("i4") for array in launch.arguments[:2])
    launch.expected[2][...] = a @ b
    return launch


@case("matrix", host=False, targets=F32)
def gemm_f32(rng: Random) -> Launch:
    return whole(rng, 300, "f4", "f4")


@case("matrix", host=False, targets=F32, portable=False, kernel="gemm_f32")
def gemm_f32_real(rng: Random) -> Launch:
    return _real(rng, "f4", "f4", 2.0**-23)


@case("matrix", host=False, targets=F64)
def gemm_f64(rng: Random) -> Launch:
    return whole(rng, 10**6, "f8", "f8")


@case("matrix", host=False, targets=F64, portable=False, kernel="gemm_f64")
def gemm_f64_real(rng: Random) -> Launch:
    return _real(rng, "f8", "f8", 2.0**-52)


@case("matrix", host=False, targets=chosen("CDNA3"))
def gemm_xf32(rng: Random) -> Launch:
    """Integers of eleven bits: xf32 keeps no more."""
    return whole(rng, 300, "f4", "f4")


@case("matrix", host=False, targets=chosen("CDNA4"))
def gemm_f16_wide(rng: Random) -> Launch:
    return whole(rng, 200, "f2", "f4")


@case("matrix", host=False, targets=chosen("CDNA4"))
def gemm_bf16_wide(rng: Random) -> Launch:
    return _whole_bf16(rng)


@case("matrix", host=False, targets=chosen("CDNA4"))
def gemm_i8_wide(rng: Random) -> Launch:
    return whole(rng, 127, "i1", "i4")


@case("matrix", host=False, targets=MFMA)
def gemm_f16_32(rng: Random) -> Launch:
    return whole(rng, 200, "f2", "f4", tile=32)


@case("matrix", host=False, targets=chosen("RDNA4", "CDNA5"))
def gemm_half(rng: Random) -> Launch:
    """Sums up to 2048: exact in f16."""
    return whole(rng, 3, "f2", "f2")


@case("matrix", host=False, targets=INEXACT, kernel="gemm_half")
def gemm_half_off(rng: Random) -> Launch:
    return whole(rng, 3, "f2", "f2", exact=False)
