"""Float arithmetic rounded up, down or toward zero, according to MODE.FP_ROUND.

CDNA4 ISA manual, "Denormalized and Rounding Modes": 0 nearest even, 1 up, 2 down, 3 toward zero;
one field for f32 results, one for f64 and f16. An instruction uses that of its result's type,
except V_CVT_F32_F64, which uses that of f64: LLVM lowers fptrunc.round this way (test
llvm.fptrunc.round.ll).

MODE.FP16_OVFL limits overflow in f16 to the largest number ("regardless of round mode, while still
preserving true INF values"). Here the exact result determines overflow: a number larger than that
one. Instructions that are not in EXACTLY can't overflow.

f32 and f16 results are computed from sums in f64 that are rounded to odd, so that the second
rounding is of the exact value; f64 results from fractions, one by one.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from oracle.arithmetic import floats
from oracle.vector.table import Op

f16, f32, f64 = np.float16, np.float32, np.float64
NEAREST, UP, DOWN, ZERO = range(4)
FP16_OVFL = 1 << 23
LARGEST = 65504.0
# Results that are exact in every mode.
EXACT = re.compile(
    r"v_((min|max)(imum|imum3|3)?|med3|floor|ceil|trunc|rndne|fract|frexp_\w+|cmp\w+|cndmask)_.*"
    r"|v_cvt_(f32_(f16|bf16|ubyte\d)|f64_\w+)"
)


# Operations that can overflow in f16, in f64. mad and mac are omitted: whether their product
# overflows is unspecified.
EXACTLY: dict[str, Callable] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "subrev": lambda a, b: b - a,
    "mul": lambda a, b: a * b,
    **dict.fromkeys(("fma", "fmac", "fmamk", "fmaak", "fma_legacy"), lambda a, b, c: a * b + c),
    "ldexp": lambda a, b: np.ldexp(a, np.clip(b, -99, 99).astype(int)),
    "exp": lambda a: np.exp2(np.where(np.isinf(a), a, np.minimum(a, 99))),
    "rcp": lambda a: 1 / a,
    "cvt": lambda a: a,
}


def rounded(name: str, op: Op, mode: int) -> Callable:
    """Returns the function of `op` under a MODE."""
    function = _rounded(name, op, mode)
    match = re.fullmatch(r"v_(cvt(?=_f16)|\w+?)_(?:legacy_)?f16(?:_[fiu]\d\d)?", name)
    if not mode & FP16_OVFL or op.result != "f16" or not match or match[1] not in EXACTLY:
        return function
    exactly = EXACTLY[match[1]]

    def held(*values: np.ndarray) -> np.ndarray:
        exact = exactly(*(x.astype(f64) for x in values))
        beyond = np.isfinite(exact) & (np.abs(exact) > LARGEST)
        return np.where(beyond, np.copysign(LARGEST, exact), function(*values)).astype(f16)

    return held


def _rounded(name: str, op: Op, mode: int) -> Callable:
    kind, function = op.result, op.function
    if kind[0] != "f":
        return function
    single = kind == "f32" and name != "v_cvt_f32_f64"
    direction = (mode if single else mode >> 2) & 3
    if direction == NEAREST or EXACT.fullmatch(name):
        return function
    return _directed(name, direction)


def _directed(name: str, direction: int) -> Callable:
    match = re.fullmatch(r"v_(\w+?)_(f16|f32|f64)", name)
    if match and (operation := OPERATIONS.get(match[1])):
        return lambda *values: operation(*values, direction)
    if match := re.fullmatch(r"v_cvt_(f16|f32)_(f32|f64|[iu]16|[iu]32)", name):
        dtype = {"f16": f16, "f32": f32}[match[1]]
        return lambda x: narrowed(x.astype(f64), dtype, direction)
    raise NotImplementedError(f"{name}: not rounded to nearest")


def narrowed(exact: np.ndarray, dtype: type, direction: int) -> np.ndarray:
    """Rounds float64 `exact` (exact, or rounded to odd) to f32 or f16."""
    near = exact.astype(dtype)
    wide = near.astype(f64)
    above = np.where(wide < exact, np.nextafter(near, dtype(np.inf)), near)
    below = np.where(wide > exact, np.nextafter(near, dtype(-np.inf)), near)
    if direction == ZERO:
        return np.where(exact > 0, below, above)
    return {NEAREST: near, UP: above, DOWN: below}[direction]


def add(a, b, direction: int):
    if a.dtype == f64:
        return _each(direction, lambda x, y: (x, y), lambda x, y: x + y, a, b)
    return _sum(a.astype(f64), b.astype(f64), a.dtype.type, direction)


def multiply(a, b, direction: int):
    if a.dtype == f64:
        return _each(direction, lambda x, y: ((x, y),), lambda x, y: x * y, a, b)
    return narrowed(a.astype(f64) * b.astype(f64), a.dtype.type, direction)


def multiply_add(a, b, c, direction: int):
    if a.dtype == f64:
        return _each(direction, lambda x, y, z: ((x, y), z), floats.fma, a, b, c)
    return _sum(a.astype(f64) * b.astype(f64), c.astype(f64), a.dtype.type, direction)


def multiply_then_add(a, b, c, direction: int):
    return add(multiply(a, b, direction), c, direction)


OPERATIONS = {
    "add": add,
    "sub": lambda a, b, direction: add(a, -b, direction),
    "subrev": lambda a, b, direction: add(b, -a, direction),
    "mul": multiply,
    **dict.fromkeys(("fma", "fmac"), multiply_add),
    **dict.fromkeys(("mad", "mac"), multiply_then_add),
}


def _sum(a: np.ndarray, b: np.ndarray, dtype: type, direction: int) -> np.ndarray:
    total = floats.odd_sum(a, b)
    if direction == DOWN:  # exact cancellation gives -0
        cancelled = (total == 0) & (np.signbit(a) != np.signbit(b))
        total = np.where(cancelled, -np.zeros_like(total), total)
    return narrowed(total, dtype, direction)


def _each(direction: int, terms: Callable, plain: Callable, *operands: np.ndarray) -> np.ndarray:
    """f64. `terms` returns the numbers or pairs of factors to add; `plain` gives the result for
    infinities and NaNs, and the sign of zeros."""
    operands = tuple(np.broadcast_arrays(*operands))
    result = np.array(plain(*operands))
    finite = np.isfinite(np.stack(operands)).all(axis=0)
    for index in zip(*np.nonzero(finite), strict=True):
        parts = [
            part if isinstance(part, tuple) else (part,)
            for part in terms(*(float(x[index]) for x in operands))
        ]
        exact = sum((_product(part) for part in parts), Fraction(0))
        if exact:
            result[index] = _one(exact, direction)
        else:
            negative = [bool(np.signbit(part).sum() % 2) for part in parts]
            below = all(negative) or (any(negative) and direction == DOWN)
            result[index] = -0.0 if below else 0.0
    return result


def _product(factors: tuple[float, ...]) -> Fraction:
    result = Fraction(1)
    for factor in factors:
        result *= Fraction(factor)
    return result


def _one(exact: Fraction, direction: int) -> float:
    near = floats.round_fraction(exact)
    side = (near > exact) - (near < exact)  # an infinity is beyond every fraction
    if direction == ZERO:
        direction = DOWN if exact > 0 else UP
    if direction == UP and side < 0:
        return float(np.nextafter(near, np.inf))
    if direction == DOWN and side > 0:
        return float(np.nextafter(near, -np.inf))
    return near
