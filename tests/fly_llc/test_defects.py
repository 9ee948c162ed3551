"""Passes of LLVM that generate wrong code, and the code without them."""

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
from fly_llc.backends.amd import defects as amd
from fly_llc.codegen import defects, llc, points
from fly_target.amd import chips

from .woven import CASES, ir

PEEPHOLE = "si-pre-emit-peephole"
CHIPS = ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201", "gfx1250")
# Examples that no defect concerns, and whose modules need no second run of llc.
PLAIN = ("vector_add", "row_softmax", "gemm_f16", "top_k")
PLAIN_CHIPS = ("gfx942", "gfx1100")
# The S_AND that the pass erases.
KEPT = {
    "asm": re.compile(rb"s_and_b64 vcc, exec, vcc\n\ts_cbranch_vccnz"),
    "mir": re.compile(rb"vcc = S_AND_B64 .*implicit-def \$scc\b"),
}
LAST, COUNT, LESS, MORE = 2, 5, 5, 37  # of `selects`


def selects(cpu: str, manifest: str = "") -> bytes:
    """A kernel whose outer loop selects the bound of an inner loop by the condition on which it
    skips that loop, which is LLVM's issue 215745. `expected` is what it computes."""
    escaped = "".join(f"\\{ord(c):02X}" if c in '"\\' else c for c in manifest.replace('"', '\\"'))
    return f"""target triple = "amdgcn-amd-amdhsa"
module asm ".pushsection .fly.manifest,\\22\\22,@progbits"
module asm ".ascii \\22{escaped}\\22"
module asm ".popsection"
define amdgpu_kernel void @selects(ptr addrspace(1) %out) #0 {{
entry:
  %n = load volatile i64, ptr addrspace(1) %out
  br label %outer
outer:
  %k = phi i64 [ 0, %entry ], [ %next, %latch ]
  %sum = phi i64 [ 0, %entry ], [ %after, %latch ]
  %c = icmp sgt i64 %k, %n
  %bound = select i1 %c, i64 {MORE}, i64 {LESS}
  br i1 %c, label %latch, label %inner
inner:
  %j = phi i64 [ 0, %outer ], [ %j1, %inner ]
  %part = phi i64 [ %sum, %outer ], [ %more, %inner ]
  %more = add i64 %part, %bound
  %j1 = add i64 %j, 1
  %done = icmp sge i64 %j1, %bound
  br i1 %done, label %latch, label %inner
latch:
  %after = phi i64 [ %sum, %outer ], [ %more, %inner ]
  %next = add i64 %k, 1
  %last = icmp sge i64 %next, {COUNT}
  br i1 %last, label %exit, label %outer
exit:
  %at = getelementptr i64, ptr addrspace(1) %out, i64 1
  store i64 %after, ptr addrspace(1) %at
  ret void
}}
attributes #0 = {{ "target-cpu"="{cpu}" }}
""".encode()


def expected() -> int:
    rounds = min(LAST + 1, COUNT)
    return rounds * LESS * LESS


def computed(obj: bytes, folder) -> int:
    """Runs an object of `selects` on the emulator."""
    np.save(folder / "in.npy", np.array([LAST, -1], np.int64))
    given = f"out={folder}/in.npy:{folder}/out.npy"
    tool = Path(sys.executable).with_name("fly-run")
    subprocess.run([tool, given], input=link([obj]), check=True, capture_output=True, timeout=60)
    return int(np.load(folder / "out.npy")[1])


def described(cpu: str) -> str:
    return text.write(
        program.Program(
            entry="selects",
            target=cpu,
            parameters=(program.Tensor("out", "i64", (2,), (1,), "rw", contiguous=True),),
            expressions=(("const", 1),),
            steps=(
                program.Launch(
                    "selects", (0, 0, 0), (0, 0, 0), 0, ((program.Word("pointer", "out"),),)
                ),
            ),
        )
    )


@pytest.mark.parametrize("cpu", CHIPS)
def test_a_pass_that_strikes_is_left_out(cpu, llvm):
    source = selects(cpu)
    made = compile(source, Options())
    assert made != llvm("llc", f"-mcpu={cpu}", "-filetype=obj", data=source)
    assert made == compile(source, Options(disable=(PEEPHOLE,)))


@pytest.mark.heavy
@pytest.mark.parametrize("cpu", ["gfx90a", "gfx942", "gfx1100", "gfx1201"])
def test_the_results_are_right(cpu, llvm, tmp_path):
    source = selects(cpu, described(cpu))
    wrong = llvm("llc", f"-mcpu={cpu}", "-filetype=obj", data=source)
    assert computed(wrong, tmp_path) != expected()
    assert computed(compile(source, Options()), tmp_path) == expected()


@pytest.mark.parametrize("emit", ["asm", "mir"])
def test_other_outputs(emit, llvm):
    source = selects("gfx942")
    stop = "si-pre-emit-peephole" if emit == "mir" else None
    made = compile(source, Options(emit=emit, stop_after=stop))
    assert KEPT[emit].search(made)
    words = ["-stop-after=si-pre-emit-peephole"] if emit == "mir" else []
    assert not KEPT[emit].search(llvm("llc", "-mcpu=gfx942", *words, data=source))


def test_mir_that_is_stopped_before_and_resumed():
    source = selects("gfx942")
    mir = compile(source, Options(emit="mir", stop_before=PEEPHOLE))
    assert compile(mir, Options()) == compile(source, Options())


@pytest.mark.parametrize("point", ["post-frame", "pre-emit"])
def test_beside_insertions(point):
    source = selects("gfx942")
    assert compile(source, Options(insert=(f"{point}=cat",))) == compile(source, Options())


def test_beside_passes_that_the_user_leaves_out():
    source = selects("gfx942")
    without = compile(source, Options(disable=("si-insert-hard-clauses", PEEPHOLE)))
    assert compile(source, Options(disable=("si-insert-hard-clauses",))) == without


def test_a_filter_runs_once(tmp_path):
    """Beside a filter, nothing runs twice but llc."""
    program = tmp_path / "count"
    program.write_text(f"#!/bin/sh\necho x >> {tmp_path}/runs\ncat\n")
    program.chmod(0o755)
    compile(selects("gfx942"), Options(insert=(f"post-frame={program}",)))
    assert (tmp_path / "runs").read_text() == "x\n"


@pytest.fixture
def runs(monkeypatch):
    """The points up to which llc runs."""
    found = []
    generate = llc._generate

    def recorded(source, emit, stop=None, *words):
        found.append(str(stop) if stop else emit)
        return generate(source, emit, stop, *words)

    monkeypatch.setattr(llc, "_generate", recorded)
    return found


@pytest.mark.parametrize("cpu", ["gfx90a", "gfx942"])
def test_ordinary_modules_are_compiled_once(cpu, large, runs, llvm):
    source = large(cpu).encode()
    made = compile(source, Options())
    assert runs == ["obj"]
    assert made == llvm("llc", f"-mcpu={cpu}", "-filetype=obj", data=source)


def test_at_level_0_there_is_no_such_pass(runs, llvm):
    source = selects("gfx942")
    made = compile(source, Options(level=0))
    assert runs == ["obj"]
    assert made == llvm("llc", "-mcpu=gfx942", "-O0", "-filetype=obj", data=source)


def test_a_fixed_llvm(monkeypatch, runs):
    monkeypatch.setattr(defects, "llc_version", lambda: 24)
    compile(selects("gfx942"), Options())
    assert runs == ["obj"]


def test_an_llc_that_cannot_resume(monkeypatch):
    generate = llc._generate

    def refused(source, emit, stop=None, *words):
        done = generate(source, emit, stop, *words)
        return replace(done, output=None) if source.resume else done

    monkeypatch.setattr(llc, "_generate", refused)
    with pytest.raises(InputError, match="generates wrong code for this module") as caught:
        compile(selects("gfx942"), Options())
    assert "issues/215745" in str(caught.value.hint)


SELECTS_AND_BRANCHES = "\n".join(
    f"{select}\n{branch}"
    for select in ("s_cselect_b32 s3, s4, s5", "s_cselect_b64 s[2:3], s[4:5], s[6:7]")
    for branch in ("s_cbranch_vccz 0", "s_cbranch_vccnz 0")
)


@pytest.mark.parametrize("cpu", [chip.name for chip in chips.CHIPS])
def test_encodings_are_found(cpu, llvm):
    """Each pair of a select and a branch, as LLVM's assembler encodes them for each chip."""
    lines = SELECTS_AND_BRANCHES.splitlines()
    for at in range(0, len(lines), 2):
        assert amd.has_branch_and_select(_assembled(lines[at : at + 2], cpu, llvm), "obj", cpu)
    for line in lines:
        assert not amd.has_branch_and_select(_assembled([line], cpu, llvm), "obj", cpu)


def _assembled(lines, cpu, llvm) -> bytes:
    words = ("-triple=amdgcn-amd-amdhsa", f"-mcpu={cpu}", "-filetype=obj")
    return llvm("llvm-mc", *words, data="\n".join([*lines, ""]).encode())


def test_an_unknown_processor_is_checked():
    assert amd.has_branch_and_select(b"", "obj", "gfx1300")


BLOCK = """  bb.1:
    V_CMP_GT_I64_e32 $sgpr4_sgpr5, $vgpr0_vgpr1, implicit-def $vcc, implicit $exec
    renamable $vcc = S_AND_B64 $exec, killed renamable $vcc, {scc}
{between}    S_CBRANCH_VCCNZ %bb.1, implicit killed $vcc
...
"""


def test_what_mir_shows():
    def strikes(scc="implicit-def $scc", between="", block=BLOCK):
        return amd.and_sets_scc(block.format(scc=scc, between=between).encode())

    assert strikes()
    assert strikes(between="    $sgpr3 = S_CSELECT_B32 $sgpr4, $sgpr5, implicit killed $scc\n")
    assert strikes(block=BLOCK.replace("$vcc", "$vcc_lo").replace("S_AND_B64", "S_AND_B32"))
    assert not strikes(scc="implicit-def dead $scc")
    assert not strikes(between="...\n")
    assert not strikes(between="\n  bb.2:\n")
    assert not strikes(block=BLOCK.replace("renamable $vcc = S_AND", "$sgpr0_sgpr1 = S_AND"))


def test_the_table_names_passes_of_the_pipeline():
    for defect in amd.DEFECTS:
        assert defect.machine_pass in points.machine_passes("gfx942", 2)


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("case", "cpu"),
    [(one, cpu) for one in CASES if one.name in PLAIN for cpu in one.targets if cpu in PLAIN_CHIPS],
    ids=lambda value: getattr(value, "name", value),
)
def test_examples_keep_their_bytes(case, cpu, runs, llvm):
    source = ir(case, cpu)
    runs.clear()
    made = compile(source, Options())
    assert runs == ["obj"]
    assert made == llvm("llc", f"-mcpu={cpu}", "-filetype=obj", data=source)
