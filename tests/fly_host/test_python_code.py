"""Generated Python does what the interpreter does, on random programs."""

from random import Random

import pytest
from fly_common.errors import FlyError
from fly_host import interpreter, python_code, text
from fly_host.program import Branch, Launch, Program, Scalar, Tensor, Word
from fly_host.validation import validate
from fly_host.values import Extents

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


def test_what_the_code_looks_like():
    tensor = Tensor("A", "f32", ("n",), (1,))
    expressions = (("extent", "A", 0), ("const", 256), ("ceildiv", 0, 1), ("const", 1))
    expressions += (("const", 0),)
    words = ((Word("pointer", "A"),), (Word("integer", expression=0),))
    launch = Launch("k", (2, 3, 3), (1, 3, 3), 4, words)
    program = Program("f", "gfx942", (tensor,), expressions, (launch,))
    lines = python_code.source(program).splitlines()
    assert "        e2 = -(-e0 // e1)" in lines
    launched = "machine.launch(steps[0], (e2, e3, e3,), (e1, e3, e3,), e4, [[(t0, 0)], [e0]], None)"
    assert f"    {launched}" in lines
