"""What the interpreter and the generated code do with a step, one behavior at a time."""

import pytest
from fly_common.errors import FlyError, InputError, UsageError
from fly_host.program import (
    Allocate,
    Assigned,
    Branch,
    Buffer,
    Call,
    Carried,
    CarriedTensor,
    Chosen,
    ChosenTensor,
    Free,
    Launch,
    Loop,
    Operand,
    Program,
    Scalar,
    Tensor,
    View,
    Word,
)
from fly_host.readers import interpreter, python_code, python_text
from fly_host.readers.values import Extents
from fly_host.validation import validate

from .recording import Recorded, Recorder

READERS = pytest.mark.parametrize("reader", [interpreter.run, python_code.run])
# Without the interpreter, to which the generated code leaves what it is in doubt about.
SURE = pytest.mark.parametrize(
    "reader", [interpreter.run, lambda p, *a: python_code.compiled(p)(*a)]
)
A = Recorded("A", Extents((6,), (2,)))


def program(expressions, *steps, tensors=(), results=None) -> Program:
    parameters = Tensor("A", "f32", (None,), (None,)), Scalar("n", "i64")
    names = ("result",) if results else ()
    made = Program("f", "gfx942", parameters, expressions, steps, tensors, results, names)
    validate(made)
    return made


def launch(size: int, one: int = 0) -> Launch:
    return Launch("k", (size, one, one), (one, one, one), one, ())


def refused(reader, made: Program, machine: Recorder | None = None, n: object = 1) -> str:
    with pytest.raises(FlyError) as caught:
        reader(made, machine or Recorder(), {"A": A, "n": n})
    return caught.value.message


ENDLESS = (("const", 1),)


@READERS
@pytest.mark.parametrize("before", [(), (launch(0),)])
def test_a_loop_that_does_not_end(reader, before, monkeypatch):
    monkeypatch.setattr(interpreter, "MOST_ITERATIONS", 5)
    monkeypatch.setattr(python_text, "MOST_ITERATIONS", 5)
    made = program(ENDLESS, *before, Loop((), (), 0, (launch(0),)))
    machine = Recorder()
    with pytest.raises(InputError, match=r"^a loop of f does not end$"):
        reader(made, machine, {"A": A, "n": 1})
    launched = [event for event in machine.events if event[0] == "launch"]
    assert len(launched) == 5 + len(before)


COUNTED = (("const", 0), ("const", 1), ("variable", 0), ("const", 5), ("lt", 2, 3), ("add", 2, 1))


@SURE
def test_a_loop_that_ends_at_the_last_iteration_that_is_allowed(reader, monkeypatch):
    monkeypatch.setattr(interpreter, "MOST_ITERATIONS", 5)
    monkeypatch.setattr(python_text, "MOST_ITERATIONS", 5)
    counter = Carried(0, 0, 5, 1)
    made = program(COUNTED, Loop((counter,), (), 4, (launch(2, 1),)))
    machine = Recorder()
    reader(made, machine, {"A": A, "n": 1})
    assert [event[2][0] for event in machine.events] == [0, 1, 2, 3, 4]


@SURE
def test_a_loop_of_many_iterations(reader):
    expressions = (*COUNTED[:3], ("const", 200), *COUNTED[4:])
    machine = Recorder()
    reader(program(expressions, Loop((Carried(0, 0, 5, 1),), (), 4, ())), machine, {"A": A, "n": 1})
    assert machine.events == []


ZERO_DIVIDES = (("const", 1), ("scalar", "n"), ("floordiv", 0, 1))


@READERS
@pytest.mark.parametrize(
    ("step", "results"),
    [
        (Allocate("T"), None),
        (Call("f", (Operand("integer", 2),)), None),
        (Branch(2, (), ()), None),
        (launch(0), Operand("integer", 2)),
    ],
)
def test_an_integer_without_a_value_that_is_needed_in_any_case_stops_all(reader, step, results):
    tensors = (Buffer("T", "f32", (2,), (0,), 0),)
    made = program(ZERO_DIVIDES, launch(0), step, tensors=tensors, results=results)
    machine = Recorder()
    assert "1 // n: division by zero" in refused(reader, made, machine, n=0)
    assert [event for event in machine.events if event[0] != "look"] == []


@READERS
def test_of_two_integers_without_a_value_the_first_is_told(reader):
    """Of a launch the grid, then the words of its arguments, also behind a step."""
    expressions = (
        ("const", 0), ("variable", 0), ("floordiv", 0, 1), ("mod", 0, 1), ("const", 1),
    )  # fmt: skip
    words = ((Word("integer", expression=3),),)
    late = Launch("k", (4, 2, 4), (4, 4, 4), 4, words)
    made = program(expressions, Branch(0, (), (), (Chosen(0, 0, 0),)), late)
    assert "0 // v0: division by zero" in refused(reader, made)


class Miscounting(Recorder):
    """Its library calls return a tensor too many, or too few."""

    more = 1

    def call(self, call, arguments, keywords):
        made = super().call(call, arguments, keywords)
        return (*made, made[0]) if self.more == 1 else made[:-1]


@READERS
@pytest.mark.parametrize("more", [1, -1])
def test_a_library_call_that_returns_another_number_of_tensors(reader, more):
    made = program(
        (("const", 4), ("const", 2), ("const", 1)),
        Call("torch.matmul", (), (), ("M",)),
        tensors=(Buffer("M", "f32", (0, 1), (1, 2), 0),),
    )
    machine = Miscounting()
    machine.more = more
    with pytest.raises(UsageError) as caught:
        reader(made, machine, {"A": A, "n": 1})
    assert caught.value.message == (
        f"torch.matmul returned {1 + more} tensors, and its shape rule says 1"
    )


@READERS
@pytest.mark.parametrize("first", [(), (launch(0, 0),)])
@pytest.mark.parametrize("operator", ["shl", "shr"])
@pytest.mark.parametrize("by", [-1, 64])
def test_a_shift_by_too_much_has_no_value_even_of_zero(reader, first, operator, by):
    """Also where it is computed behind a step, of a variable."""
    expressions = (("const", 1), ("const", 0), ("scalar", "n"), (operator, 1, 2))
    assert f"a shift by {by}" in refused(reader, program(expressions, *first, launch(3)), n=by)
    late = (*expressions, ("variable", 0), ("add", 4, 2), (operator, 1, 5))
    made = program(late, launch(0), Branch(0, (), (), (Chosen(0, 1, 0),)), launch(6))
    assert f"a shift by {by}" in refused(reader, made, n=by)


@READERS
@pytest.mark.parametrize("first", [(), (launch(0),)])
def test_a_number_that_is_no_integer(reader, first):
    """It is what it is for kernels, and no part of an expression, behind a step either."""
    late = (("const", 1), ("scalar", "n"), ("variable", 0), ("add", 2, 1))
    made = program(late, *first, Branch(0, (), (), (Chosen(0, 0, 0),)), launch(3))
    assert "'n' is not an integer scalar" in refused(reader, made, n=1.5)


@SURE
@pytest.mark.parametrize("by", [0, 1, 63])
def test_a_shift_by_less_than_64(reader, by):
    expressions = (("const", 1), ("const", -1), ("scalar", "n"), ("shl", 1, 2), ("shr", 3, 2))
    machine = Recorder()
    reader(program(expressions, launch(3), launch(4)), machine, {"A": A, "n": by})
    grids = [event[2][0] for event in machine.events if event[0] == "launch"]
    assert grids == [-(1 << by), -1]


@READERS
@pytest.mark.parametrize(
    ("operator", "n", "wanted"),
    [
        ("add", (1 << 63) - 2, (1 << 63) - 1),
        ("add", (1 << 63) - 1, None),
        ("sub", -(1 << 63) + 1, -(1 << 63)),
        ("sub", -(1 << 63), None),
        ("mul", (1 << 63) - 1, (1 << 63) - 1),
    ],
)
def test_the_ends_of_64_bits(reader, operator, n, wanted):
    made = program((("const", 1), ("scalar", "n"), (operator, 1, 0)), launch(2))
    machine = Recorder(most=1 << 63)
    if wanted is None:
        said = refused(reader, made, machine, n)
        assert f"n {'+-'[operator == 'sub']} 1: the value does not fit in 64 bits" in said
        return
    reader(made, machine, {"A": A, "n": n})
    assert machine.events[-1][2][0] == wanted


@READERS
@pytest.mark.parametrize("first", [(), (launch(0),)])
def test_a_shift_beyond_64_bits(reader, first):
    expressions = (("const", 1), ("scalar", "n"), ("shl", 1, 0))
    made = program(expressions, *first, launch(2))
    machine = Recorder(most=1 << 80)
    assert "the value does not fit in 64 bits" in refused(reader, made, machine, 1 << 62)
    assert [event for event in machine.events if event[0] == "launch"] == []


@SURE
def test_a_view_and_its_offset(reader):
    made = program(
        (("const", 1), ("extent", "A", 0), ("stride", "A", 0), ("scalar", "n")),
        results=Operand("view", View("A", (1,), (2,), 3)),
    )
    assert reader(made, Recorder(), {"A": A, "n": 3}).name == "A[(6,), (2,), 3]"


@SURE
def test_a_pointer_and_its_offset(reader):
    words = ((Word("pointer", "A", 1), Word("pointer", "A")), (Word("scalar", "n"),))
    made = program((("const", 1), ("const", 7)), Launch("k", (0,) * 3, (0,) * 3, 0, words))
    machine = Recorder()
    reader(made, machine, {"A": A, "n": 3})
    assert machine.events[-1][-2] == [[("A", 7), ("A", 0)], [3]]


@SURE
def test_a_tensor_is_freed_where_the_program_says(reader):
    made = program(
        (("const", 1),), Allocate("T"), Free("T"), launch(0),
        tensors=(Buffer("T", "f32", (0,), (0,), 0),),
    )  # fmt: skip
    machine = Recorder()
    reader(made, machine, {"A": A, "n": 3})
    assert [event[0] for event in machine.events] == ["look", "allocate", "free", "launch"]


@SURE
@pytest.mark.parametrize("first", [(), (launch(0),)])
def test_the_operands_of_a_library_call(reader, first):
    operands = (
        Operand("tensor", "A"), Operand("scalar", "n"), Operand("integer", 1),
        Operand("constant", ("x", None, 1.5)), Operand("view", View("A", (0,), (1,), 1)),
    )  # fmt: skip
    named = (("scale", Operand("scalar", "n")), ("out", Operand("tensor", "A")))
    made = program((("const", 1), ("const", 7)), *first, Call("f", operands, named))
    machine = Recorder()
    reader(made, machine, {"A": A, "n": 3})
    told = ["A", 3, 7, ("x", None, 1.5), "A[(1,), (7,), 7]"]
    assert machine.events[-1] == ("call", "f", told, {"scale": 3, "out": "A"}, [])


@SURE
def test_what_a_library_call_makes_is_looked_at_and_named(reader):
    made = program(
        (("const", 4), ("const", 2), ("const", 1), ("extent", "M", 0), ("extent", "N", 1)),
        Call("f", (), (), ("M", "N")),
        launch(3, 4),
        tensors=(Buffer("M", "f32", (0, 1), (1, 2), 0), Buffer("N", "f32", (0, 1), (1, 2), 0)),
        results=Operand("tensor", "N"),
    )
    machine = Recorder()
    assert reader(made, machine, {"A": A, "n": 3}).name == "result2"
    assert machine.events[-3:-1] == [
        ("made", "M", "result1", (4, 2), (2, 1)), ("made", "N", "result2", (4, 2), (2, 1)),
    ]  # fmt: skip
    assert machine.events[-1][2:4] == ((4, 2, 2), (2, 2, 2))


@SURE
def test_branches_choose_integers_and_tensors(reader):
    expressions = (
        ("scalar", "n"), ("const", 5), ("const", 9), ("variable", 0), ("extent", "R", 0),
    )  # fmt: skip
    tensors = Buffer("T", "f32", (1,), (1,), 1), Assigned("R", "f32", 1)
    branch = Branch(0, (), (launch(2, 1),), (Chosen(0, 1, 2),), (ChosenTensor("R", "T", "A"),))
    made = program(expressions, Allocate("T"), branch, launch(3, 4), tensors=tensors)
    for n, wanted in ((0, [(9, 5, 5), (9, 6, 6)]), (3, [(5, 5, 5)])):
        machine = Recorder()
        reader(made, machine, {"A": A, "n": n})
        assert [event[2] for event in machine.events if event[0] == "launch"] == wanted


@SURE
def test_loops_carry_tensors(reader):
    """They are exchanged in each iteration, all at once; extents are those of the present ones."""
    expressions = (*COUNTED, ("extent", "X", 0), ("extent", "Y", 0), ("extent", "Z", 0))
    tensors = (
        Buffer("T", "f32", (3,), (3,), 3), *(Assigned(name, "f32", 1) for name in "XYZW"),
    )  # fmt: skip
    carried = CarriedTensor("X", "A", "Y", "Z"), CarriedTensor("Y", "T", "X", "W")
    loop = Loop((Carried(0, 0, 5, 1),), carried, 4, (launch(6, 7),))
    made = program(expressions, Allocate("T"), loop, launch(8, 8), tensors=tensors)
    machine = Recorder()
    reader(made, machine, {"A": A, "n": 3})
    shapes = [event[2][:2] for event in machine.events if event[0] == "launch"]
    assert shapes == [(6, 5), (5, 6), (6, 5), (5, 6), (6, 5), (5, 5)]
