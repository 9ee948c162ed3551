"""Every pair of types under every operator, on the emulator and the CPU: types and values against
Python's own numbers (`exact_numbers`)."""

# ruff: noqa: F821  (extents are named by strings)

import math
import operator
from fractions import Fraction

import numpy as np
import pytest
from fly_trace.values.dtypes import DTYPES

import fly
import fly.expr as fx

from .exact_numbers import BITS, FLOATS, NAMES, common, rounded, wrapped
from .type_samples import LANES, loaded, memory, read, same, samples, stored

# A scalar on one target, and in `make heavy` all the rest.
WAYS = [
    pytest.param(
        target, form, marks=[] if (target, form) == ("gfx942", "scalar") else pytest.mark.heavy
    )
    for form in ("scalar", "vector")
    for target in ("gfx942", "gfx1100", "gfx1201", "sm_90a")
]
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

    x = loaded(A, a, 0, form)
    rights = {name: loaded(A, name, 1, form) for name in NAMES}
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
        stored(z, k, S, U, F, form)


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


@pytest.mark.parametrize("a", NAMES)
@pytest.mark.parametrize(("target", "form"), WAYS)
def test_types_and_values(a: str, target: str, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLY_TARGET", target)
    rows = results(a)
    left = samples(a, 0)
    rights = {name: samples(name, 1) for name in NAMES}
    n = len(rows)
    S, U = np.zeros((n, LANES, 2), np.int64), np.zeros((n, LANES, 2), np.int64)
    F = np.zeros((n, LANES))
    pairs(memory(samples), S, U, F, a, form)
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
            found = read(expected, k, lane, S, U, F)
            if not same(found, wanted):
                wrong.append(f"{a} {x} {name} {b} {y} = {found}, not {wanted} ({expected})")
    assert not wrong, "\n".join([f"{len(wrong)} of {compared}", *wrong[:20]])
    assert compared > n * LANES // 2
