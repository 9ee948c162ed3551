"""Every pair of types under every operator, on the emulator and the CPU: types and values against
Python's own numbers (`exact_numbers`)."""

# ruff: noqa: F821  (extents are named by strings)

import math
import operator
import random
import struct
from fractions import Fraction

import numpy as np
import pytest
from fly_trace.values.dtypes import DTYPES

import fly
import fly.expr as fx

from .exact_numbers import BITS, FLOATS, INTEGERS, NAMES, common, greatest, rounded, wrapped

LANES = 128
TARGETS = ("gfx942", "gfx1100", "gfx1201", "sm_90a")
COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")
PLAIN = ("add", "sub", "mul", "truediv", "floordiv", "mod")
BITWISE = ("and_", "or_", "xor")
SHIFTS = ("lshift", "rshift")
CHOICES = ("maximum", "minimum", "where", "joined", "either")
OPERATORS = (*PLAIN, *BITWISE, *SHIFTS, *COMPARISONS, *CHOICES, "iadd")
UNARY = ("neg", "pos", "abs", "invert", "not_", "square")


def result(name: str, a: str, b: str) -> str | None:
    """The type of an operation's result, or None if it is refused."""
    both = common(a, b)
    if name in COMPARISONS:
        return "bool"
    if name in SHIFTS:
        if both in FLOATS:
            return None
        both = both or a
        return "i32" if both == "bool" else both
    if both is None:
        return None
    if name in BITWISE:
        return None if both in FLOATS else both
    if name == "truediv" and both not in FLOATS:
        return "f64" if both == "u128" else "f32"
    if both == "bool" and name not in CHOICES:
        return "i32"
    return both


def results(a: str) -> list[tuple[str, str, str]]:
    """The right operand's type, the operator and the result's type, for all that is not refused."""
    pairs = [(b, name, result(name, a, b)) for b in NAMES for name in OPERATORS]
    own = [("", name, result_of_unary(name, a)) for name in UNARY]
    return [(b, name, found) for b, name, found in [*pairs, *own] if found is not None]


def result_of_unary(name: str, a: str) -> str | None:
    if name == "not_":
        return "bool"
    if name == "invert":
        return None if a in FLOATS else a
    return "i32" if a == "bool" else a


def applied(name, x, y, odd):
    if name == "joined":
        if odd:
            z = x
        else:
            z = y
        return z
    if name == "either":
        return x or y
    if name == "iadd":
        x += y
        return x
    if name == "where":
        return fx.where(odd, x, y)
    if name in ("maximum", "minimum"):
        return getattr(fx, name)(x, y)
    if name == "not_":
        return not x
    if name == "square":
        return x**2
    if name in UNARY:
        return getattr(operator, name)(x)
    return getattr(operator, name)(x, y)


@fly.kernel
def pairs_kernel(
    A: fx.Tensor, S: fx.Tensor, U: fx.Tensor, F: fx.Tensor, a: fx.Constexpr, form: fx.Constexpr
):
    t = fx.thread_idx.x

    def loaded(name, side):
        dtype = DTYPES[name]
        at = (NAMES.index(name) * 2 + side) * LANES * 16
        kind = fx.Uint8 if name == "bool" else dtype
        pointer = fx.recast_iter(kind, fx.get_iter(A) + at)
        if form == "vector":
            pair = fx.make_view(pointer, fx.make_layout((LANES // 2, 2), (2, 1)))[t, None].load()
            return pair != 0 if name == "bool" else pair
        one = fx.make_view(pointer, fx.make_layout(LANES, 1))[t]
        return one != 0 if name == "bool" else one

    x = loaded(a, 0)
    rights = {name: loaded(name, 1) for name in NAMES}
    for k, (b, name, expected) in enumerate(results(a)):
        if form == "vector" and name in ("joined", "either", "maximum", "minimum", "not_"):
            continue
        odd = t % 2 == 1
        if form == "vector" and name == "where":
            z = fx.where(fx.Vector.from_elements([odd, odd]), x, rights[b])
        else:
            y = rights[b] if b else None
            if name in ("floordiv", "mod") and expected not in FLOATS:
                y = fx.where(y == 0, DTYPES[b](1), y)  # a division by zero is undefined
                if b[0] == "i":
                    y = fx.where(y == -1, DTYPES[b](1), y)  # so is that of the least integer by -1
            z = applied(name, x, y, odd)
        assert z.dtype is DTYPES[expected], f"{a} {name} {b} is {z.dtype}"
        for lane in fx.range_constexpr(2 if form == "vector" else 1):
            one, at = (z[lane], t * 2 + lane) if form == "vector" else (z, t)
            if expected in FLOATS:
                F[k, at] = one.to(fx.Float64)
            elif expected == "u128":
                wide = fx.make_view(fx.recast_iter(fx.Uint128, fx.get_iter(U)), fx.get_layout(F))
                wide[k, at] = one
            else:
                wide = fx.make_view(fx.recast_iter(fx.Int128, fx.get_iter(S)), fx.get_layout(F))
                wide[k, at] = one.to(fx.Int128)


@fly.jit
def pairs(
    A: fx.Tensor[fx.Uint8, "bytes"],
    S: fx.Tensor[fx.Int64, "n", LANES, 2],
    U: fx.Tensor[fx.Int64, "n", LANES, 2],
    F: fx.Tensor[fx.Float64, "n", LANES],
    a: fx.Constexpr,
    form: fx.Constexpr,
):
    threads = LANES // 2 if form == "vector" else LANES
    pairs_kernel(A, S, U, F, a, form).launch(grid=1, block=threads)


def samples(name: str, side: int) -> list[bool | int | float]:
    """Eight special numbers against eight others in the first 64 lanes, then any numbers."""
    choose = random.Random(f"{name} {side}")
    if name == "bool":
        special, others = [False, True] * 4, [choose.random() < 0.5 for _ in range(64)]
    elif name in INTEGERS:
        low, high = INTEGERS[name]
        near = 2 ** min(24, BITS[name] - 2) + 1
        special = [0, 1, -1 if low else high, 2, low, high, near, high // 2 + 1]
        others = []
        for _ in range(64):
            size = choose.randrange(BITS[name])
            others.append(choose.randrange(-(1 << size) if low else 0, 1 << size))
    else:
        special = [
            0.0,
            1.0,
            -1.0,
            float(greatest(name)),
            2.0 ** FLOATS[name][0],
            -2.5,
            math.inf,
            math.nan,
        ]
        most = 14.0 if name == "f16" else 40.0
        others = [
            rounded(choose.choice((1, -1)) * 2 ** choose.uniform(-8, most), name) for _ in range(64)
        ]
    order = [lane // 8 if side else lane % 8 for lane in range(64)]
    return [*(special[at] for at in order), *others]


def encoded(name: str, numbers: list) -> bytes:
    """The numbers in memory, in 16 bytes each at most."""
    if name == "bool":
        data = bytes(numbers)
    elif name in INTEGERS:
        data = b"".join(
            wrapped(n, f"u{BITS[name]}").to_bytes(BITS[name] // 8, "little") for n in numbers
        )
    elif name == "bf16":
        data = b"".join(struct.pack("<f", n)[2:] for n in numbers)
    else:
        code = {"f16": "e", "f32": "f", "f64": "d"}[name]
        data = struct.pack(f"<{len(numbers)}{code}", *numbers)
    return data.ljust(LANES * 16, b"\0")


def converted(number, name: str):
    if name == "bool":
        return bool(number)
    return rounded(number, name) if name in FLOATS else int(number)


def computed(name: str, x, y, a: str, b: str, expected: str, lane: int):
    """The expected value of an operation, or None if it is not defined, or not to be compared."""
    if name in COMPARISONS:
        return getattr(operator, name)(x, y)
    if name == "not_":
        return not x
    if name in SHIFTS:
        x = wrapped(int(x), expected)
        bits = BITS[expected]
        if not 0 <= y < bits:
            return -1 if name == "rshift" and x < 0 else 0
        return wrapped(x << y if name == "lshift" else x >> y, expected)
    operands = common(a, b) if b else expected
    operands = expected if expected in FLOATS or operands == "bool" != expected else operands
    x = converted(x, operands)
    y = converted(y, operands) if b else None
    if name in ("joined", "where"):
        return x if lane % 2 else y
    if name == "either":
        return x or y
    if name in ("maximum", "minimum"):
        if any(n != n for n in (x, y)):
            return math.nan
        return max(x, y) if name == "maximum" else min(x, y)
    if name == "neg" and expected in FLOATS:
        return -x
    if name in ("pos", "abs") and expected in FLOATS:
        return abs(x) if name == "abs" else x
    if name in UNARY and expected not in FLOATS:
        if name == "invert" and expected == "bool":
            return not x
        found = {"neg": -x, "pos": +x, "abs": abs(x), "invert": ~int(x), "square": x * x}[name]
        return wrapped(found, expected)
    if expected in FLOATS:
        return of_floats(name, x, y, expected)
    if name in ("floordiv", "mod") and y in (0, -1):
        y = 1
    found = getattr(operator, name)(int(x), int(y))
    return bool(found) if expected == "bool" else wrapped(found, expected)


def of_floats(name: str, x: float, y: float, kind: str) -> float | None:
    if not all(n is None or math.isfinite(n) for n in (x, y)):
        return None
    if name == "square":
        return rounded(Fraction(x) ** 2, kind)
    if name in ("truediv", "floordiv", "mod") and y == 0:
        return None
    p, q = Fraction(x), Fraction(y)
    exact = {"add": p + q, "iadd": p + q, "sub": p - q, "mul": p * q}.get(name)
    if exact is None:
        exact = {"truediv": p / q if q else 0, "floordiv": p // q, "mod": p % q}[name]
        if name != "truediv" and abs(p // q) > 100:
            return None
    return rounded(exact, kind) if exact else None  # (the signs of zeros: test_python_meaning)


def same(found, expected) -> bool:
    if isinstance(expected, float) and expected != expected:
        return bool(np.isnan(found))
    return found == expected


@pytest.mark.parametrize("a", NAMES)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("form", ["scalar", "vector"])
def test_types_and_values(a: str, target: str, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLY_TARGET", target)
    rows = results(a)
    left = samples(a, 0)
    rights = {name: samples(name, 1) for name in NAMES}
    data = b"".join(encoded(name, samples(name, side)) for name in NAMES for side in (0, 1))
    n = len(rows)
    S, U = np.zeros((n, LANES, 2), np.int64), np.zeros((n, LANES, 2), np.int64)
    F = np.zeros((n, LANES))
    pairs(np.frombuffer(data, np.uint8).copy(), S, U, F, a, form)
    wrong, compared = [], 0
    for k, (b, name, expected) in enumerate(rows):
        if form == "vector" and name in ("joined", "either", "maximum", "minimum", "not_"):
            continue
        for lane in range(LANES):
            x, y = left[lane], rights[b][lane] if b else None
            odd = lane // 2 if form == "vector" else lane
            wanted = computed(name, x, y, a, b, expected, odd)
            if wanted is None:
                continue
            compared += 1
            if expected in FLOATS:
                found = float(F[k, lane])
            else:
                low, high = (U if expected == "u128" else S)[k, lane]
                found = int(high) << 64 | int(low) & 2**64 - 1
                found = wrapped(found, "u128") if expected == "u128" else found
            if not same(found, wanted):
                wrong.append(f"{a} {x} {name} {b} {y} = {found}, not {wanted} ({expected})")
    assert not wrong, "\n".join([f"{len(wrong)} of {compared}", *wrong[:20]])
    assert compared > n * LANES // 2
