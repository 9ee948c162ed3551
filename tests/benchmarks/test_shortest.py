"""Every benchmark that needs no GPU runs, in its shortest form. The figures mean nothing here."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from fly_run.devices import protocol

ROOT = Path(__file__).parents[2]
NUMBER = r"\d[\d,.]*"

# The command, and what each line of its table is, by the line's first words: a pattern of what
# follows them.
BENCHMARKS: dict[str, tuple[str, dict[str, str]]] = {
    "startup": (
        "1",
        {
            "python ": f"{NUMBER} ms",
            **{f"fly-{one} --help": f"{NUMBER} ms" for one in ("trace", "llc", "link", "run")},
            "fly-opt-py --help": f"{NUMBER} ms",
        },
    ),
    "launch": (
        "--repeats 1",
        {
            "whole": NUMBER,
            "device": NUMBER,
            **{f"{size} ": rf"({NUMBER} +){{4}}{NUMBER}" for size in ("1+1", "5+3", "14+26")},
            "2+1, one allocated": rf"({NUMBER} +){{3}}{NUMBER}",
            "a prepared call of 2+1": f": {NUMBER} ns, the mark is 200: (met|missed)",
        },
    ),
    "host_launcher": (
        "--repeats 1",
        {
            **{f"{kind} 5+3": f"{NUMBER} ns" for kind in ("torch", "NumPy")},
            **{f"{kind} 2+1, one output allocated": f"{NUMBER} ns" for kind in ("torch", "NumPy")},
            "x.data_ptr()": f"{NUMBER} ns",
            "torch.empty_strided": f"{NUMBER} ns",
            "first compile 14+26": f"{NUMBER} ms",
            "reload 14+26": f"{NUMBER} ms",
        },
    ),
    "compile_time": (
        "--runs 1 --kernels vector_add",
        {"vector_add                      fly": rf"({NUMBER} \({NUMBER}–{NUMBER}\) +1\.00 *){{3}}"},
    ),
    "trace_locations": (
        "--runs 1",
        {"locations": f": {NUMBER}% of tracing"},
    ),
    "tracing": (
        "--runs 1",
        {
            f"{kernel} ": rf"{NUMBER} +1\.0"
            for kernel in ("static_loop", "straight_line", "branches", "where_chain", "unrolled")
        }
        | {"kernel             fly-trace": "half  fly-opt-py    half"},
    ),
    "dialect_text": (
        "--runs 1 --lines 500,5000",
        dict.fromkeys(("500 ", "5,000 "), rf"({NUMBER} +){{2}}{NUMBER}"),
    ),
    "primitive_costs": (
        "",
        {
            "| `fx.warp.reduce(x)` | 64 | 1": r"\| [1-9]\d* \| 0 \| 0 \| 0 \|",
            "| `fx.block.reduce(x)` | 256 | 4": r"\| [1-9]\d* \| 2 \| 2 \| 16 \|",
        },
    ),
    "primitive_peers": (
        "",
        {"| `fx.block.sort(x)` | `tl.sort(x)` | u4 | 256": r"\| 1 \| [1-9]\d* \| – \| [1-9]\d* .*"},
    ),
    "insertion": (
        "--repeats 1",
        {
            **{f"{command} ": f"{NUMBER} ms" for command in ("llc", "fly-llc", "filter")},
            "fly-llc --insert nop-sled": f"{NUMBER} ms",
            "fly-llc beyond llc": f"-?{NUMBER} ms",
        },
    ),
    "code_quality": (
        "",
        {
            "vector_add                      fly": r"([1-9]\d* +){2}(0 +){5}[1-9]\d*",
            "preshuffle_gemm                 fly": r"([1-9]\d* +){2}(0 +){4}256 +[1-9]\d*",
            "none is": "more than 5 % above FlyDSL's",
        },
    ),
    "kernels": (
        "matmul histogram",
        {
            # Not the counts, which are those of docs/kernels.md.
            "│ matmul(a, b)": rf"│( +[\d,]+ │){{5}} +{NUMBER} │ 0\.07419 µs │ memory │",
            "│ histogram(x, 256)": rf"│( +[\d,]+ │){{5}} +0 │ {NUMBER} µs │ memory │",
            "peaks:": "the data sheet of the MI300X",
        },
    ),
    "kernel_quality": (
        "--target gfx950 --only ^softmax",
        {
            "gfx950: fly / FlyDSL / Triton": "",
            "| `softmax(x)`": r"\| [1-9]\d*,\d+ / – / – \| .* \| 0 / – / – \|",
        },
    ),
    "emulator": (
        "--repeats 1 --kernels vector_add",
        {
            "vector_add 2^16": rf"23,552 +3,072 +{NUMBER} .*",
            "matmul 512, f32": rf", 1,024 workgroups: {NUMBER} ms on one thread, .* times as fast",
            "product 256³": rf"on matrix instructions .*: {NUMBER} ms \({NUMBER}\) fast, .*",
            "handler library": f": built once in {NUMBER} s \\({NUMBER} s of processors\\), .*",
        },
    ),
    "emulator_targets": (
        "--rounds 1 --kernels vector_add",
        {
            "vector_add 2^16 gfx1201": rf"63,488 +18,432( +{NUMBER}){{3}}",
            "vector_add 2^16 gfx1250": rf"45,056 +14,336( +{NUMBER}){{3}}",
            "s_wait_alu": "4,096 +0 +no effect",
            "v_fmac_f32": rf"({NUMBER} +){{2}}{NUMBER}",
        },
    ),
    "emulator_instructions": (
        "--rounds 1 --targets gfx1250 --only v_p",
        {
            "v_permlane16_b32": rf"{NUMBER} \( *{NUMBER}\)",
            "v_permlane32_swap_b32": "–",
            "v_add_f32": rf"{NUMBER} \( ?1\.0\)",
        },
    ),
    "observers": (
        "--repeats 1 --kernels lds_reduce",
        {
            "lds_reduce 2^16": rf": unobserved {NUMBER} ms, counts {NUMBER} ms .*"
            rf"--trace {NUMBER} µs an instruction, --strict \d+ instructions a second"
        },
    ),
}
# What needs a GPU, a peer, is imported by the others, or is run whole (tests/docs/test_kernels.py).
ELSEWHERE = {
    "executed",
    "flydsl_algebra",
    "flydsl_tiles",
    "kernel_calls",
    "kernel_compile_time",
    "kernel_costs",
    "kernel_inputs",
    "kernel_times",
    "launch_peers",
}


def test_every_benchmark_is_here():
    files = {path.stem for path in (ROOT / "benchmarks").glob("*.py")}
    assert files == set(BENCHMARKS) | ELSEWHERE


@pytest.mark.heavy
@pytest.mark.parametrize("name", BENCHMARKS)
def test_a_benchmark_runs(name, tmp_path):
    options, table = BENCHMARKS[name]
    command = [sys.executable, str(ROOT / f"benchmarks/{name}.py"), *options.split()]
    environment = {**os.environ, "COLUMNS": "160"}
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lines = [line.strip() for line in done.stdout.splitlines()]
    for words, rest in table.items():
        found = [line for line in lines if line.startswith(words)]
        assert found, f"no line begins with {words!r}:\n{done.stdout}"
        assert any(re.fullmatch(rest, line[len(words) :].strip()) for line in found), found


def test_the_idle_device_has_all_members_of_the_protocol(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import launch

    assert differences(launch.Idle("gfx942", None)) == []


def differences(device: object) -> list[str]:
    """The members of `Device` that `device` lacks, and those that take other arguments."""
    asked = protocol.Device
    members = [name for name in (*asked.__annotations__, *vars(asked)) if name[0] != "_"]
    assert {"own_memory", "place", "adopt", "launch", "elapsed"} <= set(members)
    found = [f"{name} is missing" for name in members if not hasattr(device, name)]
    for name in members:
        function = vars(asked).get(name)
        if inspect.isfunction(function) and hasattr(device, name):
            wanted = [str(one).partition(":")[0] for one in parameters(function)[1:]]
            given = [str(one).partition(":")[0] for one in parameters(getattr(device, name))]
            if wanted != given:
                found.append(f"{name}({', '.join(given)}), not ({', '.join(wanted)})")
    return found


def parameters(function) -> list[inspect.Parameter]:
    return list(inspect.signature(function).parameters.values())


def test_what_a_device_lacks_is_found():
    class Lacking:
        name, target, concurrent, place = "lacking", "gfx942", False, None
        instructions, remarks = None, ()

        def adopt(self, pointer, nbytes): ...

    found = differences(Lacking())
    assert "own_memory is missing" in found
    assert "driver_entry is missing" in found
    assert "adopt(pointer, nbytes), not (pointer, nbytes, writable, label)" in found
