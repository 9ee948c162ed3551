"""--stats: numbers worked out by hand from a kernel's text, and how they are told."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from emulator_support.engine import compile_opencl, launch
from fly_common.record import replace
from fly_image.amd.code_object import CodeObject
from fly_run.devices.options import Options
from fly_run.emulator.isa import kinds
from fly_run.emulator.isa.instruction import Instruction
from fly_run.emulator.machine import Emulator
from fly_run.emulator.watch.observe import Count
from fly_run.emulator.watch.stats import Statistics, document

FLY_RUN = Path(sys.executable).parent / "fly-run"


def statistics(code: CodeObject, arguments: list, grid: int, block: int = 64, **options) -> dict:
    seen = Statistics()
    device = Emulator(code.target, Options(observers=(seen,)))
    launch(code, arguments, grid, block, device=device, **options)
    (document,) = seen.documents
    return document


def test_every_number_of_an_addition(add: CodeObject) -> None:
    """kernels/add.s over 1,000 elements: 16 waves, the last one with 40 elements. All waves execute
    its 15 instructions, the six behind s_and_saveexec with 1,000 lanes in all."""
    arrays = [np.ones(1000, "f4") for _ in range(3)]
    found = statistics(add, [*arrays, np.int64(1000)], 16)
    vector = {"full": 3 * 1024, "narrow": 2 * 1000}
    assert found["instructions"] == 15 * 16
    assert (found["workgroups"], found["waves"]) == (16, 16)
    assert {name: kind["instructions"] for name, kind in found["kinds"].items()} == {
        "VALU": 5 * 16,  # v_lshl_add, v_mov, v_cmp; v_lshlrev, v_add
        "SMEM": 2 * 16,
        "VMEM load": 2 * 16,
        "wait": 2 * 16,
        "SALU": 16,
        "VMEM store": 16,
        "branch": 16,
        "other": 16,  # s_endpgm
    }
    assert next(iter(found["kinds"])) == "VALU"
    assert found["kinds"]["VALU"]["lanes_active"] == sum(vector.values()) / (80 * 64)
    assert found["kinds"]["VMEM load"]["lanes_active"] == 1000 / 1024
    assert found["kinds"]["SALU"]["lanes_active"] is None
    assert found["lanes_active"] == (sum(vector.values()) + 3 * 1000) / (128 * 64)
    assert found["branches"] == {"conditional": 16, "divergent": 1}
    # A full wave's 256 bytes are two lines of 128, and so are the last one's 160.
    assert found["memory"] == {
        "line_bytes": 128,
        "global": {
            "load": {"bytes": 8000, "lines": 64, "ideal_lines": 64},
            "store": {"bytes": 4000, "lines": 32, "ideal_lines": 32},
        },
        "LDS": {},
        "private": {},
        "scalar": {"load": {"bytes": 16 * 32}},
        "flat_to_LDS": {},
        "not_modelled": 0,
    }
    held = found["occupancy"]
    assert (held["waves"], held["most"], held["limits"]) == (8, 8, ())
    assert (held["workgroups"], held["unit_waves"]) == (32, 32)
    assert len(found["hottest"]) == 10
    first = found["hottest"][0]
    assert (first["text"], first["times"]) == ("s_load_dwordx4 s[4:7], s[0:1], 0x0", 16)
    assert first["share"] == 1 / 15


def test_conflicts_private_memory_and_atomics_are_told_apart() -> None:
    source = """kernel void k(global int *a, int n) {
        local int s[64 * 32];
        volatile int mine[4];
        s[TID * 32] = TID;
        BARRIER;
        mine[n] = s[TID * 32];
        __opencl_atomic_fetch_add((global atomic_int *)a, mine[n], __ATOMIC_RELAXED,
                                  __OPENCL_MEMORY_SCOPE_DEVICE); }"""
    a = np.zeros(1, "i4")
    found = statistics(compile_opencl(source, "gfx942", "-O3"), [a, np.int32(1)], 3)
    memory = found["memory"]
    assert memory["LDS"] == {
        "load": {"bytes": 3 * 256, "cycles": 3 * 64, "ideal_cycles": 3 * 2},
        "store": {"bytes": 3 * 256, "cycles": 3 * 64, "ideal_cycles": 3 * 2},
    }
    assert memory["private"]["load"]["bytes"] == 3 * 256
    assert memory["private"]["store"]["bytes"] == 3 * 256
    assert memory["global"]["atomic"]["lines"] >= 3
    assert found["kinds"]["VMEM atomic"]["instructions"] == 3
    assert found["kinds"]["barrier"]["instructions"] == 3
    assert found["scratch_bytes"] >= 16
    assert found["lds_bytes"] == 64 * 32 * 4


@pytest.mark.parametrize("way", ["TID * 8", "TID", "TID * 8 - 512"])
def test_lines_of_offsets_to_a_base_in_scalar_registers(way: str) -> None:
    """On gfx1250 they are signed, and may count elements. 32 lanes touch eight lines of 128 bytes
    if they are 32 bytes apart, and one if they follow each other."""
    source = f"kernel void k(global int *a) {{ (a + 512)[{way}] = 7; }}"
    code = compile_opencl(source, "gfx1250", "-O3")
    a = np.zeros(1024, "i4")
    found = statistics(code, [a], 1, 32)["memory"]["global"]
    lines = 1 if way == "TID" else 8
    start = 0 if "-" in way else 512
    assert (a[start : start + 256 : 1 if way == "TID" else 8][:32] == 7).all()
    assert found == {"store": {"bytes": 128, "lines": lines, "ideal_lines": 1}}


def test_accesses_that_no_model_covers_are_told() -> None:
    """Loads that go to LDS by themselves: counted as instructions, not in the figures of memory."""
    one = Instruction(0x100, 8, "global_load_lds_dword", (), {}, None, "global_load_lds_dword …")
    cache = Instruction(0x108, 8, "buffer_inv", (), {}, None, "buffer_inv sc1")
    swizzle = Instruction(0x110, 8, "ds_swizzle_b32", (), {}, None, "ds_swizzle_b32 …")
    code = compile_opencl("kernel void k(global int *a) { a[TID] = 1; }", "gfx942", "-O3")
    seen = Statistics()
    launch(code, [np.zeros(64, "i4")], device=Emulator("gfx942", Options(observers=(seen,))))
    assert seen.documents[0]["memory"]["not_modelled"] == 0
    counts = [Count(instruction, 3, 192, 0, 0) for instruction in (one, cache, swizzle)]
    assert seen.launch is not None
    found = document(seen.launch, 9, counts)
    assert found["memory"]["not_modelled"] == 3


@pytest.mark.parametrize(
    ("mnemonic", "kind"),
    [
        ("v_mfma_f32_32x32x8_f16", "matrix"),
        ("v_wmma_f32_16x16x16_f16", "matrix"),
        ("v_dual_mul_f32", "VALU"),
        ("v_cmp_lt_f32_e32", "VALU"),
        ("s_load_b128", "SMEM"),
        ("s_buffer_load_dword", "SMEM"),
        ("global_load_b32", "VMEM load"),
        ("global_load_lds_dword", "VMEM load"),
        ("scratch_store_dwordx2", "VMEM store"),
        ("tbuffer_store_format_x", "VMEM store"),
        ("buffer_atomic_add", "VMEM atomic"),
        ("global_atomic_pk_add_f16", "VMEM atomic"),
        ("buffer_wbl2", "other"),
        ("ds_add_rtn_u32", "LDS"),
        ("s_waitcnt", "wait"),
        ("s_wait_loadcnt", "wait"),
        ("s_barrier_signal", "barrier"),
        ("s_cbranch_execz", "branch"),
        ("s_swappc_b64", "branch"),
        ("s_delay_alu", "other"),
        ("s_add_u32", "SALU"),
    ],
)
def test_kinds(mnemonic: str, kind: str) -> None:
    assert kinds.kind(mnemonic) == kind


# -- on the command line


@pytest.fixture
def called(tmp_path, assemble, add_program):
    twice = replace(add_program, steps=add_program.steps * 2)
    (tmp_path / "add.hsaco").write_bytes(assemble("add", manifest=add_program))
    (tmp_path / "twice.hsaco").write_bytes(assemble("add", manifest=twice))

    def call(file: str, n: int, *words: str) -> subprocess.CompletedProcess:
        arguments = [f"A=arange({n},f32)", f"B=full({n},f32,1)", f"C=zeros({n},f32)"]
        return subprocess.run(
            [FLY_RUN, file, *arguments, *words], capture_output=True, cwd=tmp_path, text=True
        )

    return call


TEXT = """\
add on gfx942: grid 2, block 64: 2 waves, 30 wave instructions
  occupancy  8 of 8 waves per SIMD; per compute unit: 32 workgroups, 32 waves
  registers  4 VGPR (0 of them AGPR), 18 SGPR, 0 spilled
  memory     0 bytes LDS per workgroup, 0 scratch per lane
  lanes      86.3 % active in vector instructions
  branches   2 conditional, 1 of them with only a part of the work items active
  FLOPs      100 vector

kind        instructions  share   lanes active
VALU        10            33.3 %  91.2 %
SMEM        4             13.3 %
wait        4             13.3 %
VMEM load   4             13.3 %  78.1 %
SALU        2             6.7 %
branch      2             6.7 %
VMEM store  2             6.7 %   78.1 %
other       2             6.7 %

memory        bytes  took            at best  efficiency
global load   800    8 lines of 128  8        100.0 %
global store  400    4 lines of 128  4        100.0 %
scalar load   64

times  share  lanes    pc      instruction
"""


def test_the_tables(called) -> None:
    done = called("add.hsaco", 100, "--stats", "-q")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.splitlines()[: len(TEXT.splitlines())] == TEXT.splitlines()
    assert len(done.stderr.splitlines()) == len(TEXT.splitlines()) + 10
    assert done.stderr.splitlines()[-1].endswith("global_load_dword v2, v0, s[4:5]")


def test_json_is_on_standard_output_with_a_document_for_each_launch(called) -> None:
    done = called("twice.hsaco", 100, "--stats", "--json")
    assert done.returncode == 0
    documents = json.loads(done.stdout)["launches"]
    assert [one["instructions"] for one in documents] == [30, 30]
    assert "first" in done.stderr  # the table of results is where it always is
    assert "occupancy" not in done.stderr


def test_a_launch_over_nothing_has_no_statistics(called) -> None:
    done = called("add.hsaco", 0, "--stats", "--json", "-q")
    assert (done.returncode, json.loads(done.stdout)) == (0, {"launches": []})
    done = called("add.hsaco", 0, "--stats")
    assert done.returncode == 0
    assert done.stderr.rstrip().endswith("nothing to run")


def test_json_alone_still_inspects(called) -> None:
    done = called("add.hsaco", 10, "--json")
    assert json.loads(done.stdout)["target"] == "gfx942"


def test_a_closed_pipe_is_quiet(called, tmp_path) -> None:
    called("add.hsaco", 1, "-q")
    command = f"{FLY_RUN} add.hsaco A='arange(9,f32)' B='arange(9,f32)' C='zeros(9,f32)' --stats"
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command} --json -q | true"],
        capture_output=True,
        cwd=tmp_path,
    )
    assert (done.returncode, done.stderr) == (0, b"")


def test_clusters() -> None:
    from emulator_support.clusters import run
    from fly_run.shell import stats_text

    seen = Statistics()
    run("  s_barrier_signal -3\n  s_barrier_wait -3", 3, 6, observers=(seen,))
    (found,) = seen.documents
    assert (found["cluster"], found["clusters"], found["workgroups"]) == ([3, 1, 1], 2, 6)
    out = io.StringIO()
    stats_text.show([found], out)
    assert "  clusters   2 of 3 workgroups each\n" in out.getvalue()


def test_no_clusters_are_not_told(add: CodeObject) -> None:
    from fly_run.shell import stats_text

    found = statistics(add, [*(np.ones(64, "f4") for _ in range(3)), np.int64(64)], 1)
    assert (found["cluster"], found["clusters"]) == ([1, 1, 1], 1)
    out = io.StringIO()
    stats_text.show([found], out)
    assert "clusters" not in out.getvalue()
