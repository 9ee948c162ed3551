"""PTX → cubin, against what ptxas makes of a file and what nvdisasm and readelf read."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from cuda_modules import TWO, disassembled, from_llvm, manifest, module, ptxas
from fly_common.diagnostics import Warning
from fly_common.errors import FlyError, InputError, MissingError, UsageError
from fly_common.programs import cuda_toolkit, toolchain
from fly_common.programs.process import limited
from fly_host.section import SECTION
from fly_image.elf import Elf
from fly_image.nvidia import ptx
from fly_link import fingerprint, link
from fly_link.options import Options

TARGETS = ("sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a")
WITH_LINES = """
source_filename = "k"
target triple = "nvptx64-nvidia-cuda"
define ptx_kernel void @k(ptr addrspace(1) %p, float %x) !dbg !3 {
  %y = fmul float %x, %x, !dbg !6
  store float %y, ptr addrspace(1) %p, !dbg !7
  ret void, !dbg !7
}
!llvm.dbg.cu = !{!0}
!llvm.module.flags = !{!8}
!0 = distinct !DICompileUnit(language: DW_LANG_C, file: !1, isOptimized: true, emissionKind: KIND)
!1 = !DIFile(filename: "kernel.py", directory: "/src")
!3 = distinct !DISubprogram(name: "k", scope: !1, file: !1, line: 3, type: !4, unit: !0, spFlags: DISPFlagDefinition)
!4 = !DISubroutineType(types: !5)
!5 = !{}
!6 = !DILocation(line: 40, column: 3, scope: !3)
!7 = !DILocation(line: 41, column: 3, scope: !3)
!8 = !{i32 2, !"Debug Info Version", i32 3}
"""  # noqa: E501


def refusal(objects: list[bytes], names: list[str], options: Options | None = None) -> str:
    with pytest.raises(FlyError) as caught:
        link(objects, names, options=options or Options())
    return caught.value.render("fly-link")


def sections(data: bytes) -> dict[str, bytes]:
    return {one.name: one.data for one in Elf.parse(data).sections if one.name != ".shstrtab"}


@pytest.mark.parametrize("target", TARGETS)
def test_the_code_is_ptxas_and_the_rest_is_appended(tmp_path: Path, target: str):
    source = module(target=target, manifest=manifest(target))
    made = link([source])
    plain, said = ptxas(tmp_path, source, target)
    ours, theirs = sections(made), sections(plain)
    assert {name: ours[name] for name in theirs} == theirs
    assert made[: len(plain)][64:] == plain[64:]
    assert set(ours) - set(theirs) == {SECTION, ".fly.entries", ".fly.ptxas"}
    assert ours[SECTION].decode() == manifest(target)
    lines = [line for line in said.splitlines() if "Compile time" not in line]
    assert ours[".fly.ptxas"].decode().splitlines() == lines
    assert disassembled(tmp_path, made) == disassembled(tmp_path, plain)


def test_other_tools_read_the_sections(tmp_path: Path):
    (tmp_path / "k.cubin").write_bytes(link([module(manifest=manifest())]))
    words = [toolchain.find_program("llvm-readelf"), "-p", SECTION, str(tmp_path / "k.cubin")]
    assert manifest() in subprocess.run(words, capture_output=True, text=True, check=True).stdout


def test_binary_sections_go_along():
    source = ptx.with_section(module().decode(), ".fly.llvm", bytes(range(256)))
    assert sections(link([source.encode()]))[".fly.llvm"] == bytes(range(256))


def test_neither_names_nor_surroundings_reach_the_bytes(monkeypatch, tmp_path):
    source = module(manifest=manifest())
    first = link([source], ["a.ptx"])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", "/nonexistent")
    assert link([source], ["/elsewhere/" + "x" * 500]) == first
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["LineTablesOnly", "DebugDirectivesOnly"])
def test_lines_are_those_of_optimised_code(tmp_path: Path, kind: str):
    """LLVM marks PTX with line tables as for debugging, which ptxas does not optimise."""
    source = from_llvm(WITH_LINES.replace("KIND", kind))
    assert (b", debug" in source) == (kind == "LineTablesOnly")
    made = link([source])
    plain, _ = ptxas(tmp_path, source.replace(b", debug", b""), "sm_90a", "-lineinfo")
    assert sections(made)[".text.k"] == sections(plain)[".text.k"]
    assert sections(made)[".debug_line"] == sections(plain)[".debug_line"]
    shown = link([source], options=Options(emit="sass")).decode()
    assert '//## File "/src/kernel.py", line 40' in shown
    assert ".debug_line" not in sections(link([module()]))


def test_the_disassembly(tmp_path: Path):
    shown = link([module()], options=Options(emit="sass")).decode()
    plain, _ = ptxas(tmp_path, module())
    for name in ("scale", "nothing"):
        assert f".text.{name}:" in shown
    code = [line for line in disassembled(tmp_path, plain).splitlines() if "/*00" in line]
    assert {line for line in code if "FMUL" in line} <= set(shown.splitlines())
    assert "FMUL" in shown


def test_the_ptx_itself():
    source = module(manifest=manifest())
    assert link([source], options=Options(emit="ptx")) == source


def test_without_ptxas_the_ptx_is_the_image(monkeypatch):
    source, told = module(manifest=manifest()), []
    monkeypatch.setenv("FLY_PTXAS", "none")
    assert link([source], warn=told.append) == source
    assert told == [
        "ptxas was not found; the result is PTX, which the driver compiles; pip install"
        " 'fly-filters[cuda]' (nvidia-cuda-nvcc), or set FLY_PTXAS to its path"
    ]
    assert link([source], options=Options(emit="ptx"), warn=told.append) == source
    assert len(told) == 1
    with pytest.raises(MissingError, match="ptxas was not found"):
        link([source], options=Options(emit="sass"))


def test_options_of_ptxas_reach_it():
    told: list[Warning] = []
    less = link(
        [module()], ["k.ptx"], options=Options(flags=("-maxrregcount=16",)), warn=told.append
    )
    assert b"-maxrregcount" in sections(less)[".note.nv.tkinfo"]
    assert [one.message for one in told] == [
        "ptxas: For profile sm_90a adjusting per thread register count of 16 to lower bound of 24"
    ]


def test_an_error_of_ptxas_is_at_its_line():
    broken = (
        module().replace(b"bar.sync \t0", b"bar.sink \t0").replace(b"ld.global.b32", b"ld.mars.b32")
    )
    assert refusal([broken], ["k.ptx"]) == (
        "fly-link: error: k.ptx:21:2: ptxas: Unknown modifier '.mars'\n"
        "  \tld.mars.b32 \t%r3, [%rd3];\n"
        f"  \t^{'~' * 24}\n"
        "  and 2 more errors"
    )
    wrong = module().replace(b"%rd3, %rd1, %rd2", b"%r3, %rd1, %rd2")
    assert refusal([wrong], ["k.ptx"]).splitlines()[0] == (
        "fly-link: error: k.ptx:20:2: ptxas: Arguments mismatch for instruction 'add'"
    )


def test_an_error_without_a_line():
    large = module("\n.shared .align 4 .b8 x[70000];\n" + TWO.replace("buffer;", "x;"), "sm_80")
    told = refusal([large], ["k.ptx"])
    assert told.startswith(
        "fly-link: error: k.ptx: ptxas: Entry function 'scale' uses too much shared"
    )


CALLS = """
.extern .func (.param .b32 r) {name} ( .param .b32 a );
.extern .global .align 4 .b32 unused;
.func (.param .b32 r) helper ( .param .b32 a ) {{ ret; }}
.visible .entry k() {{
  .reg .b32 %r<3>;
  {{ .param .b32 a0; .param .b32 r0; st.param.b32 [a0], 1; call.uni (r0), {name}, (a0); }}
  {{ .param .b32 a0; .param .b32 r0; st.param.b32 [a0], 1; call.uni (r0), helper, (a0); }}
  ret;
}}
"""


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("__nv_sinf", "libdevice defines it: fly-opt-py links it into the IR"),
        ("tanhf", "no C math library exists on a GPU: call libdevice's function, __nv_…"),
        ("memcpy", "no C library exists on a GPU: write it as a loop"),
        ("printf", "printing from a kernel is vprintf in PTX"),
        ("abort", "a kernel can't stop the program or throw"),
        ("_Znwm", "allocate by malloc, or pass a buffer"),
        ("llvm_nvvm_movmatrix", "it is an intrinsic that this LLVM does not know"),
        ("other", "link the LLVM IR that defines it before code generation, with llvm-link"),
    ],
)  # fmt: skip
def test_undefined_symbols_by_name(name: str, hint: str):
    assert refusal([module(CALLS.format(name=name))], ["k.ptx"]).startswith(
        f"fly-link: error: k.ptx: undefined symbol {name}, used in k\n  {hint}"
    )


def test_several_undefined_symbols():
    body = CALLS.format(name="first").replace("[a0], 1", "[a0], unused", 1)
    assert "undefined symbol first, used in k; and unused\n" in refusal([module(body)], ["k.ptx"])


@pytest.mark.parametrize("name", ["vprintf", "malloc"])
def test_what_the_driver_defines(name: str):
    body = CALLS.format(name=name)
    assert "undefined" not in refusal_or_none(module(body))


def refusal_or_none(source: bytes) -> str:
    try:
        link([source])
    except InputError as error:  # ptxas knows other parameters of these functions
        return error.render("fly-link")
    return ""


@pytest.mark.parametrize(
    ("objects", "message", "hint"),
    [
        ([module(), module()], "a.ptx and b.ptx are two PTX modules", "llvm-link -S a.ll b.ll"),
        ([module(), b"\x7fELF" + bytes(60)], "b.ptx: the input is an ELF file for", "not PTX"),
        ([module(manifest=manifest("sm_80"))], "is for sm_80, but the code is", "--target"),
        ([module(manifest=manifest(kernel="gone"))], "launches the kernel gone,", "lacks"),
        ([module(manifest="{}")], "a.ptx: the host program is damaged", ""),
        ([module(manifest=manifest())[:-12]], "section .fly.manifest of the PTX has no end", ""),
        ([b".version 8.8\n.address_size 64\n"], "a.ptx: the PTX names no .target", ""),
        ([module() + b"\xff"], "a.ptx: byte ", "") ,
    ],
)  # fmt: skip
def test_what_is_refused(objects: list[bytes], message: str, hint: str):
    told = refusal(objects, ["a.ptx", "b.ptx"][: len(objects)])
    assert message in told
    assert hint in told


def test_no_kernel_is_told():
    told: list[str] = []
    link([module(".visible .func f() { ret; }\n")], warn=told.append)
    assert told[0] == "the PTX defines no kernel: nothing can be launched"


def test_options_that_do_not_apply():
    for options in (Options(emit="sass"), Options(emit="ptx"), Options(flags=("-w",))):
        assert "is for NVIDIA's GPUs" in refusal([b"\x7fELF" + bytes(60)], ["k.o"], options)
    with pytest.raises(UsageError, match="--emit 'cubin': must be one of image, ptx, sass"):
        Options(emit="cubin")
    with pytest.raises(UsageError, match="'O3' is not an option of ptxas"):
        Options(flags=("O3",))


def script(folder: Path, text: str) -> str:
    path = folder / "ptxas"
    path.write_text(f"#!{sys.executable}\n{text}")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import sys; sys.exit('ptxas fatal   : out of luck')", "ptxas: out of luck"),
        ("import sys; sys.exit('Segmentation')", "ptxas: Segmentation"),
        ("import sys; sys.exit(1)", "ptxas: no reason given"),
        ("", "ptxas: no reason given"),
        ("import os; os.abort()", "ptxas crashed (signal 6) on this input"),
    ],
)  # fmt: skip
def test_a_ptxas_that_fails(monkeypatch, tmp_path: Path, text: str, message: str):
    monkeypatch.setenv("FLY_PTXAS", script(tmp_path, text))
    assert refusal([module()], ["k.ptx"]).splitlines()[0].removeprefix("fly-link: error: ") in (
        f"k.ptx: {message}",
        message,
    )


def test_a_ptxas_that_hangs(monkeypatch, tmp_path: Path):
    monkeypatch.setenv("FLY_PTXAS", script(tmp_path, "import time; time.sleep(100)"))
    with limited(None):
        told = refusal([module()], ["k.ptx"], Options(timeout=0.5))
    assert "ptxas did not finish within 0.5 s and was killed" in told


def test_the_fingerprint(monkeypatch, tmp_path: Path):
    usual = fingerprint(backend="cuda")
    assert usual == fingerprint(backend="CUDA") != fingerprint(backend="rocm") == fingerprint()
    others = [Options(emit="ptx"), Options(emit="sass"), Options(flags=("-O1",))]
    made = {fingerprint(one, "cuda") for one in others}
    monkeypatch.setenv("FLY_PTXAS", "none")
    made.add(fingerprint(backend="cuda"))
    monkeypatch.setenv("FLY_PTXAS", script(tmp_path, "pass"))
    made.add(fingerprint(backend="cuda"))
    script(tmp_path, "other")
    made.add(fingerprint(backend="cuda"))
    assert len(made | {usual}) == 7
    assert cuda_toolkit.find_program("nvdisasm") != str(tmp_path / "nvdisasm")
