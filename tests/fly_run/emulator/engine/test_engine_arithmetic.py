"""Arithmetic of compiled code on the emulator: division, functions of floats, halves, extremes."""

from __future__ import annotations

import numpy as np
import pytest

from .engine_runs import N, Run


def test_integer_division(run: Run, rng: np.random.Generator) -> None:
    source = """kernel void k(global int *A, global int *B, global int *C, int n) {
        int i = INDEX;
        if (i >= n) return;
        int b = B[i] | 1;
        C[4 * i] = A[i] / b; C[4 * i + 1] = A[i] % b;
        C[4 * i + 2] = (uint)A[i] / (uint)b; C[4 * i + 3] = (uint)A[i] % (uint)b; }"""
    a = rng.integers(-(2**31) + 1, 2**31, N).astype("i4")
    b = (rng.integers(-(2**31), 2**31, N) >> rng.integers(0, 31, N)).astype("i4") | 1
    c = np.zeros((N, 4), "i4")
    run(source, [a, b, c, np.int32(N)])
    quotient = (np.trunc(a.astype("f8") / b)).astype("i4")
    np.testing.assert_array_equal(c[:, 0], quotient)
    np.testing.assert_array_equal(c[:, 1], a - quotient * b)
    np.testing.assert_array_equal(c[:, 2].view("u4"), a.view("u4") // b.view("u4"))
    np.testing.assert_array_equal(c[:, 3].view("u4"), a.view("u4") % b.view("u4"))


def test_long_division_and_shifts(run: Run, rng: np.random.Generator) -> None:
    source = """kernel void k(global long *A, global long *B, global long *C, int n) {
        int i = INDEX;
        if (i >= n) return;
        long b = B[i] | 1;
        C[5 * i] = A[i] / b; C[5 * i + 1] = A[i] % b; C[5 * i + 2] = (ulong)A[i] / (ulong)b;
        C[5 * i + 3] = A[i] * b; C[5 * i + 4] = (A[i] << (i & 63)) ^ (A[i] >> (b & 63)); }"""
    a = rng.integers(-(2**62), 2**62, N)
    b = (rng.integers(-(2**62), 2**62, N) >> rng.integers(0, 62, N)) | 1
    c = np.zeros((N, 5), "i8")
    run(source, [a, b, c, np.int32(N)])
    pairs = [(int(x), int(y)) for x, y in zip(a, b, strict=True)]
    signed = [abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1) for x, y in pairs]
    quotient = np.array(signed, "i8")
    np.testing.assert_array_equal(c[:, 0], quotient)
    np.testing.assert_array_equal(c[:, 1], a - quotient * b)
    np.testing.assert_array_equal(c[:, 2].view("u8"), a.view("u8") // b.view("u8"))
    np.testing.assert_array_equal(c[:, 3], a * b)
    i = np.arange(N)
    np.testing.assert_array_equal(c[:, 4], (a << (i & 63)) ^ (a >> (b & 63)))


EDGES = np.array(
    [
        0,
        -0.0,
        np.inf,
        -np.inf,
        np.nan,
        1,
        -1,
        3,
        1e-45,
        -1e-45,
        1e-40,
        2.0**-126,
        1e-38,
        3.4e38,
        -3.4e38,
        1e38,
        2.0**127,
        2.0**-149,
        0.1,
        7e-39,
        5e37,
        2.0**64,
        2.0**-64,
        2.0**96,
    ],
    "f4",
)


LONG_EDGES = np.array(
    [
        0,
        -0.0,
        np.inf,
        -np.inf,
        np.nan,
        1,
        -1,
        3,
        5e-324,
        1e-310,
        2.0**-1022,
        1e308,
        -1e308,
        2.0**1023,
        0.1,
        2.0**768,
        2.0**-768,
        2.0**128,
        2.0**-128,
    ]
)


def same(found: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Equal, or NaN both: the payload of a NaN is not specified. Zeros by their sign too."""
    equal = (found == wanted) & (np.signbit(found) == np.signbit(wanted))
    return equal | (np.isnan(found) & np.isnan(wanted))


@pytest.mark.parametrize("kind", ["float", "double"])
def test_division_is_correctly_rounded(run: Run, rng: np.random.Generator, kind: str) -> None:
    source = f"""kernel void k(global {kind} *A, global {kind} *B, global {kind} *C, int n) {{
        int i = INDEX; if (i < n) C[i] = A[i] / B[i]; }}"""
    edges, dtype, reach = (EDGES, "f4", 120) if kind == "float" else (LONG_EDGES, "f8", 1000)
    a, b = (part.ravel() for part in np.meshgrid(edges, edges))
    with np.errstate(all="ignore"):
        wild = [
            np.ldexp(rng.standard_normal(N), rng.integers(-reach - 20, reach, N)).astype(dtype)
            for _ in range(2)
        ]
        a, b = np.concatenate([a, wild[0]]), np.concatenate([b, wild[1]])
        c = np.zeros(len(a), dtype)
        run(source, [a, b, c, np.int32(len(a))], -(-len(a) // 256))
        wanted = a / b
    wrong = ~same(c, wanted)
    assert not wrong.any(), list(zip(a[wrong], b[wrong], c[wrong], wanted[wrong], strict=True))[:5]


def test_functions_of_floats(run: Run, rng: np.random.Generator) -> None:
    names = [
        "exp2",
        "log2",
        "exp",
        "log",
        "sin",
        "cos",
        "sqrt",
        "floor",
        "ceil",
        "roundeven",
        "trunc",
    ]
    calls = " ".join(
        f"C[{len(names)} * i + {n}] = __builtin_elementwise_{name}(x);"
        for n, name in enumerate(names)
    )
    source = f"""kernel void k(global float *A, global float *C, int n) {{
        int i = INDEX; if (i >= n) return; float x = A[i]; {calls} }}"""
    a = np.concatenate([EDGES, rng.standard_normal(N).astype("f4") * 20])
    c = np.zeros((len(a), len(names)), "f4")
    run(source, [a, c, np.int32(len(a))], -(-len(a) // 256))
    x = a.astype("f8")
    with np.errstate(all="ignore"):
        functions = [np.exp2, np.log2, np.exp, np.log, np.sin, np.cos, np.sqrt]
        functions += [np.floor, np.ceil, np.rint, np.trunc]
        wanted = [function(x).astype("f4") for function in functions]
    for n, name in enumerate(names):
        if name in ("sin", "cos"):
            # The range reduction that LLVM emits loses what a large argument lacks.
            small = np.abs(a) < 100
            np.testing.assert_allclose(c[small, n], wanted[n][small], atol=1e-5, err_msg=name)
        elif n < 4:
            np.testing.assert_allclose(c[:, n], wanted[n], rtol=4e-6, atol=1e-37, err_msg=name)
        else:
            assert same(c[:, n], wanted[n]).all(), name


def test_halves(run: Run, rng: np.random.Generator) -> None:
    source = """kernel void k(global half *A, global half *B, global half *C, global float *F,
                              global half2 *P, int n) {
        int i = INDEX;
        if (i >= n) return;
        half a = A[i], b = B[i];
        C[6 * i] = a + b; C[6 * i + 1] = a * b; C[6 * i + 2] = __builtin_elementwise_fma(a, b, a);
        C[6 * i + 3] = __builtin_elementwise_max(a, b); C[6 * i + 4] = a / b;
        C[6 * i + 5] = __builtin_elementwise_sqrt(a);
        F[i] = (float)a;
        half2 x = (half2)(a, b), y = (half2)(b, a);
        P[2 * i] = x * y + x; P[2 * i + 1] = __builtin_elementwise_min(x, -y); }"""
    a, b = rng.standard_normal(N).astype("f2"), (rng.standard_normal(N) * 10).astype("f2")
    a[:8] = [0, -0.0, np.inf, 6e-8, 65504, -1, 1e-5, 2]
    c, f, p = np.zeros((N, 6), "f2"), np.zeros(N, "f4"), np.zeros((N, 4), "f2")
    run(source, [a, b, c, f, p, np.int32(N)])
    with np.errstate(all="ignore"):
        # The f64 product and sum of two halves and a half are exact.
        fused = (a.astype("f8") * b + a).astype("f2")
        wanted = [a + b, a * b, fused, np.fmax(a, b), a / b, np.sqrt(a)]
        packed = [a * b + a, b * a + b, np.fmin(a, -b), np.fmin(b, -a)]
    for n, expected in enumerate(wanted):
        np.testing.assert_array_equal(c[:, n], expected, err_msg=str(n))
    for n, expected in enumerate(packed):
        np.testing.assert_array_equal(p[:, n], expected, err_msg=f"packed {n}")
    np.testing.assert_array_equal(f, a.astype("f4"))


def test_vectors_and_doubles(run: Run, rng: np.random.Generator) -> None:
    source = """kernel void k(global float4 *A, global double *D, global float4 *C, global long *L,
                              global float *T, int n) {
        int i = INDEX;
        if (i >= n) return;
        float4 a = A[i];
        C[i] = a * a.wzyx + (float4)(1, 2, 3, 4);
        double d = D[i];
        L[i] = (long)(d * 1000.0);
        T[3 * i] = (float)d; T[3 * i + 1] = (uint)(int)d; T[3 * i + 2] = (ulong)L[i];
        D[i] = __builtin_elementwise_fma(d, d, (double)a.x) + __builtin_elementwise_floor(d)
            + __builtin_elementwise_sqrt(d * d); }"""
    a, d = rng.standard_normal((N, 4)).astype("f4"), rng.standard_normal(N) * 100
    before, c, t = d.copy(), np.zeros((N, 4), "f4"), np.zeros((N, 3), "f4")
    whole = np.zeros(N, "i8")
    run(source, [a, d, c, whole, t, np.int32(N)])
    np.testing.assert_array_equal(c, a * a[:, ::-1] + np.array([1, 2, 3, 4], "f4"))
    np.testing.assert_array_equal(whole, (before * 1000).astype("i8"))
    np.testing.assert_array_equal(t[:, 0], before.astype("f4"))
    np.testing.assert_array_equal(t[:, 1], before.astype("i4").astype("u4").astype("f4"))
    np.testing.assert_array_equal(t[:, 2], whole.astype("u8").astype("f4"))
    wanted = before * before + a[:, 0] + np.floor(before) + abs(before)
    np.testing.assert_allclose(d, wanted, rtol=1e-15)


@pytest.mark.parametrize(("kind", "dtype"), [("float", "f4"), ("half", "f2"), ("half2", "f2")])
def test_extremes_that_keep_nan(run: Run, kind: str, dtype: str) -> None:
    source = f"""kernel void k(global {kind} *A, global {kind} *B, global {kind} *C, int n) {{
        int i = INDEX;
        if (i >= n) return;
        C[2 * i] = __builtin_elementwise_minimum(A[i], B[i]);
        C[2 * i + 1] = __builtin_elementwise_maximum(A[i], B[i]); }}"""
    with np.errstate(over="ignore"):
        edges = EDGES.astype(dtype)
    a, b = (part.ravel() for part in np.meshgrid(edges, edges))
    width = 2 if kind == "half2" else 1
    n = len(a) // width
    c = np.zeros((n, 2, width), dtype)
    run(source, [a, b, c, np.int32(n)])
    # NumPy's own say nothing about the sign of a zero.
    for column, (pick, zero) in enumerate(
        ((np.minimum, np.logical_or), (np.maximum, np.logical_and))
    ):
        wanted = pick(a, b)
        both = (a == 0) & (b == 0)
        negative = zero(np.signbit(a), np.signbit(b))
        wanted[both] = np.where(negative, -0.0, 0.0)[both]
        assert same(c[:, column].ravel(), wanted).all()


@pytest.mark.parametrize("kind", ["short", "ushort", "int", "uint", "short2", "ushort2"])
def test_saturation(run: Run, rng: np.random.Generator, kind: str) -> None:
    source = f"""kernel void k(global {kind} *A, global {kind} *B, global {kind} *C, int n) {{
        int i = INDEX;
        if (i >= n) return;
        C[2 * i] = __builtin_elementwise_add_sat(A[i], B[i]);
        C[2 * i + 1] = __builtin_elementwise_sub_sat(A[i], B[i]); }}"""
    letter = "u" if kind.startswith("u") else "i"
    dtype = np.dtype(f"{letter}{4 if 'int' in kind else 2}")
    width = 2 if kind.endswith("2") else 1
    info = np.iinfo(dtype)
    a, b = (rng.integers(info.min, info.max, N * width, dtype, endpoint=True) for _ in range(2))
    c = np.zeros((N, 2, width), dtype)
    run(source, [a, b, c, np.int32(N)])
    wide = a.astype("i8"), b.astype("i8")
    for column, total in enumerate((wide[0] + wide[1], wide[0] - wide[1])):
        wanted = np.clip(total, info.min, info.max)
        np.testing.assert_array_equal(c[:, column].ravel(), wanted)
