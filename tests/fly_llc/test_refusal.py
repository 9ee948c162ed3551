"""What llc refuses, word for word as a user sees it."""

import pytest
from fly_common.errors import FlyError
from fly_llc import Options, compile

HEAD = 'target triple = "amdgcn-amd-amdhsa"\n'
TAIL = 'attributes #0 = { "target-cpu"="gfx942" }\n'
DEBUG = """!llvm.dbg.cu = !{!0}
!llvm.module.flags = !{!3}
!0 = distinct !DICompileUnit(language: DW_LANG_C, file: !1, producer: "fly", emissionKind: LineTablesOnly)
!1 = !DIFile(filename: "kernel.py", directory: "/src")
!3 = !{i32 2, !"Debug Info Version", i32 3}
!4 = distinct !DISubprogram(name: "k", file: !1, line: 3, type: !5, unit: !0)
!5 = !DISubroutineType(types: !6)
!6 = !{}
!7 = !DILocation(line: 12, column: 3, scope: !4)
"""  # noqa: E501


def refusal(source: str, options: Options | None = None) -> str:
    with pytest.raises(FlyError) as caught:
        compile(source.encode(), options or Options(), "k.ll")
    assert caught.value.exit_code == 1
    return caught.value.render("fly-llc")


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (
            "define void @f() #0 {\n  %x = add i32 1, %y\n  ret void\n}\n",
            "fly-llc: error: k.ll:3:19: use of undefined value '%y'\n"
            "    %x = add i32 1, %y\n"
            "                    ^",
        ),
        (
            "define void @f() #0 {\n\t%x = add i32 1, flot\n  ret void\n}\n",
            "fly-llc: error: k.ll:3:18: expected value token\n"
            "  \t%x = add i32 1, flot\n"
            "  \t                ^",
        ),
        (
            "define i32 @f(i32 %x) #0 {\n"
            "  %p = phi i32 [ %x, %no ]\n  ret i32 %p\nno:\n  ret i32 0\n}\n",
            "fly-llc: error: k.ll:3:3: the module is not valid LLVM IR: PHINode should have one "
            "entry for each predecessor of its parent basic block\n"
            "    %p = phi i32 [ %x, %no ]\n"
            "    ^",
        ),
        (
            'define void @f() #0 {\n  call void asm sideeffect "v_bogus v0", ""()\n  ret void\n}\n',
            "fly-llc: error: k.ll: in inline assembly: invalid instruction: v_bogus v0",
        ),
        (
            'module asm ".bogus x"\ndefine void @f() #0 {\n  ret void\n}\n',
            "fly-llc: error: k.ll: in inline assembly: unknown directive: .bogus x",
        ),
        (
            "define void @f(ptr %p, i128 %n) #0 {\n"
            "  %q = atomicrmw add ptr %p, i128 %n seq_cst\n  ret void\n}\n",
            "fly-llc: error: k.ll: unsupported cmpxchg",
        ),
        (
            "define void @f(ptr %p, ...) #0 {\n  %q = va_arg ptr %p, i32\n  ret void\n}\n",
            None,
        ),
    ],
)  # fmt: skip
def test_refused_ir(body, expected):
    said = refusal(HEAD + body + TAIL)
    if expected is None:
        assert said.startswith("fly-llc: error: k.ll: in f: Cannot select: i32,ch = vaarg")
        assert "0x" not in said  # addresses differ from run to run
        assert said.endswith("gfx942 has no instruction for it: compute it differently, or use a"
                             " newer --target")  # fmt: skip
    else:
        assert said == expected


def test_a_target_refusal_names_the_place_in_the_kernels_source():
    body = """declare i32 @printf(i32)
define amdgpu_kernel void @k(i32 %n) #0 !dbg !4 {
  %q = call i32 @printf(i32 %n), !dbg !7
  ret void, !dbg !7
}
"""
    assert refusal(HEAD + body + TAIL + DEBUG) == (
        "fly-llc: error: kernel.py:12:3: in k: printf format string must be a trivially resolved "
        "constant string global variable"
    )


def test_an_unknown_processor():
    body = 'define void @f() "target-cpu"="gfx9999" {\n  ret void\n}\n'
    assert refusal(HEAD + body).startswith(
        "fly-llc: error: k.ll: LLVM does not know the processor 'gfx9999'"
    )


@pytest.fixture
def mir(small):
    return compile(small().encode(), Options("mir", stop_after="finalize-isel")).decode()


@pytest.mark.parametrize(
    ("old", "new", "what", "shown"),
    [
        ("GLOBAL_STORE_DWORD_SADDR", "GLOBAL_BOGUS", "unknown machine instruction name", None),
        ("isSSA: ", "isSSA: perhaps # ", "invalid boolean", "isSSA: perhaps"),
        ("isSSA: ", "isSSB: true # ", "unknown key 'isSSB'", "isSSB: true"),
        ("%w = fadd", "%w = fmad", "expected instruction opcode", "%w = fmad"),
    ],
)
def test_refused_mir(mir, old, new, what, shown):
    broken = mir.replace(old, new, 1)
    line = next(n for n, text in enumerate(broken.splitlines(), 1) if new in text)
    first, excerpt, *_ = refusal(broken).splitlines()
    assert first.startswith(f"fly-llc: error: k.ll:{line}:")
    assert what in first
    assert (shown or new) in excerpt


def test_bad_machine_code_is_named_by_its_instruction(mir):
    lines = mir.splitlines(keepends=True)
    without = "".join(line for line in lines if "V_MOV_B32_e32 0" not in line)
    assert without != mir
    assert refusal(without).startswith(
        "fly-llc: error: k.ll: bad machine code in small: Reading virtual register without a def: "
        "GLOBAL_STORE_DWORD_SADDR killed %"
    )
