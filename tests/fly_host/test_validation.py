"""What a program may refer to where: names, indices, scopes."""

import re

import pytest
from fly_common.record import replace
from fly_host.program import (
    Allocate,
    Assigned,
    Branch,
    Buffer,
    Call,
    Carried,
    CarriedTensor,
    Check,
    Chosen,
    ChosenTensor,
    Free,
    Launch,
    Loop,
    Operand,
    Program,
    Scalar,
    Stream,
    Tensor,
    View,
    Word,
)
from fly_host.validation import MOST_NESTED, validate

from .programs import EVERY, STRAIGHT


@pytest.mark.parametrize("program", [STRAIGHT, EVERY])
def test_what_is_sound(program):
    validate(program)


def launch(name: str = "A", number: int = 1, stream: str | None = None) -> Launch:
    words = ((Word("pointer", name),), (Word("integer", expression=number),))
    return Launch("k", (1, 1, 1), (1, 1, 1), 0, words, stream)


# Expression 0 is 0, 1 is 1, 2 an extent of T, 3 variable 0, 4 variable 0 < 1.
EXPRESSIONS = (
    ("const", 0),
    ("const", 1),
    ("extent", "T", 0),
    ("variable", 0),
    ("lt", 3, 1),
    ("extent", "A", 0),
)
TENSORS = (
    Buffer("T", "f32", (1,), (1,), 1),
    Buffer("U", "f32", (5,), (1,), 5),
    Buffer("I", "i32", (1,), (1,), 1),
    Assigned("X", "f32", 1),
    Assigned("Y", "f32", 1),
)


def program(*steps, **changes) -> Program:
    parameters = (Tensor("A", "f32", (None,), (1,)), Scalar("n", "i32"), Stream("s"))
    made = Program("h", "gfx942", parameters, EXPRESSIONS, steps, TENSORS)
    return replace(made, **changes)


def loop(*body, tensors=(), condition=4, following=1) -> Loop:
    return Loop((Carried(0, 0, following, 1),), tensors, condition, body)


CHOOSE_X = Branch(0, (), (), (), (ChosenTensor("X", "A", "A"),))
SWAP = (CarriedTensor("X", "A", "X", "Y"),)


@pytest.mark.parametrize(
    "steps",
    [
        (Allocate("T"), launch("T", 2), Free("T")),
        (loop(launch(number=3)),),
        (loop(Allocate("T"), launch("T"), Free("T")),),
        (loop(launch("X"), tensors=SWAP), launch("Y")),
        (Branch(0, (Allocate("T"),), (), (), (ChosenTensor("X", "T", "A"),)), launch("X")),
        (Branch(0, (), (), (Chosen(0, 0, 1),)), launch(number=3)),
        (launch(stream="s"),),
        (Call("f", (), (), ("T",)), launch("T"), Free("T")),
        (Call("f", (Operand("view", View("A", (5, 1), (1, 0), 0)),)),),
    ],
)
def test_scopes(steps):
    validate(program(*steps))


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ((launch("T"),), "launch of k: no tensor 'T'"),
        ((launch("Z"),), "launch of k: no tensor 'Z'"),
        ((launch(number=2),), "it uses 'T', which is not known there"),
        ((launch(number=3),), "it uses 0, which is not known there"),
        ((launch(number=9),), "no such expression"),
        ((launch(stream="n"),), "no stream 'n'"),
        ((Allocate("A"),), "'A' can't be made here"),
        ((Allocate("X"),), "'X' can't be made here"),
        ((Allocate("T"), Allocate("T")), "'T' can't be made here"),
        ((Allocate("T"), Free("T"), Allocate("T")), "'T' can't be made here"),
        ((Allocate("T"), Free("T"), launch("T")), "no tensor 'T'"),
        ((Allocate("T"), Free("T"), Free("T")), "free: no tensor 'T'"),
        ((Free("A"),), "'A' can't be freed"),
        # A loop.
        ((loop(launch(number=3)), launch(number=3)), "it uses 0, which is not known there"),
        ((loop(Allocate("T")), launch("T")), "no tensor 'T'"),
        ((Allocate("T"), loop(Free("T"))), "loop: its body frees what was made outside"),
        ((loop(launch("X"), tensors=SWAP), launch("X")), "no tensor 'X'"),
        ((loop(tensors=(CarriedTensor("X", "A", "Z", "Y"),)),), "loop: no tensor 'Z'"),
        ((loop(condition=2),), "loop: it uses 'T'"),
        ((loop(following=2),), "loop: it uses 'T'"),
        ((loop(), loop()), "a variable is assigned twice"),
        ((Loop((Carried(-1, 0, 1, 1),), (), 0, ()),), "a variable is assigned twice"),
        ((Loop((Carried(0, 2, 1, 1),), (), 4, ()),), "loop: it uses 'T'"),
        ((loop(tensors=(CarriedTensor("X", "U", "X", "Y"),)),), "loop: no tensor 'U'"),
        ((loop(tensors=(*SWAP, *SWAP)),), "loop: 'X' can't be assigned here"),
        (
            (Allocate("I"), loop(tensors=(CarriedTensor("X", "I", "X", "Y"),))),
            "'X' and 'I' differ in dtype or rank",
        ),
        (
            (Allocate("I"), loop(tensors=(CarriedTensor("X", "A", "I", "Y"),))),
            "'X' and 'I' differ in dtype or rank",
        ),
        ((loop(tensors=(CarriedTensor("T", "A", "A", "Y"),)),), "'T' can't be assigned here"),
        # A branch.
        ((Branch(0, (Allocate("T"),), (launch("T"),)),), "no tensor 'T'"),
        ((Branch(0, (Allocate("T"),), ()), launch("T")), "no tensor 'T'"),
        ((Allocate("T"), Branch(0, (Free("T"),), ())), "branch: it frees what was made outside"),
        ((Branch(3, (), ()),), "branch: it uses 0"),
        ((Branch(0, (), (), (Chosen(0, 3, 1),)),), "branch: it uses 0"),
        ((Branch(0, (), (), (), (ChosenTensor("X", "A", "T"),)),), "branch: no tensor 'T'"),
        (
            (Allocate("I"), Branch(0, (), (), (), (ChosenTensor("X", "A", "I"),))),
            "'X' and 'I' differ in dtype or rank",
        ),
        ((CHOOSE_X, CHOOSE_X), "branch: 'X' can't be assigned here"),
        # Checks and library calls.
        ((Check(2, ("a",)),), "check: it uses 'T'"),
        ((Check(0, ("a", 2)),), "check: it uses 'T'"),
        ((Call("f", (Operand("tensor", "T"),)),), "the call of f: no tensor 'T'"),
        ((Call("f", (Operand("scalar", "A"),)),), "the call of f: no scalar 'A'"),
        ((Call("f", (Operand("integer", 2),)),), "the call of f: it uses 'T'"),
        ((Call("f", (), (("k", Operand("what", 1)),)),), "unknown operand 'what'"),
        (
            (Call("f", (Operand("view", View("A", (1,), (1, 1), 0)),)),),
            "a view's strides are not as many as its extents",
        ),
        ((Call("f", (Operand("view", View("T", (), (), 0)),)),), "the call of f: no tensor 'T'"),
        ((Call("f", (Operand("view", View("A", (), (), 2)),)),), "the call of f: it uses 'T'"),
        ((Call("f", (), (), ("A",)),), "'A' can't be made here"),
    ],
)
def test_what_is_not_there(steps, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        validate(program(*steps))


RESULT = Operand("tensor", "A")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tensors": (*TENSORS, TENSORS[0])}, "two parameters or tensors are called 'T'"),
        ({"tensors": (Buffer("A", "f32", (), (), 0),)}, "two parameters or tensors are called 'A'"),
        ({"tensors": (Assigned("n", "f32", 1),)}, "two parameters or tensors are called 'n'"),
        ({"tensors": (Assigned("s", "f32", 1),)}, "two parameters or tensors are called 's'"),
        ({"tensors": (*TENSORS, Assigned("Z", "f33", 1))}, "tensor Z: unknown dtype 'f33'"),
        ({"tensors": (*TENSORS, Assigned("Z", "u4", 1))}, "tensor Z: unknown dtype 'u4'"),
        ({"tensors": (*TENSORS, Assigned("Z", "f32", -1))}, "tensor Z: bad rank"),
        ({"results": Operand("tensor", "T"), "result_names": ("T",)}, "the result: no tensor 'T'"),
        ({"results": RESULT}, "the results' names are not one each"),
        ({"results": RESULT, "result_names": ("A", "B")}, "the results' names are not one each"),
        (
            {"results": (RESULT, RESULT), "result_names": ("A", "A")},
            "the results' names are not one each",
        ),
        ({"results": RESULT, "result_names": ("n",)}, "a result is called 'n', as a parameter is"),
    ],
)
def test_what_is_wrong_with_the_whole(changes, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        validate(program(**changes))


def test_a_buffer_whose_strides_are_not_as_many_as_its_extents():
    tensors = (Buffer("T", "f32", (1,), (), 1), *TENSORS[1:])
    with pytest.raises(ValueError, match="its strides are not as many as its extents"):
        validate(program(Allocate("T"), tensors=tensors))


def test_a_buffer_whose_extent_is_not_known_where_it_is_made():
    tensors = (replace(TENSORS[0], shape=(2,)), *TENSORS[1:])
    with pytest.raises(ValueError, match="tensor T: it uses 'T', which is not known there"):
        validate(program(Allocate("T"), tensors=tensors))


def test_tensors_without_elements_and_of_small_types():
    empty = Tensor("E", "f8E4M3FN", (0,), (1,))
    assigned = Assigned("Z", "f8E5M2", 0)
    made = program(tensors=(*TENSORS, assigned))
    validate(replace(made, parameters=(*made.parameters, empty)))


def nested(levels: int, around) -> Program:
    step = launch()
    for _ in range(levels):
        step = around(step)
    return program(step)


@pytest.mark.parametrize(
    "around",
    [
        lambda step: Branch(0, (step,), ()),
        lambda step: Branch(0, (), (step,)),
        lambda step: Loop((), (), 0, (step,)),
    ],
)
def test_steps_are_nested_to_some_depth_only(around):
    validate(nested(MOST_NESTED, around))
    with pytest.raises(ValueError, match="nested more than 64 levels deep"):
        validate(nested(MOST_NESTED + 1, around))
