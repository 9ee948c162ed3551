"""The values of a program's expressions, beside C's and Python's arithmetic."""

import math
from fractions import Fraction

import pytest
from fly_common.errors import InputError
from fly_host import integers
from fly_host.integers import HIGHEST, LOWEST, show
from fly_host.program import Launch, Program, Word, needs
from fly_host.readers.values import Extents, Values, dependencies, users
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


def values_of(*expressions, tensors=None, scalars=None) -> Values:
    program = Program("entry", "gfx942", (), expressions, ())
    return Values(program, dict(tensors or {}), scalars or {})


def value_of(*expressions, tensors=None, scalars=None) -> int:
    """The last one's."""
    return values_of(*expressions, tensors=tensors, scalars=scalars)[len(expressions) - 1]


def refusal(*expressions, tensors=None, scalars=None) -> str:
    with pytest.raises(InputError) as caught:
        value_of(*expressions, tensors=tensors, scalars=scalars)
    return caught.value.render("fly-run")


@pytest.mark.parametrize("operator", MEANING)
@given(a=I64, b=I64 | st.integers(0, 63))
def test_operators(operator, a, b):
    expressions = ("const", a), ("const", b), (operator, 0, 1)
    try:
        wanted = MEANING[operator](a, b)
    except ZeroDivisionError:
        wanted = None
    if wanted is not None and LOWEST <= wanted <= HIGHEST:
        assert value_of(*expressions) == wanted
    else:
        with pytest.raises(InputError):
            value_of(*expressions)


def test_leaves():
    values = values_of(
        ("extent", "A", 1),
        ("stride", "A", 0),
        ("scalar", "n"),
        ("mul", 0, 1),
        ("add", 3, 2),
        ("variable", 3),
        tensors={"A": Extents((3, 5), (7, 1))},
        scalars={"n": 100},
    )
    values.assign({3: -8})
    assert values.several((0, 1, 2, 3, 4, 5)) == (5, 7, 100, 35, 135, -8)
    assert values.triple((5, 0, 2)) == (-8, 5, 100)


def test_select_takes_one_branch():
    expressions = ("const", 0), ("const", 9), ("floordiv", 1, 0), ("select", 0, 2, 1)
    assert value_of(*expressions) == 9
    assert "9 // 0: division by zero" in refusal(*expressions[:3])


def test_what_depends_on_a_variable_is_computed_anew():
    values = values_of(("variable", 0), ("const", 2), ("mul", 0, 1), ("const", 7), ("add", 1, 3))
    for number in (3, 5):
        values.assign({0: number})
        assert values[2] == 2 * number
    assert values[4] == 9
    values.assign({0: 1 << 62})
    with pytest.raises(InputError, match=r"v0 \* 2: the value does not fit in 64 bits"):
        values[2]
    values.assign({0: 1})
    assert values[2] == 2


def test_what_depends_on_a_tensor_is_computed_anew():
    values = values_of(("extent", "T", 0), ("stride", "T", 0), ("add", 0, 1))
    for extent in (3, 4):
        values.see("T", Extents((extent,), (10,)))
        assert values[2] == extent + 10


def test_a_variable_without_a_value():
    assert "v7: variable 7 has no value yet" in refusal(("variable", 7))


def test_who_depends_on_what():
    expressions = ("extent", "T", 0), ("variable", 1), ("add", 0, 1), ("const", 4), ("mul", 2, 3)
    assert dependencies(expressions) == [
        {"T"}, {1}, {"T", 1}, frozenset(), {"T", 1},
    ]  # fmt: skip
    assert users(expressions) == {"T": [0, 2, 4], 1: [1, 2, 4]}


def test_a_graph_of_any_depth_has_a_value():
    expressions = [("const", 1), *(("add", n, 0) for n in range(20_000))]
    assert value_of(*expressions) == 20_001


def test_the_innermost_cause_is_told():
    said = refusal(
        ("extent", "A", 0),
        ("const", 0),
        ("floordiv", 0, 1),
        ("const", 1),
        ("add", 2, 3),
        ("select", 3, 4, 0),
        tensors={"A": Extents((8,), (1,))},
    )
    assert said == (
        "fly-run: error: the host program can't be evaluated: A.shape[0] // 0: division by zero\n"
        "  it is needed for select(1, ((A.shape[0] // 0) + 1), A.shape[0])"
    )


EDGES = {
    "and": (12, 10, 8), "or": (12, 10, 14), "xor": (12, 10, 6), "shl": (3, 0, 3), "shr": (3, 0, 3),
    "sub": (7, 9, -2), "mod": (-7, 4, 1), "rem": (-7, 4, -3), "floordiv": (-7, 4, -2),
    "ceildiv": (-7, 4, -1), "truncdiv": (-7, 4, -1), "lt": (1, 2, 1), "le": (2, 2, 1),
    "min": (1, 2, 1), "max": (1, 2, 2), "eq": (1, 2, 0), "ne": (1, 2, 1), "add": (1, 2, 3),
    "mul": (2, 3, 6),
}  # fmt: skip


def test_each_operator_by_one_case():
    assert set(EDGES) == set(MEANING)
    for operator, (a, b, wanted) in EDGES.items():
        assert value_of(("const", a), ("const", b), (operator, 0, 1)) == wanted, operator
    for a, b, wanted in ((7, -4, -1), (-7, -4, 1), (7, 4, 1), (0, 4, 0)):
        assert value_of(("const", a), ("const", b), ("truncdiv", 0, 1)) == wanted


@pytest.mark.parametrize("operator", ["floordiv", "ceildiv", "truncdiv", "mod", "rem"])
def test_divisions_by_zero(operator):
    assert "division by zero" in refusal(("const", 1), ("const", 0), (operator, 0, 1))


def test_what_a_launch_needs():
    words = ((Word("pointer", "A"), Word("integer", expression=2)), (Word("pointer", "A", 3),))
    assert needs(Launch("k", (0, 0, 1), (0, 0, 0), 4, words)) == (0, 0, 1, 0, 0, 0, 4, 2, 3)


@pytest.mark.parametrize("condition", [0, 1])
def test_the_branch_that_was_chosen_is_to_blame(condition):
    """Both branches have no value, and the condition has one."""
    said = refusal(
        ("const", condition), ("extent", "A", 7), ("extent", "B", 7), ("select", 0, 1, 2)
    )
    assert f"there is no extent 7 of {'A' if condition else 'B'!r}" in said


def test_a_condition_without_a_value_is_to_blame():
    said = refusal(("scalar", "n"), ("const", 1), ("const", 2), ("select", 0, 1, 2))
    assert "n: 'n' is not an integer scalar" in said


@pytest.mark.parametrize(
    ("expressions", "message"),
    [
        ([("const", HIGHEST), ("const", 1), ("add", 0, 1)], "the value does not fit in 64 bits"),
        ([("const", 1), ("const", 64), ("shl", 0, 1)], "a shift by 64"),
        ([("const", 1), ("const", -1), ("shr", 0, 1)], "a shift by -1"),
        ([("extent", "B", 0)], "there is no extent 0 of 'B'"),
        ([("stride", "A", 2)], "there is no stride 2 of 'A'"),
        ([("extent", "A", -1)], "there is no extent -1 of 'A'"),
        ([("scalar", "x")], "'x' is not an integer scalar"),
        ([("scalar", "f")], "'f' is not an integer scalar"),
        ([("extent", "A", 1)], "there is no extent 1 of 'A'"),
        ([("const", 1 << 70)], "the value does not fit in 64 bits"),
        ([("const", HIGHEST + 1)], "the value does not fit in 64 bits"),
        ([("const", LOWEST - 1)], "the value does not fit in 64 bits"),
    ],
)
def test_what_has_no_value(expressions, message):
    tensors = {"A": Extents((1,), (1,))}
    assert message in refusal(*expressions, tensors=tensors, scalars={"f": 1.5})


def test_what_nobody_needs_may_have_no_value():
    values = values_of(("const", 1), ("const", 0), ("mod", 0, 1))
    assert values.several((0, 1)) == (1, 0)


def test_shown_as_a_person_writes_it():
    expressions = (
        ("extent", "A", 0),
        ("const", 256),
        ("ceildiv", 0, 1),
        ("stride", "A", 1),
        ("mul", 2, 3),
    )
    assert show(expressions, 2) == "ceildiv(A.shape[0], 256)"
    assert show(expressions, 4) == "ceildiv(A.shape[0], 256) * A.strides[1]"


SIGNS = {
    "add": "+", "sub": "-", "mul": "*", "floordiv": "//", "mod": "%", "and": "&", "or": "|",
    "xor": "^", "shl": "<<", "shr": ">>", "eq": "==", "ne": "!=", "lt": "<", "le": "<=",
}  # fmt: skip


@pytest.mark.parametrize("operator", MEANING)
def test_operators_as_a_person_writes_them(operator):
    expressions = ("scalar", "n"), ("const", 2), (operator, 0, 1), (operator, 2, 1)
    if operator in SIGNS:
        inner, outer = f"n {SIGNS[operator]} 2", f"(n {SIGNS[operator]} 2) {SIGNS[operator]} 2"
    else:
        inner, outer = f"{operator}(n, 2)", f"{operator}({operator}(n, 2), 2)"
    assert (show(expressions, 2), show(expressions, 3)) == (inner, outer)


def test_brackets_that_belong_to_two_parts_stay():
    expressions = ("scalar", "n"), ("min", 0, 0), ("add", 0, 0), ("select", 0, 1, 2)
    assert show(expressions, 3) == "select(n, min(n, n), (n + n))"
    assert show(expressions, 1) == "min(n, n)"


def test_long_text_is_cut_after_200_parts():
    sums = [("const", 1)] + [("add", n, n) for n in range(8)]
    assert "…" not in show(sums, 6)  # 127 parts
    text = show(sums, 8)  # 511
    assert text.count("…") > 0
    assert text.count("1") + text.count("+") == 200


def test_what_is_cut_is_one_character(monkeypatch):
    monkeypatch.setattr(integers, "MOST_SHOWN", 4)
    sums = [("const", 1)] + [("add", n, n) for n in range(2)]
    assert show(sums, 2) == "(1 + 1) + …"


def test_shared_parts_do_not_make_endless_text():
    expressions = [("const", 1)] + [("add", n, n) for n in range(60)]
    assert len(show(expressions, 60)) < 5000
    assert value_of(*expressions) == 1 << 60
