"""Every example, on every target, by every way through the chain: the results are NumPy's."""

from __future__ import annotations

import contextlib
import io
import os
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from fly_common import toolchain
from fly_trace.load import find_entry, load_file

import fly

sys.path.insert(0, str(Path(__file__).parent))
from example_cases import CASES, Case, check  # noqa: E402

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
TARGETS = ("gfx90a", "gfx942", "gfx950")
BIN = Path(sys.executable).parent

every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
every_target = pytest.mark.parametrize("target", TARGETS)


@pytest.fixture(autouse=True, scope="module")
def private_cache(tmp_path_factory):
    """One store for the module: what one test made, the next finds. The emulator's handlers stay
    where they are, they are not what is tested here."""
    before = dict(os.environ)
    os.environ["FLY_CACHE"] = "on"
    yield
    os.environ.clear()
    os.environ.update(before)


def function_of(case: Case) -> fly.function.JitFunction:
    path = str(EXAMPLES / case.file)
    return find_entry(load_file(path), path, case.entry)


def run_and_check(case: Case, compiled: fly.compiled.Compiled) -> None:
    arguments = case.make()
    expected = case.expect(arguments)
    compiled.run(arguments)
    check(case, arguments, expected)


def variants(target: str) -> dict[str, fly.chains.Chain]:
    """The chains that the issue of trust names: LLVM's optimiser as it comes, absent, weak, and
    both of LLVM's programs as commands of the user's."""
    default = fly.chain(target=target)
    opt = str(toolchain.find_program("opt"))
    llc = str(toolchain.find_program("llc"))
    external = default.replace(
        "opt", fly.Stage.command([opt, "-S", "-O3"], name="opt", suffix=".opt.ll")
    ).replace(
        "llc",
        fly.Stage.command([llc, f"-mcpu={target}", "-filetype=obj"], name="llc", suffix=".o"),
    )
    return {
        "default": default,
        "without opt": default.without("opt"),
        "opt -O1": fly.chain(target=target, opt=("-S", "-O1")),
        "external": external,
    }


@every_target
@every_case
def test_every_way_through_the_chain(case: Case, target: str):
    function = function_of(case)
    module = function.compile(target=target).ir("mlir").encode()
    made = {}
    for name, chain in variants(target).items():
        made[name] = fly.run(chain, module)
        run_and_check(case, fly.load(made[name]))
    assert made["external"] == made["default"]
    assert len({made[name] for name in ("default", "without opt")}) == 2, "opt did nothing"


@every_target
@every_case
def test_jit(case: Case, target: str, monkeypatch):
    monkeypatch.setenv("FLY_TARGET", target)
    function = function_of(case)
    arguments = case.make()
    expected = case.expect(arguments)
    function(**arguments)
    check(case, arguments, expected)
    (compiled,) = function._kept.values()
    # The annotations alone, as fly-trace reads them, say the same as the arrays do.
    assert compiled.hsaco == function_of(case).compile(target=target).hsaco


@every_case
def test_pipe(case: Case, tmp_path: Path):
    """The shell, as a user types it: five programs, arrays in files, the same bytes as @jit."""
    arguments = case.make()
    expected = case.expect(arguments)
    words = []
    for name, value in arguments.items():
        if not isinstance(value, np.ndarray):
            words.append(f"{name}={value}")
        elif value.nbytes > 1 << 30:
            # A sparse file of the same content: nothing of it is ever read but what is touched.
            path = tmp_path / f"{name}.npy"
            stored = np.lib.format.open_memmap(path, "w+", value.dtype, value.shape)
            stored[:, -64:] = value[:, -64:]
            del stored
            words.append(f"{name}={path}")
        else:
            np.save(tmp_path / f"{name}.npy", value)
            words.append(f"{name}={name}.npy" + (f":{name}.out.npy" if name in expected else ""))
    pipe = (
        f"fly-trace {EXAMPLES / case.file}:{case.entry} | fly-opt-py --target gfx942 | opt -S -O3"
        f" | fly-llc | fly-link | tee k.hsaco | fly-run -q {' '.join(words)}"
    )
    llvm = toolchain.find_program("opt").parent
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {pipe}"],
        cwd=tmp_path,
        env={**os.environ, "PATH": f"{BIN}:{llvm}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    results = {name: np.load(tmp_path / f"{name}.out.npy") for name in expected}
    check(case, results, expected)
    assert (tmp_path / "k.hsaco").read_bytes() == function_of(case).compile(target="gfx942").hsaco


@pytest.mark.parametrize("file", sorted({case.file for case in CASES}))
def test_main(file: str, tmp_path: Path, monkeypatch):
    """`python examples/FILE` checks itself; what it says is what it did."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [file])
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        runpy.run_path(str(EXAMPLES / file), run_name="__main__")
    assert "NumPy's" in said.getvalue()
    if file == "gray_scott.py":
        from PIL import Image

        picture = np.asarray(Image.open(tmp_path / "gray_scott.png"))
        assert picture.shape == (512, 512, 3)
        assert picture.std() > 20, "the picture shows nothing"


def test_every_example_has_a_case():
    assert {path.name for path in EXAMPLES.glob("*.py")} == {case.file for case in CASES}
