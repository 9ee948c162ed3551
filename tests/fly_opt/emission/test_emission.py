"""LLVM IR: attributes, the program's section, what can't be translated, what LLVM makes of it."""

from __future__ import annotations

import re

import pytest
from chosen_targets import AMD, one_of_each
from fly_common.errors import InputError
from fly_host import text
from fly_host.section import SECTION
from fly_opt import Options, compile
from fly_target.registry import BUILT_IN


def kernel(body: str, arguments: str = "%p: !llvm.ptr<1>", attributes: str = "") -> bytes:
    return f"""module {{
  gpu.module @kernels {{
    gpu.func @k({arguments}) kernel {attributes} {{
{body}
      gpu.return
    }}
  }}
}}
""".encode()


def assembly(llvm, text: bytes, chip: str, level: str | None = None) -> str:
    if level:
        text = llvm("opt", "-S", level, text=text)
    return llvm("llc", f"-mcpu={chip}", "-o", "-", text=text).decode()


@pytest.mark.parametrize("chip", one_of_each(AMD))
@pytest.mark.parametrize("level", [None, "-O1", "-O3"])
def test_the_code_object_has_the_target_and_the_program(vector_add, llvm, tmp_path, chip, level):
    module = compile(vector_add, Options(target=chip))
    if level:
        module = llvm("opt", "-S", level, text=module)
    object_file, library = tmp_path / "k.o", tmp_path / "k.hsaco"
    object_file.write_bytes(llvm("llc", f"-mcpu={chip}", "-filetype=obj", "-o", "-", text=module))
    llvm("ld.lld", "-shared", str(object_file), "-o", str(library))
    section = tmp_path / "program"
    llvm("llvm-objcopy", f"--dump-section={SECTION}={section}", str(library), "/dev/null")
    found = text.read(section.read_bytes())
    assert (found.entry, found.target) == ("vector_add", chip)
    notes = llvm("llvm-readelf", "--notes", "--file-header", str(library)).decode()
    assert f"amdgcn-amd-amdhsa--{chip}" in notes
    assert "ABI Version:                       4" in notes  # code object version 6


def test_attributes(vector_add):
    text = compile(vector_add, Options(target="gfx950")).decode()
    target = BUILT_IN["gfx950"]
    assert f'target datalayout = "{target.data_layout}"' in text
    assert 'target triple = "amdgcn-amd-amdhsa"' in text
    assert '"target-cpu"="gfx950"' in text
    assert '"amdgpu-flat-work-group-size"="256,256"' in text
    assert '"uniform-work-group-size"="true"' in text
    assert '"denormal-fp-math"="ieee,ieee"' in text
    assert '!"amdhsa_code_object_version", i32 600' in text


def test_a_dynamic_block_may_be_all_that_the_hardware_has():
    text = compile(kernel(""), Options(target="gfx942")).decode()
    assert '"amdgpu-flat-work-group-size"="1,1024"' in text


def test_the_data_layout_is_llvms_own(llvm):
    """A module without one gets the target machine's; the table must say the same."""
    for chip, target in BUILT_IN.items():
        source = f'target triple = "{target.triple}"\ndefine void @f() {{ ret void }}\n'
        text = llvm("opt", "-S", f"-mcpu={chip}", "-O1", text=source).decode()
        assert f'target datalayout = "{target.data_layout}"' in text


ADD = """      %v = llvm.load %p : !llvm.ptr<1> -> f32
      %old = llvm.atomicrmw fadd %p, %v syncscope("agent") monotonic : !llvm.ptr<1>, f32"""


@pytest.mark.parametrize(
    ("chip", "wanted", "unwanted"),
    [
        ("gfx942", "global_atomic_add_f32", "global_atomic_cmpswap"),
        ("gfx950", "global_atomic_add_f32", "global_atomic_cmpswap"),
        ("gfx1100", "global_atomic_add_f32", "global_atomic_cmpswap"),
        ("gfx1201", "global_atomic_add_f32", "global_atomic_cmpswap"),
        # It would flush denormals there.
        ("gfx90a", "global_atomic_cmpswap", "global_atomic_add_f32"),
    ],
)
def test_atomic_add_of_f32_is_one_instruction_where_that_is_exact(llvm, chip, wanted, unwanted):
    code = assembly(llvm, compile(kernel(ADD), Options(target=chip)), chip, "-O3")
    assert wanted in code
    assert unwanted not in code


def test_atomics_on_lds_get_no_promise_about_global_memory():
    body = ADD.replace("!llvm.ptr<1>", "!llvm.ptr<3>").replace("agent", "workgroup")
    text = compile(kernel(body, "%p: !llvm.ptr<3>"), Options(target="gfx942")).decode()
    assert "atomicrmw fadd" in text
    assert "amdgpu.no.fine.grained" not in text


MULTIPLY_ADD = """      %a = llvm.load %p : !llvm.ptr<1> -> {kind}
      %b = arith.mulf %a, %a : {kind}
      %c = arith.addf %b, %a : {kind}
      llvm.store %c, %p : {kind}, !llvm.ptr<1>"""


@pytest.mark.parametrize("kind", ["f16", "f32", "f64"])
@pytest.mark.parametrize("level", [None, "-O3"])
def test_a_product_and_a_sum_are_rounded_twice(llvm, kind, level):
    """Python has no fused a*b+c, so a kernel has none that it does not ask for."""
    source = kernel(MULTIPLY_ADD.format(kind=kind))
    code = assembly(llvm, compile(source, Options(target="gfx942")), "gfx942", level)
    assert re.search(rf"v_mul_{kind}", code)
    assert not re.search(r"v_(pk_)?(fma|fmac|mac|mad)\w*_f(16|32|64)", code)
    fused = source.replace(b"arith.mulf %a, %a :", b"arith.mulf %a, %a fastmath<contract> :")
    fused = fused.replace(b"arith.addf %b, %a :", b"arith.addf %b, %a fastmath<contract> :")
    code = assembly(llvm, compile(fused, Options(target="gfx942")), "gfx942", level)
    assert re.search(r"v_(pk_)?(fma|fmac|mac|mad)\w*_f(16|32|64)", code)


SIZES = """      %x = gpu.block_dim x
      %y = gpu.block_dim y
      %z = gpu.grid_dim z
      %s = arith.addi %x, %y : index
      %t = arith.addi %s, %z : index
      %u = arith.index_cast %t : index to i64
      llvm.store %u, %p : i64, !llvm.ptr<1>"""


def test_sizes_come_from_the_implicit_arguments(llvm):
    """Offsets of hidden_group_size_x and _y, hidden_block_count_z; checked in LLVM's metadata."""
    text = compile(kernel(SIZES), Options(target="gfx942"))
    assert b"ockl" not in text
    code = assembly(llvm, text, "gfx942")
    hidden = dict(
        re.findall(r"\.offset: +(\d+)\n +\.size: +\d+\n +\.value_kind: +(hidden_\w+)", code)
    )
    offset = {name: int(place) for place, name in hidden.items()}
    first = offset["hidden_block_count_x"]
    assert offset["hidden_block_count_z"] - first == 8
    assert offset["hidden_group_size_x"] - first == 12
    assert offset["hidden_group_size_y"] - first == 14
    loads = re.findall(rb"i32 (\d+)\n +%\d+ = load i(\d+)", text)
    assert sorted((int(place), int(bits)) for place, bits in loads) == [(8, 32), (12, 16), (14, 16)]


def test_a_static_block_is_a_constant():
    source = kernel(SIZES, attributes="attributes {known_block_size = array<i32: 64, 4, 1>}")
    text = compile(source, Options(target="gfx942")).decode()
    assert text.count("= load i") == 1  # the grid's
    assert re.search(r"add i64 %\d+, 68", text) or "i64 68" in text


@pytest.mark.parametrize(
    ("source", "message", "line"),
    [
        (
            b"module {\n  func.func @f() {\n    return\n  }\n  arith.constant 1 : i32\n}",
            "func.func has",
            2,
        ),
        (
            b"module {\n  llvm.func @f() {\n    gpu.barrier\n    llvm.return\n  }\n}",
            "gpu.barrier has",
            3,
        ),
        (
            b'module {\n  llvm.func @f(%x: f32) {\n    %0 = llvm.call_intrinsic "llvm.no.such"(%x)'
            b" : (f32) -> f32\n    llvm.return\n  }\n}",
            "could not find LLVM intrinsic",
            3,
        ),
        (b"module {\n  gpu.module @a {\n  }\n  gpu.module @b {\n  }\n}", "2 gpu.modules", 4),
        (
            b"module {\n  gpu.module @a {\n    llvm.fence seq_cst\n  }\n}",
            "is outside of any",
            3,
        ),
        (
            b"module {\n  gpu.module @a {\n  }\n  func.func @g() {\n    return\n  }\n}",
            "func.func @g is outside of the gpu.module",
            4,
        ),
    ],
)
def test_what_has_no_llvm_ir_is_refused(source, message, line):
    with pytest.raises(InputError, match=message) as caught:
        compile(source, Options(emit="llvm"), "in.mlir")
    assert caught.value.place is not None
    assert (caught.value.place.file, caught.value.place.line) == ("in.mlir", line)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (
            'llvm.func @k() attributes {rocdl.kernel, rocdl.flat_work_group_size = "1,64",'
            " rocdl.reqd_work_group_size = array<i32: 256, 1, 1>} { llvm.return }",
            'flat_work_group_size is "1,64", but rocdl.reqd_work_group_size requires "256,256"',
        ),
        (
            "llvm.func @k() attributes {rocdl.reqd_work_group_size = 7 : i32} { llvm.return }",
            "rocdl.reqd_work_group_size",
        ),
        (
            'llvm.func @k() attributes {passthrough = [["a", "b", "c"]]} { llvm.return }',
            "expected 'passthrough' to contain string or array",
        ),
        (
            "llvm.func @k(%p: !llvm.ptr) { %0 = llvm.load %p {alignment = -255 : i64}"
            " : !llvm.ptr -> i32\n llvm.return }",
            "llvm.load: the alignment -255 is not a power of two",
        ),
        (
            "llvm.func @k(%p: !llvm.ptr) { %0 = llvm.load %p {alignment = 3 : i64}"
            " : !llvm.ptr -> i32\n llvm.return }",
            "llvm.load: the alignment 3 is not a power of two",
        ),
        (
            'llvm.func @k() attributes {passthrough = ["\\ff"]} { llvm.return }',
            r"a string contains bytes that are not UTF-8, near .*\\xff",
        ),
    ],
)
def test_attributes_on_which_the_translation_would_crash_are_refused(source, message):
    """Within this process: there is no child that may crash."""
    with pytest.raises(InputError, match=message):
        compile(f"module {{\n  {source}\n}}".encode(), Options(emit="llvm"), "in.mlir")


def test_an_intrinsic_that_exists_is_translated():
    source = b"""module {
  llvm.func @f(%x: f32) -> f32 {
    %0 = llvm.call_intrinsic "llvm.amdgcn.rcp"(%x) : (f32) -> f32
    llvm.return %0 : f32
  }
}"""
    assert b"@llvm.amdgcn.rcp.f32" in compile(source, Options(emit="llvm"))


def test_line_tables(vector_add, llvm, tmp_path):
    located = vector_add.replace(
        b"%sum = arith.addf %a, %b : f32", b'%sum = arith.addf %a, %b : f32 loc("add.py":12:7)'
    )
    text = compile(located, Options(target="gfx942", debug_info=True))
    code = assembly(llvm, text, "gfx942")
    assert re.search(r"\.loc\s+\d+ 12 7", code)
    assert "add.py" in code


@pytest.mark.parametrize("chip", BUILT_IN)
def test_what_the_pipeline_makes_is_translated_without_a_child(vector_add, chip, monkeypatch):
    def fork(*_):
        raise AssertionError("a child was forked, which costs milliseconds and more in threads")

    monkeypatch.setattr("fly_opt.emission.emit._try_in_child", fork)
    assert compile(vector_add, Options(target=chip))
