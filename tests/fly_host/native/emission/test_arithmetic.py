"""Compiled arithmetic against Python's integers, at the edges of 64 bits above all."""

import ctypes

import pytest
from fly_host.integers import HIGHEST, LOWEST, Undefined, binary
from fly_host.native import library
from fly_host.native.emission import arithmetic
from fly_host.native.emission.arithmetic import Number
from fly_host.native.emission.code import Code
from fly_host.native.specialisation import Options
from fly_host.program import BINARY
from hypothesis import given, settings
from hypothesis import strategies as st

AROUND = (0, 1 << 31, 1 << 32, 1 << 62)
EDGES = sorted(
    {
        *(sign * n + d for n in AROUND for d in (-1, 0, 1) for sign in (1, -1)),
        *(LOWEST, LOWEST + 1, LOWEST + 2, HIGHEST, HIGHEST - 1),
        *(-64, -7, -3, -2, 2, 3, 7, 10, 62, 63, 64, 65),
    }
)
NUMBERS = st.one_of(st.sampled_from(EDGES), st.integers(LOWEST, HIGHEST), st.integers(-100, 100))
OPERATORS = sorted(BINARY)


def functions(constants: tuple[int, ...] = ()) -> ctypes.CDLL:
    """A function for each operator, of two integers, or of one and a constant; it stores the value
    and whether there is one."""
    made = [*arithmetic.DECLARATIONS]
    for op in OPERATORS:
        for number, constant in enumerate((None, *constants)):
            code = Code()
            b = Number("%b" if constant is None else str(constant))
            found = arithmetic.binary(code, op, Number("%a"), b)
            code.do(f"store i64 {found.value}, ptr %value")
            code.do(f"ret i1 {'true' if found.ok is None else found.ok}")
            made.append(
                f"define zeroext i1 @{op}{number}(i64 %a, i64 %b, ptr %value) {{\n"
                + "\n".join(code.lines)
                + "\n}"
            )
    return library.load("\n".join(made) + "\n", Options())


def call(compiled: ctypes.CDLL, name: str, a: int, b: int) -> int | None:
    function, value = getattr(compiled, name), ctypes.c_int64(0)
    function.restype = ctypes.c_bool
    function.argtypes = [ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p]
    return value.value if function(a, b, ctypes.addressof(value)) else None


def expected(op: str, a: int, b: int) -> int | None:
    try:
        return binary(op, a, b)
    except Undefined:
        return None


@pytest.mark.parametrize("op", OPERATORS)
def test_edges(op: str) -> None:
    compiled = functions()
    for a in EDGES:
        for b in EDGES:
            assert call(compiled, f"{op}0", a, b) == expected(op, a, b), (a, b)


@pytest.mark.parametrize("op", OPERATORS)
def test_constant_operands(op: str) -> None:
    """A constant divisor or count needs fewer checks: those that are left out must be no loss."""
    constants = (0, 1, -1, 2, -2, 3, 63, 64, -64, LOWEST, HIGHEST)
    compiled = functions(constants)
    for a in EDGES:
        for number, b in enumerate(constants):
            assert call(compiled, f"{op}{number + 1}", a, 0) == expected(op, a, b), (a, b)


@given(st.sampled_from(OPERATORS), NUMBERS, NUMBERS)
@settings(max_examples=3000)
def test_any_numbers(op: str, a: int, b: int) -> None:
    assert call(functions(), f"{op}0", a, b) == expected(op, a, b)


def test_a_select_needs_only_the_side_that_it_chooses() -> None:
    code = Code()
    quotient = arithmetic.binary(code, "floordiv", Number("%a"), Number("%b"))
    found = arithmetic.select(code, Number("%b"), quotient, Number("7"))
    code.do(f"store i64 {found.value}, ptr %value")
    code.do(f"ret i1 {found.ok}")
    text = "define zeroext i1 @f(i64 %a, i64 %b, ptr %value) {\n" + "\n".join(code.lines) + "\n}\n"
    compiled = library.load(text, Options())
    assert call(compiled, "f", 10, 0) == 7
    assert call(compiled, "f", 10, 3) == 3
    assert call(compiled, "f", LOWEST, -1) is None
