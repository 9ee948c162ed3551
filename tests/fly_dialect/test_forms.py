"""The texts of ops that are not written as their generic form is: read, and printed again."""

import pytest
from fly_dialect import dialect, text
from fly_dialect.bindings import ir
from fly_dialect.text import forms
from fly_dialect.text.lexical import Rewriter

from . import atom_examples

CONTEXT = dialect.load(ir.Context())
ARGUMENTS = atom_examples.ARGUMENTS | {"i": "i32", "l": "!fly.layout<4:1>"}
MMA, HALF, SINGLE = (ARGUMENTS[name] for name in ("mma", "rmem_half", "rmem_single"))
OPERANDS = "%mma, %rmem_single, %rmem_half, %rmem_half, %rmem_single"
TYPES = f"{MMA}, {SINGLE}, {HALF}, {HALF}, {SINGLE}"
BUFFER_COPY = atom_examples.BUFFER_COPY


def printed(op: str) -> str:
    """What the printer makes of one op, with the names of its operands."""
    arguments = ", ".join(f"%{name}: {type_}" for name, type_ in ARGUMENTS.items())
    source = f"func.func @f({arguments}) {{\n  {op}\n  return\n}}\n"
    module = text.read(source, CONTEXT)
    written = text.write(module, locations=False)
    assert text.write(text.read(written, CONTEXT), locations=False) == written
    body = written.splitlines()[2]
    for number, name in reversed(list(enumerate(ARGUMENTS))):
        body = body.replace(f"%arg{number}", f"%{name}")
    return body.strip()


@pytest.mark.parametrize(
    "op",
    [
        f"%0 = fly.make_copy_atom {{valBits = 32 : i32}} : {BUFFER_COPY}",
        f"%0 = fly.make_mma_atom : {MMA}",
        f'%0 = fly.atom.set_value(%buffer_copy, "soffset", %i) : ({BUFFER_COPY}, i32) -> '
        f"{BUFFER_COPY}",
        f'%0 = fly.atom.set_value(%buffer_copy, "soffset", %i) {{note = "a, b"}} : '
        f"({BUFFER_COPY}, i32) -> {BUFFER_COPY}",
        f"fly.gemm({OPERANDS}) : ({TYPES}) -> ()",
        f"fly.gemm({OPERANDS}) traversalLayout = %l : ({TYPES}, !fly.layout<4:1>) -> ()",
        f"fly.gemm({OPERANDS}) traversalLayout = %l {{note}} : ({TYPES}, !fly.layout<4:1>) -> ()",
        f"fly.gemm({OPERANDS}) {{traversalOrder = #fly<gemm_traversal_order kmn>}} : ({TYPES})"
        " -> ()",
        f"%0 = fly_rocdl.get_buffer_rsrc(%buffer) : ({atom_examples.BUFFER_PTR}) -> !llvm.ptr<8>",
    ],
)
def test_what_is_printed_is_what_was_read(op):
    assert printed(op) == op


def test_white_space_lines_and_generic_form():
    op = f'%0 = fly.atom.set_value ( %buffer_copy ,\n "soffset" , %i )\n : ({BUFFER_COPY}, i32) -> '
    generic = '%0 = "fly.atom.set_value"(%buffer_copy, %i) <{field = "soffset"}> : '
    expected = f'%0 = fly.atom.set_value(%buffer_copy, "soffset", %i) : ({BUFFER_COPY}, i32) -> '
    assert printed(op + BUFFER_COPY) == expected + BUFFER_COPY
    assert printed(f"{generic}({BUFFER_COPY}, i32) -> {BUFFER_COPY}") == expected + BUFFER_COPY


def generic(form: str, name: str, rest: str) -> str:
    """An op in generic form, by the form alone."""
    out = Rewriter(name + rest)
    forms.read(out, form, name, 0, len(name))
    return out.finish()


def pretty(form: str, name: str, rest: str) -> str:
    """An op in FlyDSL's form, by the form alone."""
    out = Rewriter(f'"{name}"{rest}')
    forms.write(out, form, name, 0, len(name) + 2)
    return out.finish()


@pytest.mark.parametrize(
    ("form", "flydsl", "mlir"),
    [
        ("padded", "<3> (%a, %b) : T", "(%a, %b) {n = 3 : i32} : T"),
        ("padded", " (%a, %b) : T", "(%a, %b) : T"),
        ("partition", "(a, %t, %m, %c) : T", "(%t, %m, %c) {operand_id = #fly<mma_operand a>} : T"),
        (
            "make_fragment",
            "(b, %t, %m, stages = 2) : T",
            "(%t, %m) {operand_id = #fly<mma_operand b>, stages = 2 : i32} : T",
        ),
        ("make_fragment", "(b, %t, %m) : T", "(%t, %m) {operand_id = #fly<mma_operand b>} : T"),
        ("fragment_like", "(%m, f32) : T", "(%m) {dtype = f32} : T"),
        ("fragment_like", "(%m, vector<2xf32>) : T", "(%m) {dtype = vector<2xf32>} : T"),
        ("fragment_like", "(%m) : T", "(%m) : T"),
        ("bare", " %m {x} : T -> index", "(%m) {x} : (T) -> index"),
        ("nullary", "() : T", "() : () -> T"),
        ("static", " {x} : T", "() {x} : () -> T"),
    ],
)
def test_both_directions_of_a_form(form, flydsl, mlir):
    read = generic(form, "fly.op", flydsl).replace('" (', '"(')
    assert read == f'"fly.op"{mlir}'
    assert pretty(form, "fly.op", mlir) == f"fly.op{flydsl}"


def test_names_of_types_and_attributes_are_known_inside_fly_types():
    source = """
#buffer = #fly_rocdl.buffer_desc
!element = f16
!load = !fly.copy_atom<!fly_rocdl.cdna3.buffer_copy<64>,
  16>
!copy = !fly.tiled_copy<!load, <(64,4):(4,1)>, <[16|16]>>
func.func @f(%c: !copy, %m: !fly.memref<!element, #buffer, 4:1>, %other: !load) { return }
"""
    written = text.write(text.read(source, CONTEXT), locations=False)
    load = "!fly.copy_atom<!fly_rocdl.cdna3.buffer_copy<64>, 16>"
    assert (
        f"%arg0: !fly.tiled_copy<{load}, !fly.layout<(64,4):(4,1)>, !fly.tile<[16|16]>>" in written
    )
    assert "%arg1: !fly.memref<f16, #fly_rocdl.buffer_desc, 4:1>" in written
    assert f"%arg2: {load}" in written
