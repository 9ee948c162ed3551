"""Each op's inference, and what the verifier refuses."""

import re

import pytest
from fly_common.errors import InputError
from fly_dialect import dialect, text
from fly_dialect.bindings import ir
from fly_dialect.builders import ops
from fly_dialect.layouts.layout import Layout
from fly_dialect.op_table import every
from fly_dialect.types import IntTupleSpec, LayoutSpec, MemRefSpec, PtrSpec, int_tuple_spec

from . import atom_examples

CONTEXT = dialect.load(ir.Context())

ARGUMENTS = atom_examples.ARGUMENTS | {
    "i": "i32",
    "j": "i64",
    "x": "f32",
    "t": "!fly.int_tuple<(?,?)>",
    "s": "!fly.int_tuple<(4,8)>",
    "n": "!fly.int_tuple<((2,3),?{i64})>",
    "k": "!fly.int_tuple<?>",
    "c": "!fly.int_tuple<12>",
    "l": "!fly.layout<(4,8):(1,4)>",
    "d": "!fly.layout<(?{i64},?{i64}):(?{i64},1)>",
    "p": "!fly.ptr<f32, global>",
    "q": "!fly.ptr<f32, shared, align<16>>",
    "m": "!fly.memref<f32, global, (?{i64},?{i64}):(?{i64},1)>",
    "r": "!fly.memref<f16, shared, (16,32):(1,16), align<16>>",
    "o": "!fly.coord_tensor<(0,?), (4,8):(1,4)>",
    "a8": "!fly.int_tuple<8>",
    "h": "!fly.layout<(8,6):(6,1)>",
    "e": "!fly.layout<(2,3):(1,2)>",
    "w": "!fly.swizzle<S<2,0,3>>",
    "v": "!fly.composed_layout<S<2,1,3> o 6 o (8,6):(6,1)>",
    "u": "!fly.tile<[4|3:2]>",
    "b": "!fly.int_tuple<(1,0)>",
    "f": "!fly.int_tuple<(3,*)>",
    "g": "!fly.memref<f32, shared, S<2,1,3> o 6 o (8,6):(6,1), align<16>>",
    "y": "!fly.coord_tensor<(5,7), (8,6):(1E0,1E1)>",
    "z": "!fly.memref<i8, global, (8,(2,?)):(?{div=4},(1,2)), align<8>>",
}

EMPTY = '{dtype = "f32", shape = [unit, unit], allocation = "", view = "logical"}'
CALL = (
    '{function = "torch.matmul", arguments = [unit, unit], keywords = {},'
    ' results = [{dtype = "f32", shape = [4, 4]}]}'
)

# op(operands) attributes → result type
RIGHT = [
    ("static", "", "", "!fly.int_tuple<(4,8)>"),
    ("static", "", "", "!fly.layout<4:1>"),
    ("make_int_tuple", "", "", "!fly.int_tuple<(4,8)>"),
    ("make_int_tuple", "i, j", "", "!fly.int_tuple<(?,(4,?{i64 div=16}))>"),
    ("make_shape", "i", "", "!fly.int_tuple<?>"),
    ("make_stride", "i", "", "!fly.int_tuple<?>"),
    ("make_coord", "j", "", "!fly.int_tuple<?{i64}>"),
    # An i64 is cut to what the type says, as FlyDSL does.
    ("make_int_tuple", "j", "", "!fly.int_tuple<?>"),
    ("make_layout", "t, s", "", "!fly.layout<(?,?):(4,8)>"),
    ("make_view", "p, l", "", "!fly.memref<f32, global, (4,8):(1,4)>"),
    ("make_view", "q, d", "", "!fly.memref<f32, shared, (?{i64},?{i64}):(?{i64},1), align<16>>"),
    ("make_view", "c, l", "", "!fly.coord_tensor<12, (4,8):(1,4)>"),
    ("get_iter", "r", "", "!fly.ptr<f16, shared, align<16>>"),
    ("get_iter", "o", "", "!fly.int_tuple<(0,?)>"),
    ("get_layout", "m", "", "!fly.layout<(?{i64},?{i64}):(?{i64},1)>"),
    ("get_shape", "l", "", "!fly.int_tuple<(4,8)>"),
    ("get_shape", "m", "", "!fly.int_tuple<(?{i64},?{i64})>"),
    ("get_stride", "m", "", "!fly.int_tuple<(?{i64},1)>"),
    ("get", "n", "{mode = array<i32: 0, 1>}", "!fly.int_tuple<3>"),
    ("get", "l", "{mode = array<i32: 1>}", "!fly.layout<8:4>"),
    ("get", "r", "{mode = array<i32: 1>}", "!fly.memref<f16, shared, 32:16, align<16>>"),
    ("select", "n", "{indices = array<i32: 1>}", "!fly.int_tuple<?{i64}>"),
    ("select", "s", "{indices = array<i32: 1, 0>}", "!fly.int_tuple<(8,4)>"),
    ("get_scalar", "k", "", "i32"),
    ("get_leaves", "n", "{dynamicOnly = true}", "i64"),
    ("int_tuple_add", "s, t", "", "!fly.int_tuple<(?,?)>"),
    ("int_tuple_sub", "s, s", "", "!fly.int_tuple<(0,0)>"),
    ("int_tuple_mul", "s, s", "", "!fly.int_tuple<(16,64)>"),
    ("int_tuple_div", "s, s", "", "!fly.int_tuple<(1,1)>"),
    ("int_tuple_mod", "t, s", "", "!fly.int_tuple<(?,?)>"),
    ("ceil_div", "t, s", "", "!fly.int_tuple<(?,?)>"),
    ("int_tuple_product", "s", "", "!fly.int_tuple<32>"),
    ("int_tuple_product_each", "n", "", "!fly.int_tuple<(6,?{i64})>"),
    ("size", "l", "", "!fly.int_tuple<32>"),
    ("size", "m", "", "!fly.int_tuple<?{i64}>"),
    ("size", "s", "", "!fly.int_tuple<32>"),
    ("cosize", "l", "", "!fly.int_tuple<32>"),
    ("crd2idx", "t, l", "", "!fly.int_tuple<?>"),
    ("crd2idx", "t, d", "", "!fly.int_tuple<?{i64}>"),
    ("idx2crd", "c, l", "", "!fly.int_tuple<(0,3)>"),
    ("get_1d_coord", "c, l", "", "!fly.int_tuple<12>"),
    ("get_flat_coord", "c, l", "", "!fly.int_tuple<(0,3)>"),
    ("make_layout_like", "h", "", "!fly.layout<(8,6):(6,1)>"),
    ("make_ordered_layout", "s, b", "", "!fly.layout<(4,8):(8,1)>"),
    ("make_ordered_layout", "t, b", "", "!fly.layout<(?,?):(?,1)>"),
    ("make_composed_layout", "w, k, h", "", "!fly.composed_layout<S<2,0,3> o ? o (8,6):(6,1)>"),
    ("make_identity_layout", "n", "", "!fly.layout<((2,3),?{i64}):((1E0E0,1E0E1),1E1)>"),
    ("make_fragment_layout_like", "h", "", "!fly.layout<(8,6):(1,8)>"),
    ("make_fragment_like", "r", "", "!fly.memref<f16, register, (16,32):(1,16)>"),
    ("make_fragment_like", "h", "{dtype = i8}", "!fly.memref<i8, register, (8,6):(1,8)>"),
    ("get_layout", "g", "", "!fly.composed_layout<S<2,1,3> o 6 o (8,6):(6,1)>"),
    ("get_shape", "v", "", "!fly.int_tuple<(8,6)>"),
    ("composed_get_inner", "v", "", "!fly.swizzle<S<2,1,3>>"),
    ("composed_get_offset", "v", "", "!fly.int_tuple<6>"),
    ("composed_get_outer", "v", "", "!fly.layout<(8,6):(6,1)>"),
    ("int_tuple_product_like", "n, b", "", "!fly.int_tuple<(6,?{i64})>"),
    ("shape_div", "s, a8", "", "!fly.int_tuple<(1,4)>"),
    ("shape_div", "n, k", "", "!fly.int_tuple<((?,?),?{i64})>"),
    ("elem_less", "t, s", "", "i1"),
    ("equal", "t, n", "", "i1"),
    ("take", "n", "{begin = 0 : i32, end = 1 : i32}", "!fly.int_tuple<(2,3)>"),
    (
        "take",
        "g",
        "{begin = 1 : i32, end = 2 : i32}",
        "!fly.memref<f32, shared, S<2,1,3> o 6 o 6:1, align<16>>",
    ),
    ("group", "n", "{begin = 0 : i32, end = 2 : i32}", "!fly.int_tuple<(((2,3),?{i64}))>"),
    ("append", "s, k", "{n = 4 : i32}", "!fly.int_tuple<(4,8,?,?)>"),
    ("append", "v, e", "", "!fly.composed_layout<S<2,1,3> o 6 o (8,6,(2,3)):(6,1,(1,2))>"),
    ("prepend", "s, k", "", "!fly.int_tuple<(?,4,8)>"),
    ("slice", "s, f", "", "!fly.int_tuple<8>"),
    ("slice", "h, f", "", "!fly.layout<6:1>"),
    ("slice", "v, f", "", "!fly.composed_layout<S<2,1,3> o 24 o 6:1>"),
    ("slice", "g, f", "", "!fly.memref<f32, shared, S<2,1,3> o 24 o 6:1, align<16>>"),
    ("slice", "y, f", "", "!fly.coord_tensor<(8,7), 6:1E1>"),
    ("slice", "z, f", "", "!fly.memref<i8, global, (2,?):(1,2), align<4>>"),
    ("dice", "h, f", "", "!fly.layout<8:6>"),
    ("coprofile", "e", "", "!fly.int_tuple<0>"),
    ("coprofile", "y", "", "!fly.int_tuple<(0,0)>"),
    ("coshape", "y", "", "!fly.int_tuple<(8,6)>"),
    ("crd2idx", "t, v", "", "!fly.int_tuple<?>"),
    ("crd2idx", "c, w", "", "!fly.int_tuple<13>"),
    ("coalesce", "e", "", "!fly.layout<6:1>"),
    ("coalesce", "l, b", "", "!fly.layout<(4,8):(1,4)>"),
    ("coalesce", "r", "", "!fly.memref<f16, shared, 512:1, align<16>>"),
    ("composition", "h, e", "", "!fly.layout<(2,3):(6,12)>"),
    ("composition", "g, u", "", "!fly.memref<f32, shared, S<2,1,3> o 6 o (4,3):(6,2), align<16>>"),
    ("complement", "e", "", "!fly.layout<1:0>"),
    ("complement", "e, c", "", "!fly.layout<2:6>"),
    ("right_inverse", "h", "", "!fly.layout<(6,8):(8,1)>"),
    ("left_inverse", "h", "", "!fly.layout<(6,8):(8,1)>"),
    ("logical_divide", "h, u", "", "!fly.layout<((4,2),(3,2)):((6,24),(2,1))>"),
    ("zipped_divide", "h, u", "", "!fly.layout<((4,3),(2,2)):((6,2),(24,1))>"),
    ("tiled_divide", "h, u", "", "!fly.layout<((4,3),2,2):((6,2),24,1)>"),
    ("flat_divide", "h, u", "", "!fly.layout<(4,3,2,2):(6,2,24,1)>"),
    ("flat_divide", "y, u", "", "!fly.coord_tensor<(5,7), (4,3,2,2):(1E0,2E1,4E0,1E1)>"),
    ("logical_product", "e, h", "", "!fly.layout<((2,3),(8,6)):((1,2),(36,6))>"),
    ("zipped_product", "e, h", "", "!fly.layout<((2,3),(8,6)):((1,2),(36,6))>"),
    ("tiled_product", "e, h", "", "!fly.layout<((2,3),8,6):((1,2),36,6)>"),
    ("flat_product", "e, h", "", "!fly.layout<(2,3,8,6):(1,2,36,6)>"),
    ("blocked_product", "e, h", "", "!fly.layout<((2,8),(3,6)):((1,36),(2,6))>"),
    ("raked_product", "e, h", "", "!fly.layout<((8,2),(6,3)):((36,1),(6,2))>"),
    (
        "recast_layout",
        "v",
        "{new_type_bits = 16 : i32, old_type_bits = 8 : i32}",
        "!fly.composed_layout<S<2,0,3> o 3 o (8,3):(3,1)>",
    ),
    ("tile_to_shape", "e, s, b", "", "!fly.layout<((2,2),(3,3)):((1,18),(2,6))>"),
    ("decomposition", "g", "", "!fly.memref<f32, shared, (8,6):(6,1), align<8>>"),
    ("apply_swizzle", "q, w", "", "!fly.ptr<f32, shared, S<2,0,3>>"),
    ("add_offset", "q, c", "", "!fly.ptr<f32, shared, align<16>>"),
    ("add_offset", "q, k", "", "!fly.ptr<f32, shared>"),
    ("add_offset", "s, t", "", "!fly.int_tuple<(?,?)>"),
    ("recast_iter", "q", "", "!fly.ptr<f16, shared, align<16>>"),
    ("ptrtoint", "p", "", "i64"),
    ("ptrtoint", "q", "", "i32"),
    ("inttoptr", "j", "", "!fly.ptr<i8, global>"),
    ("to_llvm_ptr", "q", "{llvm_address_space = 3 : i32}", "!llvm.ptr<3>"),
    ("make_ptr", "", "{dictAttrs = {allocSize = 64 : i64}}", "!fly.ptr<f32, shared>"),
    ("make_ptr", "", "{dictAttrs = {allocBytes = 64 : i64}}", "!fly.ptr<f32, shared>"),
    ("get_dyn_shared", "", "", "!fly.ptr<i8, shared, align<1024>>"),
    ("ptr.load", "p", "", "f32"),
    ("ptr.load", "q", "", "vector<4xf32>"),
    ("ptr.load", "q", "", "vector<8xbf16>"),
    ("ptr.load", "p", "", "i8"),
    ("ptr.store", "i, p", "", ""),
    ("ptr.store", "x, p", "", ""),
    ("memref.load", "m, t", "", "f32"),
    ("memref.load", "r, c", "", "f16"),
    ("memref.load", "o, t", "", None),
    ("memref.store", "x, m, t", "", ""),
    ("memref.alloca", "l", "", "!fly.memref<f32, register, (4,8):(1,4)>"),
    *atom_examples.RIGHT,
    # Host functions.
    ("empty", "j, i", EMPTY, "!fly.memref<f32, global, (?{i64},?):(?,1)>"),
    ("call", "m, m", CALL, "!fly.memref<f32, global, (4,4):(4,1)>"),
    ("check", "i, j", '{message = ["n is ", unit]}', ""),
]


def line(name, operands, attributes, result) -> str:
    names = operands.split(", ") if operands else []
    types = ", ".join(ARGUMENTS[name] for name in names)
    values = ", ".join(f"%{name}" for name in names)
    target = "%result = " if result else ""
    return f'{target}"{full(name)}"({values}) {attributes} : ({types}) -> ({result})'


def full(name: str) -> str:
    """The name with its dialect, which is fly unless it says another."""
    return name if name.startswith("fly_") else f"fly.{name}"


def module(body: str) -> str:
    arguments = ", ".join(f"%{name}: {type_}" for name, type_ in ARGUMENTS.items())
    return f"func.func @f({arguments}) {{\n  {body}\n  return\n}}\n"


def check(body: str) -> None:
    check_module(module(body))


def check_module(source: str) -> None:
    dialect.verify(text.read(source, CONTEXT, "k.mlir"), source, "k.mlir")


def test_the_examples_below_cover_every_op():
    assert {name for name, *_ in RIGHT} == set(every())


@pytest.mark.parametrize("example", RIGHT, ids=lambda e: f"{e[0]}({e[1]})")
def test_right_types_pass_and_any_other_result_is_refused(example):
    name, operands, attributes, result = example
    if result is None:
        # The base (0,?) plus one offset: the two are not congruent.
        with pytest.raises(InputError, match="are not congruent"):
            check(line(name, operands, attributes, "i32"))
        return
    check(line(name, operands, attributes, result))
    if name in atom_examples.ANY_RESULT:
        return
    for other in ("!fly.tile<[9]>", "!fly.int_tuple<(?,?,?)>", "i7"):
        if name == "static" and other.startswith("!fly.tile"):
            continue
        if not result:
            # An op without results has a result then.
            body = line(name, operands, attributes, other).replace("%result = ", "")
            with pytest.raises(InputError, match="takes 0 results, but has 1"):
                check("%result = " + body)
            continue
        with pytest.raises(InputError):
            check(line(name, operands, attributes, other))


@pytest.mark.parametrize("info", every().values(), ids=lambda info: info.name)
def test_a_wrong_number_of_operands_is_refused(info):
    if info.operands is None:
        return
    counts = info.operands if isinstance(info.operands, tuple) else (info.operands,)
    names = ["k"] * (counts[-1] + 1)
    result = ", ".join(["!fly.int_tuple<?>"] * (info.results or 0))
    values = ", ".join(f"%{name}" for name in names)
    types = ", ".join(ARGUMENTS[name] for name in names)
    target = "%result = " if result else ""
    expected = " or ".join(map(str, counts))
    with pytest.raises(InputError, match=f"takes {expected} operands, but has {len(names)}"):
        check(f'{target}"{info.full_name}"({values}) : ({types}) -> ({result})')


MADE = "!fly.memref<f32, global, 4:1>"
WRONG = [
    ("empty", "x", EMPTY, MADE, "operand #0 must be an integer, but is f32"),
    ("empty", "j", EMPTY, "!fly.memref<f32, shared, 4:1>", "#0 must be a memref in global memory"),
    ("empty", "j", EMPTY.replace("logical", "flat"), MADE, "view is one of logical, allocation"),
    ("empty", "j", EMPTY.replace("allocation =", "layout ="), MADE, "needs allocation, a string"),
    ("empty", "j", EMPTY.replace("[unit, unit]", "3 : i32"), MADE, "needs shape, a list"),
    ("call", "m", CALL.replace("function", "name"), MADE, "needs function, a str"),
    ("call", "m", CALL.replace("arguments", "given"), MADE, "needs arguments, a list"),
    ("call", "m", CALL.replace("keywords", "named"), MADE, "needs keywords, a dict"),
    ("call", "m", CALL.replace("results", "made"), MADE, "needs results, a list of 1"),
    ("call", "m", CALL, "i32", "result #0 must be a memref in global memory, but is i32"),
    ("check", "", "{message = []}", "", "needs a condition"),
    ("check", "m", "{message = []}", "", "operand #0 must be an integer"),
    ("check", "i", "", "", "needs message, a list"),
    ("make_int_tuple", "i", "", "!fly.int_tuple<(?,?)>", "has the dynamic leaves (i32, i32), but"),
    ("make_int_tuple", "x", "", "!fly.int_tuple<?>", "has the dynamic leaves (i32), but the op"),
    ("make_layout", "s, k", "", "!fly.layout<4:1>", "shape (4,8) and stride ? are not congruent"),
    ("make_layout", "l, s", "", "!fly.layout<4:1>", "operand #0 must be an int_tuple, but is !fly"),
    ("make_view", "l, l", "", "!fly.layout<4:1>", "operand #0 must be a ptr or an int_tuple"),
    ("make_view", "p, s", "", "!fly.layout<4:1>", "operand #1 must be a layout, but is"),
    ("get_iter", "p", "", "!fly.ptr<f32, global>", "operand #0 must be a memref or coord_tensor"),
    ("get_shape", "s", "", "!fly.int_tuple<4>", "operand #0 must be a layout, memref or coord_t"),
    ("get", "s", "{mode = array<i32: 2>}", "!fly.int_tuple<4>", "(4,8) has no mode [2]"),
    ("get_scalar", "s", "", "i32", "(4,8) is not a scalar"),
    ("get_scalar", "n", "", "i32", "((2,3),?{i64}) is not a scalar"),
    (
        "get_shape",
        "l",
        "",
        "!fly.int_tuple<(8,4)>",
        "the inferred type !fly.int_tuple<(4,8)> is not",
    ),
    ("int_tuple_add", "s, n", "", "!fly.int_tuple<4>", "are not congruent"),
    (
        "crd2idx",
        "n, l",
        "",
        "!fly.int_tuple<?>",
        "coordinate ((2,3),?{i64}) does not fit shape (4,8)",
    ),
    ("crd2idx", "t, m", "", "!fly.int_tuple<?>", "operand #1 must be a layout"),
    ("memref.load", "m, n", "", "f32", "does not fit shape (?{i64},?{i64})"),
    ("memref.load", "m, t", "", "f16", "the inferred type f32 is not the result's type f16"),
    ("memref.load", "p, t", "", "f32", "operand #0 must be a layout, memref or coord_tensor"),
    ("memref.store", "i, m, t", "", "", "i32 can't be stored to !fly.memref<f32, global"),
    ("memref.alloca", "d", "", "!fly.memref<f32, register, 4:1>", "must be a register memref of"),
    ("ptr.load", "p", "", "i4", "i4 can't be loaded from !fly.ptr<f32, global>"),
    ("ptr.load", "p", "", "vector<4xi1>", "vector<4xi1> can't be loaded from !fly.ptr<f32"),
    ("ptr.load", "p", "", "!llvm.ptr", "!llvm.ptr can't be loaded from !fly.ptr<f32, global>"),
    ("ptr.store", "p, p", "", "", "!fly.ptr<f32, global> can't be stored to !fly.ptr<f32, global>"),
    ("add_offset", "p, s", "", "!fly.ptr<f32, global>", "must be one integer, but is (4,8)"),
    ("recast_iter", "p", "", "!fly.ptr<f16, shared>", "the address spaces differ"),
    ("make_ptr", "", "", "!fly.ptr<f32, shared>", "needs dictAttrs = {allocSize = N : i64}"),
    ("inttoptr", "x", "", "!fly.ptr<f32, global>", "operand #0 must be i32 or i64, but is f32"),
    (
        "static",
        "",
        "",
        "!fly.int_tuple<?>",
        "!fly.int_tuple<?> is not fully determined by its type",
    ),
    ("get_shpae", "l", "", "!fly.int_tuple<4>", "unknown op; did you mean fly.get_shape?"),
    *atom_examples.WRONG,
]


@pytest.mark.parametrize("example", WRONG, ids=lambda e: f"{e[0]}({e[1]})->{e[3]}")
def test_a_wrong_op_is_refused_with_the_reason_and_the_place(example):
    *op, message = example
    with pytest.raises(InputError) as caught:
        check(line(*op))
    assert message in caught.value.message
    assert caught.value.message.startswith(f"{full(op[0])}: ")
    assert str(caught.value.place).startswith("k.mlir:2:")
    assert full(op[0]) in caught.value.place.text


def test_ops_of_unknown_dialects_are_refused():
    with pytest.raises(InputError, match=r"arth\.addi: no dialect defines this op"):
        check('%a = "arth.addi"(%i, %i) : (i32, i32) -> i32')


def test_an_attribute_that_python_has_no_type_for_is_refused():
    with pytest.raises(
        InputError, match=r"fly\.get: the attribute mode has elements of an unknown"
    ):
        check(line("get", "t", "{mode = array<i128: 1>}", "!fly.int_tuple<?>"))


@pytest.mark.parametrize(
    ("op", "attributes"),
    [
        ("take", '{begin = 0 : i32, end = "1"}'),
        ("take", "{begin = [0], end = 1 : i32}"),
        ("get", '{mode = ["a"]}'),
    ],
)
def test_attributes_of_another_type_are_refused(op, attributes):
    with pytest.raises(InputError, match=rf"fly\.{op}: "):
        check(line(op, "s", attributes, "!fly.int_tuple<4>"))


ARGUMENT = "module {{ func.func @f(%a: i32 {{{0}}}) {{ return }} }}"
MODULE = "module attributes {{{0}}} {{}}"
FUNCTION = "module {{ func.func @f() attributes {{{0}}} {{ return }} }}"


@pytest.mark.parametrize(
    ("form", "attribute", "said"),
    [
        (ARGUMENT, 'fly.name = ["a"]', "func.func: the attribute fly.name of argument 0 is"),
        (ARGUMENT, "fly.dtype = 1", "fly.dtype of argument 0 is 1 : i64, not a string"),
        (ARGUMENT, "fly.access", "fly.access of argument 0 is unit, not a string"),
        (ARGUMENT, 'fly.shape = "n"', "not an array of strings, integers and unit"),
        (ARGUMENT, "fly.shape = [[1]]", "not an array of strings, integers and unit"),
        (ARGUMENT, "fly.contiguous = true", "is true, not unit"),
        (ARGUMENT, "fly.default = [1]", "not a number, a boolean or a string"),
        (MODULE, "fly.target = unit", "module: the attribute fly.target is unit, not a string"),
        (MODULE, "fly.backend = 3", "fly.backend"),
        (MODULE, "fly.entry = []", "fly.entry"),
        (MODULE, "fly.host_program = {}", "fly.host_program"),
        (FUNCTION, "fly.results = 1", "not made of arrays, unit,"),
        (FUNCTION, "fly.results = [{name = 1}]", "not made of arrays, unit,"),
        (FUNCTION, "fly.results = {value = [1]}", "not made of arrays, unit,"),
        (FUNCTION, "fly.results = {other = 1}", "not made of arrays, unit,"),
    ],
)
def test_discardable_attributes_have_the_types_that_the_tools_read(form, attribute, said):
    with pytest.raises(InputError, match=re.escape(said)):
        check_module(form.format(attribute))


def test_discardable_attributes_of_right_types():
    check_module(ARGUMENT.format('fly.name = "a", fly.default = true, fly.shape = ["n", 4, unit]'))
    check_module(MODULE.format('fly.target = "gfx942", fly.entry = "f", fly.other = []'))
    check_module(FUNCTION.format('fly.results = [unit, {name = "C"}, {value = 1.0 : f32}, []]'))


def test_the_place_is_the_source_line_of_the_kernel_where_one_is_known(tmp_path):
    kernel = tmp_path / "k.py"
    kernel.write_text("def k(A):\n    A[0, 1] = 2\n")
    body = line("get_scalar", "s", "", "i32") + f' loc("{kernel}":2:5)'
    with pytest.raises(InputError) as caught:
        check(body)
    assert str(caught.value.place) == f"{kernel}:2:5"
    assert caught.value.place.text == "    A[0, 1] = 2"


def test_each_pass_verifies_what_the_last_left():
    source = module(line("get_shape", "l", "", "!fly.int_tuple<(4,8)>"))
    parsed = text.read(source, CONTEXT)
    dialect.verify(parsed)
    found = []
    parsed.operation.walk(lambda op: found.append(op) or ir.WalkResult.ADVANCE)
    get_shape = next(op for op in found if op.name == "fly.get_shape")
    get_shape.results[0].set_type(dialect.type_of(int_tuple_spec(4), CONTEXT))
    with pytest.raises(InputError, match=r"fly\.get_shape"):
        dialect.verify(parsed)


# -- builders --------------------------------------------------------------------------------------


@pytest.fixture
def built():
    """A module under construction; gives its i32 and i64 values."""
    with CONTEXT, ir.Location.unknown():
        made = ir.Module.create()
        with ir.InsertionPoint(made.body):
            values = []
            for width in (32, 64):
                type_ = ir.IntegerType.get_signless(width)
                attribute = {"value": ir.IntegerAttr.get(type_, 7)}
                op = ir.Operation.create("arith.constant", results=[type_], attributes=attribute)
                values.append(op.results[0])
            yield made, *values
        assert made.operation.verify()
        dialect.verify(made)


def test_builders_infer_and_verify(built):
    made, i, j = built
    memref = MemRefSpec("f32", "shared", Layout((4, 8), (8, 1)), 16)
    pointer = ops.make_ptr(PtrSpec("f32", "shared", 16), 4 * 8 * 4)
    layout = ops.make_layout(ops.make_int_tuple(4, 8), ops.make_int_tuple(8, 1))
    view = ops.make_view(pointer, layout)
    assert dialect.spec_of(view.type) == memref
    coord = ops.make_int_tuple(i, (3))
    assert str(coord.type) == "!fly.int_tuple<(?,3)>"
    assert str(ops.make_int_tuple((i, (2, j)), 4).type) == "!fly.int_tuple<((?,(2,?{i64})),4)>"
    assert str(ops.make_int_tuple(i).type) == "!fly.int_tuple<?>"
    wide = IntTupleSpec(int_tuple_spec((4, 8)).value)
    assert str(ops.make_int_tuple(spec=wide).type) == "!fly.int_tuple<(4,8)>"
    value = ops.memref_load(view, coord)
    assert str(value.type) == "f32"
    assert ops.memref_store(value, view, coord) is None
    ops.ptr_store(value, ops.get_iter(view))
    assert str(ops.ptr_load(pointer, "vector<4xf32>").type) == "vector<4xf32>"
    shape = ops.get_shape(view)
    assert str(ops.get_scalar(ops.get(shape, 1)).type) == "i32"
    dynamic = ops.recast_iter(ops.get_dyn_shared(), PtrSpec("f32", "shared", 1024))
    assert str(ops.add_offset(dynamic, ops.crd2idx(coord, layout)).type) == "!fly.ptr<f32, shared>"
    assert str(ops.to_llvm_ptr(dynamic).type) == "!llvm.ptr<3>"
    assert str(ops.inttoptr(ops.ptrtoint(dynamic), PtrSpec("i8", "shared")).type).endswith(
        "shared>"
    )
    alloca = ops.memref_alloca(layout, MemRefSpec("i32", "register", Layout((4, 8), (8, 1))))
    assert str(ops.get_stride(ops.get_layout(alloca)).type) == "!fly.int_tuple<(8,1)>"
    assert str(ops.size(alloca).type) == "!fly.int_tuple<32>"
    assert str(ops.cosize(layout).type) == "!fly.int_tuple<32>"
    assert "fly.make_layout" in text.write(made, False)


def test_builders_refuse_wrong_operands(built):
    _, i, _ = built
    coord = ops.make_int_tuple(i, i, i)
    layout = ops.static(LayoutSpec(Layout((4, 8), (8, 1))))
    with pytest.raises(ValueError, match=r"fly\.crd2idx: coordinate \(\?,\?,\?\) does not fit"):
        ops.crd2idx(coord, layout)
    with pytest.raises(ValueError, match="at least one element"):
        ops.make_int_tuple()
    with pytest.raises(ValueError, match=r"fly\.get_iter: operand #0 must be a memref"):
        ops.get_iter(layout)
