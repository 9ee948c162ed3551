"""What is computed and checked before the first step: a call that can't succeed does nothing."""

import json

import pytest
from fly_common.errors import InputError
from fly_common.record import replace
from fly_host import text
from fly_host.program import Check, Launch, Operand, Program, Scalar, Tensor, Word
from fly_host.readers import interpreter, python_code
from fly_host.readers.values import Extents

from .recording import Recorded, Recorder

READERS = pytest.mark.parametrize("reader", [interpreter.run, python_code.run])
ONE, SIZE, LIMIT, ZERO, SMALL, DIVIDED, SHIFTED = range(7)
EXPRESSIONS = (
    ("const", 1),
    ("extent", "A", 0),
    ("const", 10),
    ("const", 0),
    ("le", SIZE, LIMIT),
    ("floordiv", LIMIT, SIZE),
    ("shl", SIZE, ZERO),
)


def launch(size: int) -> Launch:
    return Launch("k", (size, ONE, ONE), (ONE, ONE, ONE), ONE, ((Word("pointer", "A"),),))


def program(*steps, expressions=EXPRESSIONS) -> Program:
    tensor = Tensor("A", "f32", (None,), (None,))
    return Program("f", "gfx942", (tensor,), expressions, steps)


def call(reader, made: Program, extent: int) -> Recorder:
    machine = Recorder()
    reader(made, machine, {"A": Recorded("A", Extents((extent,), (1,)))})
    return machine


@READERS
def test_a_check_behind_a_launch_comes_before_it(reader):
    made = program(launch(SIZE), Check(SMALL, ("n is ", SIZE, ", at most ", LIMIT)))
    assert [event[0] for event in call(reader, made, 10).events] == ["look", "launch"]
    machine = Recorder()
    with pytest.raises(InputError, match=r"^n is 11, at most 10$"):
        reader(made, machine, {"A": Recorded("A", Extents((11,), (1,)))})
    assert machine.events == []


@READERS
def test_an_integer_that_a_later_launch_needs(reader):
    made = program(launch(ONE), launch(DIVIDED))
    assert len(call(reader, made, 5).events) == 4
    machine = Recorder()
    with pytest.raises(InputError, match="division by zero"):
        reader(made, machine, {"A": Recorded("A", Extents((0,), (1,)))})
    assert [event for event in machine.events if event[0] == "launch"] == []


@READERS
def test_an_integer_that_the_result_needs(reader):
    result = Operand("integer", DIVIDED)
    made = replace(program(launch(ONE)), results=result, result_names=("result",))
    machine = Recorder()
    with pytest.raises(InputError, match="division by zero"):
        reader(made, machine, {"A": Recorded("A", Extents((0,), (1,)))})
    assert machine.events in ([], [("look", "k", (1, 1, 1), (1, 1, 1), 1, [[None]])])


@READERS
def test_a_launch_that_is_refused(reader):
    made = program(launch(ONE), launch(SIZE))
    machine = Recorder(most=100)
    with pytest.raises(InputError, match="a grid of"):
        reader(made, machine, {"A": Recorded("A", Extents((101,), (1,)))})
    assert [event for event in machine.events if event[0] == "launch"] == []


@READERS
@pytest.mark.parametrize("extent", [0, 1, 7])
def test_a_shift_by_nothing(reader, extent):
    (_, done) = call(reader, program(launch(SHIFTED)), extent).events
    assert done[2] == (extent, 1, 1)


def test_a_program_is_compiled_once_and_few_are_kept(monkeypatch):
    monkeypatch.setattr(python_code, "MOST_KEPT", 2)
    python_code._compiled.clear()
    programs = [program(launch(SIZE)) for _ in range(4)]
    first = python_code.compiled(programs[0])
    assert python_code.compiled(programs[0]) is first
    for made in programs:
        python_code.compiled(made)
    # Equal programs are several here.
    kept = [id(held) for held, _ in python_code._compiled.values()]
    assert kept == [id(made) for made in programs[2:]]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: data["steps"][0].update(kind="jump"), "a step is of no known kind: 'jump'"),
        (lambda data: data["expressions"].append(["scalar", "n", "n"]), "bad operands of 'scalar'"),
        (lambda data: data["expressions"].append(["scalar", "A"]), "bad operands of 'scalar'"),
    ],
)
def test_damage_is_named(change, message):
    made = program(launch(SIZE))
    made = Program(made.entry, made.target, (*made.parameters, Scalar("n", "i32")),
                   made.expressions, made.steps)  # fmt: skip
    data = json.loads(text.write(made))
    text.read(json.dumps(data))
    change(data)
    with pytest.raises(InputError, match=r"^the host program is damaged: ") as refused:
        text.read(json.dumps(data))
    assert message in refused.value.message
