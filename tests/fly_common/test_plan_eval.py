"""The plan's arithmetic, beside C's and Python's."""

import math
from fractions import Fraction

import pytest
from fly_common.errors import InputError
from fly_host.evaluation import HIGHEST, LOWEST, Extents, evaluate, show
from fly_host.plan import Launch, Plan
from hypothesis import given
from hypothesis import strategies as st

I64 = st.integers(LOWEST, HIGHEST) | st.integers(-20, 20)

# What each operator means, in exact arithmetic and in other words than the interpreter's.
MEANING = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "floordiv": lambda a, b: math.floor(Fraction(a, b)),
    "ceildiv": lambda a, b: math.ceil(Fraction(a, b)),
    "truncdiv": lambda a, b: math.trunc(Fraction(a, b)),
    "mod": lambda a, b: a - b * math.floor(Fraction(a, b)),
    "rem": lambda a, b: a - b * math.trunc(Fraction(a, b)),
    "min": lambda a, b: a if a <= b else b,
    "max": lambda a, b: b if a <= b else a,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: (a | b) - (a & b),
    "shl": lambda a, b: a * 2**b if 0 <= b < 64 else None,
    "shr": lambda a, b: math.floor(Fraction(a, 2**b)) if 0 <= b < 64 else None,
    "eq": lambda a, b: 1 if a == b else 0,
    "ne": lambda a, b: 0 if a == b else 1,
    "lt": lambda a, b: 1 if b > a else 0,
    "le": lambda a, b: 1 if b >= a else 0,
}


def plan_of(*expressions, used=None) -> Plan:
    index = len(expressions) - 1 if used is None else used
    launch = Launch("k", (index,) * 3, (index,) * 3, index, ())
    return Plan("entry", "gfx942", (), expressions, (launch,))


@pytest.mark.parametrize("operator", MEANING)
@given(a=I64, b=I64 | st.integers(0, 63))
def test_operators(operator, a, b):
    plan = plan_of(("const", a), ("const", b), (operator, 0, 1))
    try:
        wanted = MEANING[operator](a, b)
    except ZeroDivisionError:
        wanted = None
    if wanted is not None and LOWEST <= wanted <= HIGHEST:
        assert evaluate(plan, {}, {})[2] == wanted
    else:
        with pytest.raises(InputError):
            evaluate(plan, {}, {})


def test_leaves():
    plan = plan_of(
        ("extent", "A", 1), ("stride", "A", 0), ("scalar", "n"), ("mul", 0, 1), ("add", 3, 2)
    )
    assert evaluate(plan, {"A": Extents((3, 5), (7, 1))}, {"n": 100}) == [5, 7, 100, 35, 135]


def test_select_takes_one_branch():
    plan = plan_of(("const", 0), ("const", 9), ("floordiv", 1, 0), ("select", 0, 2, 1))
    assert evaluate(plan, {}, {}) == [0, 9, None, 9]


def refusal(plan, tensors=None, scalars=None) -> str:
    with pytest.raises(InputError) as caught:
        evaluate(plan, tensors or {}, scalars or {})
    return caught.value.render("fly-run")


def test_the_innermost_cause_is_told():
    plan = plan_of(
        ("extent", "A", 0),
        ("const", 0),
        ("floordiv", 0, 1),
        ("const", 1),
        ("add", 2, 3),
        ("select", 3, 4, 0),
    )
    assert refusal(plan, {"A": Extents((8,), (1,))}) == (
        "fly-run: error: the launch plan can't be evaluated: A.shape[0] // 0: division by zero\n"
        "  it is needed for select(1, ((A.shape[0] // 0) + 1), A.shape[0])"
    )


@pytest.mark.parametrize(
    ("expressions", "message"),
    [
        ([("const", HIGHEST), ("const", 1), ("add", 0, 1)], "the value does not fit 64 bits"),
        ([("const", 1), ("const", 64), ("shl", 0, 1)], "a shift by 64"),
        ([("const", 1), ("const", -1), ("shr", 0, 1)], "a shift by -1"),
        ([("extent", "B", 0)], "there is no extent 0 of 'B'"),
        ([("stride", "A", 2)], "there is no stride 2 of 'A'"),
        ([("extent", "A", -1)], "there is no extent -1 of 'A'"),
        ([("scalar", "x")], "'x' is no integer scalar"),
        ([("const", 1 << 70)], "the value does not fit 64 bits"),
    ],
)
def test_what_has_no_value(expressions, message):
    assert message in refusal(plan_of(*expressions), {"A": Extents((1,), (1,))})


def test_what_nobody_needs_may_have_no_value():
    plan = plan_of(("const", 1), ("const", 0), ("mod", 0, 1), used=0)
    assert evaluate(plan, {}, {}) == [1, 0, None]


def test_shown_as_a_person_writes_it():
    plan = plan_of(
        ("extent", "A", 0), ("const", 256), ("ceildiv", 0, 1), ("stride", "A", 1), ("mul", 2, 3)
    )
    assert show(plan, 2) == "ceildiv(A.shape[0], 256)"
    assert show(plan, 4) == "ceildiv(A.shape[0], 256) * A.strides[1]"


def test_shared_parts_do_not_make_endless_text():
    expressions = [("const", 1)] + [("add", n, n) for n in range(60)]
    assert len(show(plan_of(*expressions), 60)) < 5000
    assert evaluate(plan_of(*expressions), {}, {})[60] == 1 << 60
