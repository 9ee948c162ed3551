"""bf16 arithmetic of gfx1250: packed sums and products, functions of one number (LLVM,
FeatureBF16PackedInsts, FeatureBF16TransInsts).

Every result is exact in f64, or within 2^-40, and is rounded once, to nearest even. No public
source says how MODE rounds and flushes bf16: it is ignored here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from fly_run.emulator.irgen import Value
from fly_run.emulator.semantics.base.emit import Lanes
from fly_run.emulator.semantics.base.operation import Operation, rows, valu
from fly_run.emulator.semantics.vector.floating.convert import to_bfloat
from fly_run.emulator.semantics.vector.floating.float import sum_to_odd
from fly_run.emulator.semantics.vector.floating.min_max import of_two, picking
from fly_run.emulator.semantics.vector.floating.transcendental import DIRECT, FUNCTIONS, tanh
from fly_run.emulator.semantics.vector.packed import halves

Body = Callable[..., object]
CHUNK = 16
TIE = 0x8000  # the dropped bits of an f32 halfway between two bf16


def operations() -> Iterator[Operation]:
    for name, body in PACKED.items():
        count = 3 if name == "fma" else 2
        types = f"i32 = {', '.join(['i32'] * count)}"
        packed = halves("i16", _of_brains(body))
        yield valu(f"v_pk_{name}_bf16", types, packed, chunk=CHUNK, kinds=rows(count))
    for name in ("min", "max"):
        packed = halves("i16", _picked(name))
        yield valu(f"v_pk_{name}_num_bf16", "i32 = i32, i32", packed, chunk=CHUNK, kinds=rows(2))
    options: dict[str, Any] = {"chunk": CHUNK, "kinds": rows(1), "keeps_high": True}
    for name, function in {**FUNCTIONS, **DIRECT, "tanh": tanh}.items():
        yield valu(f"v_{name}_bf16", "i16 = i16", _of_one(function), **options)
    clamp = {"chunk": CHUNK, "kinds": rows(1)}
    yield valu("fly_clamp_pk_bf16", "i32 = i32", halves("i16", _clamp), **clamp)
    yield valu("fly_clamp_bf16", "i16 = i16", _clamp, keeps_high=True, **clamp)


def number(raw: Value) -> Value:
    """Returns the f32 of 16 bits."""
    return (raw.zext("i32") << 16).bits("float")


def rounded(total: Value) -> Value:
    """Rounds a double to bf16's 16 bits, once: an f32 halfway between two of them is moved towards
    the double that it came from."""
    single = total.convert("fptrunc", "float")
    bits = single.bits("i32")
    back = single.convert("fpext", "double")
    halfway = (bits & 0xFFFF).compare("eq", TIE)
    f = total.function
    found, wanted = (f.intrinsic("llvm.fabs", one) for one in (back, total))
    bits = (halfway & found.compare("ogt", wanted)).select(bits - 1, bits)
    bits = (halfway & found.compare("olt", wanted)).select(bits + 1, bits)
    return to_bfloat(bits.bits("float"))


def _of_brains(body: Body) -> Body:
    """Applies a body on doubles to bf16."""

    def run(k: Lanes, *values: Value) -> Value:
        wide = (number(value).convert("fpext", "double") for value in values)
        result = body(k, *wide)
        assert isinstance(result, Value)
        return rounded(result)

    return run


def _of_one(function: Callable[[Lanes, Value], Value]) -> Body:
    """Applies a function on doubles to bf16. For none of its 65,536 arguments does rounding to f32
    first change the result (test_brain_functions)."""

    def run(k: Lanes, a: Value) -> Value:
        result = function(k, number(a).convert("fpext", "double"))
        return to_bfloat(result.convert("fptrunc", "float"))

    return run


def fused(k: Lanes, a: Value, b: Value, c: Value) -> Value:
    """The product of two bf16 is exact in a double; the sum is rounded to odd, so that rounding it
    again is rounding it once."""
    return sum_to_odd(a * b, c)


PACKED: dict[str, Body] = {
    "add": lambda k, a, b: sum_to_odd(a, b),
    "mul": lambda k, a, b: a * b,
    "fma": fused,
}


def _picked(name: str) -> Body:
    pick = of_two(picking(name))

    def run(k: Lanes, a: Value, b: Value) -> Value:
        result = pick(k, number(a), number(b))
        assert isinstance(result, Value)
        return to_bfloat(result)

    return run


def _clamp(k: Lanes, a: Value) -> Value:
    """Clamps to [0, 1]; NaN becomes 0."""
    value = number(a)
    above = value.compare("ogt", 0.0).select(value, 0.0)
    return to_bfloat(above.compare("olt", 1.0).select(above, 1.0))
