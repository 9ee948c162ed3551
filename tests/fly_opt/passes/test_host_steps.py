"""Steps of a host program, out of MLIR that a tracer may have written otherwise than ours does."""

import re

import pytest
from fly_common.errors import InputError
from fly_host.program import (
    Allocate,
    Assigned,
    Branch,
    Buffer,
    Call,
    Carried,
    CarriedTensor,
    Check,
    ChosenTensor,
    Free,
    Launch,
    Loop,
    Operand,
    Stream,
    View,
    Word,
)
from fly_opt import Options, compile
from fly_opt.passes.host import lifetimes

from .test_extraction import host, launch, program_of

N = '%n: i64 {fly.name = "n", fly.dtype = "i64"}'
A = '%A: !fly.memref<f32, global, 8:1> {fly.name = "A", fly.dtype = "f32"}'
RUN = launch(arguments="%n : i64")


def made(body: str, arguments: str = N, launches: str = RUN, kernel: str = "i64"):
    return program_of(host(arguments, body, kernel=f"%n: {kernel}", launches=launches))


def refusal(body: str, arguments: str = N, launches: str = RUN, kernel: str = "i64") -> str:
    source = host(arguments, body, kernel=f"%n: {kernel}", launches=launches)
    with pytest.raises(InputError) as caught:
        compile(source, Options(passes="fly-extract-host-program"), "host.mlir")
    assert caught.value.place is not None
    assert caught.value.place.line is not None
    return caught.value.message


# -- loops


def for_(step: str, body: str = RUN) -> str:
    return f"""
    %zero = arith.constant 0 : i64
    %two = arith.constant 2 : i64
    %less = arith.constant -1 : i64
    scf.for %i = %zero to %n step {step} : i64 {{
      {body}
    }}"""


def test_a_loop_counts():
    program = made(for_("%two"), launches="")
    (loop,) = program.steps
    assert isinstance(loop, Loop)
    assert loop.carried == (Carried(0, *loop_integers(program, loop), 1),)
    assert program.expressions[loop.condition] == ("lt", index(program, "variable", 0), 3)
    assert [type(step) for step in loop.body] == [Launch]


def index(program, *expression) -> int:
    return program.expressions.index(expression)


def loop_integers(program, loop) -> tuple[int, int]:
    """(initial, next) of the counter: from 0, by 2."""
    counter = index(program, "variable", 0)
    return index(program, "const", 0), index(program, "add", counter, index(program, "const", 2))


def test_a_step_that_is_not_known_is_checked():
    arguments = f'{N}, %step: i64 {{fly.name = "step", fly.dtype = "i64"}}'
    check, loop = made(for_("%step"), arguments, launches="").steps
    assert isinstance(check, Check)
    assert isinstance(loop, Loop)
    assert check.message[0] == "the step of a loop is "


def test_a_step_backwards():
    assert "the step of a loop is -1, and has to be greater than 0" in refusal(for_("%less"))


def while_(before: str, handed: str = "%k", condition: str = "%more") -> str:
    return f"""
    %zero = arith.constant 0 : i64
    %last = scf.while (%k = %n) : (i64) -> i64 {{
      %more = arith.cmpi sgt, %k, %zero : i64
      {before}
      scf.condition({condition}) {handed} : i64
    }} do {{
    ^bb0(%k: i64):
      {RUN.replace("%n", "%k")}
      %one_less = arith.subi %k, %one64 : i64
      scf.yield %one_less : i64
    }}""".replace("%zero = ", "%one64 = arith.constant 1 : i64\n    %zero = ")


def test_a_while_loop():
    (loop,) = made(while_(""), launches="").steps
    assert isinstance(loop, Loop)
    assert [carried.variable for carried in loop.carried] == [0]
    assert [type(step) for step in loop.body] == [Launch]


def test_the_condition_of_a_while_only_computes():
    said = refusal(while_(RUN.replace("%n", "%k")))
    assert "the condition of a `while` can only compute, and this one does more" in said


def test_a_while_that_hands_on_other_values():
    assert "hands on other values than its own" in refusal(while_("", handed="%zero"))


# -- branches


def test_a_branch_without_steps_is_an_expression():
    program = made(
        """
    %zero = arith.constant 0 : i64
    %bit = arith.cmpi sgt, %n, %zero : i64
    %grid = scf.if %bit -> (index) {
      scf.yield %one : index
    } else {
      %none = arith.index_cast %zero : i64 to index
      scf.yield %none : index
    }""",
        launches=launch(grid="%grid", arguments="%n : i64"),
    )
    (step,) = program.steps
    assert isinstance(step, Launch)
    assert program.expressions[step.grid[0]][0] == "select"


def test_a_branch_that_chooses_one_tensor_twice_chooses_none():
    body = f"""
    %zero = arith.constant 0 : i64
    %bit = arith.cmpi sgt, %n, %zero : i64
    %T = scf.if %bit -> (!fly.memref<f32, global, 8:1>) {{
      {RUN}
      scf.yield %A : !fly.memref<f32, global, 8:1>
    }} else {{
      scf.yield %A : !fly.memref<f32, global, 8:1>
    }}"""
    program = made(body, f"{N}, {A}", launches="")
    (branch,) = program.steps
    assert isinstance(branch, Branch)
    assert branch.tensors == ()
    assert program.tensors == ()


def test_a_branch_without_an_else():
    body = f"""
    %zero = arith.constant 0 : i64
    %bit = arith.cmpi sgt, %n, %zero : i64
    scf.if %bit {{
      {RUN}
    }}"""
    (branch,) = made(body, launches="").steps
    assert isinstance(branch, Branch)
    assert (len(branch.then), branch.otherwise) == (1, ())


# -- streams, checks, results


def test_a_stream_with_a_name_is_a_parameter():
    arguments = f'{N}, %s: !gpu.async.token {{fly.name = "s"}}'
    on_stream = RUN.replace("gpu.launch_func", "gpu.launch_func <%s : !gpu.async.token>")
    program = made("", arguments, on_stream)
    assert program.parameters[1] == Stream("s")
    assert program.launches[0].stream == "s"
    # FlyDSL's, of which nobody says more than that it is one.
    nameless = program_of(host("%n: i64, %s: !gpu.async.token", "", kernel="%n: i64", launches=RUN))
    assert [parameter.name for parameter in nameless.parameters] == ["arg0"]


def test_a_stream_that_is_no_parameter():
    body = "    %s = gpu.wait async"
    on_stream = RUN.replace("gpu.launch_func", "gpu.launch_func <%s : !gpu.async.token>")
    assert "gpu.wait is not supported in the host function" in refusal(body, launches=on_stream)


def test_a_check_that_always_holds_is_none():
    body = """    %true = arith.constant true
    %zero = arith.constant 0 : i64
    fly.check(%true) {message = ["a"]} : (i1) -> ()
    %bit = arith.cmpi sgt, %n, %zero : i64
    fly.check(%bit, %zero, %n) {message = ["more than ", unit, ": ", unit]} : (i1, i64, i64) -> ()
"""
    check, _ = made(body).steps
    assert isinstance(check, Check)
    assert check.message[:1] == ("more than 0: ",)
    assert len(check.message) == 2


def test_a_message_of_more_than_there_is():
    body = "    %bit = arith.constant false\n    fly.check(%bit) {message = [unit]} : (i1) -> ()"
    assert "the message of fly.check holds texts" in refusal(body)


def returning(values: str, types: str, attributes: str = "") -> bytes:
    source = host(f"{N}, {A}", "", kernel="%n: i64", launches=RUN).decode()
    source = source.replace("    return\n", f"    return {values} : {types}\n")
    head = re.search(r"func\.func @h\(.*\) \{", source)
    assert head is not None
    return source.replace(head[0], f"{head[0][:-2]} -> ({types}) {attributes} {{").encode()


MEMREF = "!fly.memref<f32, global, 8:1>"


def test_results_without_a_form_are_a_tuple():
    program = program_of(returning("%n, %A", f"i64, {MEMREF}"))
    assert program.results == (Operand("scalar", "n"), Operand("tensor", "A"))
    assert program.result_names == ("n", "A")
    alone = program_of(returning("%A", MEMREF))
    assert alone.results == Operand("tensor", "A")


@pytest.mark.parametrize(
    ("form", "names"),
    [
        ('{name = "R"}, {name = "R"}', ("A", "R")),
        ('{}, {name = "n"}', ("A", "result1")),
        ('{name = "B"}, {name = "result1"}', ("A", "result1")),
        ("{}, {}", ("A", "result1")),
        ('{value = 1 : i64, name = "A"}, {}, {}', ("result0", "A", "result2")),
    ],
)
def test_names_of_results(form, names):
    """A parameter keeps its name, and nothing else has it."""
    source = returning("%A, %big", f"{MEMREF}, i64", f"attributes {{fly.results = [{form}]}}")
    text = source.decode().replace("    return", "    %big = arith.addi %n, %n : i64\n    return")
    assert program_of(text.encode()).result_names == names


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ("[{}]", "fly.results says nothing of 1 values that are returned"),
        ("[{}, {}, {}]", "fly.results asks for more values than are returned"),
        ("[{}, 3]", "the attribute fly.results is [{}, 3], not made of arrays"),
    ],
)
def test_a_form_that_does_not_fit(form, message):
    source = returning("%A, %n", f"{MEMREF}, i64", f"attributes {{fly.results = {form}}}")
    with pytest.raises(InputError, match=re.escape(message)):
        program_of(source)


# -- tensors


def empty(attributes: str, kind: str = MEMREF) -> str:
    run = launch(arguments=f"%T : {kind}")
    return f'    %T = fly.empty() {{dtype = "f32", {attributes}}} : () -> {kind}\n    {run}'


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ('shape = [unit], allocation = "", view = "logical"', "has fewer operands"),
        ('shape = [4, 2], allocation = "", view = "logical"', "makes a tensor of 2 dimensions"),
        ('shape = [8], allocation = "splat(1)", view = "logical"', "splat(1): unknown step"),
        ('shape = [8], allocation = "split(0, 3)", view = "logical"', "is not a multiple of 3"),
        ('shape = [8], allocation = "split(0, %0)", view = "logical"', "there are 0 dynamic"),
        (
            'shape = [4, 2], allocation = "split(0, 2) reorder(1, 2, 0)", view = "logical"',
            "there are no logical strides",
        ),
    ],
)
def test_tensors_that_can_not_be_made(attributes, message):
    assert message in refusal(empty(attributes), launches="", kernel=MEMREF)


def test_a_tensor_of_the_memorys_axes():
    kind = "!fly.memref<f32, global, (2,2,2):(4,2,1)>"
    attributes = 'shape = [4, 2], allocation = "split(0, 2)", view = "allocation"'
    program = made(empty(attributes, kind), launches="", kernel=kind)
    (buffer,) = program.tensors
    assert isinstance(buffer, Buffer)
    sizes = [program.expressions[at][1] for at in (*buffer.shape, *buffer.strides, buffer.elements)]
    assert sizes == [2, 2, 2, 4, 2, 1, 8]


# -- lifetimes


def run(*names: str) -> Launch:
    words = tuple((Word("pointer", name),) for name in names)
    return Launch("k", (0, 0, 0), (0, 0, 0), 0, words)


def swap(*body) -> Loop:
    tensors = (CarriedTensor("X", "A", "Y", "R"), CarriedTensor("Y", "T", "X", "S"))
    return Loop((), tensors, 0, body)


TENSOR = Operand("tensor", "T")


@pytest.mark.parametrize(
    ("steps", "result", "wanted"),
    [
        # Before the first use, after the last one.
        (
            (Allocate("T"), run("A"), run("T"), run("T"), run("A")),
            None,
            (run("A"), Allocate("T"), run("T"), run("T"), Free("T"), run("A")),
        ),
        # What nobody uses is not made; what only the caller gets is made at the end.
        ((Allocate("T"), run("A")), None, (run("A"),)),
        ((Allocate("T"), run("A")), TENSOR, (run("A"), Allocate("T"))),
        ((Allocate("T"), run("T")), (TENSOR, None), (Allocate("T"), run("T"))),
        (
            (Allocate("T"), run("T")),
            Operand("view", View("T", (), (), 0)),
            (Allocate("T"), run("T")),
        ),
        # Two at once, in their order.
        (
            (Allocate("T"), Allocate("U"), run("U", "T")),
            None,
            (Allocate("T"), Allocate("U"), run("U", "T"), Free("T"), Free("U")),
        ),
        # A use within a loop or branch is one of the step.
        (
            (Allocate("T"), Branch(0, (run("T"),), ()), run("A")),
            None,
            (Allocate("T"), Branch(0, (run("T"),), ()), Free("T"), run("A")),
        ),
        # A tensor under another name is used as long as that is.
        (
            (Allocate("T"), swap(run("X", "Y")), run("R"), run("A")),
            None,
            (Allocate("T"), swap(run("X", "Y")), run("R"), Free("T"), run("A")),
        ),
        (
            (Allocate("T"), swap(run("X", "Y")), run("A")),
            Operand("tensor", "R"),
            (Allocate("T"), swap(run("X", "Y")), run("A")),
        ),
        # What a body makes goes with it, unless the loop carries it on.
        (
            (Loop((), (), 0, (Allocate("T"), run("T"), run("A"))),),
            None,
            (Loop((), (), 0, (Allocate("T"), run("T"), Free("T"), run("A"))),),
        ),
        (
            (Loop((), (CarriedTensor("X", "A", "T", "R"),), 0, (Allocate("T"), run("T"))),),
            None,
            (Loop((), (CarriedTensor("X", "A", "T", "R"),), 0, (Allocate("T"), run("T"))),),
        ),
        (
            (Branch(0, (Allocate("T"), run("T")), (), (), (ChosenTensor("R", "T", "A"),)),),
            None,
            (Branch(0, (Allocate("T"), run("T")), (), (), (ChosenTensor("R", "T", "A"),)),),
        ),
        # What a library call makes is freed like what is allocated, and takes its arguments' place.
        (
            (Call("f", (Operand("tensor", "A"),), (), ("T",)), run("T"), run("A")),
            None,
            (Call("f", (Operand("tensor", "A"),), (), ("T",)), run("T"), Free("T"), run("A")),
        ),
        (
            (Call("f", (), (), ("T",)), run("A")),
            None,
            (Call("f", (), (), ("T",)), Free("T"), run("A")),
        ),
        (
            (Allocate("T"), Call("f", (), (("out", TENSOR),)), run("A")),
            None,
            (Allocate("T"), Call("f", (), (("out", TENSOR),)), Free("T"), run("A")),
        ),
    ],
)  # fmt: skip
def test_lifetimes(steps, result, wanted):
    assert lifetimes.placed(steps, result) == wanted


def test_a_name_is_taken_once():
    body = (
        empty('shape = [8], allocation = "", view = "logical", name = "A"')
        + "\n"
        + empty('shape = [8], allocation = "", view = "logical", name = "A"').replace("%T", "%U")
    )
    program = made(body, f"{N}, {A}", launches="", kernel=MEMREF)
    assert [tensor.name for tensor in program.tensors] == ["A_1", "A_2"]
    assert not any(isinstance(tensor, Assigned) for tensor in program.tensors)
