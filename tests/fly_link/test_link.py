"""The stage as a function: objects that `llc` made, against what `ld.lld` makes and LLVM reads."""

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from fly_common.errors import FlyError, InputError, MissingError
from fly_common.programs import toolchain
from fly_host import program, text
from fly_host.section import SECTION
from fly_image.amd.code_object import CodeObject
from fly_link import fingerprint, link

PROGRAM = program.Program(
    entry="k",
    target="gfx942",
    parameters=(),
    expressions=(("const", 1),),
    steps=(program.Launch("k", (0, 0, 0), (0, 0, 0), 0, ()),),
)


def llvm(program: str, *arguments: str, data: bytes = b"") -> bytes:
    done = subprocess.run(
        [toolchain.find_program(program), *arguments], input=data, capture_output=True, check=True
    )
    return done.stdout


def kernel(name: str = "k", *, body: str = "", cpu: str = "gfx942", manifest: str = "") -> bytes:
    """An object with the kernel `name`; `manifest` goes into the plan's section."""
    escaped = "".join(f"\\{ord(c):02X}" if c in '"\\' else c for c in manifest.replace('"', '\\"'))
    assembly = f"""module asm ".pushsection {SECTION},\\22\\22,@progbits"
module asm ".ascii \\22{escaped}\\22"
module asm ".popsection"
"""
    text = f"""target triple = "amdgcn-amd-amdhsa"
{assembly if manifest else ""}
declare float @missing(float)
declare float @_Z5scalefPKf(float)
declare float @__ocml_tanh_f32(float)
declare extern_weak void @perhaps()
define amdgpu_kernel void @{name}(ptr addrspace(1) %p, float %x) #0 {{
{body}  ret void
}}
attributes #0 = {{ "target-cpu"="{cpu}" }}
"""
    return llvm("llc", f"-mcpu={cpu}", "-filetype=obj", data=text.encode())


def call(*functions: str) -> str:
    return "".join(
        f"  %r{n} = call float @{name}(float %x)\n  store float %r{n}, ptr addrspace(1) %p\n"
        for n, name in enumerate(functions)
    )


def refusal(objects, names) -> str:
    with pytest.raises(InputError) as caught:
        link(objects, names)
    return caught.value.render("fly-link")


def test_the_result_is_lds(tmp_path):
    data = kernel(manifest=text.write(PROGRAM))
    (tmp_path / "k.o").write_bytes(data)
    made = tmp_path / "made"
    llvm("ld.lld", "-shared", "--no-undefined", str(tmp_path / "k.o"), "-o", str(made))
    assert link([data]) == made.read_bytes()


def test_the_program_arrives_whole(tmp_path):
    written = text.write(PROGRAM)
    linked = link([kernel("other"), kernel(manifest=written)])
    (tmp_path / "k.hsaco").write_bytes(linked)
    section = f"--dump-section={SECTION}={tmp_path / 'program'}"
    llvm("llvm-objcopy", section, str(tmp_path / "k.hsaco"), str(tmp_path / "copy"))
    assert (tmp_path / "program").read_text() == written


def test_neither_names_nor_surroundings_reach_the_bytes(monkeypatch, tmp_path):
    objects = [kernel(manifest=text.write(PROGRAM)), kernel("other")]
    first = link(objects, ["a.o", "b.o"])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", "/nonexistent")
    # Descriptors that happen to be open change the numbers of those that the objects get.
    with open("/dev/null"), open("/dev/null"):
        assert link(objects, ["/elsewhere/" + "x" * 500, "b.o"]) == first
    assert list(tmp_path.iterdir()) == []


def test_a_symbol_of_another_object_is_found(tmp_path):
    helper = b"""target triple = "amdgcn-amd-amdhsa"
define float @missing(float %x) #0 {
  ret float %x
}
attributes #0 = { "target-cpu"="gfx942" }
"""
    made = llvm("llc", "-mcpu=gfx942", "-filetype=obj", data=helper)
    linked = link([kernel(body=call("missing")), made])
    (tmp_path / "k.hsaco").write_bytes(linked)
    assert b" T missing\n" in llvm("llvm-nm", str(tmp_path / "k.hsaco"))


def test_undefined_symbols_by_name():
    assert refusal([kernel(body=call("missing"))], ["k.o"]) == (
        "fly-link: error: k.o: undefined symbol missing, used in k\n"
        "  name the object that defines it on fly-link's command line"
    )
    both = kernel("first", body=call("__ocml_tanh_f32", "_Z5scalefPKf"))
    assert refusal([kernel(), both], ["k.o", "b.o"]) == (
        "fly-link: error: b.o: undefined symbol __ocml_tanh_f32, used in first; and "
        "scale(float, float const*)\n"
        "  ROCm's device libraries define it: fly-opt-py --target links them into the IR"
    )


def test_a_weak_symbol_may_stay_undefined():
    body = "  %there = icmp ne ptr @perhaps, null\n  %z = zext i1 %there to i32\n"
    assert link([kernel(body=body + "  store i32 %z, ptr addrspace(1) %p\n")])


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("__ocml_exp_f64", "device libraries"),
        ("__ockl_hostcall_internal", "device libraries"),
        ("printf", "printing from a kernel"),
        ("malloc", "can't allocate memory"),
        ("_Znwm", "can't allocate memory"),
        ("__assert_fail", "can't stop the program"),
        ("memcpy", "no C library"),
        ("__divti3", "compiler-rt"),
        ("__udivti3", "compiler-rt"),
        ("expf", "no C math library"),
        ("sin", "no C math library"),
        ("exponent", "on fly-link's command line"),
        ("kernel_sin", "on fly-link's command line"),
    ],
)
def test_who_would_define_it(name, hint):
    from fly_link.backends.amd.undefined import definer

    assert hint in definer(name)


def test_objects_for_two_processors():
    assert refusal([kernel(cpu="gfx90a"), kernel("other")], ["a.o", "b.o"]) == (
        "fly-link: error: a.o is code for gfx90a, b.o for gfx942\n"
        "  a HSACO contains code for one GPU: compile everything with the same --target"
    )


@pytest.mark.parametrize("first", ["+", "-"])
def test_xnack_on_and_off_do_not_fit(first):
    second = "-" if first == "+" else "+"

    def with_xnack(name: str, sign: str) -> bytes:
        text = f"""target triple = "amdgcn-amd-amdhsa"
define amdgpu_kernel void @{name}() #0 {{
  ret void
}}
attributes #0 = {{ "target-cpu"="gfx942" "target-features"="{sign}xnack" }}
"""
        flags = ("-mcpu=gfx942", f"-mattr={sign}xnack", "-filetype=obj")
        return llvm("llc", *flags, data=text.encode())

    objects = [with_xnack("a", first), with_xnack("b", second)]
    on, off = ("a.o", "b.o") if first == "+" else ("b.o", "a.o")
    assert f"{on} needs xnack on, {off} needs it off" in refusal(objects, ["a.o", "b.o"])
    assert link([with_xnack("a", first), kernel("b")])  # the second doesn't mind


def test_a_kernel_defined_twice():
    assert refusal([kernel(), kernel("other"), kernel()], ["a.o", "b.o", "c.o"]) == (
        "fly-link: error: k is defined twice: in a.o and in c.o\n"
        "  remove one of them, or rename the kernel"
    )


def test_two_programs():
    other = kernel("other", manifest=text.write(PROGRAM))
    said = refusal([kernel(manifest=text.write(PROGRAM)), other], ["a.o", "b.o"])
    assert said.startswith("fly-link: error: a.o and b.o each contain a host program, but a HSACO")


@pytest.mark.parametrize(
    ("manifest", "message"),
    [
        ("{", "k.o: the host program is damaged"),
        ("[]", "k.o: the host program is damaged"),
        (text.write(PROGRAM) + "x", "k.o: the host program is damaged"),
        (
            text.write(PROGRAM).replace('"kernel":"k"', '"kernel":"gone"'),
            "k.o: the host program launches the kernel gone, which no object defines",
        ),
        (
            text.write(PROGRAM).replace("gfx942", "gfx90a"),
            "k.o: the host program is for gfx90a, but the code is for gfx942",
        ),
        (
            text.write(PROGRAM).replace('"version":3', '"version":9'),
            "k.o: the host program has version 9, but this tool reads versions 2 and 3",
        ),
    ],
)
def test_a_program_that_does_not_fit(manifest, message):
    assert message in refusal([kernel(manifest=manifest)], ["k.o"])


def test_no_kernel_is_a_warning():
    source = b"""target triple = "amdgcn-amd-amdhsa"
define i32 @helper(i32 %x) #0 {
  ret i32 %x
}
attributes #0 = { "target-cpu"="gfx942" }
"""
    said: list[str] = []
    assert link([llvm("llc", "-mcpu=gfx942", "-filetype=obj", data=source)], warn=said.append)
    assert said == ["the HSACO defines no kernel: nothing can be launched"]
    said.clear()
    assert link([kernel()], warn=said.append)
    assert said == []


def test_a_host_program_without_kernels_is_no_warning():
    """It may call libraries, or only compute."""
    made = program.Program(
        "f",
        "gfx942",
        (),
        (("const", 1),),
        (),
        results=program.Operand("integer", 0),
        result_names=("n",),
    )
    escaped = text.write(made).replace('"', "\\5C\\22")
    source = f"""target triple = "amdgcn-amd-amdhsa"
module asm ".pushsection {SECTION},\\22\\22,@progbits"
module asm ".ascii \\22{escaped}\\22"
module asm ".popsection"
"""
    said: list[str] = []
    data = llvm("llc", "-mcpu=gfx942", "-filetype=obj", data=source.encode())
    linked = CodeObject.parse(link([data], warn=said.append))
    assert said == []
    assert (linked.target, linked.kernels, linked.program) == ("gfx942", {}, made)


def test_what_is_no_object():
    data = kernel()
    assert "k.o: the input is empty" in refusal([b""], ["k.o"])
    assert "k.o: the input is LLVM IR, not" in refusal([b"define void @f() {}"], ["k.o"])
    assert "b.o: the input is a linked code object, not" in refusal(
        [data, link([kernel("other")])], ["a.o", "b.o"]
    )
    host = bytearray(data)
    host[18:20] = (62).to_bytes(2, "little")  # EM_X86_64
    assert "k.o: the input is an ELF file for another machine" in refusal([bytes(host)], ["k.o"])
    unknown = bytearray(data)
    unknown[48] = 0xEE  # the processor's number in e_flags
    assert "k.o: unknown AMD GPU processor 0xee" in refusal([bytes(unknown)], ["k.o"])


def test_cut_objects_are_errors():
    data = kernel(manifest=text.write(PROGRAM))
    for sixteenth in range(16):
        assert "error: k.o: " in refusal([data[: len(data) * sixteenth // 16]], ["k.o"])


def test_damaged_objects_are_errors_or_link():
    data = kernel(manifest=text.write(PROGRAM))
    chance = random.Random(2)
    words = []
    for _ in range(150):
        damaged = bytearray(data)
        for _ in range(chance.randint(1, 4)):
            # The headers and tables are where damage hurts: half of the flips go there.
            low = chance.choice((0, len(data) - 1500))
            damaged[chance.randrange(low, len(data))] = chance.randrange(256)
        try:
            link([bytes(damaged)], ["k.o"])
        except FlyError as error:
            words.append(error.render("fly-link"))
    assert len(words) > 20
    assert not [text for text in words if "/proc/" in text or text.endswith(": ")]


def test_fingerprint_and_no_llvm(monkeypatch):
    before = fingerprint()
    assert before == fingerprint()
    assert "-shared" in before
    data = kernel()
    monkeypatch.setenv("FLY_LLVM_DIR", "/nonexistent")
    with pytest.raises(MissingError, match=r"has no bin/ld\.lld"):
        link([data])
    with pytest.raises(MissingError):
        fingerprint()


def test_a_linker_that_does_not_end_is_killed(tmp_path, monkeypatch):
    """By the flag and by the variable; a stage that hangs would hang the whole pipe."""
    linker = tmp_path / "bin" / "ld.lld"
    linker.parent.mkdir()
    linker.write_text("#!/bin/sh\nexec sleep 60\n")
    linker.chmod(0o755)
    (tmp_path / "k.o").write_bytes(kernel())
    program = Path(sys.executable).with_name("fly-link")
    for words, variable in ((["--timeout", "0.3"], "60"), ([], "0.3")):
        done = subprocess.run(
            [program, *words, str(tmp_path / "k.o")],
            env={**os.environ, "FLY_LLVM_DIR": str(tmp_path), "FLY_TIMEOUT": variable},
            capture_output=True,
            text=True,
            timeout=30,
        )
        assert (done.returncode, done.stdout) == (1, "")
        first, _, again = done.stderr.splitlines()
        assert first == "fly-link: error: ld.lld did not finish within 0.3 s and was killed"
        assert again == f"  reproduce: {' '.join(['fly-link', *words, str(tmp_path / 'k.o')])}"
