"""Vector comparisons: every type and condition, and class tests (CDNA3 ISA manual, VOPC).

The result is a mask in a pair of scalar registers. `v_cmpx` also writes EXEC: the encoder adds a
step for that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from fly_run.emulator.irgen import Value
from fly_run.emulator.semantics.base.emit import Lanes
from fly_run.emulator.semantics.base.operation import Operation, valu
from fly_run.emulator.semantics.vector.floating.float import integer, is_signaling

FLOAT_CONDITIONS = {
    "f": "false",
    "lt": "olt",
    "eq": "oeq",
    "le": "ole",
    "gt": "ogt",
    "lg": "one",
    "ge": "oge",
    "o": "ord",
    "u": "uno",
    "nge": "ult",
    "nlg": "ueq",
    "ngt": "ule",
    "nle": "ugt",
    "neq": "une",
    "nlt": "uge",
    "tru": "true",
}
# {} is the sign: s or u
INTEGER_CONDITIONS = {
    "f": None,
    "lt": "{}lt",
    "eq": "eq",
    "le": "{}le",
    "gt": "{}gt",
    "ne": "ne",
    "ge": "{}ge",
    "t": None,
}


def operations() -> Iterator[Operation]:
    for element, short in (("half", "f16"), ("float", "f32"), ("double", "f64")):
        for name, predicate in FLOAT_CONDITIONS.items():
            yield _row(f"{name}_{short}", element, _compare(predicate))
        second = "i16" if element == "half" else "i32"
        body = _class_test
        types = f"mask = {element}, {second}"
        yield valu(f"v_cmp_class_{short}", types, body, chunk=16, kinds=("vv", "vs"))
    for width in (16, 32, 64):
        for sign, letter in (("s", "i"), ("u", "u")):
            for name, predicate in INTEGER_CONDITIONS.items():
                if predicate is None:
                    body = _always(name == "t")
                else:
                    body = _compare(predicate.format(sign))
                yield _row(f"{name}_{letter}{width}", f"i{width}", body)


def _row(suffix: str, element: str, body: Callable[..., Value]) -> Operation:
    options = {"chunk": 16} if element in ("i64", "double", "half") else {}
    return valu(f"v_cmp_{suffix}", f"mask = {element}, {element}", body, **options)


def _compare(predicate: str) -> Callable[..., Value]:
    def run(k: Lanes, a: Value, b: Value) -> Value:
        if a.element == "half":
            a, b = a.convert("fpext", "float"), b.convert("fpext", "float")
        return a.compare(predicate, b)

    return run


def _always(value: bool) -> Callable[..., Value]:
    return lambda k, a, b: k.constant("i1", value)


def _class_test(k: Lanes, a: Value, mask: Value) -> Value:
    """Mask bits: signaling NaN, quiet NaN, -inf, -normal, -denormal, -0, +0, +denormal, +normal,
    +inf."""
    bits = integer(a)
    width = {"half": 16, "float": 32, "double": 64}[a.element]
    mantissa = {"half": 10, "float": 23, "double": 52}[a.element]
    negative = bits.compare("slt", 0)
    size = bits & ((1 << (width - 1)) - 1)
    infinity = ((1 << (width - 1 - mantissa)) - 1) << mantissa
    nan = size.compare("ugt", infinity)
    signaling = is_signaling(a)
    infinite = size.compare("eq", infinity)
    zero = size.compare("eq", 0)
    denormal = size.compare("ult", 1 << mantissa) & ~zero
    normal = ~(nan | infinite | zero | denormal)

    def wanted(bit: int) -> Value:
        return (mask & (1 << bit)).compare("ne", 0)

    result = (signaling & wanted(0)) | (nan & ~signaling & wanted(1))
    for kind, below, above in (
        (infinite, 2, 9),
        (normal, 3, 8),
        (denormal, 4, 7),
        (zero, 5, 6),
    ):
        side = (negative & wanted(below)) | (~negative & wanted(above))
        result = result | (kind & side)
    return result
