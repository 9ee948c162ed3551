"""Generated Python does what the interpreter does, on random programs."""

from pathlib import Path
from random import Random

import pytest
from fly_common.errors import FlyError
from fly_host import text
from fly_host.program import (
    BINARY,
    Branch,
    Chosen,
    Launch,
    Operand,
    Program,
    Scalar,
    Tensor,
    Word,
)
from fly_host.readers import interpreter, python_code
from fly_host.readers.values import Extents
from fly_host.validation import validate

from .programs import EVERY
from .random_programs import Maker, arguments
from .recording import Recorded, Recorder


def outcome(reader, program, given, most):
    """What a reader returned or raised, and what it asked of the machine."""
    machine = Recorder(most=most)
    values = {
        name: Recorded(name, Extents(*value)) if isinstance(value, tuple) else value
        for name, value in given.items()
    }
    try:
        result = reader(program, machine, values)
    except FlyError as error:
        result = type(error), error.message, error.hint
    looks = [event for event in machine.events if event[0] == "look"]
    done = [event for event in machine.events if event[0] != "look"]
    return result, looks, done


def agree(seed: int) -> str:
    """Holds the readers against each other on a program and some calls; how the last one ended."""
    random = Random(seed)
    program = Maker(random).make()
    validate(program)
    assert text.read(text.write(program)) == program
    ended = "?"
    for _ in range(3):
        given, most = arguments(random, program), random.choice((1 << 40, 100))
        expected, looks, done = outcome(interpreter.run, program, given, most)
        found = outcome(python_code.run, program, given, most)
        assert found[0] == expected, seed
        assert found[2] == done, seed
        # The interpreter begins anew where the code is in doubt, and looks a second time.
        assert found[1][len(found[1]) - len(looks) :] == looks, seed
        failed = isinstance(expected, tuple) and expected and isinstance(expected[0], type)
        ended = "error" if failed else "launched" if done else "nothing"
    return ended


@pytest.mark.parametrize("block", range(8))
def test_the_readers_agree(block):
    ends = [agree(seed) for seed in range(block * 250, (block + 1) * 250)]
    assert ends.count("launched") > 20
    assert ends.count("error") > 20


@pytest.mark.parametrize("early", [True, False])
def test_a_scalar_beyond_64_signed_bits_has_no_value(early):
    """Whatever is done with it: the least of it and 4 would have one."""
    launch = Launch("k", (4, 1, 1), (1, 1, 1), 2, ())
    expressions = (("scalar", "n"), ("const", 1), ("const", 0), ("const", 4), ("min", 0, 3))
    # What only a branch needs is computed there, by other code.
    block = (launch,) if early else (Branch(1, (launch,), (), (), ()),)
    program = Program("f", "gfx942", (Scalar("n", "u64"),), expressions, block)
    for value, launched in ((3, True), ((1 << 63) - 1, True), (1 << 63, False)):
        expected, _, done = outcome(interpreter.run, program, {"n": value}, 1 << 40)
        found, _, events = outcome(python_code.run, program, {"n": value}, 1 << 40)
        assert (found, events) == (expected, done)
        assert bool(events) == launched


ADD = """\
def run(machine, arguments):
    t0 = arguments['A']
    x0 = machine.extents(t0)
    try:
        e0 = x0.shape[0]
        e1 = 256
        e2 = -(-e0 // e1)
        e3 = 1
        e4 = 0
    except (ZeroDivisionError, ValueError, KeyError, TypeError):
        raise Doubt from None
    if e2 < -9223372036854775808 or e2 > 9223372036854775807:
        raise Doubt
    machine.look_at(steps[0], (e2, e3, e3,), (e1, e3, e3,), e4, [[None], [e0]])
    machine.launch(steps[0], (e2, e3, e3,), (e1, e3, e3,), e4, [[(t0, 0)], [e0]], None)
    return None
"""


def test_what_the_code_looks_like():
    tensor = Tensor("A", "f32", ("n",), (1,))
    expressions = (("extent", "A", 0), ("const", 256), ("ceildiv", 0, 1), ("const", 1))
    expressions += (("const", 0),)
    words = ((Word("pointer", "A"),), (Word("integer", expression=0),))
    launch = Launch("k", (2, 3, 3), (1, 3, 3), 4, words)
    program = Program("f", "gfx942", (tensor,), expressions, (launch,))
    assert python_code.source(program) == ADD


def test_what_the_code_of_every_kind_of_step_looks_like():
    assert python_code.source(EVERY) == Path(__file__).with_name("every_source.txt").read_text()


def test_the_code_of_each_operator():
    operators = sorted(BINARY)
    sums = tuple((operator, 0, 1) for operator in operators)
    words = ((Word("integer", expression=2 + n),) for n in range(len(sums)))
    launch = Launch("k", (0, 0, 0), (0, 0, 0), 0, tuple(words))
    made = Program("f", "gfx942", (), (("const", 7), ("const", 2), *sums), (launch,))
    machine = Recorder()
    python_code.compiled(made)(machine, {})
    found = dict(zip(operators, (word for (word,) in machine.events[-1][5]), strict=True))
    assert found == {
        "add": 9, "sub": 5, "mul": 14, "floordiv": 3, "ceildiv": 4, "truncdiv": 3, "mod": 1,
        "rem": 1, "min": 2, "max": 7, "and": 2, "or": 7, "xor": 5, "shl": 28, "shr": 1,
        "eq": 0, "ne": 1, "lt": 0, "le": 0,
    }  # fmt: skip


def test_a_variable_is_not_the_expression_of_its_number():
    """Expression 2 has no value, and nothing needs it; variable 2 has one."""
    expressions = ("const", 1), ("const", 0), ("floordiv", 0, 1), ("variable", 2)
    launch = Launch("k", (3, 0, 0), (0, 0, 0), 0, ())
    steps = Branch(0, (), (), (Chosen(2, 0, 1),)), launch
    made = Program("f", "gfx942", (), expressions, steps)
    assert "e2" not in python_code.source(made)
    machine = Recorder()
    python_code.compiled(made)(machine, {})
    assert machine.events[-1][2] == (1, 1, 1)


def test_an_expression_that_is_used_twice_is_written_once():
    expressions = ("scalar", "n"), ("add", 0, 0), ("mul", 1, 0)
    made = Program("f", "gfx942", (Scalar("n", "i32"),), expressions, (), (), Operand("integer", 2))
    source = python_code.source(made)
    assert [source.count(f"e{index} = ") for index in range(3)] == [1, 1, 1]
