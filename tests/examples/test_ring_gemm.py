"""One source of a ring of buffers on every kind of target: results are NumPy's, on the emulator in
strict mode and on `cpu`."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from fly_common.errors import InputError
from fly_run.devices.options import STRICT
from fly_trace.session.load import find_entry, load_file
from h200_kernels import assembler

FILE = str(Path(__file__).parents[2] / "examples" / "ring_gemm.py")
ON_CPU = ("sm_80", "sm_90a")
TARGETS = ("gfx942", "gfx950", "gfx1100", "gfx1201", "gfx1250", *ON_CPU)
# Ends of tiles along M, N and K; one step, and fewer steps than stages; several blocks.
SHAPES = ((130, 70, 200), (64, 64, 64), (5, 3, 8))
ODD = ((70, 65, 101), (33, 5, 1))  # rows that don't begin at multiples of 16 bytes


def operands(m: int, n: int, k: int) -> list[np.ndarray]:
    random = np.random.default_rng(m + n + k)
    return [random.standard_normal(shape).astype("f2") for shape in ((m, k), (n, k))]


def check(target: str, shapes, stages: int, monkeypatch, strict: bool = True) -> None:
    monkeypatch.setenv("FLY_TARGET", target)
    monkeypatch.setenv("FLY_DEVICE", "cpu" if target in ON_CPU else "emulator")
    monkeypatch.setenv(STRICT, "1" if strict and target not in ON_CPU else "0")
    function = find_entry(load_file(FILE), FILE, "ring_gemm")
    for shape in shapes:
        a, b = operands(*shape)
        expected = a.astype("f8") @ b.T.astype("f8")
        np.testing.assert_allclose(function(a, b, stages), expected, atol=2e-3, rtol=1e-4)


@pytest.mark.parametrize("stages", [2, 4])
@pytest.mark.parametrize("target", TARGETS)
def test_results_are_numpys(target, stages, monkeypatch):
    check(target, SHAPES, stages, monkeypatch)


@pytest.mark.parametrize("target", ["sm_80", "gfx942", "gfx1250"])
def test_rows_at_any_address(target, monkeypatch):
    check(target, ODD, 3, monkeypatch)


def test_tma_refuses_rows_at_odd_addresses(monkeypatch):
    monkeypatch.setenv("FLY_TARGET", "sm_90a")
    monkeypatch.setenv("FLY_DEVICE", "cpu")
    function = find_entry(load_file(FILE), FILE, "ring_gemm")
    with pytest.raises(InputError, match="multiple of 16"):
        function(*operands(70, 65, 101))


def code(target: str, kind: str) -> str:
    return find_entry(load_file(FILE), FILE, "ring_gemm").compile(target=target).ir(kind)


def test_loads_to_registers_are_ahead():
    """Of the loads of both operands' tiles none waits for another; what copies elements one by one,
    which lies between them, does."""
    lines = [line for line in code("gfx942", "asm").splitlines() if "_" in line]
    loads = [n for n, line in enumerate(lines) if "global_load_dwordx4" in line]
    assert len(loads) == 16  # four of each operand, in front of the loop and in it
    for first, last in ((loads[0], loads[7]), (loads[8], loads[15])):
        waits = [n for n in range(first, last) if "vmcnt" in lines[n]]
        assert all("ds_write_b16" in lines[n + 1] for n in waits)


def test_waits_leave_the_copies_that_are_ahead():
    # Three stages: one is read, two are ahead, of which the first must have arrived.
    assert "s_wait_asynccnt 0x8" in code("gfx1250", "asm")
    waits = re.findall(r"cp\.async\.wait_group\s+(\d+);", code("sm_80", "ptx"))
    assert waits == ["1"]


def test_hopper_has_one_thread_that_copies_and_registers_for_those_that_multiply():
    ptx = code("sm_90a", "ptx")
    assert ptx.count("cp.async.bulk.tensor.2d") == 2
    for instruction in ("setmaxnreg.dec", "setmaxnreg.dec", ".minnctapersm 1", "bar.warp.sync"):
        assert instruction in ptx
    assert "cp.async.wait_group" not in ptx


@pytest.mark.parametrize("target", ON_CPU)
def test_ptxas_spills_nothing_and_takes_the_registers(target, tmp_path):
    said = assembler.assemble(code(target, "ptx").encode(), target, tmp_path / "k.cubin")
    assert assembler.spilled(said) == assembler.stack(said) == 0
    assert "setmaxnreg" not in said  # that it is ignored
