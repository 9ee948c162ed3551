"""What the fly passes compute, by running the arithmetic they leave.

The expected offsets come from the definition of a layout (`index_functions`); the passes' output is
executed by a small interpreter of arith that refuses to wrap.
"""

from math import prod

import pytest
from fly_common.errors import InputError
from fly_dialect import algebra, dialect, text
from fly_dialect.bindings import ir
from fly_dialect.layouts.layout import Int
from fly_dialect.layouts.layout import text as spell
from fly_dialect.layouts.scanner import parse_int_tuple, parse_layout
from fly_opt.backends.amd.passes.fly_to_rocdl import ConvertFlyToROCDL
from fly_opt.passes.layout.canonicalize import Canonicalize
from fly_opt.passes.layout.layout_lowering import LayoutLowering
from fly_opt.passes.signature.rewrite_signature import RewriteFuncSignature
from hypothesis import given, settings
from hypothesis import strategies as st
from index_functions import flat, offset

CONTEXT = dialect.load(ir.Context())
PIPELINE = (RewriteFuncSignature, Canonicalize, LayoutLowering, ConvertFlyToROCDL)


def run(source: str, *passes) -> ir.Module:
    module = text.read(source, CONTEXT)
    dialect.verify(module, source)
    with CONTEXT, ir.Location.unknown():
        for kind in passes:
            kind().run(module.operation)
            assert module.operation.verify()
            dialect.verify(module)
    return module


def operations(module) -> list:
    found = []
    module.operation.walk(lambda op: found.append(op) or ir.WalkResult.ADVANCE)
    return found


def names_in(module) -> list[str]:
    """The operations' names. The bindings free a module's operations with it: while they are
    looked at, somebody must hold the module, here the parameter."""
    return [op.name for op in operations(module)]


def execute(module, arguments: list[int]) -> list[tuple[str, int]]:
    """Runs the only function: the element offset of each load and store, in order, and what is
    returned. Integers outside the range of their type fail the test."""
    function = next(op for op in operations(module) if op.name == "func.func")
    block = function.regions[0].blocks[0]
    values = dict(zip(block.arguments, arguments, strict=True))
    happened = []
    compute = {
        "arith.addi": lambda a, b: a + b,
        "arith.subi": lambda a, b: a - b,
        "arith.muli": lambda a, b: a * b,
        "arith.divsi": lambda a, b: int(a / b) if abs(a) < 2**50 else a // b,
        "arith.remsi": lambda a, b: a - b * int(a / b),
        "arith.ceildivsi": lambda a, b: -(-a // b),
        "arith.extsi": lambda a: a,
        "llvm.getelementptr": lambda base, *offset: base + sum(offset),
    }
    for op in (operation.operation for operation in block.operations):
        operands = [values[operand] for operand in op.operands]
        if op.name == "arith.constant":
            result = ir.IntegerAttr(op.attributes["value"]).value
        elif op.name == "llvm.extractvalue":
            result = operands[0][ir.DenseI64ArrayAttr(op.attributes["position"])[0]]
        elif op.name == "llvm.load":
            happened.append(("load", operands[0]))
            result = 0.0
        elif op.name == "llvm.store":
            happened.append(("store", operands[1]))
            continue
        elif op.name == "func.return":
            happened.extend(("return", value) for value in operands)
            continue
        else:
            result = compute[op.name](*operands)
        type_ = op.results[0].type
        if isinstance(type_, ir.IntegerType):
            limit = 2 ** (type_.width - 1)
            assert -limit <= result < limit, f"{op} wraps"
        values[op.results[0]] = result
    return happened


shapes = st.recursive(
    st.integers(1, 2**10),
    lambda part: st.lists(part, min_size=1, max_size=3).map(tuple),
    max_leaves=4,
)


def parallel(shape, leaf):
    """A tree like `shape` with drawn leaves."""
    if isinstance(shape, tuple):
        return st.tuples(*(parallel(part, leaf) for part in shape))
    return leaf


def coordinates(shape):
    whole = st.integers(0, min(prod(flat(shape)), 2**31) - 1)
    if not isinstance(shape, tuple):
        return whole
    return st.one_of(whole, st.tuples(*map(coordinates, shape)))


@st.composite
def accesses(draw):
    """A layout, which of its leaves are dynamic, and a coordinate, static or not."""
    shape = draw(shapes)
    stride = draw(parallel(shape, st.integers(0, 2**24)))
    kinds = [draw(parallel(shape, st.sampled_from(["static", "i64"]))) for _ in range(2)]
    coordinate = draw(coordinates(shape))
    coordinate_kinds = draw(parallel(coordinate, st.sampled_from(["static", "i32", "i64"])))
    return (shape, kinds[0]), (stride, kinds[1]), (coordinate, coordinate_kinds)


def spelled(tree, kinds) -> str:
    if isinstance(tree, tuple):
        return f"({','.join(map(spelled, tree, kinds))})"
    return {"static": str(tree), "i32": "?", "i64": "?{i64}"}[kinds]


def dynamic(tree, kinds) -> list[tuple[int, str]]:
    if isinstance(tree, tuple):
        return [found for pair in zip(tree, kinds, strict=True) for found in dynamic(*pair)]
    return [] if kinds == "static" else [(tree, kinds)]


@settings(max_examples=150, deadline=None)
@given(accesses())
def test_an_access_goes_where_the_layout_says(access):
    (shape, shape_kinds), (stride, stride_kinds), (coordinate, kinds) = access
    memref = (
        f"!fly.memref<f32, global, {spelled(shape, shape_kinds)}:{spelled(stride, stride_kinds)}>"
    )
    leaves = dynamic(coordinate, kinds)
    names = ", ".join(f"%c{index}" for index in range(len(leaves)))
    types = ", ".join(kind for _, kind in leaves)
    coord = f"!fly.int_tuple<{spelled(coordinate, kinds)}>"
    source = f"""
      func.func @f(%m: {memref}{"".join(f", %c{i}: {k}" for i, (_, k) in enumerate(leaves))}) {{
        %c = fly.make_int_tuple({names}) : ({types}) -> {coord}
        %v = fly.memref.load(%m, %c) : ({memref}, {coord}) -> f32
        fly.memref.store(%v, %m, %c) : (f32, {memref}, {coord}) -> ()
        return
      }}"""
    module = run(source, *PIPELINE)
    struct = tuple(
        tuple(value for value, _ in found)
        for found in (dynamic(shape, shape_kinds), dynamic(stride, stride_kinds))
        if found
    )
    arguments = [0, *([struct] if struct else []), *(value for value, _ in leaves)]
    expected = offset(coordinate, shape, stride)
    assert execute(module, arguments) == [("load", expected), ("store", expected)]


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.integers(0, 100), min_size=2, max_size=3),
    st.lists(st.integers(1, 100), min_size=3, max_size=3),
    st.sampled_from(["add", "sub", "mul", "div", "mod"]),
    st.lists(st.sampled_from(["static", "i32", "i64"]), min_size=6, max_size=6),
)
def test_tuple_arithmetic_computes_what_its_type_says(lhs, rhs, operator, kinds):
    lhs, rhs = tuple(lhs), tuple(rhs[: len(lhs)])
    sides = (lhs, tuple(kinds[:3][: len(lhs)])), (rhs, tuple(kinds[3:][: len(lhs)]))
    leaves = [dynamic(*side) for side in sides]
    arguments = ", ".join(f"%c{i}: {kind}" for i, (_, kind) in enumerate(leaves[0] + leaves[1]))
    types = [f"!fly.int_tuple<{spelled(*side)}>" for side in sides]

    def made(name, start, found, type_):
        names = ", ".join(f"%c{start + index}" for index in range(len(found)))
        kinds_ = ", ".join(kind for _, kind in found)
        return f"%{name} = fly.make_int_tuple({names}) : ({kinds_}) -> {type_}"

    compute = {
        "add": lambda a, b: a + b,
        "sub": lambda a, b: a - b,
        "mul": lambda a, b: a * b,
        "div": lambda a, b: a // b,
        "mod": lambda a, b: a % b,
    }[operator]
    inferred = algebra.elementwise(
        f"int_tuple_{operator}", *(parse_int_tuple(spelled(*side)) for side in sides)
    )
    result = f"!fly.int_tuple<{spell(inferred)}>"
    widths = [f"i{leaf.width}" for leaf in inferred]
    source = f"""
      func.func @f({arguments}) -> ({", ".join(widths)}) {{
        {made("a", 0, leaves[0], types[0])}
        {made("b", len(leaves[0]), leaves[1], types[1])}
        %r = fly.int_tuple_{operator}(%a, %b) : ({types[0]}, {types[1]}) -> {result}
        %l:{len(lhs)} = fly.get_leaves(%r) : ({result}) -> ({", ".join(widths)})
        return {", ".join(f"%l#{index}" for index in range(len(lhs)))} : {", ".join(widths)}
      }}"""
    module = run(source, *PIPELINE)
    values = [value for value, _ in leaves[0] + leaves[1]]
    assert execute(module, values) == [
        ("return", compute(a, b)) for a, b in zip(lhs, rhs, strict=True)
    ]


@settings(max_examples=40, deadline=None)
@given(shapes, st.data())
def test_coordinates_of_an_index_that_is_known_when_it_runs(shape, data):
    index = data.draw(st.integers(0, min(prod(flat(shape)), 2**31) - 1))
    kinds = data.draw(parallel(shape, st.sampled_from(["static", "i64"])))

    def compact(part, step):
        strides = []
        for extent in part if isinstance(part, tuple) else ():
            strides.append(compact(extent, step))
            step *= prod(flat(extent))
        return tuple(strides) or step

    stride = compact(shape, 1)
    extents = dynamic(shape, kinds)
    arguments = "".join(f", %c{number}: i64" for number in range(len(extents)))
    names = ", ".join(f"%c{number}" for number in range(len(extents)))
    parts = [f"!fly.int_tuple<{spelled(shape, kinds)}>", f"!fly.int_tuple<{stride}>"]
    layout = f"{spelled(shape, kinds)}:{stride}".replace(",)", ")")
    parsed = parse_layout(layout)
    result = algebra.get_1d_coord(Int(None), parsed)
    source = f"""
      func.func @f(%i: i32{arguments}) -> i{result.width} {{
        %s = fly.make_int_tuple({names}) : ({", ".join(["i64"] * len(extents))}) -> {parts[0]}
        %d = fly.static : {parts[1].replace(",)", ")")}
        %l = fly.make_layout(%s, %d) : ({parts[0]}, {parts[1].replace(",)", ")")})
          -> !fly.layout<{layout}>
        %k = fly.make_int_tuple(%i) : (i32) -> !fly.int_tuple<?>
        %c = fly.get_1d_coord(%k, %l) : (!fly.int_tuple<?>, !fly.layout<{layout}>)
          -> !fly.int_tuple<{result}>
        %n = fly.get_scalar(%c) : (!fly.int_tuple<{result}>) -> i{result.width}
        return %n : i{result.width}
      }}"""
    module = run(source, *PIPELINE)
    assert execute(module, [index, *(value for value, _ in extents)]) == [("return", index)]


# -- what is refused -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "passes", "message"),
    [
        (
            "%s = fly.composed_get_offset(%e) : (!fly.composed_layout<S<1,0,1> o ? o 4:1>)"
            " -> !fly.int_tuple<?>",
            [LayoutLowering],
            "fly.composed_get_offset: the contents of !fly.composed_layout<S<1,0,1> o ? o 4:1> are"
            " not known here: run fly-rewrite-func-signature first",
        ),
        (
            "%s = fly.get_shape(%d) : (!fly.layout<?:1>) -> !fly.int_tuple<?>\n"
            "%i = fly.get_scalar(%s) : (!fly.int_tuple<?>) -> i32\n"
            "%j = arith.addi %i, %i : i32",
            [ConvertFlyToROCDL],
            "fly.get_scalar is not a memory operation",
        ),
        (
            "%s = fly.make_ptr() {dictAttrs = {allocSize = 4 : i64}} : () -> !fly.ptr<f32, shared>",
            [ConvertFlyToROCDL],
            "fly.make_ptr: shared memory must be inside a gpu.module",
        ),
        (
            "%b = fly.ptrtoint(%g) : (!fly.ptr<f32, global>) -> i64\n"
            "%q = fly.inttoptr(%b) : (i64) -> !fly.ptr<f32, #fly_rocdl.buffer_desc>",
            [ConvertFlyToROCDL],
            "fly.inttoptr: there is no lowering for !fly.ptr<f32, #fly_rocdl.buffer_desc>",
        ),
        (
            "%b = fly.to_llvm_ptr(%g) {llvm_address_space = 3 : i32} : "
            "(!fly.ptr<f32, global>) -> !llvm.ptr<3>",
            [ConvertFlyToROCDL],
            "fly.to_llvm_ptr: !fly.ptr<f32, global> becomes !llvm.ptr<1>, not !llvm.ptr<3>",
        ),
        (
            "%k = arith.addi %x, %x : i32\n"
            "%o = fly.add_offset(%g, %t) : (!fly.ptr<f32, global>, !fly.int_tuple<?>) "
            "-> !fly.ptr<f32, global>",
            [ConvertFlyToROCDL],
            "fly.add_offset: the offset is not in normal form: run fly-layout-lowering first",
        ),
        (
            "cf.br ^next(%m : !fly.memref<f32, global, 4:1>)\n"
            "^next(%n: !fly.memref<f32, global, 4:1>):",
            [RewriteFuncSignature],
            "a branch passes a fly value; use scf control flow instead",
        ),
    ],
)
def test_what_a_pass_can_not_take_is_refused_with_its_place(body, passes, message):
    source = f"""func.func @f(%d: !fly.layout<?:1>, %p: !fly.ptr<f32, #fly_rocdl.buffer_desc>,
      %g: !fly.ptr<f32, global>, %x: i32, %t: !fly.int_tuple<?>,
      %m: !fly.memref<f32, global, 4:1>, %e: !fly.composed_layout<S<1,0,1> o ? o 4:1>) {{
      {body}
      return
    }}"""
    with pytest.raises(InputError) as caught:
        run(source, *passes)
    assert caught.value.message == message
    assert caught.value.place is not None
    assert caught.value.place.line >= 1


# -- shape of the output ---------------------------------------------------------------------------


def test_what_arguments_hold_is_read_where_it_is_needed():
    """On a module whose signatures are as they were traced."""
    memref = "!fly.memref<f32, global, (?,4):(?{i64},1)>"
    source = f"""
      func.func @f(%m: {memref}, %s: !fly.int_tuple<(?,3)>) -> (i64, i32) {{
        %n = fly.size(%m) : ({memref}) -> !fly.int_tuple<?{{div=4}}>
        %k = fly.get_scalar(%n) : (!fly.int_tuple<?{{div=4}}>) -> i32
        %c = fly.cosize(%m) : ({memref}) -> !fly.int_tuple<?{{i64}}>
        %o = fly.get_scalar(%c) : (!fly.int_tuple<?{{i64}}>) -> i64
        %p = fly.int_tuple_product(%s) : (!fly.int_tuple<(?,3)>) -> !fly.int_tuple<?{{div=3}}>
        %q = fly.get_scalar(%p) : (!fly.int_tuple<?{{div=3}}>) -> i32
        %r = arith.addi %k, %q : i32
        return %o, %r : i64, i32
      }}"""
    text = str(run(source, LayoutLowering))
    for gone in ("fly.size", "fly.cosize", "fly.int_tuple_product", "fly.get_scalar"):
        assert gone not in text
    assert text.count("fly.get_shape") == text.count("fly.get_stride") == 1
    assert text.count("fly.get_leaves") == 3  # of the shape, the stride and the tuple
    # With signatures rewritten later, nothing of it is left.
    lowered = str(run(source, LayoutLowering, RewriteFuncSignature, LayoutLowering))
    assert " fly.get" not in lowered
    assert lowered.count("arith.muli") == str(run(source, *PIPELINE)).count("arith.muli")


def test_the_same_address_is_computed_once_and_unused_arithmetic_goes():
    memref = "!fly.memref<f32, global, (?{i64},?{i64}):(?{i64},1)>"
    source = f"""
      func.func @f(%m: {memref}, %i: i32, %j: i32) {{
        %c = fly.make_int_tuple(%i, %j) : (i32, i32) -> !fly.int_tuple<(?,?)>
        %n = fly.size(%m) : ({memref}) -> !fly.int_tuple<?{{i64}}>
        %a = fly.memref.load(%m, %c) : ({memref}, !fly.int_tuple<(?,?)>) -> f32
        %b = fly.memref.load(%m, %c) : ({memref}, !fly.int_tuple<(?,?)>) -> f32
        %s = arith.addf %a, %b : f32
        fly.memref.store(%s, %m, %c) : (f32, {memref}, !fly.int_tuple<(?,?)>) -> ()
        return
      }}"""
    names = names_in(run(source, *PIPELINE))
    assert names.count("llvm.getelementptr") == 1
    assert names.count("arith.muli") == 1
    assert names.count("llvm.load") == 2
    assert not any(name.startswith("fly.") for name in names)


def test_an_address_of_a_branch_is_not_used_outside_it():
    memref = "!fly.memref<f32, global, 64:2>"
    source = f"""
      func.func @f(%m: {memref}, %i: i32, %c: i1) {{
        %k = fly.make_int_tuple(%i) : (i32) -> !fly.int_tuple<?>
        %z = arith.constant 0.0 : f32
        scf.if %c {{
          fly.memref.store(%z, %m, %k) : (f32, {memref}, !fly.int_tuple<?>) -> ()
        }} else {{
          fly.memref.store(%z, %m, %k) : (f32, {memref}, !fly.int_tuple<?>) -> ()
        }}
        fly.memref.store(%z, %m, %k) : (f32, {memref}, !fly.int_tuple<?>) -> ()
        scf.if %c {{
          fly.memref.store(%z, %m, %k) : (f32, {memref}, !fly.int_tuple<?>) -> ()
        }}
        return
      }}"""
    names = names_in(run(source, *PIPELINE))
    # `run` verifies, dominance too. Both branches have their own, the last shares the third.
    assert names.count("llvm.getelementptr") == 3


def test_an_address_is_shared_with_blocks_inside_however_deep():
    memref = "!fly.memref<f32, global, 64:2>"
    store = f"fly.memref.store(%z, %m, %k) : (f32, {memref}, !fly.int_tuple<?>) -> ()"
    source = f"""
      func.func @f(%m: {memref}, %i: i32, %c: i1) {{
        %k = fly.make_int_tuple(%i) : (i32) -> !fly.int_tuple<?>
        %z = arith.constant 0.0 : f32
        {store}
        scf.if %c {{
          scf.if %c {{
            {store}
          }}
        }}
        {store}
        return
      }}
      func.func @g(%m: {memref}, %i: i32, %z: f32) {{
        %k = fly.make_int_tuple(%i) : (i32) -> !fly.int_tuple<?>
        {store}
        return
      }}"""
    names = names_in(run(source, *PIPELINE))
    assert names.count("llvm.store") == 4
    assert names.count("llvm.getelementptr") == 2


def test_the_passes_take_a_function_that_has_nothing_for_them():
    source = "func.func @f(%x: i32) -> i32 {\n  return %x : i32\n}\nfunc.func private @g(f32)\n"
    module = run(source, *PIPELINE)
    assert str(module) == str(text.read(source, CONTEXT))
