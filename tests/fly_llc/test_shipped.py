"""The filters that come with fly-llc: what they do, and that kernels compute the same with them."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter

import pytest
from fly_common.errors import InputError, UsageError
from fly_llc import Options, compile, mir
from fly_llc.codegen import assembly
from fly_llc.insertion.filters import SHIPPED, shipped

from .woven import CASES, compiled, ir, run

GFX942 = [case for case in CASES if "gfx942" in case.targets]
every_case = pytest.mark.parametrize("case", GFX942, ids=lambda case: case.name)
TARGETS = ["gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"]


def texts(module: str) -> dict[str, list[str]]:
    """Each function's instructions in order, without what says that a use is the last one."""
    return {
        function.name: [
            one.text.replace("killed ", "")
            for block in function.blocks
            for one in block.instructions
        ]
        for function in mir.parse(module).functions
    }


def test_the_sled_is_at_the_entry(small):
    insert = ("pre-emit=nop-sled --count 3 --cycles 2",)
    body = compile(small().encode(), Options("asm", insert=insert)).decode().partition("small:")[2]
    lines = [line.strip() for line in body.splitlines() if re.match(r"\t[a-z]", line)]
    assert lines[:3] == ["s_nop 1"] * 3
    assert not lines[3].startswith("s_nop")


@every_case
def test_the_scheduler_keeps_the_multiset_and_the_results(case):
    """Another order of the same instructions; random orders compute the same."""
    before = compile(ir(case, "gfx942"), Options("mir", stop_before="pre-waits")).decode()
    changed = 0
    for words in ("", "--order reverse", "--order random --seed 1", "--order random --seed 2"):
        after = shipped("schedule")(before, words.split())
        for name, lines in texts(after).items():
            assert Counter(lines) == Counter(texts(before)[name])
        changed += after != before
        run(case, compiled(case, "gfx942", insert=(f"pre-waits=schedule {words}",)))
    assert changed


@pytest.mark.parametrize("target", TARGETS)
def test_filters_together_on_every_target(target):
    """All of them in one compilation: the results stand."""
    insert = (
        "pre-ra=pressure",
        "pre-waits=peephole",
        "pre-waits=schedule",
        "pre-emit=peephole",
        *(["pre-emit=tighten-waits"] if target != "gfx1201" else []),
        "pre-emit=nop-sled",
    )
    for case in CASES:
        if case.name in ("matmul", "row_softmax", "histogram"):
            run(case, compiled(case, target, insert=insert))


def test_the_scheduler_knows_when_it_is_too_late(small):
    with pytest.raises(InputError, match="already contains S_WAITCNT: reordering would be wrong"):
        compile(small().encode(), Options(insert=("pre-emit=schedule",)))


@every_case
def test_waits_that_are_too_strong_are_relaxed(case, capsys):
    """LLVM made to wait for everything before everything; nearly all of it is found unnecessary,
    and the strict emulator finds nothing missing in the rest."""
    force = ("-amdgpu-waitcnt-forcezero=1",)
    insert = ("pre-emit=tighten-waits",)
    source = ir(case, "gfx942")

    def waits(options: Options) -> int:
        return sum(
            line.startswith("s_waitcnt")
            for lines in assembly.functions(compile(source, options)).values()
            for line in lines
        )

    strong, tight = waits(Options(flags=force)), waits(Options(flags=force, insert=insert))
    assert 0 < tight < strong / 2
    assert re.search(r"tighten-waits: \w+: [1-9]\d* of \d+ waits relaxed", capsys.readouterr().err)
    run(case, compiled(case, "gfx942", flags=force, insert=insert), strict=True)


PHYSICAL = """---
name: k
noVRegs: true
body: |
  bb.0:
    liveins: $sgpr0_sgpr1
{}
...
"""


def body(filter_name: str, lines: str, *words: str) -> str:
    text = PHYSICAL.format("\n".join(f"    {line.strip()}" for line in lines.strip().splitlines()))
    if filter_name == "tighten-waits":
        text = '--- |\n  attributes #0 = { "target-cpu"="gfx942" }\n...\n' + text
    made = shipped(filter_name)(text, ["--quiet", "1", *words])
    inside = made.partition("liveins: $sgpr0_sgpr1\n")[2].partition("...")[0].rstrip("\n")
    return "\n".join(line.strip() for line in inside.splitlines())


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("$vgpr1 = V_MOV_B32_e32 $vgpr1, implicit $exec", ""),
        ("$sgpr2 = S_MOV_B32 5\n$sgpr3 = S_MOV_B32 6", None),
        ("$sgpr2 = S_MOV_B32 5\n$sgpr3 = S_MOV_B32 0", "$sgpr2_sgpr3 = S_MOV_B64 5"),
        ("$sgpr3 = S_MOV_B32 -1\n$sgpr2 = S_MOV_B32 -3", "$sgpr2_sgpr3 = S_MOV_B64 -3"),
        ("$sgpr3 = S_MOV_B32 0\n$sgpr4 = S_MOV_B32 0", None),  # no aligned pair
        ("$sgpr2 = S_MOV_B32 5\nS_BARRIER\n$sgpr2 = S_MOV_B32 5",
         "$sgpr2 = S_MOV_B32 5\nS_BARRIER"),
        ("$sgpr2 = S_MOV_B32 5\n$sgpr2 = S_ADD_U32 $sgpr2, 1, implicit-def $scc\n"
         "$sgpr2 = S_MOV_B32 5", None),
        ("$vgpr1 = V_MOV_B32_e32 5, implicit $exec\n$exec = S_MOV_B64 $sgpr0_sgpr1\n"
         "$vgpr1 = V_MOV_B32_e32 5, implicit $exec", None),  # other lanes
        ("$vgpr1 = V_MOV_B32_e32 5, implicit $exec\n$vgpr0_vgpr1 = V_LSHLREV_B64_e64 1,"
         " $vgpr0_vgpr1, implicit $exec\n$vgpr1 = V_MOV_B32_e32 5, implicit $exec", None),
        ("$sgpr2 = S_MOV_B32 5\nINLINEASM &\"s_mov_b32 s2, 6\", 1\n$sgpr2 = S_MOV_B32 5", None),
        ("S_NOP 1\nS_NOP 2", "S_NOP 4"),
        ("S_NOP 5\nS_NOP 5", None),
    ],
)  # fmt: skip
def test_peephole(before, after):
    assert body("peephole", before) == (before if after is None else after)


LOADS = """
$vgpr1 = GLOBAL_LOAD_DWORD $vgpr8_vgpr9, 0, 0, implicit $exec :: (load (s32), addrspace 1)
$vgpr2 = GLOBAL_LOAD_DWORD $vgpr8_vgpr9, 8, 0, implicit $exec :: (load (s32), addrspace 1)
$vgpr3 = GLOBAL_LOAD_DWORD $vgpr8_vgpr9, 16, 0, implicit $exec :: (load (s32), addrspace 1)
"""
VM = {0: 3952, 1: 3953, 2: 3954}  # S_WAITCNT vmcnt(n) of gfx9, nothing else
USE = "$vgpr5 = V_ADD_U32_e32 {}, $vgpr7, implicit $exec"


@pytest.mark.parametrize(
    ("rest", "count"),
    [
        (f"{USE.format('$vgpr1')}\nS_WAITCNT {VM[0]}\nS_ENDPGM 0", 2),
        (f"{USE.format('$vgpr2')}\nS_WAITCNT {VM[0]}\nS_ENDPGM 0", 1),
        (f"{USE.format('$vgpr3')}\nS_WAITCNT {VM[0]}\nS_ENDPGM 0", 0),
        # Overwriting what a load will still write needs it done as well.
        (f"$vgpr2 = V_MOV_B32_e32 1, implicit $exec\nS_WAITCNT {VM[0]}\nS_ENDPGM 0", 1),
        (f"{USE.format('$vgpr1')}\nS_BARRIER\nS_ENDPGM 0", 0),  # a barrier may mean more
        (f"{USE.format('$vgpr1')}\nS_ENDPGM 0", 0),  # and so may the end
        (f"S_WAITCNT {VM[0]}\n{USE.format('$vgpr3')}\nS_ENDPGM 0", None),  # no need of this one
    ],
)
def test_how_much_a_wait_is_relaxed(rest, count):
    made = body("tighten-waits", f"{LOADS}S_WAITCNT {VM[0]}\n{rest}").splitlines()
    wanted = [f"S_WAITCNT {VM[count]}"] if count is not None else []
    assert made[3 : 3 + len(wanted)] == wanted
    assert made[3 + len(wanted) :] == rest.splitlines()


def test_scalar_loads_come_in_any_order():
    loads = """
    $sgpr2 = S_LOAD_DWORD_IMM $sgpr0_sgpr1, 0, 0 :: (load (s32), addrspace 4)
    $sgpr3 = S_LOAD_DWORD_IMM $sgpr0_sgpr1, 4, 0 :: (load (s32), addrspace 4)
    S_WAITCNT 49279
    $sgpr4 = S_ADD_U32 $sgpr2, 1, implicit-def $scc
    S_WAITCNT 49279
    S_ENDPGM 0
    """
    assert body("tighten-waits", loads).splitlines()[2] == "S_WAITCNT 49279"


def test_the_report_of_pressure(small, capsys):
    source = small().encode()
    made = compile(source, Options(insert=("post-ra=pressure --blocks 1",)))
    assert made == compile(source, Options())
    text = capsys.readouterr().err
    assert text.startswith("pressure: small\n  VGPRs     2  in bb.0 before ")
    # What is in use at once is at most what the kernel allocates.
    said = re.search(r"; NumVgprs: (\d+)", compile(source, Options("asm")).decode())
    assert said
    assert int(said[1]) >= 2


@every_case
def test_pressure_is_at_most_what_is_allocated(case, capsys):
    source = ir(case, "gfx942")
    text = compile(source, Options("asm", insert=("post-ra=pressure",))).decode()
    peaks = [int(count) for count in re.findall(r"^  VGPRs +(\d+) ", capsys.readouterr().err, re.M)]
    allocated = [int(count) for count in re.findall(r"; NumVgprs: (\d+)", text)]
    assert len(peaks) == len(allocated)
    for peak, most in zip(peaks, allocated, strict=True):
        assert most * 0.7 <= peak <= most


@pytest.mark.parametrize("name", SHIPPED)
def test_each_runs_by_itself(name, large):
    point = {"tighten-waits": "pre-emit"}.get(name, "pre-waits")
    text = compile(large("gfx942").encode(), Options("mir", stop_before=point))
    words = [sys.executable, "-m", "fly_llc.shipped", name]
    done = subprocess.run(words, input=text, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    insert = Options(insert=(f"{point}={name}",))
    assert compile(done.stdout, Options()) == compile(large("gfx942").encode(), insert)


@pytest.mark.parametrize("name", SHIPPED)
def test_bad_options(name):
    with pytest.raises(UsageError, match=f"{name} has no option --colour"):
        shipped(name)("", ["--colour", "red"])
    with pytest.raises(InputError, match="not MIR"):
        shipped(name)("hello", [])


def test_bad_values():
    with pytest.raises(UsageError, match="'many' is not a valid int"):
        shipped("nop-sled")(PHYSICAL, ["--count", "many"])
    with pytest.raises(UsageError, match="a value is missing"):
        shipped("nop-sled")(PHYSICAL, ["--count"])
    with pytest.raises(UsageError, match="latency, reverse or random"):
        shipped("schedule")(PHYSICAL, ["--order", "alphabetical"])
    with pytest.raises(UsageError, match="--cycles from 1 to 16"):
        shipped("nop-sled")(PHYSICAL, ["--cycles", "17"])
