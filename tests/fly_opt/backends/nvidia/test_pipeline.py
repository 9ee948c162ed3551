"""The pipeline `cuda`: what its passes make of kernels and host programs."""

from __future__ import annotations

import re
import subprocess
import sys

import fly_llc
import pytest
from fly_common.errors import InputError, MissingError, UsageError
from fly_host import text
from fly_image.nvidia import ptx
from fly_opt import Options, compile
from fly_opt.backends.nvidia import device_libraries
from h200_kernels import assembler, chain
from h200_kernels.cases import KERNELS

MODULE = """
module {{ gpu.module @kernels {{
  gpu.func @k({arguments}) kernel {attributes} {{
{body}
    gpu.return
  }}
}} }}
"""


def lowered(body: str, target: str = "sm_90a", arguments: str = "%p: !llvm.ptr<1>", **words) -> str:
    source = MODULE.format(body=body, arguments=arguments, attributes=words.get("attributes", ""))
    return compile(source.encode(), Options(target=target)).decode()


def program(module: bytes) -> text.Program:
    """Returns the host program in LLVM IR."""
    lines = re.findall(r'^module asm "(.*)"$', module.decode(), re.MULTILINE)
    unescaped = [
        re.sub(r"\\([0-9A-F]{2})", lambda digits: chr(int(digits[1], 16)), line) for line in lines
    ]
    return text.read(ptx.sections("\n".join(unescaped) + "\n")[".fly.manifest"])


def test_attributes(vector_add):
    module = compile(vector_add, Options(target="sm_80")).decode()
    assert 'target triple = "nvptx64-nvidia-cuda"' in module
    assert '"target-cpu"="sm_80"' in module
    assert '"target-features"="+ptx88"' in module
    assert '"nvvm.reqntid"="256,1,1"' in module
    assert "nvvm.maxntid" not in module


def test_a_dynamic_block_may_have_all_threads():
    """Without a bound, ptxas could use more registers than such a launch has."""
    assert '"nvvm.maxntid"="1024,1,1"' in lowered("")


def test_arguments_are_scalars_in_the_kernel_and_in_the_host_program(vector_add):
    module = compile(vector_add, Options(target="sm_90a"))
    (kernel,) = re.findall(rb"define ptx_kernel void @\w+\((.*?)\)(?= #)", module)
    assert b"<{" not in kernel
    (launch,) = program(module).steps
    assert all(len(words) == 1 for words in launch.arguments)
    pointers = [words[0].kind == "pointer" for words in launch.arguments]
    assert [one.startswith("ptr") for one in kernel.decode().split(", ")] == pointers


def test_a_struct_that_is_used_whole_is_built_again():
    body = (
        """    llvm.store %s, %p : !llvm.struct<packed (i64, struct<packed (i32)>)>, !llvm.ptr<1>"""
    )
    arguments = "%p: !llvm.ptr<1>, %s: !llvm.struct<packed (i64, struct<packed (i32)>)>"
    module = lowered(body, arguments=arguments)
    assert "@k(ptr addrspace(1) %0, i64 %1, i32 %2)" in module
    assert "insertvalue" in module


def test_more_than_48_kb_of_shared_memory_are_dynamic():
    module = chain.llvm_ir(KERNELS, "large_shared", "sm_90a")
    assert b"addrspace(3) global [0 x i8]" in module
    assert b"[40000 x i8]" not in module
    made = program(module)
    (launch,) = made.steps
    shared = made.expressions[launch.shared]
    # 80,000 bytes, so that what the launch asks for is aligned to 1024, and 1024 bytes.
    assert shared == ("const", 80_896 + 1024)


def test_too_much_shared_memory_is_an_error():
    kind = "!fly.ptr<i8, shared, align<16>>"
    body = f"""    %s = fly.make_ptr() {{dictAttrs = {{allocSize = 240000 : i64}}}} : () -> {kind}
    %v = fly.ptr.load(%s) : ({kind}) -> i8
    llvm.store %v, %p : i8, !llvm.ptr<1>"""
    with pytest.raises(InputError, match="k has 240000 bytes of shared memory"):
        lowered(body)


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        (
            'llvm.atomicrmw add %p, %one syncscope("agent") seq_cst',
            r'fence syncscope\("device"\) seq_cst\n'
            r'.*atomicrmw add .* syncscope\("device"\) monotonic.*\n'
            r'\s+fence syncscope\("device"\) acquire',
        ),
        (
            'llvm.atomicrmw max %p, %one syncscope("workgroup-one-as") release',
            r'fence syncscope\("block"\) release\n.*atomicrmw max .*syncscope\("block"\) monotonic',
        ),
        ("llvm.atomicrmw xchg %p, %one monotonic", r"atom\.relaxed\.sys\.global\.exch\.b32"),
        ("llvm.atomicrmw nand %p, %one monotonic", "atomicrmw nand .* monotonic"),
    ],
)
def test_scopes_and_orders_of_atomics(operation, expected):
    body = f"""    %one = llvm.mlir.constant(1 : i32) : i32
    %old = {operation} : !llvm.ptr<1>, i32"""
    assert re.search(expected, lowered(body))


def test_a_cluster_is_the_device_where_there_are_none():
    body = '    llvm.fence syncscope("cluster") acq_rel'
    assert 'syncscope("cluster")' in lowered(body)
    assert 'syncscope("device")' in lowered(body, "sm_89")


def test_an_unknown_scope_is_an_error():
    with pytest.raises(InputError, match="sm_90a has no scope 'galaxy'"):
        lowered('    llvm.fence syncscope("galaxy") acq_rel')


@pytest.mark.parametrize(
    ("kind", "steps"), [("i32", 5), ("f16", 5), ("f64", 10), ("i8", 5)], ids=str
)
def test_a_reduction_of_a_warp(kind, steps):
    body = f"""    %x = llvm.load %p : !llvm.ptr<1> -> {kind}
    %r = gpu.subgroup_reduce add %x : ({kind}) -> {kind}
    llvm.store %r, %p : {kind}, !llvm.ptr<1>"""
    calls = re.findall(r"= call .* @llvm\.nvvm\.shfl\.sync\.bfly\.\w+\(", lowered(body))
    assert len(calls) == steps


def test_a_reduction_of_a_cluster_of_lanes():
    body = """    %x = llvm.load %p : !llvm.ptr<1> -> f32
    %r = gpu.subgroup_reduce maximumf %x cluster(size = 4, stride = 2) : (f32) -> f32
    llvm.store %r, %p : f32, !llvm.ptr<1>"""
    distances = re.findall(r"bfly\.f32p?\(i32 -1, float %\d+, i32 (\d+)", lowered(body))
    assert distances == ["2", "4"]


@pytest.mark.parametrize(
    ("mode", "word", "ends"),
    [("xor", "bfly", 31), ("up", "up", 0), ("down", "down", 31), ("idx", "idx", 31)],
)
@pytest.mark.parametrize("width", [4, 16, 32])
@pytest.mark.parametrize(("kind", "words"), [("f32", 1), ("i16", 1), ("bf16", 1), ("f64", 2)])
def test_all_lanes_take_part_in_a_shuffle_of_groups(mode, word, ends, width, kind, words):
    """On an H200, lanes that the instruction's mask does not name keep their own values."""
    body = f"""    %x = llvm.load %p : !llvm.ptr<1> -> {kind}
    %by = arith.constant 3 : i32
    %width = arith.constant {width} : i32
    %r, %valid = gpu.shuffle {mode} %x, %by, %width : {kind}
    llvm.store %r, %p : {kind}, !llvm.ptr<1>"""
    found = re.findall(
        rf"shfl\.sync\.{word}\.\w+\(i32 -1, \w+ %\d+, i32 3, i32 (\d+)\)", lowered(body)
    )
    assert found == [str((32 - width) << 8 | ends)] * words


def test_whether_the_other_lane_is_in_the_group():
    body = """    %x = llvm.load %p : !llvm.ptr<1> -> f32
    %by = arith.constant 3 : i32
    %width = arith.constant 8 : i32
    %r, %valid = gpu.shuffle down %x, %by, %width : f32
    %zero = arith.constant 0.0 : f32
    %s = arith.select %valid, %r, %zero : f32
    llvm.store %s, %p : f32, !llvm.ptr<1>"""
    assert "shfl.sync.down.f32p(i32 -1," in lowered(body)


def test_the_number_of_a_warp():
    body = """    %i = gpu.subgroup_id : index
    %n = gpu.num_subgroups : index
    %s = arith.addi %i, %n : index
    %v = arith.index_cast %s : index to i64
    llvm.store %v, %p : i64, !llvm.ptr<1>"""
    assert "@llvm.nvvm.read.ptx.sreg.ntid.x" in lowered(body)


def math(op: str, kind: str, flags: str = "") -> str:
    return lowered(f"""    %x = llvm.load %p : !llvm.ptr<1> -> {kind}
    %y = {op} %x {flags} : {kind}
    llvm.store %y, %p : {kind}, !llvm.ptr<1>""")


@pytest.mark.parametrize(
    ("op", "intrinsic"),
    [
        ("math.exp", "llvm.nvvm.ex2.approx.ftz.f"),
        ("math.log2", "llvm.nvvm.lg2.approx.ftz.f"),
        ("math.sin", "llvm.sin.f32"),
        ("math.tanh", "llvm.tanh.f32"),
    ],
)
def test_fast_math_is_the_hardwares(op, intrinsic):
    assert intrinsic in math(op, "f32", "fastmath<afn>")
    assert intrinsic in math(op, "f32", "fastmath<fast>")
    assert intrinsic not in math(op, "f32")
    assert intrinsic not in math(op, "f32", "fastmath<nnan>")


def test_libdevice_is_linked_where_it_is_needed():
    module = math("math.sinh", "f64")
    assert "define internal" in module
    assert "declare double @__nv" not in module
    assert module.count('"target-cpu"="sm_90a"') >= 2
    assert "__nv" not in math("math.sinh", "f32")


def test_without_libdevice_an_error_says_how_to_get_it(monkeypatch):
    monkeypatch.setenv("FLY_LIBDEVICE", "/nowhere")
    device_libraries.file.cache_clear()
    try:
        with pytest.raises(MissingError, match="__nv_sinh is in NVIDIA's libdevice") as error:
            math("math.sinh", "f64")
    finally:
        device_libraries.file.cache_clear()
    assert "fly-filters[cuda]" in (error.value.hint or "")


def test_floats_of_8_bits():
    module = chain.llvm_ir(KERNELS, "narrow_floats", "sm_90a").decode()
    for name in ("ff.to.e4m3x2.rn", "ff.to.e5m2x2.rn", "e4m3x2.to.f16x2", "e5m2x2.to.f16x2"):
        assert f"@llvm.nvvm.{name}" in module
    with pytest.raises(InputError, match="sm_80 has no conversion between f8E4M3FN and f32"):
        chain.llvm_ir(KERNELS, "narrow_floats", "sm_80")


OTHERS = {
    "rocdl.s.barrier": "    rocdl.s.barrier",
    "!fly_rocdl.cdna3.buffer_copy": "    %a = fly.make_copy_atom() {valBits = 32 : i32} "
    ": () -> !fly.copy_atom<!fly_rocdl.cdna3.buffer_copy<32>, 32>",
}


@pytest.mark.parametrize("what", OTHERS)
def test_what_another_vendor_has_is_refused(what):
    with pytest.raises(InputError, match=re.escape(what)) as error:
        lowered(OTHERS[what])
    assert "backend rocm" in str(error.value)
    assert error.value.place is not None
    assert error.value.place.line == 4
    assert "fx.UniversalFMA" in (error.value.hint or "")


def test_intrinsics_of_the_other_vendor_are_refused():
    body = '    %v = llvm.call_intrinsic "llvm.{}"() : () -> i32'
    with pytest.raises(InputError, match="sm_90a does not have"):
        lowered(body.format("amdgcn.workitem.id.x"))
    with pytest.raises(InputError, match="gfx942 does not have"):
        lowered(body.format("nvvm.read.ptx.sreg.tid.x"), "gfx942")


def test_a_trace_for_one_vendor_refuses_the_others_namespace():
    from fly_trace.session.trace import trace_file

    with pytest.raises(InputError, match=r"fx\.nvvm is for other hardware than gfx942"):
        trace_file(str(KERNELS), "warps", {}, target="gfx942")


def test_line_tables_do_not_ask_for_a_debugger(vector_add, tmp_path):
    located = vector_add.replace(
        b"%sum = arith.addf %a, %b : f32", b'%sum = arith.addf %a, %b : f32 loc("add.py":12:7)'
    )
    module = compile(located, Options(target="sm_90a", debug_info=True))
    made = fly_llc.compile(module, fly_llc.Options())
    assert re.search(rb"^\s*\.loc\s+\d+ 12 7", made, re.MULTILINE)
    assert b".target sm_90a\n" in made
    assembler.assemble(made, "sm_90a", tmp_path / "k.cubin")


def test_the_pipelines_are_known_by_name():
    assert compile(b"module {}", Options(target="sm_90a", pipeline="cuda"))
    with pytest.raises(UsageError, match="unknown pipeline 'cudo'"):
        compile(b"module {}", Options(target="sm_90a", pipeline="cudo"))


@pytest.mark.parametrize(("target", "other"), [("sm_90a", "amd"), ("gfx942", "nvidia")])
def test_no_code_of_the_other_vendor_is_loaded(vector_add, target, other):
    """Rows of chips and records of backends are data."""
    code = (
        "import sys; from fly_opt import compile, Options; import fly_llc.stage, subprocess;"
        f"made = compile(sys.stdin.buffer.read(), Options(target={target!r}));"
        "fly_llc.stage.compile(made, fly_llc.stage.Options());"
        f"print([one for one in sys.modules if '.{other}' in one and 'fly_target' not in one"
        " and 'fly_backend' not in one])"
    )
    words = [sys.executable, "-c", code]
    done = subprocess.run(words, input=vector_add, capture_output=True, check=True)
    assert done.stdout.decode().strip() == "[]"
