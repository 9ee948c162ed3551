"""The launch plan as text: it comes back whole, and a damaged one is an error line."""

import copy
import dataclasses
import json
import random

import pytest
from fly_common.errors import InputError
from fly_host import plan
from fly_host.plan import Launch, Plan, Scalar, Tensor, Word
from hypothesis import given
from hypothesis import strategies as st

PLAN = Plan(
    entry="vector_add",
    target="gfx942",
    parameters=(
        Tensor("A", "f32", ("n", 4), (None, 1), "r"),
        Tensor("B", "bf16", (None,), (1,), "w", contiguous=True, multiples=(16, 1)),
        Scalar("n", "i32"),
        Scalar("alpha", "f32", 0.5),
    ),
    expressions=(
        ("extent", "A", 0),
        ("const", 256),
        ("ceildiv", 0, 1),
        ("stride", "A", 1),
        ("scalar", "n"),
        ("lt", 0, 4),
        ("select", 5, 0, 4),
    ),
    launches=(
        Launch(
            "kernel",
            (2, 1, 1),
            (1, 1, 1),
            0,
            (
                (Word("pointer", "A"), Word("integer", expression=0, size=8)),
                (Word("scalar", "alpha", size=4),),
            ),
        ),
    ),
)


def test_a_plan_comes_back():
    assert plan.from_text(plan.to_text(PLAN)) == PLAN
    assert plan.from_text(plan.to_text(PLAN).encode()) == PLAN


def test_the_text_is_canonical():
    text = plan.to_text(PLAN)
    assert text == plan.to_text(copy.deepcopy(PLAN))
    assert text == json.dumps(json.loads(text), sort_keys=True, separators=(",", ":"))
    assert text.isascii()


def test_the_text_names_what_a_code_object_holds():
    """What other programs read: the section's name, and the kinds of parameters."""
    assert plan.SECTION == ".fly.manifest"
    kinds = [item["kind"] for item in json.loads(plan.to_text(PLAN))["parameters"]]
    assert kinds == ["tensor", "tensor", "scalar", "scalar"]
    assert json.loads(plan.to_text(PLAN))["version"] == 2


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
    tensor = dataclasses.replace(PLAN.parameters[0], dtype=dtype)
    made = dataclasses.replace(PLAN, parameters=(tensor, *PLAN.parameters[1:]))
    assert plan.from_text(plan.to_text(made)) == made
    scalar = dataclasses.replace(PLAN, parameters=(*PLAN.parameters[:3], Scalar("alpha", dtype)))
    if dtype in NUMBERS:
        assert plan.from_text(plan.to_text(scalar)) == scalar
    else:
        with pytest.raises(InputError, match="parameter alpha: unknown dtype"):
            plan.from_text(plan.to_text(scalar))


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
    made = dataclasses.replace(PLAN, expressions=(*PLAN.expressions, (operator, 0, 1)))
    assert plan.from_text(plan.to_text(made)) == made


@pytest.mark.parametrize("size", [1, 2, 4, 8])
def test_sizes_of_words(size):
    made = plan.from_text(changed("launches", 0, "arguments", 0, 1, "size", size))
    assert made.launches[0].arguments[0][1].size == size


names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8)
extents = st.one_of(st.none(), st.integers(0, 2**63 - 1), names)
strides = st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1))


@st.composite
def plans(draw):
    chosen = draw(st.lists(names, min_size=1, max_size=4, unique=True))
    parameters = []
    for name in chosen:
        dtype = draw(st.sampled_from(sorted(plan.DTYPES)))
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
    return Plan("entry", "gfx90a", tuple(parameters), tuple(("const", c) for c in consts), ())


@given(plans())
def test_any_plan_comes_back(made):
    assert plan.from_text(plan.to_text(made)) == made


def changed(*path_and_value) -> str:
    """PLAN's text with the value at a path replaced."""
    *path, last, value = path_and_value
    data = json.loads(plan.to_text(PLAN))
    place = data
    for step in path:
        place = place[step]
    place[last] = value
    return json.dumps(data)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "damaged"),
        ("{}", "it has no field 'version'"),
        ("null", "damaged"),
        ("[" * 100_000, "nested too deeply"),
        (b"\xff\xfe{}", "damaged"),
        (changed("version", 1), "has version 1, but this tool reads version 2"),
        (changed("launches", 0, "grid", [0, 1]), "damaged"),
        (changed("launches", 0, "grid", [0, 1, 7]), "launch of kernel: no such expression"),
        (changed("launches", 0, "lds", True), "launch of kernel: no such expression"),
        (changed("launches", 0, "lds", None), "launch of kernel: no such expression"),
        (changed("launches", 0, "arguments", 0, 0, "name", "Z"), "no pointer 'Z'"),
        (changed("launches", 0, "arguments", 0, 0, "name", "n"), "no pointer 'n'"),
        (changed("launches", 0, "arguments", 0, 0, "name", ["A"]), "no pointer ['A']"),
        (changed("launches", 0, "arguments", 1, 0, "name", "A"), "no scalar 'A'"),
        (changed("launches", 0, "arguments", 0, 0, "kind", "float"), "unknown word 'float'"),
        (
            changed("launches", 0, "arguments", 0, 0, "expression", 10**6),
            "launch of kernel: a pointer has no expression",
        ),
        (
            changed("launches", 0, "arguments", 1, 0, "expression", "x"),
            "launch of kernel: a scalar has no expression",
        ),
        (changed("launches", 0, "arguments", 0, 1, "size", 3), "a word of 3 bytes"),
        (changed("launches", 0, "arguments", 0, 1, "size", 8.0), "a word of 8.0 bytes"),
        (changed("launches", 0, "arguments", 0, 1, "color", "red"), "color"),
        (changed("expressions", 0, ["extent", "A", 2]), "expression 0: bad operands of extent"),
        (changed("expressions", 0, ["extent", "A", -1]), "expression 0: bad operands of extent"),
        (changed("expressions", 0, ["extent", "n", 0]), "expression 0: bad operands of extent"),
        (changed("expressions", 0, ["scalar", "A"]), "expression 0: bad operands of scalar"),
        (changed("expressions", 1, ["const", 2**63]), "expression 1: bad operands of const"),
        (changed("expressions", 1, ["const", True]), "expression 1: bad operands of const"),
        (changed("expressions", 1, ["const", 1.5]), "expression 1: bad operands of const"),
        (changed("expressions", 2, ["add", 0, 2]), "expression 2: bad operands of add"),
        (changed("expressions", 2, ["add", 0]), "expression 2: bad operands of add"),
        (changed("expressions", 2, ["select", 0, 1]), "expression 2: bad operands of select"),
        (changed("expressions", 2, ["pow", 0, 1]), "expression 2: unknown operator 'pow'"),
        (changed("expressions", 2, []), "damaged"),
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
        (changed("launches", 0, "arguments", 0, 1, "expression", 7), "no such expression"),
        (changed("launches", 0, "arguments", 0, 1, "expression", None), "no such expression"),
        (changed("launches", 0, "arguments", 0, 1, "expression", -1), "no such expression"),
        (changed("expressions", 0, ["extent", "A"]), "expression 0: bad operands of extent"),
        (changed("expressions", 0, ["extent", "A", "0"]), "expression 0: bad operands of extent"),
        (changed("expressions", 0, ["extent", 5, 0]), "expression 0: bad operands of extent"),
        (changed("expressions", 0, ["extent", "A", 0, 0]), "expression 0: bad operands of extent"),
        (changed("expressions", 1, ["const", 1, 1]), "expression 1: bad operands of const"),
        (changed("expressions", 2, ["add", -1, 1]), "expression 2: bad operands of add"),
        (changed("expressions", 2, ["add", True, 1]), "expression 2: bad operands of add"),
        (changed("expressions", 4, ["scalar", ["n"]]), "expression 4: bad operands of scalar"),
        (changed("parameters", 1, "name", "A"), "two parameters have the same name"),
        (changed("parameters", 2, "default", "many"), "parameter n: its default is not a number"),
    ],
)  # fmt: skip
def test_damaged_plans(text, message):
    with pytest.raises(InputError) as caught:
        plan.from_text(text)
    assert "launch plan" in caught.value.message
    assert message in caught.value.message


def test_random_damage_is_an_error_or_a_plan():
    text = plan.to_text(PLAN).encode()
    chance = random.Random(1)
    refused = 0
    for _ in range(3000):
        damaged = bytearray(text)
        for _ in range(chance.randint(1, 3)):
            damaged[chance.randrange(len(damaged))] = chance.choice(
                b'{}[],:"0129.-eatrun\\ \x00\xff'
            )
        try:
            plan.from_text(bytes(damaged))
        except InputError:
            refused += 1
    assert 1000 < refused < 3000
