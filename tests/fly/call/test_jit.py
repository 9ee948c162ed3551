"""@fly.jit: right results, no stale code, errors in the caller's words.

Kernels are written to files and imported, as an application's are.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from fly_common.errors import UsageError
from fly_run.devices.options import Options
from fly_run.emulator.watch.stats import Statistics

import fly
from fly.chains.stage import Stage

from .jit_programs import AXPY, NUMBERS, load, result


@pytest.fixture(autouse=True)
def library(handlers: Path):
    """Loaded before the test looks into its cache."""


def test_a_call_computes(tmp_path: Path):
    f = load(tmp_path / "a.py", AXPY).f
    np.testing.assert_array_equal(result(f), 6 * NUMBERS)
    np.testing.assert_array_equal(result(f, 5.0), 10 * NUMBERS)
    np.testing.assert_array_equal(result(f, a=np.float32(0.5)), NUMBERS)
    x, y = np.ones(3, np.float32), np.zeros(3, np.float32)
    f(Y=y, X=x)
    assert y.tolist() == [6, 6, 6]


def test_sizes_and_scalars_share_one_compilation(tmp_path: Path):
    f = load(tmp_path / "a.py", AXPY).f
    for size in (1, 63, 64, 65, 1000):
        np.testing.assert_array_equal(result(f, 1.0, size=size), 2 * np.arange(size))
    result(f, 7.5)
    assert len(f._kept) == 1


def test_an_empty_array_launches_nothing(tmp_path: Path):
    assert result(load(tmp_path / "a.py", AXPY).f, size=0).size == 0


def test_strided_arrays_are_read_and_written_in_place(tmp_path: Path):
    f = load(tmp_path / "a.py", AXPY).f
    x, y = np.arange(40, dtype=np.float32), np.zeros((20, 3), np.float32)
    f(x[::2], y[:, 1])
    np.testing.assert_array_equal(y[:, 1], 6 * x[::2])
    assert not y[:, 0].any()
    assert not y[:, 2].any()
    f(x[::-1][:20], y[:, 0])
    np.testing.assert_array_equal(y[:, 0], 6 * x[::-1][:20])


def test_arrays_that_annotations_leave_open(tmp_path: Path):
    source = """
        @fly.kernel
        def kernel(X: fx.Tensor, n: fx.Int64):
            i = fx.block_idx.x * 64 + fx.thread_idx.x
            if i < n:
                X[i] = X[i] + 1

        @fly.jit
        def f(X: fx.Tensor):
            n = X.shape[0]
            kernel(X, n).launch(grid=fx.ceildiv(n, 64), block=64)
    """
    f = load(tmp_path / "a.py", source).f
    for dtype in (np.float32, np.float64, np.int32, np.int64, np.uint8, np.float16):
        x = np.arange(70).astype(dtype)
        f(x)
        np.testing.assert_array_equal(x, np.arange(1, 71).astype(dtype))
    assert len(f._kept) == 6
    assert f.compile(signature="X: f32[?]").hsaco == f.compile(np.zeros(3, np.float32)).hsaco


# --- options and targets ---


def test_the_target_comes_from_the_decorator_then_the_environment(tmp_path: Path, monkeypatch):
    f = load(tmp_path / "a.py", AXPY).f
    assert f.compile().target == "gfx942"
    monkeypatch.setenv("FLY_TARGET", "gfx90a")
    assert f.compile().target == "gfx90a"
    assert f.compile(target="gfx950").target == "gfx950"
    fixed = load(tmp_path / "b.py", AXPY.replace("@fly.jit", '@fly.jit(target="gfx950")')).f
    assert fixed.compile().target == "gfx950"
    np.testing.assert_array_equal(result(fixed), 6 * NUMBERS)


@pytest.mark.parametrize("option", ["opt_level=0", "opt_level=None", 'device="emulator"'])
def test_options_keep_the_result(tmp_path: Path, option: str):
    f = load(tmp_path / "a.py", AXPY.replace("@fly.jit", f"@fly.jit({option})")).f
    np.testing.assert_array_equal(result(f), 6 * NUMBERS)


def test_opt_level_is_no_dead_knob(tmp_path: Path):
    made = {
        load(tmp_path / "a.py", AXPY.replace("@fly.jit", f"@fly.jit(opt_level={level})"))
        .f.compile()
        .ir("o")
        for level in (None, 0, 1)
    }
    assert len(made) >= 2


def test_a_chain_of_ones_own(tmp_path: Path):
    log = tmp_path / "log"
    program = tmp_path / "look.sh"
    program.write_text(f"#!/bin/sh\necho ran >> {log}\nexec cat\n")
    program.chmod(0o755)
    looking = Stage.command([str(program)], suffix=".ll")
    module = load(tmp_path / "a.py", AXPY)
    chained = fly.chain(target="gfx90a").insert_before("opt", looking)
    f = fly.jit(chain=chained)(module.f.function)
    np.testing.assert_array_equal(result(f), 6 * NUMBERS)
    assert log.read_text() == "ran\n"
    assert f.compile().target == "gfx90a"
    with pytest.raises(UsageError, match="has its own chain, for gfx90a"):
        f.compile(target="gfx942")
    program.write_text(f"#!/bin/sh\necho again >> {log}\nexec cat\n")
    result(f)
    assert log.read_text() == "ran\nagain\n"


def test_wrong_options():
    with pytest.raises(UsageError, match="opt_level=7: must be 0, 1, 2, 3 or None"):
        fly.jit(opt_level=7)
    with pytest.raises(UsageError, match="target='gfx942' contradicts the chain's target, gfx90a"):
        fly.jit(target="gfx942", chain=fly.chain(target="gfx90a"))
    with pytest.raises(UsageError, match=r"@fly\.jit decorates a function, not a int"):
        fly.jit(3)  # type: ignore[call-overload]


# --- looking inside, ahead of time ---


def test_what_a_compilation_shows(tmp_path: Path):
    made = load(tmp_path / "a.py", AXPY).f.compile()
    assert made.program
    assert [p.name for p in made.program.parameters] == ["X", "Y", "a"]
    assert list(made.kernels) == ["kernel"]
    assert made.kernels["kernel"].vgpr_count > 0
    assert "gpu.launch_func" in made.ir("mlir")
    assert "define amdgpu_kernel void @kernel" in made.ir("ll")
    assert "target-cpu" in made.ir("opt.ll")
    assert made.ir("o")[:4] == b"\x7fELF"
    assert "s_endpgm" in made.ir("asm")
    assert repr(made) == f"<compiled f for gfx942, {len(made.hsaco)} bytes>"
    with pytest.raises(
        UsageError, match=r"does not produce 'ptx'\n  it produces mlir, ll, opt\.ll, o, hs"
    ):
        made.ir("ptx")


def test_ahead_of_time(tmp_path: Path):
    load(tmp_path / "a.py", AXPY).f.compile().save(tmp_path / "f.hsaco")
    loaded = fly.load(tmp_path / "f.hsaco")
    np.testing.assert_array_equal(result(loaded), 6 * NUMBERS)
    np.testing.assert_array_equal(result(loaded, a=1.0), 2 * NUMBERS)
    np.testing.assert_array_equal(result(fly.load(loaded.hsaco), 2.0), 4 * NUMBERS)
    with pytest.raises(UsageError, match="a code object that was loaded has no 'mlir'"):
        loaded.ir("mlir")
    with pytest.raises(UsageError, match="f takes 3 arguments, got 4"):
        loaded(1, 2, 3, 4)
    with pytest.raises(UsageError, match="f got X twice, by position and by name"):
        loaded(1, X=1)


def test_a_kernel_without_its_plan(tmp_path: Path):
    made = load(tmp_path / "a.py", AXPY).f.compile()
    x, y = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    # The kernel's own arguments: each tensor's address and extent, then a and n.
    extent = np.int64(64)
    (ran,) = made.launch("kernel", 1, 64, [x, extent, y, extent, np.float32(1), extent])
    np.testing.assert_array_equal(y, 2 * x)
    assert ran.instructions


def test_what_a_run_did_is_counted(tmp_path: Path):
    made = load(tmp_path / "a.py", AXPY).f.compile()
    seen = Statistics()
    x, y = NUMBERS.copy(), np.zeros_like(NUMBERS)
    options = Options(observers=(seen,))
    (ran,) = made.run({"X": x, "Y": y, "a": 1.0}, options=options).ran
    (document,) = seen.documents
    assert document["instructions"] == ran.instructions
    assert document["memory"]["global"]["load"]["bytes"] >= x.nbytes
