"""What is compiled: artifacts, hints, FlyDSL's variables, methods, branches with dictionaries."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fly_common.errors import UsageError

import fly.flydsl.compiler as flyc
import fly.flydsl.expr as fx
from fly.flydsl.compiler import jit_function, variables
from fly.flydsl.compiler.llvm_options import llvm_options
from fly.flydsl.utils.file import atomic_write


@pytest.fixture(autouse=True)
def target(monkeypatch) -> None:
    monkeypatch.setenv("FLYDSL_GPU_ARCH", "gfx942")


def made() -> Any:
    @flyc.kernel
    def double(Out: fx.Tensor):
        Out[fx.thread_idx.x] = Out[fx.thread_idx.x] * 2

    @flyc.jit
    def launch(Out: fx.Tensor):
        double(Out).launch(grid=(1, 1, 1), block=(64, 1, 1))

    return launch


def test_the_compiler_may_be_replaced(monkeypatch):
    seen = []
    monkeypatch.setattr(
        jit_function.MlirCompiler,
        "compile",
        classmethod(lambda cls, module, *, arch="", func_name="": seen.append((arch, func_name))),
    )
    monkeypatch.setenv("COMPILE_ONLY", "1")
    launch, out = made(), np.ones(64, np.int32)
    launch(out)
    assert seen == [("gfx942", "launch")]
    assert out.sum() == 64
    monkeypatch.delenv("COMPILE_ONLY")
    monkeypatch.setattr(
        jit_function.MlirCompiler, "compile", classmethod(lambda cls, module, **_: module)
    )
    with pytest.raises(UsageError, match="has been replaced, and made no code of launch"):
        made()(out)


def test_the_compiler_by_itself():
    launch = made()
    launch(np.ones(64, np.int32))
    source = launch._last_compiled[1].source_ir
    again = jit_function.MlirCompiler.compile(source, arch="gfx1100")
    assert (again.target, list(again.kernels)) == ("gfx1100", ["double"])
    with pytest.raises(UsageError, match="links no libraries of bitcode"):
        jit_function.MlirCompiler.compile(source, link_libs=["a.bc"])


def test_a_function_that_launches_nothing():
    @flyc.jit
    def nothing(n: fx.Int32):
        _ = n + 1

    assert nothing(3) is None
    assert nothing._last_compiled[1].compiled is None
    assert "arith.addi" in nothing._last_compiled[1].ir


def test_dumps(monkeypatch, tmp_path: Path, capsys):
    monkeypatch.setenv("FLYDSL_DUMP_IR", "1")
    monkeypatch.setenv("FLYDSL_DUMP_DIR", str(tmp_path))
    made()(np.ones(64, np.int32))
    files = sorted(file.name for file in (tmp_path / "double").iterdir())
    assert files[0] == "00_origin.mlir"
    assert re.fullmatch(r"\d\d_final_isa\.s", files[-1])
    assert "s_endpgm" in (tmp_path / "double" / files[-1]).read_text()
    assert f"dir={tmp_path}/double" in capsys.readouterr().out


def test_hints(monkeypatch):
    with pytest.raises(UsageError, match="maxnreg must be a number of vector registers, not -1"):
        flyc.compile[{"maxnreg": -1}](made())(np.ones(64, np.int32))
    hinted = flyc.compile[{"maxnreg": 24, "waves_per_eu": 2}](made())
    hinted(np.ones(64, np.int32))
    text = hinted._last_compiled[1].ir
    assert '"amdgpu-num-vgpr"="24"' in text
    assert '"amdgpu-waves-per-eu"="2' in text
    with llvm_options({"enable-post-misched": False}):
        assert hinted.variant().options["tuning"]["llc_options"] == ("-enable-post-misched=false",)
    with pytest.raises(TypeError, match="Unsupported type float"), llvm_options({"x": 1.5}):
        pass


def test_variables(monkeypatch, tmp_path: Path):
    """Each one selects what its row in docs/flydsl.md says; this project's has precedence."""
    given = {
        "FLYDSL_COMPILE_OPT_LEVEL": ("1", "opt_level", 1),
        "FLYDSL_COMPILE_LLVM_PASS_PIPELINE": ("default<O1>", "opt_pipeline", "default<O1>"),
        "FLYDSL_COMPILE_LLVM_PASS_PLUGINS": ("a.so,b.so", "opt_plugins", ["a.so", "b.so"]),
        "FLYDSL_COMPILE_LLVM_CODEGEN_PASSES": ("nop-sled", "insert", ["pre-emit=nop-sled"]),
        "FLYDSL_COMPILE_LLVM_CODEGEN_PLUGINS": ("/p.so", "llc_options", ["-load=/p.so"]),
    }
    for name, (text, keyword, value) in given.items():
        monkeypatch.setenv(name, text)
        assert variables.options(variables.given()) == {keyword: value}
        monkeypatch.delenv(name)
    monkeypatch.setenv("FLYDSL_COMPILE_LLVM_CODEGEN_INSERT_AFTER", "machine-scheduler=schedule")
    assert variables.options(variables.given()) == {"insert": ["after:machine-scheduler=schedule"]}
    monkeypatch.setenv("FLYDSL_COMPILE_LLVM_CODEGEN_INSERT_AFTER", "schedule")
    with pytest.raises(UsageError, match="schedule is not ANCHOR=PASS"):
        variables.options(variables.given())
    monkeypatch.delenv("FLYDSL_COMPILE_LLVM_CODEGEN_INSERT_AFTER")
    monkeypatch.setenv("FLYDSL_COMPILE_OPT_LEVEL", "fast")
    with pytest.raises(UsageError, match="FLYDSL_COMPILE_OPT_LEVEL=fast: must be 0, 1, 2 or 3"):
        made()(np.ones(64, np.int32))
    monkeypatch.setenv("FLY_OPT_LEVEL", "2")
    assert variables.options(variables.given()) == {}


def test_variables_of_the_cache(monkeypatch, tmp_path: Path):
    monkeypatch.delenv("FLY_CACHE_DIR")
    monkeypatch.setenv("FLYDSL_RUNTIME_CACHE_DIR", str(tmp_path / "theirs"))
    monkeypatch.setenv("FLYDSL_RUNTIME_ENABLE_CACHE", "0")
    with variables.applied():
        assert os.environ["FLY_CACHE"] == "off"
        assert os.environ["FLY_CACHE_DIR"] == str(tmp_path / "theirs")
    assert "FLY_CACHE" not in os.environ
    assert "FLY_CACHE_DIR" not in os.environ


def test_a_level_of_optimization_is_used(monkeypatch):
    launch = made()
    launch(np.ones(64, np.int32))
    monkeypatch.setenv("FLYDSL_COMPILE_LLVM_CODEGEN_PASSES", "nop-sled")
    out = np.ones(64, np.int32)
    launch(out)
    assert (out == 2).all()
    assert "s_nop" in launch._last_compiled[1].compiled.ir("asm").split("s_endpgm")[0]


def test_methods():
    class Scaled:
        def __init__(self, factor: int):
            self.factor = factor

        @flyc.kernel
        def kernel(self, Out: fx.Tensor):
            Out[fx.thread_idx.x] = Out[fx.thread_idx.x] * self.factor

        @flyc.jit
        def launch(self, Out: fx.Tensor):
            self.kernel(Out).launch(grid=(1, 1, 1), block=(64, 1, 1))

    for factor in (2, 5):
        out = np.ones(64, np.int32)
        Scaled(factor).launch(out)
        assert (out == factor).all()


def test_keys_of_a_dictionary_in_another_order():
    @flyc.kernel
    def kernel(Out: fx.Tensor, n: fx.Int32):
        if n > 0:
            d = {"a": fx.Int32(1), "b": fx.Int32(2)}
        else:
            d = {"b": fx.Int32(20), "a": fx.Int32(10)}
        Out[0] = d["a"]
        Out[1] = d["b"]

    @flyc.jit
    def launch(Out: fx.Tensor, n: fx.Int32):
        kernel(Out, n).launch(grid=(1, 1, 1), block=(1, 1, 1))

    for n, wanted in ((1, [1, 2]), (-1, [10, 20])):
        out = np.zeros(2, np.int32)
        launch(out, n)
        assert out.tolist() == wanted


@pytest.mark.parametrize(
    ("given", "kind", "said"),
    [
        ([64, 1], ValueError, "exactly 3 elements, not 2"),
        (64, TypeError, "a sequence of 3 positive integers, not 64"),
        ([64.0, 1, 1], TypeError, "must be an int, not 64.0"),
        ([0, 1, 1], ValueError, "must be positive, not 0"),
    ],
)
def test_a_block_size_that_is_none(given: Any, kind: type[Exception], said: str):
    with pytest.raises(kind, match=said):
        flyc.kernel(known_block_size=given)


@pytest.mark.heavy
def test_a_library_for_c(tmp_path: Path):
    import fly

    handle = flyc.compile(made(), np.ones(64, np.int32))
    handle.export_to_c(str(tmp_path), "double")
    assert "launch(" in (tmp_path / "double.h").read_text()
    out = np.ones(64, np.int32)
    fly.load(tmp_path / "double.so")(out)
    assert (out == 2).all()
    with pytest.raises(UsageError, match="no prefix of functions"):
        handle.export_to_c(str(tmp_path), "double", "my_")


def test_a_file_is_replaced_as_a_whole(tmp_path: Path):
    file = tmp_path / "folder" / "a.txt"
    with atomic_write(file, mode="w") as out:
        out.write("old")

    def fail() -> None:
        with atomic_write(file, mode="w") as out:
            out.write("new")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert file.read_text() == "old"
    assert list(file.parent.iterdir()) == [file]
