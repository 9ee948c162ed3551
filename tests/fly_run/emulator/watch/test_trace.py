"""--trace: golden text, filters, the bound, and what happens where it can't be written."""

from __future__ import annotations

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
from fly_run.emulator.isa.parse import parse
from fly_run.emulator.machine import Emulator
from fly_run.emulator.watch import trace_values
from fly_run.emulator.watch.trace import Only, Tracer, result

FLY_RUN = Path(sys.executable).parent / "fly-run"

# The second wave of kernels/add.s over 100 elements: A is 0 1 2 …, B is 1.
GOLDEN = """\
add: grid 2, block 64
1/0  0x1500  s_load_dwordx4 s[4:7], s[0:1], 0x0\
            s[4:7]=0x80000000 0x7f10 0x80002000 0x7f10
1/0  0x1508  s_load_dwordx4 s[8:11], s[0:1], 0x10          s[8:11]=0x80004000 0x7f10 100 0
1/0  0x1510  v_lshl_add_u32 v0, s2, 6, v0                  v0=64 65 66 … 127
1/0  0x1518  v_mov_b32_e32 v1, 0                           v1=0 ×64
1/0  0x151c  s_waitcnt lgkmcnt(0)
1/0  0x1520  v_cmp_gt_i64_e32 vcc, s[10:11], v[0:1]        vcc=0xfffffffff
1/0  0x1524  s_and_saveexec_b64 s[0:1], vcc                s[0:1]=0xffffffffffffffff\
  exec=0xfffffffff  scc=1
1/0  0x1528  s_cbranch_execz 9                             [0-35]
1/0  0x152c  v_lshlrev_b32_e32 v0, 2, v0                   [0-35]  v0=256 260 264 … 396
1/0  0x1530  global_load_dword v2, v0, s[4:5]              [0-35]\
  v2=64.0 65.0 66.0 67.0 68.0 69.0 … (f32?)
1/0  0x1538  global_load_dword v3, v0, s[6:7]              [0-35]  v3=1.0 ×36 (f32?)
1/0  0x1540  s_waitcnt vmcnt(0)                            [0-35]
1/0  0x1544  v_add_f32_e32 v2, v2, v3                      [0-35]\
  v2=65.0 66.0 67.0 68.0 69.0 70.0 …
1/0  0x1548  global_store_dword v0, v2, s[8:9]             [0-35]
1/0  0x1550  s_endpgm                                      [0-35]
"""


@pytest.fixture
def called(tmp_path, assemble, add_program):
    twice = replace(add_program, steps=add_program.steps * 2)
    (tmp_path / "add.hsaco").write_bytes(assemble("add", manifest=add_program))
    (tmp_path / "twice.hsaco").write_bytes(assemble("add", manifest=twice))

    def call(*words: str, file: str = "add.hsaco", n: int = 100) -> subprocess.CompletedProcess:
        arguments = [f"A=arange({n},f32)", f"B=full({n},f32,1)", f"C=zeros({n},f32)"]
        return subprocess.run(
            [FLY_RUN, file, *arguments, *words], capture_output=True, cwd=tmp_path, text=True
        )

    return call


def test_golden_text(called) -> None:
    done = called("--trace", "-", "--trace-only", "group=1", "-q")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == GOLDEN


def test_json_lines_have_bits(called, tmp_path) -> None:
    words = ["--trace-only", "group=1", "--trace-only", "pc=0x1544", "--trace-only", "lanes=34-40"]
    done = called("--trace", "t.jsonl", "--json", "-q", *words)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    (line,) = (tmp_path / "t.jsonl").read_text().splitlines()
    bits = [int(n) for n in np.float32([99, 100]).view("u4")]
    assert json.loads(line) == {
        "kernel": "add",
        "group": [1, 0, 0],
        "wave": 0,
        "pc": 0x1544,
        "text": "v_add_f32_e32 v2, v2, v3",
        "exec": "0xfffffffff",
        "lanes": "0xc00000000",
        "source": None,
        "writes": {"v2": bits},
    }


def test_the_bound_is_told(called) -> None:
    done = called("--trace", "-", "--trace-limit", "3", "-q", file="twice.hsaco")
    lines = done.stdout.splitlines()
    assert len(lines) == 6  # two headings, three instructions
    assert lines[4] == "… 3 instructions were traced; --trace-limit sets the limit"
    assert lines[0] == lines[5] == "add: grid 2, block 64"
    done = called("--trace", "-", "--trace-limit", "3", "-q", "--json", file="twice.hsaco")
    assert [json.loads(line) for line in done.stdout.splitlines()][-1] == {"limit": 3}


def test_every_instruction_is_traced_once_in_the_order_of_its_wave() -> None:
    source = """kernel void k(global int *a) {
        local int s[256];
        s[TID] = TID;
        BARRIER;
        a[INDEX] = s[255 - TID]; }"""
    tracer = Tracer(Only(), limit=10_000, as_json=True)
    code = compile_opencl(source, "gfx942", "-O3")
    device = Emulator("gfx942", Options(observers=(tracer,)))
    launch(code, [np.zeros(512, "i4")], 2, 256, device=device)
    told = [json.loads(line) for line in tracer.lines]
    assert len(told) == device.instructions
    waves = {(tuple(one["group"]), one["wave"]) for one in told}
    assert len(waves) == 8
    texts = {
        wave: [one["text"] for one in told if (tuple(one["group"]), one["wave"]) == wave]
        for wave in waves
    }
    first = texts[(0, 0, 0), 0]
    assert all(text == first for text in texts.values())
    assert first[-1] == "s_endpgm"
    pcs = [one["pc"] for one in told if one["wave"] == 0 and one["group"] == [0, 0, 0]]
    assert pcs == sorted(pcs)


def test_the_instruction_that_faults_is_the_last(called, tmp_path) -> None:
    words = "add.hsaco --kernel add --grid 2 --block 64 A=arange(99,f32) B=zeros(100,f32)"
    words += " C=zeros(100,f32) bytes:6400000000000000 --trace t.txt"
    command = [FLY_RUN, *words.split()]
    done = subprocess.run(command, capture_output=True, cwd=tmp_path, text=True)
    assert done.returncode == 1
    assert "memory fault" in done.stderr
    last = (tmp_path / "t.txt").read_text().splitlines()[-1]
    assert last.split()[:3] == ["1/0", "0x1530", "global_load_dword"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--trace-only", "wave=0"], "--trace-only and --trace-limit require --trace FILE"),
        (["--trace-limit", "5"], "--trace-only and --trace-limit require --trace FILE"),
        (["--trace", "-", "--trace-limit", "0"], "--trace-limit must be at least 1"),
        (["--trace", "-", "--trace-only", "lane=3"], "--trace-only lane=3: expected KEY=VALUE"),
        (
            ["--trace", "-", "--trace-only", "wave=x"],
            "--trace-only wave=x: 'x' is not a valid wave",
        ),
        (["--trace", "-", "--stats", "--json"], "both write to standard output"),
        (["--trace", "no/such.txt"], "/no/such.txt: the directory "),
    ],
)
def test_mistakes_are_told_before_anything_runs(called, words: list[str], message: str) -> None:
    done = called(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[0].startswith("fly-run: error: ")
    assert message in done.stderr.splitlines()[0]


def test_a_file_that_cannot_be_written(called) -> None:
    done = called("--trace", "/dev/full", "-q")
    assert done.returncode == 3
    assert done.stderr == "fly-run: error: /dev/full: No space left on device\n"


def test_a_closed_pipe_is_quiet(called, tmp_path) -> None:
    command = f"{FLY_RUN} add.hsaco A='arange(9,f32)' B='arange(9,f32)' C='zeros(9,f32)' -q"
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command} --trace - | true"],
        capture_output=True,
        cwd=tmp_path,
    )
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize(
    ("text", "register"),
    [
        ("v_add_f32_e32 v2, v2, v3", "v2"),
        ("v_cmp_gt_i64_e32 vcc, s[10:11], v[0:1]", "s106"),
        ("ds_read_b64 v[4:5], v1", "v4"),
        ("ds_bpermute_b32 v3, v1, v2", "v3"),
        ("ds_add_rtn_u32 v3, v1, v2", "v3"),
        ("ds_add_u32 v1, v2", None),
        ("ds_write_b32 v1, v2", None),
        ("global_store_dword v[0:1], v2, off", None),
        ("buffer_store_dword v2, v1, s[4:7], 0 offen", None),
        ("global_atomic_add v[0:1], v2, off", None),
        ("global_atomic_add v3, v[0:1], v2, off sc0", "v3"),
        ("s_cmp_lg_u32 s1, s2", None),
        ("s_setpc_b64 s[2:3]", None),
        ("s_mov_b64 exec, s[2:3]", "s126"),
        ("s_endpgm", None),
    ],
)
def test_what_counts_as_the_result(text: str, register: str | None) -> None:
    found = result(parse(text, 0, 4))
    assert (f"{found.bank}{found.index}" if found else None) == register


@pytest.mark.parametrize(
    ("mnemonic", "bits", "text"),
    [
        ("v_mov_b32_e32", [7] * 3, "7 ×3"),
        ("v_mov_b32_e32", [1, 2, 3, 4, 5], "1 2 3 … 5"),
        ("v_mov_b32_e32", [1, 1, 2, 2, 3], "1 ×2 2 ×2 3"),
        ("v_mov_b32_e32", [10000, 1], "0x2710 1"),
        ("v_mov_b32_e32", [0x3FC00000, 0], "1.5 0.0 (f32?)"),
        ("v_mov_b32_e32", [0, 0], "0 ×2"),
        ("v_add_i32", [0xFFFFFFFF, 1], "-1 1"),
        ("v_add_f32_e32", [0x7F800000, 0xFFC00000], "inf nan"),
        ("v_add_f16_e32", [0x12343C00], "1.0"),
        ("v_cvt_f32_u32_e32", [0x40400000], "3.0"),
        ("v_cvt_u32_f32_e32", [3], "3"),
        ("v_mov_b32_e32", [], "-"),
        ("v_mov_b32_e32", [9, 8, 1, 7, 2, 6, 3], "9 8 1 7 2 6 …"),
    ],
)
def test_values_in_few_words(mnemonic: str, bits: list[int], text: str) -> None:
    row = np.array(bits, "u4")
    assert trace_values.Vector("v0", (row,)).text(mnemonic, range(len(bits))) == f"v0={text}"


def test_a_pair_of_registers_is_one_value() -> None:
    low, high = np.array([[0, 1.5, -2]], "f8").view("u4").reshape(3, 2).T
    pair = trace_values.Vector("v[0:1]", (low, high))
    assert pair.text("v_add_f64", range(3)) == "v[0:1]=0.0 1.5 -2.0"


def test_lanes_as_ranges() -> None:
    assert trace_values.ranges([0, 1, 2, 5, 7, 8]) == "0-2,5,7-8"
    assert trace_values.ranges([]) == "-"
    assert trace_values.ranges(range(0, 64, 2)) == "0,2,4,6,8,10,…"


def test_accumulation_registers_have_their_names(tmp_path) -> None:
    source = """kernel void k(global float *a) {
        float x = a[TID];
        __asm__ volatile("v_accvgpr_write_b32 a1, %0" :: "v"(x) : "a1");
        a[TID] = x; }"""
    tracer = Tracer(Only())
    code: CodeObject = compile_opencl(source, "gfx942", "-O3")
    device = Emulator("gfx942", Options(observers=(tracer,)))
    launch(code, [np.full(64, 2.5, "f4")], device=device)
    (line,) = [line for line in tracer.lines if "v_accvgpr_write" in line]
    assert line.endswith("a1=2.5 ×64 (f32?)")
