"""A host program as text: it comes back whole, and a damaged one is an error line."""

import copy
import json
import random

import pytest
from fly_common.errors import InputError
from fly_common.record import replace
from fly_host import program as made
from fly_host import text
from fly_host.program import Program, Scalar, Tensor
from fly_host.section import SECTION
from fly_host.validation import DTYPES
from hypothesis import given
from hypothesis import strategies as st

from .programs import EVERY, EXPRESSIONS, PARAMETERS, STRAIGHT


@pytest.mark.parametrize("program", [STRAIGHT, EVERY])
def test_a_program_comes_back(program):
    assert text.read(text.write(program)) == program
    assert text.read(text.write(program).encode()) == program


@pytest.mark.parametrize("program", [STRAIGHT, EVERY])
def test_the_text_is_canonical(program):
    written = text.write(program)
    assert written == text.write(copy.deepcopy(program))
    assert written == json.dumps(json.loads(written), sort_keys=True, separators=(",", ":"))
    assert written.isascii()


def test_the_text_names_what_an_image_holds():
    """What other programs read: the section's name, and the kinds of parameters and steps."""
    assert SECTION == ".fly.manifest"
    assert text.read(text.write(EVERY)) == EVERY
    data = json.loads(text.write(EVERY))
    assert [item["kind"] for item in data["parameters"]] == ["tensor", "scalar", "stream"]
    assert [item["kind"] for item in data["steps"]] == [
        "check", "allocate", "loop", "call", "branch", "free",
    ]  # fmt: skip
    assert [item["kind"] for item in data["tensors"][:2]] == ["buffer", "assigned"]
    assert data["version"] == 3


# A launch plan, which releases before version 3 wrote, as they did.
PLAN = (
    '{"entry":"vector_add","expressions":[["extent","A",0],["const",256],["ceildiv",0,1],'
    '["stride","A",1],["scalar","n"],["lt",0,4],["select",5,0,4]],"launches":[{"arguments":'
    '[[{"expression":null,"kind":"pointer","name":"A","size":8},'
    '{"expression":0,"kind":"integer","name":null,"size":8}],'
    '[{"expression":null,"kind":"scalar","name":"alpha","size":4}]],'
    '"block":[1,1,1],"grid":[2,1,1],"kernel":"kernel","lds":0}],"parameters":['
    '{"access":"r","contiguous":false,"dtype":"f32","kind":"tensor","multiples":[],"name":"A",'
    '"shape":["n",4],"strides":[null,1]},'
    '{"access":"w","contiguous":true,"dtype":"bf16","kind":"tensor","multiples":[16,1],'
    '"name":"B","shape":[null],"strides":[1]},'
    '{"default":null,"dtype":"i32","kind":"scalar","name":"n"},'
    '{"default":0.5,"dtype":"f32","kind":"scalar","name":"alpha"}],'
    '"target":"gfx942","version":2}'
)


def test_a_launch_plan_is_the_program_of_its_launches():
    assert text.read(PLAN) == STRAIGHT


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ('"lds":0', '"lds":7', "launch of kernel: no such expression"),
        ('"lds":0', '"shared":0', "it has no field 'lds'"),
        ('"launches":[', '"launches":[3,', "damaged"),
    ],
)
def test_a_damaged_launch_plan(before, after, message):
    assert before in PLAN
    with pytest.raises(InputError, match="the host program is damaged") as caught:
        text.read(PLAN.replace(before, after))
    assert message in caught.value.message


NUMBERS = [
    "f16",
    "bf16",
    "f32",
    "f64",
    "i8",
    "i16",
    "i32",
    "i64",
    "u8",
    "u16",
    "u32",
    "u64",
    "bool",
]
STORED = ["f8E4M3FN", "f8E4M3FNUZ", "f8E5M2", "f8E5M2FNUZ", "f8E8M0FNU"]


@pytest.mark.parametrize("dtype", NUMBERS + STORED)
def test_dtypes(dtype):
    """Tensors may hold all of them; the small ones are no scalars."""
    tensor = replace(PARAMETERS[0], dtype=dtype)
    program = replace(STRAIGHT, parameters=(tensor, *PARAMETERS[1:]))
    assert text.read(text.write(program)) == program
    scalar = replace(STRAIGHT, parameters=(*PARAMETERS[:3], Scalar("alpha", dtype)))
    if dtype in NUMBERS:
        assert text.read(text.write(scalar)) == scalar
    else:
        with pytest.raises(InputError, match="parameter alpha: unknown dtype"):
            text.read(text.write(scalar))


OPERATORS = [
    "add",
    "sub",
    "mul",
    "floordiv",
    "ceildiv",
    "truncdiv",
    "mod",
    "rem",
    "min",
    "max",
    "and",
    "or",
    "xor",
    "shl",
    "shr",
    "eq",
    "ne",
    "lt",
    "le",
]


@pytest.mark.parametrize("operator", OPERATORS)
def test_operators_are_known(operator):
    program = replace(STRAIGHT, expressions=(*EXPRESSIONS, (operator, 0, 1)))
    assert text.read(text.write(program)) == program


@pytest.mark.parametrize("size", [1, 2, 4, 8])
def test_sizes_of_words(size):
    program = text.read(changed("steps", 0, "arguments", 0, 1, "size", size))
    assert program.launches[0].arguments[0][1].size == size


names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8)
extents = st.one_of(st.none(), st.integers(0, 2**63 - 1), names)
strides = st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1))


@st.composite
def programs(draw):
    chosen = draw(st.lists(names, min_size=1, max_size=4, unique=True))
    parameters = []
    for name in chosen:
        dtype = draw(st.sampled_from(sorted(DTYPES)))
        if draw(st.booleans()):
            shape = draw(st.lists(extents, max_size=3))
            steps = [draw(strides) for _ in shape]
            access = draw(st.sampled_from(["r", "w", "rw"]))
            contiguous = draw(st.booleans())
            parameters.append(Tensor(name, dtype, tuple(shape), tuple(steps), access, contiguous))
        else:
            default = draw(st.one_of(st.none(), st.booleans(), st.integers(), st.floats(-1e9, 1e9)))
            parameters.append(Scalar(name, dtype, default))
    consts = draw(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=4))
    return Program("entry", "gfx90a", tuple(parameters), tuple(("const", c) for c in consts), ())


@given(programs())
def test_any_program_comes_back(program):
    assert text.read(text.write(program)) == program


def changed(*path_and_value) -> str:
    """STRAIGHT's text with the value at a path replaced."""
    *path, last, value = path_and_value
    data = json.loads(text.write(STRAIGHT))
    place = data
    for step in path:
        place = place[step]
    place[last] = value
    return json.dumps(data)


@pytest.mark.parametrize(
    ("damaged", "message"),
    [
        ("", "damaged"),
        ("{}", "it has no field 'version'"),
        ("null", "damaged"),
        ("[" * 100_000, "nested too deeply"),
        (b"\xff\xfe{}", "damaged"),
        (changed("version", 1), "has version 1, but this tool reads versions 2 and 3"),
        (changed("steps", 0, "grid", [0, 1]), "damaged"),
        (changed("steps", 0, "grid", [0, 1, 7]), "launch of kernel: no such expression"),
        (changed("steps", 0, "shared", True), "launch of kernel: no such expression"),
        (changed("steps", 0, "shared", None), "launch of kernel: no such expression"),
        (changed("steps", 0, "arguments", 0, 0, "name", "Z"), "no tensor 'Z'"),
        (changed("steps", 0, "arguments", 0, 0, "name", "n"), "no tensor 'n'"),
        (changed("steps", 0, "arguments", 0, 0, "name", ["A"]), "no tensor ['A']"),
        (changed("steps", 0, "arguments", 1, 0, "name", "A"), "no scalar 'A'"),
        (changed("steps", 0, "arguments", 0, 0, "kind", "float"), "unknown word 'float'"),
        (
            changed("steps", 0, "arguments", 0, 0, "expression", 10**6),
            "launch of kernel: no such expression",
        ),
        (
            changed("steps", 0, "arguments", 1, 0, "expression", "x"),
            "launch of kernel: a scalar has no expression",
        ),
        (changed("steps", 0, "arguments", 0, 1, "size", 3), "a word of 3 bytes"),
        (changed("steps", 0, "arguments", 0, 1, "size", 8.0), "a word of 8.0 bytes"),
        (changed("steps", 0, "arguments", 0, 1, "color", "red"), "color"),
        (changed("expressions", 0, ["extent", "A", 2]), "expression 0: bad operands of 'extent'"),
        (changed("expressions", 0, ["extent", "A", -1]), "expression 0: bad operands of 'extent'"),
        (changed("expressions", 0, ["extent", "n", 0]), "expression 0: bad operands of 'extent'"),
        (changed("expressions", 0, ["scalar", "A"]), "expression 0: bad operands of 'scalar'"),
        (changed("expressions", 1, ["const", 2**63]), "expression 1: bad operands of 'const'"),
        (changed("expressions", 1, ["const", True]), "expression 1: bad operands of 'const'"),
        (changed("expressions", 1, ["const", 1.5]), "expression 1: bad operands of 'const'"),
        (changed("expressions", 2, ["add", 0, 2]), "expression 2: bad operands of 'add'"),
        (changed("expressions", 2, ["add", 0]), "expression 2: bad operands of 'add'"),
        (changed("expressions", 2, ["select", 0, 1]), "expression 2: bad operands of 'select'"),
        (changed("expressions", 2, ["pow", 0, 1]), "expression 2: unknown operator 'pow'"),
        (changed("expressions", 2, []), "expression 2 is empty"),
        (changed("expressions", 2, ["variable"]), "bad operands of 'variable'"),
        (changed("expressions", 2, ["variable", 0, 0]), "bad operands of 'variable'"),
        (changed("expressions", 2, ["variable", -1]), "bad operands of 'variable'"),
        (changed("expressions", 0, ["extent", ["A"], 0]), "bad operands of 'extent'"),
        (changed("parameters", 0, "kind", "array"), "parameter A is of no known kind"),
        (changed("parameters", 0, "dtype", "f4E2M1FN"), "parameter A: unknown dtype 'f4E2M1FN'"),
        (changed("expressions", 2, [["add"], 0, 1]), "damaged"),
        (changed("parameters", 0, "dtype", "f33"), "parameter A: unknown dtype 'f33'"),
        (changed("parameters", 0, "access", "x"), "parameter A: unknown access 'x'"),
        (changed("parameters", 0, "shape", ["n"]), "parameter A: bad shape or strides"),
        (changed("parameters", 0, "shape", ["n", 1.5]), "parameter A: bad shape or strides"),
        (changed("parameters", 0, "shape", ["n", -4]), "parameter A: bad shape or strides"),
        (changed("parameters", 0, "strides", [1, "n"]), "parameter A: bad shape or strides"),
        (changed("parameters", 0, "multiples", [4]), "parameter A: bad multiples"),
        (changed("parameters", 0, "multiples", [4, 1, 1]), "parameter A: bad multiples"),
        (changed("parameters", 0, "multiples", [4, 1, 1, 0]), "parameter A: bad multiples"),
        (changed("parameters", 0, "multiples", [4, 1, 1, 1.5]), "parameter A: bad multiples"),
        (changed("parameters", 0, "alignment", 12), "parameter A: bad alignment"),
        (changed("parameters", 0, "alignment", -16), "parameter A: bad alignment"),
        (changed("parameters", 0, "alignment", "16"), "parameter A: bad alignment"),
        (changed("steps", 0, "arguments", 0, 1, "expression", 7), "no such expression"),
        (changed("steps", 0, "arguments", 0, 1, "expression", None), "no such expression"),
        (changed("steps", 0, "arguments", 0, 1, "expression", -1), "no such expression"),
        (changed("expressions", 0, ["extent", "A"]), "expression 0: bad operands of 'extent'"),
        (changed("expressions", 0, ["extent", "A", "0"]), "expression 0: bad operands of 'extent'"),
        (changed("expressions", 0, ["extent", 5, 0]), "expression 0: bad operands of 'extent'"),
        (changed("expressions", 0, ["extent", "A", 0, 0]), "bad operands of 'extent'"),
        (changed("expressions", 1, ["const", 1, 1]), "expression 1: bad operands of 'const'"),
        (changed("expressions", 2, ["add", -1, 1]), "expression 2: bad operands of 'add'"),
        (changed("expressions", 2, ["add", True, 1]), "expression 2: bad operands of 'add'"),
        (changed("expressions", 4, ["scalar", ["n"]]), "damaged"),
        (changed("parameters", 1, "name", "A"), "two parameters or tensors are called 'A'"),
        (changed("parameters", 2, "default", "many"), "parameter n: its default is no number"),
    ],
)  # fmt: skip
def test_damaged_texts(damaged, message):
    with pytest.raises(InputError) as caught:
        text.read(damaged)
    assert "host program" in caught.value.message
    assert message in caught.value.message


def test_random_damage_is_an_error_or_a_program():
    written = text.write(STRAIGHT).encode()
    chance = random.Random(1)
    refused = 0
    for _ in range(3000):
        damaged = bytearray(written)
        for _ in range(chance.randint(1, 3)):
            damaged[chance.randrange(len(damaged))] = chance.choice(
                b'{}[],:"0129.-eatrun\\ \x00\xff'
            )
        try:
            text.read(bytes(damaged))
        except InputError:
            refused += 1
    assert 1000 < refused < 3000


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda data: data.update(steps={"a": 1}), "a list is missing where there is {'a': 1}"),
        (lambda data: data.update(target=5), "a name is missing where there is 5"),
        (
            lambda data: data["steps"][1].update(buffer=None),
            "a name is missing where there is None",
        ),
        (lambda data: data["tensors"][0].update(kind="view"), "tensor T is of no known kind"),
        (
            lambda data: data["steps"][3]["arguments"][4].update(value=[1, {"a": 2}]),
            "a constant is neither a number, a string nor a list of them",
        ),
    ],
)
def test_damage_of_every_kind_of_step(damage, message):
    data = json.loads(text.write(EVERY))
    damage(data)
    with pytest.raises(InputError) as caught:
        text.read(json.dumps(data))
    assert caught.value.message == f"the host program is damaged: {message}"


def test_what_a_program_has_by_name():
    assert [EVERY.parameter(name) for name in ("A", "n", "stream")] == list(EVERY.parameters)
    assert EVERY.parameter("T") is None
    assert list(EVERY.named_results) == ["R", "result1"]
    assert EVERY.named_results["R"] == made.Operand("tensor", "R")
