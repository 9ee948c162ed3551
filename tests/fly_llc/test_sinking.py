"""Instructions that read other lanes stay where all lanes are, which LLVM's MachineSink forgets."""

import re
from typing import NamedTuple

import numpy as np
import pytest
from fly_link import link
from fly_llc import Options, compile
from fly_llc.codegen import defects
from oracle.launching.device import on_emulator

from .test_defects import PEEPHOLE, runs, selects

__all__ = ["runs"]
SINK = "machine-sink"
STORING = 4  # lanes that store their results
HALF = "<16 x half>"
WMMA = "llvm.amdgcn.wmma"


def kernel(cpu: str, read: str, call: str, kind: str, features: str = "") -> bytes:
    """Calls an intrinsic in all lanes, and stores the result in some. `read` computes %v from the
    lane's element of `in`, by an instruction that is moved with the call."""
    wave = f' "target-features"="{features}"' if features else ""
    return f"""target triple = "amdgcn-amd-amdhsa"
define amdgpu_kernel void @lanes(ptr addrspace(1) %in, ptr addrspace(1) %out) #0 {{
entry:
  %lane = call i32 @llvm.amdgcn.workitem.id.x()
  {read}
  %w = call {kind} {call}
  %few = icmp slt i32 %lane, {STORING}
  br i1 %few, label %then, label %end
then:
  %to = getelementptr {kind}, ptr addrspace(1) %out, i32 %lane
  store {kind} %w, ptr addrspace(1) %to
  br label %end
end:
  ret void
}}
attributes #0 = {{ "target-cpu"="{cpu}" "amdgpu-flat-work-group-size"="64,64"{wave} }}
""".encode()


def loaded(kind: str, more: str) -> str:
    return f"""%at = getelementptr {kind}, ptr addrspace(1) %in, i32 %lane
  %u = load volatile {kind}, ptr addrspace(1) %at, align 4
  %v = {more}"""


I32 = loaded("i32", "add i32 %u, 1")
HALVES = loaded(HALF, f"fadd {HALF} %u, splat (half 1.0)")
BYTES = loaded("<8 x i32>", "xor <8 x i32> %u, splat (i32 16843009)")
SHORTS = loaded("<16 x i16>", "xor <16 x i16> %u, splat (i16 1)")
WORDS = loaded("<4 x i32>", "xor <4 x i32> %u, splat (i32 1)")
PAIRS = loaded("<2 x i32>", "xor <2 x i32> %u, splat (i32 1)")
W64 = "+wavefrontsize64"


def product(name: str, kind: str, given: str, more: str = "") -> tuple[str, str]:
    """A call of WMMA of f16 or bf16, and the type of its result."""
    operands = f"{given} %v, {given} %v, {kind} zeroinitializer{more}"
    return f"@{WMMA}.{name}({operands})", kind


def integers(name: str, kind: str, given: str) -> tuple[str, str]:
    operands = f"i1 1, {given} %v, i1 1, {given} %v, {kind} zeroinitializer, i1 0"
    return f"@{WMMA}.{name}({operands})", kind


def scaled(m: int, k: int, kind: str, given: str = "<8 x i32>") -> tuple[str, str]:
    name = f"llvm.amdgcn.mfma.scale.f32.{m}x{m}x{k}.f8f6f4.v8i32.v8i32"
    operands = f"{given} %v, {given} %v, {kind} zeroinitializer"
    return f"@{name}({operands}, i32 0, i32 0, i32 0, i32 127, i32 0, i32 127)", kind


def permuted(name: str, operands: str) -> tuple[str, str]:
    return f"@llvm.amdgcn.permlane{name}({operands})", "i32"


VAR = "i32 7, i32 %v, i32 15, i1 false, i1 false"


class Case(NamedTuple):
    """`read` computes %v. `call` is a call and its type."""

    cpu: str
    read: str
    call: tuple[str, str]
    features: str = ""


CASES = (
    Case("gfx1100", HALVES, product("f32.16x16x16.f16", "<8 x float>", HALF)),
    Case("gfx1151", HALVES, product("f32.16x16x16.f16", "<8 x float>", HALF)),
    Case("gfx1100", SHORTS, product("f32.16x16x16.bf16", "<8 x float>", "<16 x i16>")),
    Case("gfx1100", HALVES, product("f16.16x16x16.f16", HALF, HALF, ", i1 0")),
    Case("gfx1100", SHORTS, product("bf16.16x16x16.bf16", "<16 x i16>", "<16 x i16>", ", i1 0")),
    Case("gfx1100", HALVES, product("f16.16x16x16.f16.tied", HALF, HALF, ", i1 0")),
    Case("gfx1100", WORDS, integers("i32.16x16x16.iu8", "<8 x i32>", "<4 x i32>")),
    Case("gfx1100", PAIRS, integers("i32.16x16x16.iu4", "<8 x i32>", "<2 x i32>")),
    Case("gfx1100", HALVES, product("f32.16x16x16.f16", "<4 x float>", HALF), W64),
    Case("gfx1100", I32, permuted("64.i32", "i32 %v"), W64),
    Case("gfx950", BYTES, scaled(16, 128, "<4 x float>")),
    Case("gfx950", BYTES, scaled(32, 64, "<16 x float>")),
    Case("gfx1201", I32, permuted("16.var", VAR)),
    Case("gfx1201", I32, permuted("x16.var", VAR)),
    Case("gfx1201", I32, permuted("64.i32", "i32 %v"), W64),
    Case("gfx1250", I32, permuted("16.var", VAR)),
    Case("gfx1250", I32, permuted(".bcast", "i32 %v, i32 15, i32 32")),
    Case("gfx1250", I32, permuted(".up", "i32 %v, i32 1, i32 32")),
    Case("gfx1250", I32, permuted(".down", "i32 %v, i32 1, i32 32")),
    Case("gfx1250", I32, permuted(".xor", "i32 %v, i32 1, i32 32")),
)


def source(case: Case) -> bytes:
    return kernel(case.cpu, case.read, *case.call, features=case.features)


def named(case: Case) -> str:
    intrinsic = re.search(r"amdgcn\.([\w.]+)", case.call[0])
    assert intrinsic
    return f"{case.cpu}-{intrinsic[1]}{case.features}"


@pytest.mark.parametrize("case", CASES, ids=named)
@pytest.mark.parametrize("emit", ["obj", "asm"])
def test_the_pass_is_left_out(case, emit, llvm):
    given = source(case)
    made = compile(given, Options(emit=emit))
    words = (f"-mcpu={case.cpu}", f"-filetype={emit}")
    assert made != llvm("llc", *words, data=given)
    assert made == llvm("llc", *words, f"-disable-{SINK}", data=given)


def test_mir():
    given = source(CASES[0])
    stop = "si-insert-waitcnts"
    made = compile(given, Options(emit="mir", stop_before=stop))
    entry = made[made.rindex(b"  bb.0") : made.rindex(b"  bb.1")]
    assert b"V_WMMA" in entry
    assert compile(made, Options()) == compile(given, Options())


@pytest.mark.parametrize("stop", [{"stop_before": SINK}, {"stop_after": SINK}])
def test_mir_at_the_pass(stop):
    """llc's option to leave the pass out can't be used where it is the one at which llc stops or
    starts."""
    given = source(CASES[0])
    made = compile(given, Options(emit="mir", **stop))
    entry = made[made.rindex(b"  bb.0") : made.rindex(b"  bb.1")]
    assert b"V_WMMA" in entry
    assert compile(made, Options()) == compile(given, Options())


@pytest.mark.parametrize("level", [1, 2, 3])
def test_wmma_computes_with_all_lanes(level, llvm):
    """A lane has a row of A and a column of B, both of `in`; in VGPR i it has row 2·i."""
    given = source(CASES[0])
    data = np.random.default_rng(3).integers(-4, 5, (32, 16)).astype(np.float16)
    data[16:] = data[:16]
    rows = (data[:16] + 1).astype(np.float32)
    expected = (rows @ rows.T)[::2, :STORING].T
    check(given, data, expected, level, llvm, threads=32)


@pytest.mark.parametrize("level", [1, 2, 3])
def test_scaled_mfma_computes_with_all_lanes(level, llvm):
    """A lane has 32 equal values of a row of A, and of a column of B; and four rows of a column."""
    given = source(Case("gfx950", BYTES, scaled(16, 128, "<4 x float>")))
    values = 1 + np.arange(64) * 7 % 3 % 2  # 1 or 2, by E4M3 0x38 or 0x40
    codes = np.where(values == 1, 0x38383838, 0x40404040) ^ 0x01010101
    data = np.repeat(codes[:, None], 8, 1).astype(np.int32)
    rows = values.reshape(4, 16).astype(np.float32)
    expected = (32 * rows.T @ rows)[:4, :STORING].T
    check(given, data, expected, level, llvm, threads=64)


@pytest.mark.parametrize("cpu", ["gfx1201", "gfx1250"])
@pytest.mark.parametrize("level", [1, 2, 3])
def test_permlane_reads_all_lanes(cpu, level, llvm):
    given = source(Case(cpu, I32, permuted("16.var", VAR)))
    data = np.arange(100, 132, dtype=np.int32)
    check(given, data, np.full(STORING, data[15] + 1), level, llvm, threads=32)


def check(given, data, expected, level, llvm, threads):
    """LLVM's code computes something else; ours what is expected."""
    cpu = re.search(rb'"target-cpu"="(\w+)"', given)
    assert cpu
    plain = llvm("llc", f"-mcpu={cpu[1].decode()}", f"-O{level}", "-filetype=obj", data=given)
    assert not np.allclose(computed(plain, data, expected, threads), expected)
    made = compile(given, Options(level=level))
    np.testing.assert_allclose(computed(made, data, expected, threads), expected, atol=1e-4)


def computed(obj: bytes, data, expected, threads: int):
    out = np.full_like(expected, 99, data.dtype if data.ndim == 1 else np.float32)
    done = on_emulator(link([obj]), "lanes", (1, 1, 1), (threads, 1, 1), [data, out])
    return done.arguments[1]


UNIFORM = source(CASES[0]).replace(b"slt i32 %lane,", b"slt i32 %group,")
UNIFORM = UNIFORM.replace(b"entry:", b"entry:\n  %group = call i32 @llvm.amdgcn.workgroup.id.x()")


def test_modules_that_keep_the_pass(runs, llvm):
    """Where no branch is divergent, all lanes go with the instruction; and what the result is used
    for in its own block keeps it there."""
    before_and_after = ["obj", f"before {SINK}", f"after {SINK}"]
    used = source(CASES[0]).replace(
        b"  %few", b"  store <8 x float> %w, ptr addrspace(1) %in\n  %few"
    )
    for given, steps in ((UNIFORM, before_and_after[:2]), (used, before_and_after)):
        runs.clear()
        made = compile(given, Options())
        assert runs == steps
        assert made == llvm("llc", "-mcpu=gfx1100", "-filetype=obj", data=given)


@pytest.mark.parametrize("cpu", ["gfx950", "gfx1100", "gfx1201", "gfx1250"])
def test_beside_the_other_pass(cpu, monkeypatch, llvm):
    """Both passes strike in one module."""
    given = next(one for one in CASES if one.cpu == cpu)
    second = re.search(rb"^define .*^}$", selects(cpu), re.MULTILINE | re.DOTALL)
    assert second
    both = source(given).replace(b"attributes #0", second[0] + b"\nattributes #0")
    done = []
    real = defects.avoid
    monkeypatch.setattr(defects, "avoid", lambda *given: done.append(real(*given)) or done[-1])
    made = compile(both, Options())
    assert done[-1].left_out == (SINK, PEEPHOLE)
    assert made != llvm("llc", f"-mcpu={cpu}", f"-disable-{SINK}", "-filetype=obj", data=both)


def test_a_fixed_llvm(monkeypatch, runs):
    monkeypatch.setattr(defects, "llc_version", lambda: 23)
    compile(source(CASES[0]), Options())
    assert runs == ["obj"]


def test_level_0_has_no_such_pass(runs):
    compile(source(CASES[0]), Options(level=0))
    assert runs == ["obj"]
