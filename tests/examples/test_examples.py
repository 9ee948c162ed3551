"""Every example, on every target, by every way through the chain: the results are NumPy's.

The shell's pipes are in test/lit/pipe.
"""

from __future__ import annotations

import contextlib
import io
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from fly_common.programs import toolchain
from fly_trace.session.load import find_entry, load_file

import fly

sys.path.insert(0, str(Path(__file__).parent))
from example_cases import CASES, Case, check

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
PAIRS = [(case, target) for case in CASES for target in case.targets]
every_case_and_target = pytest.mark.parametrize(
    ("case", "target"), PAIRS, ids=[f"{case.name}-{target}" for case, target in PAIRS]
)


@pytest.fixture(autouse=True, scope="module")
def plain_environment():
    """What the caller set for a cache of his own is not what is tested; his store is used, so that
    the emulator's handlers are built once."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("FLY_CACHE", "FLY_TARGET"):
            patch.delenv(name, raising=False)
        yield


def function_of(case: Case) -> fly.call.function.JitFunction:
    path = str(EXAMPLES / case.file)
    return find_entry(load_file(path), path, case.entry)


def run_and_check(case: Case, compiled: fly.call.compiled.Compiled) -> None:
    arguments = case.make()
    expected = case.expect(arguments)
    returned = compiled.run(arguments).results
    check(case, case.after(arguments, returned), expected)


def variants(target: str, thorough: bool) -> dict[str, fly.chains.chain.Chain]:
    """LLVM's optimiser as it comes; no optimisation at all; and if `thorough`, without it before
    code generation, weak, and both of LLVM's programs as commands of the user's."""
    default = fly.chain(target=target)
    unoptimised = fly.chain(target=target, opt=None, llc=(("level", 0),))
    if not thorough:
        return {"default": default, "no effort": unoptimised}
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
        "no effort": unoptimised,
        "external": external,
    }


@every_case_and_target
def test_every_way_through_the_chain(case: Case, target: str):
    function = function_of(case)
    module = function.compile(target=target).ir("mlir").encode()
    made = {}
    for name, chain in variants(target, target in case.thorough).items():
        made[name] = fly.run(chain, module)
        run_and_check(case, fly.load(made[name]))
    if "external" in made:
        assert made.pop("external") == made["default"]
    made.pop("opt -O1", None)  # may be what -O3 gives
    assert len(set(made.values())) == len(made), "a stage was left out, and nothing changed"


@every_case_and_target
def test_jit(case: Case, target: str, monkeypatch):
    monkeypatch.setenv("FLY_TARGET", target)
    function = function_of(case)
    arguments = case.make()
    expected = case.expect(arguments)
    returned = function(**arguments)
    check(case, case.after(arguments, returned), expected)
    (compiled,) = function._kept.values()
    # The annotations alone, as fly-trace reads them, say the same as the arrays do.
    assert compiled.hsaco == function_of(case).compile(target=target).hsaco


# The other examples' pipes are lit tests.
IN_LIT = {path.stem for path in (ROOT / "test" / "lit" / "pipe").glob("*.test")}


@pytest.mark.parametrize("case", [case for case in CASES if case.name not in IN_LIT])
def test_from_the_shell(case: Case, tmp_path: Path):
    """What the program allocates needs no shape, and has the name of its variable."""
    compiled = function_of(case).compile(target=case.targets[0])
    (tmp_path / "k.hsaco").write_bytes(compiled.hsaco)
    arguments = case.make()
    expected = case.expect(arguments)
    words = ["k.hsaco"]
    for name, value in arguments.items():
        assert isinstance(value, np.ndarray)
        np.save(tmp_path / f"{name}.npy", value)
        words.append(f"{name}={name}.npy" + (f":{name}.out.npy" if name in expected else ""))
    words += [f"{name}={name}.out.npy" for name in expected if name not in arguments]
    fly_run = Path(sys.executable).with_name("fly-run")
    subprocess.run([fly_run, "-q", *words], cwd=tmp_path, check=True)
    check(case, {name: np.load(tmp_path / f"{name}.out.npy") for name in expected}, expected)


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
