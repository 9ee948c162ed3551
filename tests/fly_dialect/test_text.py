"""The reader and printer: FlyDSL's text in, MLIR inside, FlyDSL's text out."""

import pytest
from fly_common.errors import InputError
from fly_dialect import dialect, text
from fly_dialect.bindings import ir
from fly_dialect.builders import ops
from fly_dialect.layouts.layout import Int, Layout
from fly_dialect.types import IntTupleSpec, MemRefSpec
from hypothesis import given, settings
from hypothesis import strategies as st

CONTEXT = dialect.load(ir.Context())

# What the printer gives for each construct: it must read back to the same text.
MODULE = """\
module attributes {fly.entry = "add", gpu.container_module} {
  gpu.module @kernels {
    gpu.func @k(%arg0: !fly.memref<f32, global, (4,?{i64}):(?{i64},1)>, %arg1: i32) kernel {
      %0 = fly.make_int_tuple(%arg1, %arg1) : (i32, i32) -> !fly.int_tuple<(?,?)>
      %1 = fly.static : !fly.layout<(4,8):(1,4)>
      %2 = fly.static {elems = [4 : i32, 8 : i32]} : !fly.int_tuple<(4,8)>
      %3 = fly.get(%0) {mode = array<i32: 1>} : (!fly.int_tuple<(?,?)>) -> !fly.int_tuple<?>
      %4 = fly.get_dyn_shared() : !fly.ptr<i8, shared, align<1024>>
      %5 = fly.make_ptr() {dictAttrs = {allocSize = 64 : i64}} : () -> !fly.ptr<f32, shared>
      %6 = fly.memref.load(%arg0, %0) : (!fly.memref<f32, global, (4,?{i64}):(?{i64},1)>, \
!fly.int_tuple<(?,?)>) -> f32
      fly.ptr.store(%6, %5) : (f32, !fly.ptr<f32, shared>) -> ()
      gpu.return
    }
  }
  func.func @add(%arg0: !fly.memref<f32, global, ?{i64}:1> \
{fly.contiguous, fly.name = "A", fly.shape = ["n", unit, 4]}) {
    return
  }
}
"""


def again(source: str, locations: bool = False) -> str:
    return text.write(text.read(source, CONTEXT), locations)


def test_what_was_printed_prints_again():
    assert again(MODULE) == MODULE


def test_locations_are_kept_and_can_be_left_out():
    source = 'func.func @f() {\n  %0 = fly.static : !fly.int_tuple<4> loc("k.py":3:5)\n  return\n}'
    printed = again(source, locations=True)
    assert '%0 = fly.static : !fly.int_tuple<4> loc("k.py":3:5)' in printed
    assert again(printed, locations=True) == printed
    assert "loc(" not in again(source)


def test_generic_form_and_white_space_are_read_too():
    source = """
      "func.func"() <{function_type = (i32) -> (), sym_name = "f"}> ({
      ^bb0(%x: i32):
        %t = "fly.make_int_tuple"(%x) : (i32) -> !fly.int_tuple< ? >
        %l = "fly.static"() : () -> !fly.layout<( 4 , 8 ):
          ( 1 , 4 )>
        %s = fly.static {elems = [4 : i32], t = !fly.layout<4 : 1>} : !fly.int_tuple<(4,8)>
        %p = "fly.get_dyn_shared" () : () -> !fly.ptr< i8 , shared , align< 1024 > >
        %g = "fly.get"(%s) <{mode = array<i32: 0>}> : (!fly.int_tuple<(4,8)>) -> !fly.int_tuple<4>
        %h = "fly.get"(%s) <{mode = array<i32: 1>, t = !fly.int_tuple< 3 >}>
          {note = "}>"} : (!fly.int_tuple<(4,8)>) -> !fly.int_tuple<8>
        %v = "fly.ptr.load"(%p) : (!fly.ptr<i8, shared, align<1024>>) -> i8
        "func.return"() : () -> ()
      }) : () -> ()
    """
    printed = again(source)
    assert "%1 = fly.static : !fly.layout<(4,8):(1,4)>" in printed
    assert "fly.static {elems = [4 : i32], t = !fly.layout<4:1>} : !fly.int_tuple<(4,8)>" in printed
    assert "fly.get(%2) {mode = array<i32: 0>} : (!fly.int_tuple<(4,8)>)" in printed
    assert 'fly.get(%2) {mode = array<i32: 1>, note = "}>", t = !fly.int_tuple<3>} :' in printed
    assert "%6 = fly.ptr.load(%3) : (!fly.ptr<i8, shared, align<1024>>) -> i8" in printed
    assert again(printed) == printed


def test_strings_comments_names_and_attributes_are_not_touched():
    source = """
      // fly.static : !fly.int_tuple<(4, 8)>  "
      func.func @"fly.size"(%fly.x: i32 {fly.name = "fly.size(%x) : !fly.int_tuple<( 4 )>",
                                         fly.unit})
          attributes {fly.list = [1], a = "\\" fly.get("} {
        return  // fly.
      }
    """
    printed = again(source)
    assert 'fly.name = "fly.size(%x) : !fly.int_tuple<( 4 )>"' in printed
    assert "@fly.size(" in printed
    assert 'a = "\\22 fly.get("' in printed
    assert "fly.unit" in printed
    assert again(printed) == printed


def test_types_are_found_wherever_they_stand():
    source = """
      !A = !fly.memref<f32, global, ( 4 ):( 1 )>
      func.func private @f(!A, tuple<!fly.int_tuple<( 4 , 8 )>>) -> !fly.layout<( 4 ):( 1 )>
        attributes {t = !fly.int_tuple<( 2 , 3 )>, d = {u = [!fly.ptr<f32 , shared>]}}
      func.func private @g((!fly.int_tuple<( 4 )>) -> !fly.mma_atom<!fly.universal_fma<1x1x1,
          (f32, f32) -> f32>>)
    """
    printed = again(source)
    for normal in (
        "!fly.memref<f32, global, (4):(1)>",
        "tuple<!fly.int_tuple<(4,8)>>",
        "-> !fly.layout<(4):(1)>",
        "t = !fly.int_tuple<(2,3)>",
        "[!fly.ptr<f32, shared>]",
        "!fly.mma_atom<!fly.universal_fma<1x1x1, (f32, f32) -> f32>>",
    ):
        assert normal in printed
    assert again(printed) == printed


integers = st.one_of(
    st.integers(0, 2**33).map(Int),
    st.builds(Int, st.none(), st.sampled_from([32, 64]), st.sampled_from([1, 4, 16])),
)
tuples = st.recursive(
    integers, lambda part: st.lists(part, min_size=1, max_size=3).map(tuple), max_leaves=5
)
attributes = st.dictionaries(
    st.sampled_from(["fly.name", "other", "fly.unit", "mode"]),
    st.sampled_from(['"x\\"fly.get(%0)"', "unit", "[1, 2]", "!fly.int_tuple<(4,?)>", "3 : i64"]),
)


@st.composite
def modules(draw):
    """A module of any fly types, ops and attributes, built and not written."""
    with CONTEXT, ir.Location.unknown():
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            for _ in range(draw(st.integers(1, 4))):
                value = draw(tuples)
                types = [
                    IntTupleSpec(value),
                    MemRefSpec(
                        draw(st.sampled_from(["f32", "vector<4xf16>"])),
                        "global",
                        Layout(value, value),
                    ),
                ]
                made = ir.Operation.create(
                    draw(st.sampled_from(["fly.static", "fly.get", "fly.ptr.load", "fly.x_1.y"])),
                    results=[dialect.type_of(draw(st.sampled_from(types)))],
                    attributes={
                        name: ir.Attribute.parse(text_) for name, text_ in draw(attributes).items()
                    },
                )
                ir.Operation.create("fly.copy", operands=[made.results[0]])
    return module


@settings(max_examples=60, deadline=None)
@given(modules(), st.booleans())
def test_reading_what_was_written_is_the_identity(module, locations):
    printed = text.write(module, locations)
    assert text.write(text.read(printed, CONTEXT), locations) == printed
    # Compared inside MLIR too: the same generic text.
    assert str(text.read(printed, CONTEXT)) == str(module)


# -- errors ----------------------------------------------------------------------------------------

LINES = """\
func.func @f(%x: i32) {
  %t = fly.make_int_tuple(%x) : (i32) -> !fly.int_tuple< ? >
  %u = fly.get(%t) {mode = array<i32: 0>} : (!fly.int_tuple<?>) -> !fly.int_tuple<?> loc("k.py":1:2)
  return
}
"""


@pytest.mark.parametrize(
    ("old", "new", "rendered"),
    [
        (
            "< ? >",
            "< ( ? >",
            "k.mlir:2:42: error: in !fly.int_tuple: expected `)`, found the end in `( ?`\n"
            "    %t = fly.make_int_tuple(%x) : (i32) -> !fly.int_tuple< ( ? >\n"
            "                                           ^~~~~~~~~~~~~~~~~~~~~\n",
        ),
        (
            "< ? >",
            "< ?",
            "k.mlir:2:42: error: `!fly.int_tuple<` is never closed\n",
        ),
        (
            "fly.get(%t)",
            "fly.get(%v)",
            "k.mlir:3:16: error: use of undeclared SSA value name\n",
        ),
        (
            "%t = fly.make_int_tuple(%x) : (i32) -> !fly.int_tuple< ? >",
            "%t = fly.make_int_tuple(%x) : (i32) -> !fly.int_tuple< ? > : oops",
            "k.mlir:2:61: error: expected operation name in quotes\n",
        ),
        (
            "  return",
            "  retrun",
            "k.mlir:4:3: error: ",
        ),
    ],
)
def test_an_error_shows_the_place_in_the_text_that_was_given(old, new, rendered):
    with pytest.raises(InputError) as caught:
        text.read(LINES.replace(old, new), CONTEXT, "k.mlir")
    error = caught.value
    place = f"{error.place}: error: "
    excerpt = error.place.excerpt()
    assert f"{place}{error.message}\n{excerpt}\n".startswith(rendered)
    assert excerpt.split("\n")[0].strip()


def test_builders_print_what_they_build():
    with CONTEXT, ir.Location.unknown():
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            ops.static(IntTupleSpec(Int(4)))
    assert text.write(module, False) == "module {\n  %0 = fly.static : !fly.int_tuple<4>\n}\n"


@pytest.mark.parametrize(
    "deep",
    [
        "module attributes {a.b = " + "[" * 50_000 + "]" * 50_000 + "} {}",
        "func.func private @f(" + "tuple<" * 20_000 + "i32" + ">" * 20_000 + ")",
        "func.func private @f(!fly.int_tuple<" + "(" * 900 + "1" + ")" * 900 + ">)",
        "module {" * 300 + "}" * 300,
        "module attributes {a.b = " + "[" * 300,
    ],
)
def test_deep_nesting_is_refused_before_anybody_reads_it(deep):
    with pytest.raises(InputError, match="brackets are nested more than 256 levels deep") as caught:
        text.read(deep, CONTEXT)
    assert caught.value.place.line == 1


def test_brackets_side_by_side_and_in_strings_are_not_deep():
    wide = "".join(f"func.func private @f{n}(tuple<i32>, () -> ())\n" for n in range(2000))
    assert again(wide)
    quoted = "[" * 3000
    assert again(f'module attributes {{a.b = "{quoted}"}} {{}}  // {quoted}')
    compared = "d0 - 1 >= 0, d0 <= 5, " * 200
    assert again(f"module attributes {{a.b = affine_set<(d0) : ({compared}d0 >= 0)>}} {{}}")


def test_an_element_takes_memory():
    with pytest.raises(InputError, match="an element of type i0 takes no memory"):
        text.read("func.func private @f(!fly.memref<i0, global, 4:1>)", CONTEXT)
