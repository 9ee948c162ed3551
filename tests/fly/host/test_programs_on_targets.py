"""Host programs of several kernels, on every chip that the emulator runs: by @jit and from the
shell, where what the program allocates needs no shape.

The programs are those of test/lit/host. `make targets` runs them on all chips, `make test` on the
usual ones.
"""

import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from chosen_targets import chosen

import fly

PROGRAMS = Path(__file__).parents[3] / "test" / "lit" / "host"
RUN = Path(sys.executable).with_name("fly-run")
TARGETS = chosen()

pytestmark = pytest.mark.usefixtures("shared_handlers")


def load(name: str):
    """A module of its own for each test: the decorator's options decide about the target."""
    spec = importlib.util.spec_from_file_location(f"host_{name}", PROGRAMS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def from_the_shell(folder: Path, function, result: str, numbers=(), **arrays: np.ndarray):
    """The result of a program that fly-run runs on files."""
    function.compile().save(folder / "k.hsaco")
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
    words = [f"{name}={name}.npy" for name in arrays] + list(numbers)
    subprocess.run([RUN, "-q", "k.hsaco", *words, f"{result}=out.npy"], cwd=folder, check=True)
    return np.load(folder / "out.npy")


@pytest.mark.parametrize("target", TARGETS)
def test_a_product_in_three_kernels(target: str, tmp_path: Path):
    """Split-K, a reduction, an epilogue; each temporary is freed after its last use."""
    split_k = fly.jit(target=target)(load("split_k").split_k.function)
    A, B, bias = normal(5, 17), normal(17, 70, seed=1), normal(70, seed=2)
    wanted = np.maximum(A.astype(np.float64) @ B + bias, 0)
    for _ in range(3):  # the second call of a kind may be native code's
        np.testing.assert_allclose(split_k(A, B, bias, 3), wanted, rtol=1e-4, atol=1e-5)
    assert [launch.kernel for launch in split_k.compile().program.launches] == [
        "part",
        "add",
        "epilogue",
    ]
    found = from_the_shell(tmp_path, split_k, "C", ["splits=3"], A=A, B=B, bias=bias)
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("target", TARGETS)
def test_a_blocked_tensor_of_a_padded_split(target: str, tmp_path: Path):
    pack = fly.jit(target=target)(load("padded_split").pack.function)
    A = normal(3, 10)
    padded = np.zeros((3, 12), np.float32)
    padded[:, :10] = A
    wanted = padded.reshape(3, 3, 4).transpose(1, 0, 2)
    for _ in range(3):
        np.testing.assert_array_equal(pack(A), wanted)
    np.testing.assert_array_equal(from_the_shell(tmp_path, pack, "B", A=A), wanted)
