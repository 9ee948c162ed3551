"""benchmarks/h200: its kernels are right on the emulator, and their machine code is as intended."""

from __future__ import annotations

import ctypes
import json
import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from h200.launches import launching
from h200.memory import memory_bound, report
from h200.memory.preparing import prepare
from h200.memory.variants import variants
from h200.memory.workloads import WORKLOADS

import fly

pytestmark = pytest.mark.heavy
EMULATED = {"elements": 4096, "rows": 128, "columns": 4096}
FULL = 8192  # columns
VARIANTS = variants()


@pytest.fixture(scope="module", params=["gfx942", "gfx1100"])
def folder(request, tmp_path_factory):
    made = tmp_path_factory.mktemp("h200")
    prepare(made, request.param, **EMULATED)
    return made


def test_every_variant_is_right_and_measured(folder):
    """They are compared with torch. The figures mean nothing here."""
    rows = memory_bound.measure(folder)
    ours = {(row["workload"], row["name"]) for row in rows if row["system"] == "ours"}
    assert ours == {(one.workload, one.name) for one in VARIANTS}
    assert {row["workload"] for row in rows} == {one.name for one in WORKLOADS}


def test_the_check_alone(folder):
    assert memory_bound.check(folder) == len(VARIANTS)


def test_a_wrong_result_is_found(tmp_path):
    prepare(tmp_path, "gfx942", **EMULATED)
    document = json.loads((tmp_path / "cases.json").read_text())
    files = {row["name"]: row for row in document["variants"] if row["workload"] == "add f32"}
    (tmp_path / files["256x1"]["file"]).unlink()
    # Adds only the first half of the elements.
    files["256x1"]["file"] = _half(tmp_path)
    document["variants"] = [files["256x1"]]
    with pytest.raises(AssertionError, match="add f32: ours 256x1 is wrong"):
        memory_bound.ways(tmp_path, document, WORKLOADS[0])


def _half(folder: Path) -> str:
    source = folder / "half.py"
    source.write_text(
        "import fly\nimport fly.expr as fx\n\n"
        "@fly.kernel\ndef k(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor):\n"
        "    i = fx.block_idx.x * 64 + fx.thread_idx.x\n    C[i] = A[i] + B[i]\n\n"
        '@fly.jit\ndef half(A: fx.Tensor[fx.Float32, "n"], B: fx.Tensor[fx.Float32, "n"],'
        ' C: fx.Tensor[fx.Float32, "n"]):\n'
        "    k(A, B, C).launch(grid=A.shape[0] // 128, block=64)\n"
    )
    from fly_trace.session.load import find_entry, load_file

    made = find_entry(load_file(str(source)), str(source), "half").compile(target="gfx942")
    made.save(folder / "half.image")
    return "half.image"


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda one: one.file)
def test_machine_code(variant):
    """16-byte accesses to global memory and no others; nothing in local memory."""
    compiled = variant.make(FULL).compile(target="sm_90a")
    text = compiled.ir("asm")
    assert isinstance(text, str)
    words = re.findall(r"\b(?:LDG|STG|LDL|STL|LDS|STS)[.\w]*", text)
    outside = {word for word in words if word[2] == "G"}
    assert outside == {"LDG.E.128", "STG.E.128"}
    assert not {"LDL", "STL"} & {word[:3] for word in words}
    if variant.workload.startswith("transpose"):
        assert {word for word in words if word[2] == "S"} == {"LDS", "STS.128"}
    if "bf16" in variant.workload and not variant.workload.startswith("transpose"):
        assert "F2FP.BF16.F32.PACK_AB" in text  # two conversions at a time
    (kernel,) = compiled.kernels.values()
    assert kernel.resources.spill_stores == kernel.resources.spill_loads == 0
    if variant.shown:
        assert kernel.resources.registers <= 64


def test_the_table_names_what_is_short_of_a_mark():
    def row(system, rate, name="", shown=True):
        word = {"workload": "add f32", "system": system, "name": name, "shown": shown}
        return {**word, "rate": rate, "low": rate, "high": rate, "mark": 1.0, "beside": "Triton"}

    rows = [
        row("ours", 4360.0, "256x1"),
        row("ours", 9000.0, "256x2", False),
        row("Triton", 4300.0, "1024, 4 warps"),
        row("Triton", 4400.0, "2048, 8 warps"),
        row("torch", 4345.0),
        row("copy", 4230.0),
    ]
    launches = {report.RAW: 3.0, "prepared call": 3.3, "f(*args)": 3.9}
    text = report.text({"device": "a GPU"}, rows, launches)
    assert (
        "| add f32 | 4360 (256x1) | 4400 (2048, 8 warps) | 4345 | 4230 |"
        " 1.00 of Triton | 0.991, short of it |" in text
    )
    assert "| prepared call | 3.30 | 0.30 | 0.4 µs |" in text
    assert "| f(*args) | 3.90 | 0.90 | 0.8 µs, not reached |" in text


def test_the_native_loop_calls_the_driver():
    from fly_host.native import library
    from fly_host.native.specialisation import Options

    seen = []
    words = [ctypes.c_void_p, *[ctypes.c_uint32] * 7, *[ctypes.c_void_p] * 3]
    prototype = ctypes.CFUNCTYPE(ctypes.c_int, *words)

    def launch(*words):
        seen.append(words)
        return 0 if len(seen) < 3 else 700

    entry = prototype(launch)
    loop = library.load(launching.LOOP, Options()).call
    words = (ctypes.c_void_p(1), ctypes.c_uint32(4), ctypes.c_uint32(256))
    given = (ctypes.c_void_p(2), ctypes.c_void_p(3), ctypes.c_int64(9))
    assert loop(ctypes.cast(entry, ctypes.c_void_p), *words, *given) == 700  # it stops at an error
    assert seen == [(1, 4, 1, 1, 256, 1, 1, 0, 2, 3, None)] * 3


def test_a_carried_function_is_called_natively(tmp_path):
    import torch
    from h200.launches.launched import add

    path = tmp_path / "launch.image"
    add.compile(target="gfx942").save(path)
    function = launching.carried(fly.load(path))
    a, b = torch.rand(2, 1000)
    c = torch.zeros(1000)
    for _ in range(3):
        function(a, b, c, 1000)
    assert launching._is_native(function) is function
    c.zero_()
    function(a, b, c, 600)
    assert torch.equal(c[:600], (a + b)[:600])
    assert not c[600:].any()
    function.prepare(a, b, c, 1000)()
    assert torch.equal(c, a + b)
