"""`fly-run --host`: the three readers give the same results, tables and errors, for programs of
every kind."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fly_host.native import engine
from fly_host.native.unavailable import NotCompiled
from fly_run.launch import readers, runtime
from fly_trace.session.load import load_file

import fly

from .test_host_programs import load, normal

FLY_RUN = Path(sys.executable).parent / "fly-run"
PEERS = Path(__file__).parents[3] / "benchmarks/peers"
A, B, C = normal(5, 17), normal(17, 33, seed=1), normal(200, seed=2)
X, W, V = normal(3, 4), normal(4, 70, seed=1), normal(70, 7, seed=2)


def adding(_: Any = None) -> Any:
    """The benchmarks' kernels, whose functions write to an argument."""
    return load_file(PEERS / "fly_kernels.py")


# Module, function, arguments: arrays are files, a word stays as it is.
PROGRAMS: dict[str, tuple[Any, str, dict[str, Any]]] = {
    "temporaries": ("split_k", "split_k", {"A": A, "B": B, "bias": normal(33), "splits": 3}),
    "a default": ("split_k", "split_k", {"A": A, "B": B, "bias": normal(33)}),
    "empty grids": ("split_k", "split_k", {"A": A, "B": normal(17, 0), "bias": normal(0)}),
    "a failed check": ("split_k", "split_k", {"A": A, "B": B, "bias": normal(33), "splits": 0}),
    "another extent": ("split_k", "split_k", {"A": A, "B": B, "bias": normal(32)}),
    "a loop": ("reduction", "total", {"A": C}),
    "a loop of tensors": ("jacobi", "jacobi", {"A": C, "iterations": 3}),
    "a branch": ("branch", "chosen", {"A": C, "doubled": 1}),
    "the other branch": ("branch", "chosen", {"A": C[:20], "doubled": 0}),
    "blocks of memory": ("padded_split", "pack", {"A": A}),
    "padding": ("padded_split", "rows", {}),
    "a failed check of a layout": ("padded_split", "rounded", {"width": 5}),
    "library calls": ("library_call", "mlp", {"X": X, "W": W, "V": V}),
    "a written argument": (adding, "vector_add", {"A": C, "B": C, "C": "C=zeros(200,f32):C.npy"}),
    "no argument": (adding, "vector_add", {"A": C, "B": C}),
}


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """A cache for all calls of fly-run here."""
    return tmp_path_factory.mktemp("cache")


def run(folder: Path, host: str, words: list[str], cache: Path) -> tuple[int, str, Any]:
    """The status, what is told but for times, and the results."""
    out = folder / host
    out.mkdir()
    command = [FLY_RUN, folder / "x.hsaco", "--host", host, *words]
    environment = os.environ | {"FLY_CACHE_DIR": str(cache)}
    done = subprocess.run(command, cwd=out, capture_output=True, text=True, env=environment)
    told = re.sub(r"in [0-9.,]+ m?s", "in a time", done.stderr)
    told = re.sub("^fly: building .*\n", "", told)
    return done.returncode, told, {path.name: path.read_bytes() for path in out.iterdir()}


@pytest.mark.parametrize("kind", PROGRAMS)
def test_readers_agree(kind, tmp_path, cache):
    if kind == "library calls":
        pytest.importorskip("torch")
    module, name, arguments = PROGRAMS[kind]
    function = getattr(load(module) if isinstance(module, str) else module(name), name)
    words = []
    for key, value in arguments.items():
        if isinstance(value, np.ndarray):
            np.save(tmp_path / f"{key}.npy", value)
            words.append(f"{key}=../{key}.npy")
        else:
            words.append(value if isinstance(value, str) else f"{key}={value}")
    shown = {key: C if isinstance(value, str) else value for key, value in arguments.items()}
    compiled = function.compile(**shown) if kind != "no argument" else function.compile(C, C, C)
    compiled.save(tmp_path / "x.hsaco")
    program = compiled.program
    assert program is not None
    words += [
        f"{result}={result}.npy"
        for result, operand in program.named_results.items()
        if operand.kind in ("tensor", "view")
    ]
    wanted = run(tmp_path, "interp", words, cache)
    failed = kind.startswith(("a failed", "another", "no "))
    assert (wanted[0] != 0, bool(wanted[2])) == (failed, not failed), wanted
    assert run(tmp_path, "py", words, cache) == wanted
    assert run(tmp_path, "jit", words, cache) == wanted


@pytest.fixture
def added():
    """vector_add, its arguments and device."""
    compiled = adding().vector_add.compile(C, C, C)
    arguments = {"A": C, "B": C, "C": np.zeros_like(C)}
    with runtime.device("auto", compiled.target) as opened:
        yield compiled, arguments, opened


def test_native_code_runs_the_program(added, monkeypatch):
    compiled, arguments, opened = added
    monkeypatch.setattr(opened, "run", None)
    told: list[str] = []
    given = (compiled.program, compiled.image, arguments, opened, told.append)
    outcome = readers.run("jit", *given)
    assert (outcome.results, told) == (None, [])
    assert [(ran.kernel, ran.grid, ran.block) for ran in outcome.ran] == [
        ("vector_add_kernel", (1, 1, 1), (256, 1, 1))
    ]
    assert outcome.ran[0].instructions
    np.testing.assert_array_equal(arguments["C"], C + C)


def test_generated_python_takes_over(added, monkeypatch):
    def fails(*_: Any) -> bytes:
        raise NotCompiled("no linker")

    monkeypatch.setattr(engine, "library", fails)
    monkeypatch.setenv("FLY_CACHE_DIR", "/nowhere")
    monkeypatch.setattr("fly_host.native.library._loaded", {})
    compiled, arguments, opened = added
    told: list[str] = []
    outcome = readers.run("jit", compiled.program, compiled.image, arguments, opened, told.append)
    assert told == ["no linker"]
    assert len(outcome.ran) == 1
    np.testing.assert_array_equal(arguments["C"], C + C)


def test_arguments_that_native_code_does_not_take(added):
    compiled, arguments, opened = added
    wide = np.zeros(400, np.float32)
    told: list[str] = []

    class Other(np.ndarray):
        """Of another type than native code reads."""

    arguments["C"] = wide[:200].view(Other)
    readers.run("jit", compiled.program, compiled.image, arguments, opened, told.append)
    assert told == ["C is neither a torch.Tensor nor a numpy.ndarray"]
    np.testing.assert_array_equal(wide[:200], C + C)


def test_the_fall_back_is_told(tmp_path, cache):
    """From the shell: a processor for which there are no launchers."""
    compiled = adding().vector_add.compile(C, C, C)
    compiled.save(tmp_path / "x.hsaco")
    np.save(tmp_path / "c.npy", C)
    script = (
        "from fly_host.native import engine; engine.TARGETS.clear();"
        "from fly_run.cli import main; main()"
    )
    words = ["x.hsaco", "--host", "jit", "-q", "A=c.npy", "B=c.npy", "C=zeros(200,f32):d.npy"]
    done = subprocess.run(
        [sys.executable, "-c", script, *words],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env=os.environ | {"FLY_CACHE_DIR": str(cache)},
    )
    assert done.returncode == 0
    assert re.fullmatch(
        r"(fly: building .*\n)?fly-run: warning: the host side of vector_add runs as generated"
        r" Python: no launchers for \w+ on \w+\n",
        done.stderr,
    )
    np.testing.assert_array_equal(np.load(tmp_path / "d.npy"), C + C)
    assert fly.load(tmp_path / "x.hsaco").program is not None
