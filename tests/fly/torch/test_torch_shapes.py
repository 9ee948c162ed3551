"""What the results of a host program are like, on shapes and numbers alone."""

import pytest
from fly_common.errors import UsageError
from fly_host.program import (
    BINARY,
    Assigned,
    Buffer,
    Operand,
    Program,
    Result,
    Scalar,
    Tensor,
    View,
    leaves,
)

torch = pytest.importorskip("torch")

TENSORS = (
    Buffer("T", "bf16", (0, 1), (2, 3), 4),
    Assigned("R", "f32", 1),
    Buffer("U", "i32", (1,), (0,), 4),
)


def program(expressions, results: Result) -> Program:
    parameters = Tensor("X", "f32", (None, None), (None, None)), Scalar("n", "i64")
    names = tuple(f"result{number}" for number, _ in enumerate(leaves(results)))
    return Program("f", "gfx942", parameters, expressions, (), TENSORS, results, names)


def results_of(expressions, results: Result, n: object = 7) -> list:
    from fly.torch.shapes import results as results_on

    x = torch.empty_strided((3, 5), (8, 2), device="meta")
    return results_on(program(expressions, results), {"X": x}, {"n": n})


def value_of(*expressions, n: object = 7) -> object:
    (found,) = results_of(expressions, Operand("integer", len(expressions) - 1), n)
    return found


# By (7, 2), (-7, 2), (7, -2), (-7, -2) and (0, -2); None where there is no such operation.
MEANING = {
    "add": (9, -5, 5, -9, -2), "sub": (5, -9, 9, -5, 2), "mul": (14, -14, -14, 14, 0),
    "floordiv": (3, -4, -4, 3, 0), "ceildiv": (4, -3, -3, 4, 0), "truncdiv": (3, -3, -3, 3, 0),
    "mod": (1, 1, -1, -1, 0), "rem": (1, -1, 1, -1, 0),
    "min": (2, -7, -2, -7, -2), "max": (7, 2, 7, -2, 0),
    "and": (2, 0, 6, -8, 0), "or": (7, -5, -1, -1, -2), "xor": (5, -5, -7, 7, -2),
    "shl": (28, -28, None, None, None), "shr": (1, -2, None, None, None),
    "eq": (0, 0, 0, 0, 0), "ne": (1, 1, 1, 1, 1), "lt": (0, 1, 0, 1, 0), "le": (0, 1, 0, 1, 0),
}  # fmt: skip


@pytest.mark.parametrize("operator", sorted(BINARY))
def test_operators(operator):
    pairs = (7, 2), (-7, 2), (7, -2), (-7, -2), (0, -2)
    for (a, b), wanted in zip(pairs, MEANING[operator], strict=True):
        if wanted is not None:
            found = value_of(("scalar", "n"), ("const", b), (operator, 0, 1), n=a)
            assert found == wanted, (operator, a, b)


@pytest.mark.parametrize(("operator", "a", "wanted"), [("shl", -10, -320), ("shr", -50, -2)])
def test_shifts_by_5(operator, a, wanted):
    assert value_of(("const", a), ("const", 5), (operator, 0, 1)) == wanted


@pytest.mark.parametrize(("operator", "wanted"), [("eq", 1), ("ne", 0), ("lt", 0), ("le", 1)])
def test_comparisons_of_equal_numbers(operator, wanted):
    assert value_of(("scalar", "n"), (operator, 0, 0)) == wanted


def test_leaves():
    expressions = (
        ("extent", "X", 0), ("extent", "X", 1), ("stride", "X", 0), ("stride", "X", 1),
        ("scalar", "n"), ("const", -4),
    )  # fmt: skip
    operands = tuple(Operand("integer", index) for index in range(6))
    assert results_of(expressions, operands) == [3, 5, 8, 2, 7, -4]


@pytest.mark.parametrize(("condition", "wanted"), [(1, 5), (0, 9), (-3, 5)])
def test_select(condition, wanted):
    expressions = ("scalar", "n"), ("const", 5), ("const", 9), ("select", 0, 1, 2)
    assert value_of(*expressions, n=condition) == wanted


def test_a_graph_of_any_depth_has_a_value():
    assert value_of(("const", 1), *(("add", n, 0) for n in range(20_000))) == 20_001


def test_results_of_every_kind():
    expressions = ("const", 4), ("const", 6), ("const", 1), ("const", 2), ("const", 24)
    operands = (
        Operand("tensor", "T"),
        (Operand("scalar", "n"), None, Operand("constant", (1.5, "x"))),
        Operand("view", View("U", (1, 0), (2, 1), 3)),
        Operand("integer", 4),
    )
    layout, number, constant, view, size = results_of(expressions, operands)
    assert tuple(layout) == ("bf16", (4, 6), (1, 2))
    assert (number, constant, size) == (7, (1.5, "x"), 24)
    assert tuple(view) == ("i32", (6, 4), (1, 6))


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        (("extent", "T", 0), "the shape of T is known only when f runs"),
        (("stride", "T", 0), "the shape of T is known only when f runs"),
        (("variable", 0), "a loop or branch of f decides about a shape"),
    ],
)
def test_what_only_a_run_tells(expression, message):
    with pytest.raises(UsageError) as caught:
        value_of(expression)
    assert caught.value.message == message


def test_one_of_several_tensors():
    with pytest.raises(UsageError) as caught:
        results_of((), Operand("tensor", "R"))
    assert caught.value.message == (
        "f returns R, which is one of several tensors: its layout is known only when it runs"
    )
    assert "outside loops and branches" in (caught.value.hint or "")
    ((dtype, shape, strides),) = results_of(
        (("const", 4), ("const", 1)), Operand("view", View("R", (0,), (1,), 1))
    )
    assert (dtype, shape, strides) == ("f32", (4,), (1,))


@pytest.mark.parametrize(
    ("results", "refused"),
    [
        (Operand("tensor", "X"), True),
        (Operand("view", View("X", (), (), 0)), True),
        ((Operand("tensor", "T"), (Operand("tensor", "X"),)), True),
        (Operand("tensor", "T"), False),
        (Operand("view", View("T", (), (), 0)), False),
        ((Operand("scalar", "n"), Operand("constant", "X"), Operand("integer", 0)), False),
        (None, False),
    ],
)
def test_an_operator_does_not_return_its_arguments(results, refused):
    from fly.torch.shapes import check

    if refused:
        with pytest.raises(UsageError, match=r"^f returns its parameter X: an operator's results"):
            check(program((("const", 0),), results))
    else:
        check(program((("const", 0),), results))
