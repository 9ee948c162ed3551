"""Functions of one thread, compared with NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from cpu_support import INDEX, kernel, run

RNG = np.random.default_rng(9)
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, 2.5, -3.5, np.inf, -np.inf, np.nan, 1e-40, -3e-42, 3e38, 5e9]
FLOATS = np.concatenate([SPECIAL, RNG.standard_normal(50) * 100]).astype(np.float32)
WORDS = np.concatenate(
    [[0, 1, -1, 2, -(2**31), 2**31 - 1, 3, -7], RNG.integers(-(2**31), 2**31, 56)]
).astype(np.int32)


def evaluate(lines: list[str], kinds: list[str], inputs: list[np.ndarray]) -> list[np.ndarray]:
    """Evaluates expressions of %x, %y, … element by element; `lines` define %r0, %r1, … of these
    types."""
    names = {np.float32: "float", np.float64: "double", np.int32: "i32", np.int64: "i64"}
    names |= {np.int16: "i16", np.float16: "half"}
    dtypes = {name: dtype for dtype, name in names.items()} | {"bfloat": np.uint16}
    body = [INDEX]
    for n, (letter, array) in enumerate(zip("xyz", inputs, strict=False)):
        kind = names[array.dtype.type]
        body.append(f"  %{letter}.at = getelementptr {kind}, ptr addrspace(1) %p{n}, i64 %i")
        body.append(f"  %{letter} = load {kind}, ptr addrspace(1) %{letter}.at")
    for n, (line, kind) in enumerate(zip(lines, kinds, strict=True)):
        place = len(inputs)
        body.append(line.replace("%r ", f"%r{n} "))
        where = f"getelementptr [{len(inputs[0])} x {kind}], ptr addrspace(1) %q{n}, i64 0, i64 %i"
        offset = 8 * len(inputs[0]) * n
        body.append(f"  %q{n} = getelementptr i8, ptr addrspace(1) %p{place}, i64 {offset}")
        body += [f"  %o{n} = {where}", f"  store {kind} %r{n}, ptr addrspace(1) %o{n}"]
    out = np.zeros(len(lines) * 8 * len(inputs[0]), np.uint8)
    run(kernel("\n".join(body), len(inputs) + 1), [*inputs, out], 1, len(inputs[0]))
    rows = out.reshape(len(lines), -1)
    return [row.view(dtypes[kind])[: len(inputs[0])] for row, kind in zip(rows, kinds, strict=True)]


def test_division_never_traps():
    """By zero: all ones, and the dividend. The least integer by -1: itself, and 0."""
    x, y = (np.repeat(WORDS, len(WORDS))[::5], np.tile(WORDS, len(WORDS))[::5])
    x, y = x[:800].copy(), y[:800].copy()
    y[::7] = 0
    x[7 * 3 + 1], y[7 * 3 + 1] = -(2**31), -1
    lines = [f"  %r = {op} i32 %x, %y" for op in ("sdiv", "srem", "udiv", "urem")]
    found = evaluate(lines, ["i32"] * 4, [x, y])
    wide, by = x.astype(np.int64), y.astype(np.int64)
    by = np.where(by == 0, 1, by)
    quotient = np.trunc(wide / by).astype(np.int64)
    signed = [quotient, wide - quotient * by]
    positive, divisor = wide & 0xFFFFFFFF, by & 0xFFFFFFFF
    unsigned = [positive // divisor, positive % divisor]
    for n, (made, wanted) in enumerate(zip(found, [*signed, *unsigned], strict=True)):
        undefined = x if n % 2 else -1
        whole = np.where(y == 0, undefined, wanted)
        np.testing.assert_array_equal(made.view(np.uint32), whole & 0xFFFFFFFF, err_msg=lines[n])


def test_integer_functions():
    x, y = WORDS, WORDS[::-1].copy()
    z = RNG.integers(0, 1 << 16, 64).astype(np.int32)
    calls = [
        "mulhi.i(i32 %x, i32 %y)",
        "mulhi.ui(i32 %x, i32 %y)",
        "mul24.i(i32 %x, i32 %y)",
        "mul24.ui(i32 %x, i32 %y)",
        "prmt(i32 %x, i32 %y, i32 %z)",
        *(f"idp4a.{a}.{b}(i32 %x, i32 %y, i32 %z)" for a in "su" for b in "su"),
        *(f"idp2a.{a}.{b}(i32 %x, i32 %y, i1 true, i32 %z)" for a in "su" for b in "su"),
        "idp2a.s.u(i32 %x, i32 %y, i1 false, i32 %z)",
    ]
    found = evaluate(
        [f"  %r = call i32 @llvm.nvvm.{call}" for call in calls], ["i32"] * len(calls), [x, y, z]
    )
    a, b = x.astype(object), y.astype(object)
    u, v = a & 0xFFFFFFFF, b & 0xFFFFFFFF
    signed_24 = [((one << 8) & 0xFFFFFFFF ^ 0x80000000) - 0x80000000 >> 8 for one in (a, b)]
    expected = [a * b >> 32, u * v >> 32, signed_24[0] * signed_24[1]]
    expected += [(a & 0xFFFFFF) * (b & 0xFFFFFF)]
    pool = np.stack([x, y], 1).view(np.uint8).astype(int)
    permuted = np.zeros(64, object)
    for n in range(4):
        select = z >> 4 * n & 15
        byte = pool[np.arange(64), select & 7]
        permuted += np.where(select & 8, np.where(byte & 128, 255, 0), byte).astype(object) << 8 * n
    expected.append(permuted)
    for first in ("i1", "u1"):
        for second in ("i1", "u1"):
            parts = x.view(first).reshape(-1, 4).astype(int), y.view(second).reshape(-1, 4)
            expected.append((parts[0] * parts[1].astype(int)).sum(1) + z)
    halves = [("i2", "i1", 2), ("i2", "u1", 2), ("u2", "i1", 2), ("u2", "u1", 2), ("i2", "u1", 0)]
    for first, second, at in halves:
        two = x.view(first).reshape(-1, 2).astype(int)
        few = y.view(second).reshape(-1, 4)[:, at : at + 2].astype(int)
        expected.append((two * few).sum(1) + z)
    for call, made, wanted in zip(calls, found, expected, strict=True):
        numbers = np.array([int(one) & 0xFFFFFFFF for one in wanted], np.uint32)
        np.testing.assert_array_equal(made.view(np.uint32), numbers, err_msg=call)


def flushed(x: np.ndarray) -> np.ndarray:
    tiny = np.abs(x) < np.finfo(np.float32).tiny
    return np.where(tiny, np.copysign(np.float32(0), x), x)


def ignoring(x: np.ndarray, y: np.ndarray, choose) -> np.ndarray:
    return np.where(np.isnan(x), y, np.where(np.isnan(y), x, choose(x, y)))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_functions_of_f32():
    x, y = FLOATS, RNG.permutation(FLOATS)
    near = {  # approximations, within 2 units in the last place
        "ex2.approx.f32(float %x)": np.exp2(x.astype(float)),
        "ex2.approx.ftz.f32(float %x)": flushed(np.exp2(flushed(x).astype(float))),
        "lg2.approx.f(float %x)": np.log2(x.astype(float)),
        "sin.approx.f(float %x)": np.sin(x.astype(float)),
        "cos.approx.f(float %x)": np.cos(x.astype(float)),
        "tanh.approx.f32(float %x)": np.tanh(x.astype(float)),
        "rsqrt.approx.f(float %x)": 1 / np.sqrt(x.astype(float)),
    }
    exact = {
        "add.rn.f(float %x, float %y)": x + y,
        "add.rn.ftz.f(float %x, float %y)": flushed(flushed(x) + flushed(y)),
        "mul.rn.ftz.f(float %x, float %y)": flushed(flushed(x) * flushed(y)),
        "div.rn.f(float %x, float %y)": x / y,
        "fma.rn.f(float %x, float %x, float %y)": (x.astype(float) ** 2 + y).astype(np.float32),
        "sqrt.rn.f(float %x)": np.sqrt(x),
        "rcp.rn.f(float %x)": 1 / x,
        "rcp.approx.ftz.f(float %x)": flushed(1 / flushed(x)),
        "fmin.f(float %x, float %y)": ignoring(x, y, np.minimum),
        "fmax.f(float %x, float %y)": ignoring(x, y, np.maximum),
        "fmin.nan.f(float %x, float %y)": np.minimum(x, y),
        "fmax.nan.f(float %x, float %y)": np.maximum(x, y),
        "fmax.ftz.f(float %x, float %y)": flushed(ignoring(flushed(x), flushed(y), np.maximum)),
        "fabs.f32(float %x)": np.abs(x),
        "round.f(float %x)": np.rint(x),
        "floor.f(float %x)": np.floor(x),
        "ceil.f(float %x)": np.ceil(x),
        "trunc.f(float %x)": np.trunc(x),
        "saturate.f(float %x)": np.nan_to_num(np.clip(x, 0, 1), nan=0.0),
    }
    calls = [*near, *exact]
    lines = [f"  %r = call float @llvm.nvvm.{call}" for call in calls]
    made = dict(zip(calls, evaluate(lines, ["float"] * len(calls), [x, y]), strict=True))
    for call, wanted in near.items():
        wanted = wanted.astype(np.float32)
        np.testing.assert_allclose(made[call], wanted, rtol=2.4e-7, atol=3e-45, err_msg=call)
    for call, wanted in exact.items():
        np.testing.assert_array_equal(made[call], wanted.astype(np.float32), err_msg=call)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_floats_to_integers():
    """Saturated; NaN is 0, or the least integer where 64 bits are involved."""
    rounding = {"rn": np.rint, "rm": np.floor, "rp": np.ceil, "rz": np.trunc}
    lines, kinds, expected = [], [], []
    for short, function in rounding.items():
        for code, bits, low in (("i", 32, -(2**31)), ("ui", 32, 0), ("ll", 64, -(2**63))):
            lines.append(f"  %r = call i{bits} @llvm.nvvm.f2{code}.{short}(float %x)")
            kinds.append(f"i{bits}")
            high = 2**bits - 1 if low == 0 else -low - 1
            whole = [
                (0 if bits == 32 else low) if np.isnan(one) else min(max(int(one), low), high)
                for one in np.clip(function(FLOATS), -(2.0**70), 2.0**70)
            ]
            expected.append([one & (1 << bits) - 1 for one in whole])
    for line, made, wanted in zip(lines, evaluate(lines, kinds, [FLOATS]), expected, strict=True):
        unsigned = made.view(f"u{made.itemsize}").tolist()
        assert unsigned == wanted, line


def test_rounding_to_bf16_and_f16():
    """To nearest, ties to even, from f32 and f64: also between two numbers of f32."""
    bits = RNG.integers(0, 1 << 32, 192, dtype=np.uint32)
    bits[:64] = bits[:64] & 0xFFFF0000 | 0x8000  # halfway between two of bf16
    bits[64:72] = (0x7F7FFFFF, 0x7F800000, 0x7FC00001, 0x7F800001, 0x80000001, 0x477FF000, 1, 0)
    x = bits.view(np.float32)
    with np.errstate(all="ignore"):
        y = x.astype(np.float64) * (1 + 2.0**-40)
    lines = ["  %r = fptrunc float %x to bfloat", "  %r = fptrunc double %y to bfloat"]
    lines += ["  %r = fptrunc float %x to half", "  %r = fptrunc double %y to half"]
    found = evaluate(lines, ["bfloat", "bfloat", "half", "half"], [x, y])
    number = ~np.isnan(x)

    def to_bfloat(up: np.ndarray) -> np.ndarray:
        return (bits.astype(np.uint64) + 0x7FFF + up >> 16)[number]

    assert (found[0][number] == to_bfloat(bits >> 16 & 1)).all()
    # The f64 is a little greater in magnitude, so that no ties are left.
    finite = np.isfinite(x)[number]
    assert (found[1][number][finite] == to_bfloat(np.ones(192, np.uint32))[finite]).all()
    assert ((found[0][~number] & 0x7FC0) == 0x7FC0).all()
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(found[2], x.astype(np.float16))
        np.testing.assert_array_equal(found[3], y.astype(np.float16))
