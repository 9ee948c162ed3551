"""The host program of a host function."""

from __future__ import annotations

import re

import pytest
from fly_common.errors import InputError
from fly_host import text
from fly_host.integers import show
from fly_host.program import Launch, Program, Scalar, Tensor, Word
from fly_opt import Options, compile

VECTOR = "!fly.memref<f32, global, ?{i64}:1>"


def host(arguments: str, body: str, kernel: str = "%p: !llvm.ptr<1>", launches: str = "") -> bytes:
    """A module with a kernel @k(kernel) and a host function @h(arguments) { body }."""
    return f"""
module attributes {{gpu.container_module, fly.target = "gfx942"}} {{
  gpu.module @kernels {{
    gpu.func @k({kernel}) kernel {{
      gpu.return
    }}
  }}
  func.func @h({arguments}) {{
    %one = arith.constant 1 : index
{body}
    {launches}
    return
  }}
}}
""".encode()


def launch(grid: str = "%one", block: str = "%one", arguments: str = "") -> str:
    return (
        f"gpu.launch_func @kernels::@k blocks in ({grid}, %one, %one)"
        f" threads in ({block}, %one, %one) args({arguments})"
    )


def program_of(source: bytes, passes: str = "fly-extract-host-program") -> Program:
    module = compile(source, Options(passes=passes)).decode()
    assert "func.func" not in module  # the program takes its place
    quoted = re.search(r'fly\.host_program = "((?:[^"\\]|\\.)*)"', module)
    assert quoted is not None
    return text.read(quoted[1].replace("\\22", '"').replace('\\"', '"').replace("\\\\", "\\"))


def shown(program: Program) -> list[tuple[str, int]]:
    """The integers among the arguments of the first launch, and their sizes."""
    words = (word for argument in program.launches[0].arguments for word in argument)
    return [
        (show(program.expressions, word.expression), word.size)
        for word in words
        if word.kind == "integer"
    ]


def test_vector_add(vector_add):
    program = program_of(vector_add, "fly-set-target{chip=gfx90a},fly-extract-host-program")
    pointer = {name: (Word("pointer", name=name),) for name in "ABC"}
    assert program == Program(
        entry="vector_add",
        target="gfx90a",
        parameters=(
            Tensor("A", "f32", ("n",), (1,), "r"),
            Tensor("B", "f32", ("n",), (1,), "r"),
            Tensor("C", "f32", ("n",), (None,), "w"),
            Scalar("n", "i32"),
        ),
        expressions=(
            ("extent", "A", 0),
            ("const", 256),
            ("ceildiv", 0, 1),
            ("const", 1),
            ("const", 0),
            ("extent", "B", 0),
            ("extent", "C", 0),
            ("stride", "C", 0),
        ),
        steps=(
            Launch(
                kernel="vector_add_kernel",
                grid=(2, 3, 3),
                block=(1, 3, 3),
                shared=4,
                arguments=(
                    pointer["A"],
                    (Word("integer", expression=0),),
                    pointer["B"],
                    (Word("integer", expression=5),),
                    pointer["C"],
                    (Word("integer", expression=6), Word("integer", expression=7)),
                    (Word("scalar", name="n", size=4),),
                ),
            ),
        ),
    )


@pytest.mark.parametrize(
    ("operation", "formula"),
    [
        ("arith.addi %a, %b : i64", "a + b"),
        ("arith.subi %a, %b : i64", "a - b"),
        ("arith.muli %a, %b : i64", "a * b"),
        ("arith.floordivsi %a, %b : i64", "a // b"),
        ("arith.ceildivsi %a, %b : i64", "ceildiv(a, b)"),
        ("arith.divsi %a, %b : i64", "truncdiv(a, b)"),
        ("arith.remsi %a, %b : i64", "rem(a, b)"),
        ("arith.minsi %a, %b : i64", "min(a, b)"),
        ("arith.maxsi %a, %b : i64", "max(a, b)"),
        ("arith.andi %a, %b : i64", "a & b"),
        ("arith.ori %a, %b : i64", "a | b"),
        ("arith.xori %a, %b : i64", "a ^ b"),
        ("arith.shli %a, %b : i64", "a << b"),
        ("arith.shrsi %a, %b : i64", "a >> b"),
        ("arith.cmpi eq, %a, %b : i64", "a == b"),
        ("arith.cmpi ne, %a, %b : i64", "a != b"),
        ("arith.cmpi slt, %a, %b : i64", "a < b"),
        ("arith.cmpi sle, %a, %b : i64", "a <= b"),
        ("arith.cmpi sgt, %a, %b : i64", "b < a"),
        ("arith.cmpi sge, %a, %b : i64", "b <= a"),
        ("arith.cmpi ult, %a, %b : i64", "a < b"),
        ("arith.cmpi uge, %a, %b : i64", "b <= a"),
    ],
)
def test_arithmetic(operation, formula):
    kind = "i1" if "cmpi" in operation else "i64"
    source = host(
        '%a: i64 {fly.name = "a", fly.dtype = "i64"}, %b: i64 {fly.name = "b", fly.dtype = "i64"}',
        f"    %x = {operation}",
        kernel=f"%x: {kind}",
        launches=launch(arguments=f"%x : {kind}"),
    )
    assert shown(program_of(source)) == [(formula, 1 if kind == "i1" else 8)]


def test_a_program_has_what_it_needs_once():
    source = host(
        '%a: i64 {fly.name = "a", fly.dtype = "i64"}',
        """    %x = arith.addi %a, %a : i64
    %y = arith.addi %a, %a : i64
    %unused = arith.muli %x, %y : i64
    %zero = arith.constant 0 : i64
    %same = arith.addi %x, %zero : i64""",
        kernel="%x: i64, %y: i64, %z: i64",
        launches=launch(arguments="%x : i64, %y : i64, %same : i64"),
    )
    program = program_of(source)
    assert program.expressions == (("const", 1), ("scalar", "a"), ("add", 1, 1), ("const", 0))
    assert [text for text, _ in shown(program)] == ["a + a"] * 3


def test_casts_keep_the_integer_and_a_sign_extended_bit_is_minus_one():
    source = host(
        '%a: i32 {fly.name = "a", fly.dtype = "i32"}',
        """    %w = arith.extsi %a : i32 to i64
    %i = arith.index_cast %w : i64 to index
    %bit = arith.cmpi slt, %a, %a : i32
    %plus = arith.extui %bit : i1 to i32
    %minus = arith.extsi %bit : i1 to i32
    %s = arith.select %bit, %a, %plus : i32""",
        kernel="%a: index, %b: i32, %c: i32, %d: i32",
        launches=launch(arguments="%i : index, %plus : i32, %minus : i32, %s : i32"),
    )
    assert shown(program_of(source)) == [
        ("a", 8),
        ("a < a", 4),
        ("0 - (a < a)", 4),
        ("select((a < a), a, (a < a))", 4),
    ]


def test_scalars_go_on_with_their_dtype_and_float_constants_as_bits():
    source = host(
        '%f: f32 {fly.name = "f", fly.dtype = "f32", fly.default = 1.5 : f32},'
        ' %b: i1 {fly.name = "b", fly.dtype = "bool"},'
        ' %u: i16 {fly.name = "u", fly.dtype = "u16"}',
        "    %half = arith.constant -2.0 : f16\n    %brain = arith.constant 1.0 : bf16\n"
        "    %double = arith.constant 0.1 : f64\n    %single = arith.constant -1.0 : f32",
        kernel="%f: f32, %b: i1, %u: i16, %h: f16, %g: bf16, %d: f64, %s: f32",
        launches=launch(
            arguments="%f : f32, %b : i1, %u : i16, %half : f16, %brain : bf16,"
            " %double : f64, %single : f32"
        ),
    )
    program = program_of(source)
    assert program.parameters == (
        Scalar("f", "f32", 1.5),
        Scalar("b", "bool"),
        Scalar("u", "u16"),
    )
    words = [word for (word,) in program.launches[0].arguments]
    assert [(word.name, word.size) for word in words[:3]] == [("f", 4), ("b", 1), ("u", 2)]
    bits = [(program.expressions[word.expression][1], word.size) for word in words[3:]]
    assert bits == [
        (0xC000 - 0x10000, 2),
        (0x3F80, 2),
        (0x3FB999999999999A, 8),
        (0xBF800000 - 0x100000000, 4),
    ]


def test_static_layouts_need_no_words_and_shape_comes_before_stride():
    static = "!fly.memref<f32, global, (4,8):(8,1)>"
    mixed = "!fly.memref<f16, global, (?,?{i64}):(?{i64},?)>"
    source = host(
        f'%A: {static} {{fly.name = "A", fly.dtype = "f32"}},'
        f' %B: {mixed} {{fly.name = "B", fly.dtype = "f16", fly.shape = [unit, "n"],'
        " fly.contiguous}",
        "",
        kernel=f"%A: {static}, %B: {mixed}",
        launches=launch(arguments=f"%A : {static}, %B : {mixed}"),
    )
    program = program_of(source)
    assert program.parameters == (
        Tensor("A", "f32", (4, 8), (8, 1), "rw"),
        Tensor("B", "f16", (None, "n"), (None, None), "rw", contiguous=True),
    )
    a, b, leaves = program.launches[0].arguments
    assert (a, b) == ((Word("pointer", name="A"),), (Word("pointer", name="B"),))
    assert [(program.expressions[word.expression], word.size) for word in leaves] == [
        (("extent", "B", 0), 4),
        (("extent", "B", 1), 8),
        (("stride", "B", 0), 8),
        (("stride", "B", 1), 4),
    ]


def test_a_tensor_of_rank_0_is_a_pointer():
    kind = "!fly.memref<f32, global, 1:0>"
    source = host(
        f'%A: {kind} {{fly.name = "A", fly.dtype = "f32", fly.shape = []}}',
        "",
        kernel=f"%A: {kind}",
        launches=launch(arguments=f"%A : {kind}"),
    )
    program = program_of(source)
    assert program.parameters == (Tensor("A", "f32", (), ()),)
    assert program.launches[0].arguments == ((Word("pointer", name="A"),),)


def test_extents_through_modes():
    kind = "!fly.memref<f32, global, (?{i64},16):(?{i64},1)>"
    layout = "!fly.layout<(?{i64},16):(?{i64},1)>"
    pair, other = "!fly.int_tuple<(?{i64},16)>", "!fly.int_tuple<(?{i64},1)>"
    dynamic, static = "!fly.int_tuple<?{i64}>", "!fly.int_tuple<16>"
    first, second = "{mode = array<i32: 0>}", "{mode = array<i32: 1>}"
    source = host(
        f'%A: {kind} {{fly.name = "A", fly.dtype = "f32"}}',
        f"""    %layout = fly.get_layout(%A) : ({kind}) -> {layout}
    %shape = fly.get_shape(%layout) : ({layout}) -> {pair}
    %row = fly.get(%shape) {first} : ({pair}) -> {dynamic}
    %rows = fly.get_scalar(%row) : ({dynamic}) -> i64
    %col = fly.get(%shape) {second} : ({pair}) -> {static}
    %cols = fly.get_scalar(%col) : ({static}) -> i32
    %stride = fly.get_stride(%A) : ({kind}) -> {other}
    %lead = fly.get(%stride) {first} : ({other}) -> {dynamic}
    %step = fly.get_scalar(%lead) : ({dynamic}) -> i64""",
        kernel="%r: i64, %c: i32, %s: i64",
        launches=launch(arguments="%rows : i64, %cols : i32, %step : i64"),
    )
    program = program_of(source)
    values = [program.expressions[word.expression] for (word,) in program.launches[0].arguments]
    assert values == [("extent", "A", 0), ("const", 16), ("stride", "A", 0)]


def test_several_launches_and_dynamic_lds():
    body = "    %bytes = arith.constant 4096 : i32\n    %two = arith.constant 2 : index\n"
    first = (
        "gpu.launch_func @kernels::@k blocks in (%two, %one, %one) threads in (%one, %two, %one)"
        " dynamic_shared_memory_size %bytes"
    )
    program = program_of(
        host("", body, kernel="", launches=f"{first}\n    {launch()[: -len(' args()')]}")
    )
    values = [
        [program.expressions[index][1] for index in (*one.grid, *one.block, one.shared)]
        for one in program.launches
    ]
    assert values == [[2, 1, 1, 1, 2, 1, 4096], [1, 1, 1, 1, 1, 1, 0]]


NAMED = '%a: i64 {fly.name = "a", fly.dtype = "i64"}'
FLOAT = '%f: f32 {fly.name = "f", fly.dtype = "f32"}'
NESTED = "!fly.memref<f32, global, ((2,?),4):((1,2),8)>"


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (
            host(f"{NAMED}, %b: i64", "", kernel="", launches=launch()),
            "argument 1 .* has no fly.name",
        ),
        (
            host(f"{NAMED}, {NAMED.replace('%a', '%b')}", "", kernel="", launches=launch()),
            "two arguments .* 'a'",
        ),
        (
            host(FLOAT, "    %x = arith.addf %f, %f : f32"),
            "arith.addf is not supported in the host function",
        ),
        (
            host(FLOAT, "    %x = arith.fptosi %f : f32 to i64", launches=""),
            "arith.fptosi is not supported in the host function",
        ),
        (
            host(
                f"{NAMED}, {FLOAT}",
                """    %bit = arith.constant true
    %x = scf.if %bit -> f32 {
      scf.yield %f : f32
    } else {
      scf.yield %f : f32
    }""",
            ),
            "computes with f, which is f32",
        ),
        (host("", "", kernel="", launches=""), "does nothing, and returns nothing"),
        (
            host(
                f'%A: {NESTED} {{fly.name = "A", fly.dtype = "f32"}}',
                "",
                kernel=f"%A: {NESTED}",
                launches=launch(arguments=f"%A : {NESTED}"),
            ),
            "the layout of A is nested",
        ),
        (
            host(
                f'%A: {VECTOR} {{fly.name = "A", fly.dtype = "f32", fly.shape = ["n", 4]}}',
                "",
                kernel=f"%A: {VECTOR}",
                launches=launch(arguments=f"%A : {VECTOR}"),
            ),
            "fly.shape of A has 2 extents, but its layout has 1",
        ),
        (
            host("", "    %big = arith.constant 2048 : index", "", launch(block="%big")),
            "block of 2048×1×1",
        ),
        *(
            (
                host(
                    f'%A: {VECTOR} {{fly.name = "A", {wrong}}}',
                    "",
                    kernel=f"%A: {VECTOR}",
                    launches=launch(arguments=f"%A : {VECTOR}"),
                ),
                message,
            )
            for wrong, message in (
                ('fly.dtype = "f32", fly.access = "x"', "parameter A: unknown access 'x'"),
                ('fly.dtype = "f31"', "parameter A: unknown dtype 'f31'"),
            )
        ),
    ],
)
def test_what_a_program_cannot_hold_is_refused_with_its_place(source, message):
    with pytest.raises(InputError, match=message) as caught:
        compile(source, Options(passes="fly-extract-host-program"), "host.mlir")
    assert caught.value.place is not None
    assert caught.value.place.file == "host.mlir"
    assert caught.value.place.line is not None


def test_several_host_functions_need_an_entry():
    source = host("", "", kernel="", launches=launch()).decode()
    twice = source.replace("  func.func @h", "  func.func @g() {\n    return\n  }\n  func.func @h")
    with pytest.raises(InputError, match="2 host functions: g, h"):
        compile(twice.encode(), Options(passes="fly-extract-host-program"))
    named = twice.replace('fly.target = "gfx942"', 'fly.target = "gfx942", fly.entry = "h"')
    assert (
        program_of(named.replace("  func.func @g() {\n    return\n  }\n", "").encode()).entry == "h"
    )
    with pytest.raises(InputError, match=r"fly\.entry names 'x'"):
        compile(
            named.replace('fly.entry = "h"', 'fly.entry = "x"').encode(),
            Options(passes="fly-extract-host-program"),
        )


def test_extracting_twice_changes_nothing(vector_add):
    once = compile(
        vector_add, Options(passes="fly-set-target{chip=gfx942},fly-extract-host-program")
    )
    assert compile(once, Options(passes="fly-extract-host-program")) == once


@pytest.mark.parametrize(("target", "lanes"), [("gfx942", 64), ("gfx1100", 32), ("sm_90a", 32)])
def test_the_size_of_a_wave_is_the_targets(target: str, lanes: int) -> None:
    source = host("", "    %wave = gpu.subgroup_size : index", "", launch(block="%wave"))
    program = program_of(source.replace(b"gfx942", target.encode()))
    x = program.launches[0].block[0]
    assert program.expressions[x] == ("const", lanes)
