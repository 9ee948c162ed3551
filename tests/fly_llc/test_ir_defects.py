"""Passes on LLVM IR within llc that generate wrong code, and modules for which they are right."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from fly_common.errors import InputError
from fly_common.record import replace
from fly_host import program, text
from fly_link import link
from fly_llc import Options, compile
from fly_llc.backends.amd import hoisting
from fly_llc.codegen import defects, ir_defects, llc

from . import random_flow
from .test_defects import selects
from .woven import CASES, ir

CHIPS = ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201", "gfx1250")
KEPT = ("vector_add", "row_softmax", "matmul", "preshuffle_gemm", "top_k")
INPUT = np.array([5, 7, 2, 0, -1, -1], np.int32)
EXPECTED = [15, 33]  # three times [5, 11]


def hoists(cpu: str, manifest: str = "") -> bytes:
    """A kernel with three ways into a block with an `insertelement`, and another way around it.
    For INPUT it is the last of the three that is taken."""
    escaped = "".join(f"\\{ord(c):02X}" if c in '"\\' else c for c in manifest.replace('"', '\\"'))
    return f"""target triple = "amdgcn-amd-amdhsa"
module asm ".pushsection .fly.manifest,\\22\\22,@progbits"
module asm ".ascii \\22{escaped}\\22"
module asm ".popsection"
define amdgpu_kernel void @hoists(ptr addrspace(1) %out) #0 {{
entry:
  %lane = call i32 @llvm.amdgcn.workitem.id.x()
  %p = getelementptr i32, ptr addrspace(1) %out, i32 %lane
  %old = load volatile <2 x i32>, ptr addrspace(1) %p, align 4
  %a = load volatile i32, ptr addrspace(1) %p
  %first = icmp eq i32 %a, 0
  br i1 %first, label %found, label %second
second:
  %q = getelementptr i8, ptr addrspace(1) %p, i64 4
  %b = load volatile i32, ptr addrspace(1) %q
  %is = icmp eq i32 %b, 1
  br i1 %is, label %found, label %third
third:
  %r = getelementptr i8, ptr addrspace(1) %p, i64 8
  %c = load volatile i32, ptr addrspace(1) %r
  %last = icmp eq i32 %c, 2
  br i1 %last, label %found, label %none
found:
  %v = insertelement <2 x i32> %old, i32 11, i64 1
  br label %join
none:
  store volatile i32 %a, ptr addrspace(1) %r
  %none.v = mul <2 x i32> %old, %old
  br label %join
join:
  %w = phi <2 x i32> [ %v, %found ], [ %none.v, %none ]
  %x = mul <2 x i32> %w, splat (i32 3)
  %to = getelementptr i8, ptr addrspace(1) %out, i64 16
  store <2 x i32> %x, ptr addrspace(1) %to, align 8
  ret void
}}
attributes #0 = {{ "target-cpu"="{cpu}" }}
""".encode()


def described(cpu: str) -> str:
    return text.write(
        program.Program(
            entry="hoists",
            target=cpu,
            parameters=(program.Tensor("out", "i32", (6,), (1,), "rw", contiguous=True),),
            expressions=(("const", 1),),
            steps=(
                program.Launch(
                    "hoists", (0, 0, 0), (0, 0, 0), 0, ((program.Word("pointer", "out"),),)
                ),
            ),
        )
    )


def computed(obj: bytes, folder) -> list[int]:
    """Runs an object of `hoists` on the emulator."""
    np.save(folder / "in.npy", INPUT)
    given = f"out={folder}/in.npy:{folder}/out.npy"
    tool = Path(sys.executable).with_name("fly-run")
    subprocess.run([tool, given], input=link([obj]), check=True, capture_output=True, timeout=60)
    return np.load(folder / "out.npy")[4:].tolist()


@pytest.mark.heavy
@pytest.mark.parametrize("level", [0, 2])
@pytest.mark.parametrize("cpu", ["gfx90a", "gfx942", "gfx1100", "gfx1201"])
def test_the_results_are_right(cpu, level, llvm, tmp_path):
    source = hoists(cpu, described(cpu))
    wrong = llvm("llc", f"-mcpu={cpu}", f"-O{level}", "-filetype=obj", data=source)
    assert computed(wrong, tmp_path) != EXPECTED
    assert computed(compile(source, Options(level=level)), tmp_path) == EXPECTED


@pytest.mark.parametrize("cpu", CHIPS)
def test_the_pass_gets_another_input(cpu, llvm):
    source = hoists(cpu)
    assert compile(source, Options()) != llvm("llc", f"-mcpu={cpu}", "-filetype=obj", data=source)


@pytest.mark.parametrize("cpu", ["gfx942", "gfx1100"])
def test_beside_a_machine_pass_that_is_left_out(cpu, monkeypatch):
    """Of one module, both the input of a pass on LLVM IR and a machine pass are wrong."""
    second = re.search(rb"^define .*^}$", selects(cpu), re.MULTILINE | re.DOTALL)
    assert second
    both = hoists(cpu).replace(b"attributes #0", second[0] + b"\nattributes #0")
    left_out = []
    real = defects.avoid

    def avoid(*given):
        done = real(*given)
        left_out.extend(done.left_out)
        return done

    monkeypatch.setattr(defects, "avoid", avoid)
    asm = compile(both, Options(emit="asm"))
    assert left_out == ["si-pre-emit-peephole"]
    assert all(name in asm for name in (b"hoists:", b"selects:"))
    assert b"freeze" in compile(both, Options(emit="mir", stop_before="si-insert-waitcnts"))


def test_bitcode(llvm):
    source = hoists("gfx942")
    assert compile(llvm("llvm-as", data=source), Options()) == compile(source, Options())


def test_mir_that_is_stopped_and_resumed():
    source = hoists("gfx942")
    mir = compile(source, Options(emit="mir", stop_before="si-insert-waitcnts"))
    assert b"%fly.frozen.0 = freeze <2 x i32> %v" in mir
    assert compile(mir, Options()) == compile(source, Options())


def test_beside_insertions():
    source = hoists("gfx942")
    assert compile(source, Options(insert=("pre-emit=cat",))) == compile(source, Options())


@pytest.mark.parametrize("cpu", ["gfx90a", "gfx942"])
def test_ordinary_modules_are_compiled_once(cpu, large, runs, llvm):
    source = large(cpu).encode()
    made = compile(source, Options())
    assert len(runs) == 1
    assert made == llvm("llc", f"-mcpu={cpu}", "-filetype=obj", data=source)


def test_a_fixed_llvm(monkeypatch, runs):
    monkeypatch.setattr(defects, "llc_version", lambda: 24)
    compile(hoists("gfx942"), Options())
    assert len(runs) == 1


def test_an_llc_that_cannot_go_on(monkeypatch):
    generate = llc._generate

    def refused(source, *words):
        done = generate(source, *words)
        return replace(done, output=None) if b"freeze" in source.data else done

    monkeypatch.setattr(llc, "_generate", refused)
    with pytest.raises(InputError, match="structurizecfg generates wrong code") as caught:
        compile(hoists("gfx942"), Options())
    assert "pull/183792" in str(caught.value.hint)


def test_an_llc_that_fails_before_the_pass(monkeypatch):
    monkeypatch.setattr(ir_defects, "_ir", lambda mir: None)
    assert compile(hoists("gfx942"), Options())


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("case", "cpu"),
    [(one, cpu) for one in CASES if one.name in KEPT for cpu in one.targets if cpu == "gfx942"],
    ids=lambda value: getattr(value, "name", value),
)
def test_examples_keep_their_bytes(case, cpu, llvm):
    source = ir(case, cpu)
    made = compile(source, Options())
    assert made == llvm("llc", f"-mcpu={cpu}", "-filetype=obj", data=source)


FUNCTION = """define amdgpu_kernel void @f(i32 %x, <2 x i32> %w, i1 %c, i1 %d) {{
  br i1 %c, label %a, label %b
a:                                                ; preds = %0
{a}
b:                                                ; preds = %0
  %v = {v}
  br label %join
{more}join:
  %r = phi fast <2 x i32> [ {a_value}, %{a_from} ], [ %v, %b ]
  ret void
}}
"""
INSERT = "insertelement <2 x i32> %w, i32 %x, i64 0"


def frozen(a="  br label %join", v=INSERT, a_value="%w", a_from="a") -> str | None:
    more = "other:\n  br label %join\n" if a_from == "other" else ""
    return hoisting.frozen(FUNCTION.format(a=a, v=v, more=more, a_value=a_value, a_from=a_from))


def test_which_values_are_frozen():
    branch = "  br i1 %d, label %join, label %b"
    made = frozen(branch)
    assert made is not None
    assert "  %fly.frozen.0 = freeze <2 x i32> %v\n  br label %join\n" in made
    assert "[ %w, %a ], [ %fly.frozen.0, %b ]" in made
    assert frozen(branch, "mul <2 x i32> %w, %w") is None
    assert frozen(branch, "call <2 x i32> @llvm.smin.v2i32(<2 x i32> %w, <2 x i32> %w)") is None
    # The operand is in the block itself.
    assert frozen(branch, f"freeze <2 x i32> %u\n  %u = {INSERT}") is None


def test_where_the_pass_is_right():
    assert frozen() is None
    # Several blocks on the other side, with one way in and one out.
    assert frozen("  br label %other", a_from="other") is None
    # An `if` without `else`.
    assert not hoisting.may_occur(
        "define void @f(i1 %c) {\n  br i1 %c, label %b, label %join\nb:\n  br label %join\n"
        "join:\n  %r = phi i32 [ 0, %0 ], [ 1, %b ]\n  ret void\n}\n"
    )


@pytest.mark.parametrize("cpu", ["gfx942", "gfx1100"])
def test_what_costs_nothing(cpu, llvm):
    """No other operation costs nothing by LLVM's model of costs."""
    shown = llvm(
        "opt",
        f"-mcpu={cpu}",
        "-disable-output",
        "-passes=print<cost-model>",
        "-cost-kind=latency",
        data=random_flow.OPERATIONS.encode(),
        stderr=True,
    ).decode()
    rows = re.findall(r"cost of (\d+) for instruction: +%\S+ = (?:tail )?(\w+)(.*)", shown)
    assert len(rows) > 60
    assert any(cost == "0" for cost, _, _ in rows)
    for cost, operation, rest in rows:
        free = re.fullmatch(hoisting._FREE, operation) is not None
        if operation == "call" and hoisting._COSTLY.search(rest):
            free = False
        assert free or cost != "0", f"{operation}{rest}"


@pytest.mark.heavy
@pytest.mark.parametrize("seed", [1, 5])
def test_random_control_flow(seed, llvm, tmp_path):
    """Functions of random control flow compute the same after the pass, as run by the host. Of
    these seeds' functions, LLVM's pass gets some wrong."""
    flow = random_flow.Functions(seed, llvm, tmp_path)
    given = flow.prepared()
    expected = flow.results(given)
    wrong = flow.differing(expected, flow.results(flow.structurized(given)))
    mended = hoisting.frozen(given)
    assert mended is not None
    assert wrong
    assert all(hoisting.may_occur(flow.function(given, name)) for name in wrong)
    assert not flow.differing(expected, flow.results(flow.structurized(mended)))
