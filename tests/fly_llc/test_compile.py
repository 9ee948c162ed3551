"""The stage as a function: what it makes, and that nothing but its input decides it."""

import random

import pytest
from fly_common.diagnostics import Warning
from fly_common.errors import FlyError, InputError, MissingError, UsageError
from fly_llc import Options, compile, fingerprint


@pytest.mark.parametrize("cpu", ["gfx90a", "gfx942", "gfx950"])
@pytest.mark.parametrize("level", [0, 1, 2, 3])
def test_the_object_is_llcs(large, llvm, cpu, level):
    source = large(cpu).encode()
    expected = llvm("llc", f"-mcpu={cpu}", f"-O{level}", "-filetype=obj", data=source)
    assert compile(source, Options(level=level)) == expected


def test_bitcode_gives_the_bytes_of_its_text(large, llvm):
    source = large("gfx942").encode()
    bitcode = llvm("llvm-as", data=source)
    assert bitcode[:2] == b"BC"
    assert compile(bitcode, Options()) == compile(source, Options())


def test_optimised_bitcode_as_opt_pipes_it(large, llvm):
    source = large("gfx942").encode()
    text = llvm("opt", "-S", "-O3", data=source)
    assert compile(llvm("opt", "-O3", data=source), Options()) == compile(text, Options())


def test_assembly_assembles_to_the_same_code(small, llvm):
    assembly = compile(small().encode(), Options(emit="asm"))
    assert b'.amdgcn_target "amdgcn-amd-amdhsa--gfx942"' in assembly
    made = llvm(
        "llvm-mc", "-triple=amdgcn-amd-amdhsa", "-mcpu=gfx942", "-filetype=obj", data=assembly
    )
    code = ("--dump-section=.text=/dev/stdout", "-", "/dev/null")
    direct = compile(small().encode(), Options())
    assert llvm("llvm-objcopy", *code, data=made) == llvm("llvm-objcopy", *code, data=direct)


def test_neither_name_nor_surroundings_reach_the_bytes(small, monkeypatch, tmp_path):
    source = small().encode()
    first = compile(source, Options(), "one.ll")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    assert compile(source, Options(), "a/very/long/name/of/another/file.ll") == first


def test_levels_differ(large):
    source = large("gfx942").encode()
    assert compile(source, Options(level=0)) != compile(source, Options(level=3))
    assert compile(source, Options()) == compile(source, Options(level=2))


def test_warnings_go_to_the_caller():
    source = b"""target triple = "amdgcn-amd-amdhsa"
@lds = internal addrspace(3) global [4 x i32] poison
define void @helper() noinline #0 {
  store volatile i32 1, ptr addrspace(3) @lds
  ret void
}
attributes #0 = { "target-cpu"="gfx942" }
"""
    said: list[Warning] = []
    compile(source, Options(), warn=said.append)
    assert len(said) == 1
    assert said[0].message.startswith("in function helper void (): local memory global used by non")
    assert said[0].place is None


@pytest.mark.parametrize(
    ("emit", "level", "stop", "message"),
    [
        ("exe", None, None, "--emit exe: must be one of obj, asm, mir"),
        ("obj", 4, None, "-O 4: must be 0, 1, 2 or 3"),
        ("obj", None, "finalize-isel", "--stop-after prints MIR, which contradicts --emit obj"),
    ],
)
def test_options_are_checked_when_made(emit, level, stop, message):
    with pytest.raises(UsageError, match=message):
        Options(emit, level, stop)


def test_the_fingerprint_tells_options_and_builds_apart(monkeypatch, tmp_path):
    assert fingerprint(Options()) == fingerprint(Options())
    assert fingerprint(Options()) != fingerprint(Options(level=3))
    assert fingerprint(Options()) != fingerprint(Options(emit="asm"))
    before = fingerprint(Options())
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "llc").write_text("#!/bin/sh\n")
    monkeypatch.setenv("FLY_LLVM_DIR", str(tmp_path))
    assert fingerprint(Options()) != before


def test_no_llvm_is_a_missing_error(small, monkeypatch):
    monkeypatch.setenv("FLY_LLVM_DIR", "/nonexistent")
    with pytest.raises(MissingError, match="FLY_LLVM_DIR=/nonexistent has no bin/llc"):
        compile(small().encode(), Options())


def test_an_llc_that_dies_is_named(small, monkeypatch, tmp_path):
    llc = tmp_path / "bin" / "llc"
    llc.parent.mkdir()
    llc.write_text("#!/bin/sh\nkill -SEGV $$\n")
    llc.chmod(0o755)
    monkeypatch.setenv("FLY_LLVM_DIR", str(tmp_path))
    with pytest.raises(InputError) as caught:
        compile(small().encode(), Options(), "k.ll")
    assert str(caught.value).startswith("k.ll: llc crashed (SIGSEGV)")


SIGNS = """target triple = "amdgcn-amd-amdhsa"
define amdgpu_kernel void @k(<2 x i32> %keys, ptr addrspace(1) %p, i32 %n) #0 {
  %t = tail call i32 @llvm.amdgcn.workitem.id.x()
  %first = icmp eq i32 %t, 0
  %flipped = xor <2 x i32> %keys, splat (i32 -2147483648)
  %key = extractelement <2 x i32> %flipped, i64 0
  %chosen = select i1 %first, i32 %key, i32 %n
  store i32 %chosen, ptr addrspace(1) %p
  ret void
}
declare i32 @llvm.amdgcn.workitem.id.x()
attributes #0 = { "target-cpu"="gfx942" }
"""


@pytest.mark.parametrize("form", ["text", "bitcode"])
def test_a_module_that_llc_crashes_on_is_compiled_without_vectors(llvm, form):
    source = SIGNS.encode() if form == "text" else llvm("llvm-as", data=SIGNS.encode())
    code = compile(source, Options("asm"))
    assert b"v_cndmask_b32_e64 v0, v2, -v3, vcc" in code, "the sign of a key is flipped"
    rest = compile(compile(source, Options("mir", stop_before="si-fold-operands")), Options("asm"))
    assert b"v_cndmask_b32_e64 v0, v2, -v3, vcc" in rest


@pytest.mark.parametrize("form", ["text", "bitcode", "mir"])
def test_damaged_input_is_an_error_or_compiles(small, llvm, form):
    """Flipped and cut bytes: a result or a FlyError with words in it, never anything else."""
    source = small().encode()
    if form == "bitcode":
        source = llvm("llvm-as", data=source)
    if form == "mir":
        source = compile(source, Options("mir"))
    chance = random.Random(form)
    words = []
    for _ in range(40):
        data = bytearray(source)
        for _ in range(chance.randint(1, 3)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        if chance.random() < 0.3:
            del data[chance.randrange(len(data)) :]
        try:
            compile(bytes(data), Options(), "damaged")
        except FlyError as error:
            words.append(error.render("fly-llc"))
    assert len(words) > 5
    assert not [text for text in words if "Stack dump" in text or "error: damaged: \n" in text]


# LLVM 22's llc waits for ever where a section stack is popped behind a directive of no section.
HANGS = b"""target triple = "amdgcn-amd-amdhsa"
module asm ".ascii \\22x\\22"
module asm ".popsection"
define amdgpu_kernel void @k() #0 {
  ret void
}
attributes #0 = { "target-cpu"="gfx942" }
"""


def test_llc_is_not_waited_for_without_end():
    with pytest.raises(InputError, match=r"llc did not finish within 0\.5 s and was killed"):
        compile(HANGS, Options(timeout=0.5))


def test_how_long_it_may_take_is_no_part_of_what_it_makes():
    assert fingerprint(Options(timeout=5)) == fingerprint(Options())


def test_ptx_that_is_no_text_is_refused():
    """LLVM copies the bytes of inline assembly as they are."""
    source = b"""target triple = "nvptx64-nvidia-cuda"
define ptx_kernel void @k() #0 {
  call void asm sideeffect "// \\ED", ""()
  ret void
}
attributes #0 = { "target-cpu"="sm_90a" }
"""
    with pytest.raises(InputError, match=r"line \d+ of the PTX has the byte 0xed, which"):
        compile(source, Options())
