"""Libraries on HIP: the runtime library is that of the emulator, in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from fly_run.hip_runtime import library
from library_support import compiled_program

TESTS = Path(__file__).parents[2]
SCRIPT = """
import sys
from pathlib import Path
import numpy as np
import fly
from library_support import ROCM, Library, tensor

folder = Path(sys.argv[1])

def library(name):
    path = folder / f"lib{name}.so"
    return Library(path, fly.load(path.read_bytes()).program)

def there(array):
    return tensor(array, (ROCM, int(sys.argv[2])))

saxpy, sums = library("saxpy"), library("row_sums")
X, Y = np.arange(1000, dtype=np.float32), np.ones(1000, np.float32)
print(*saxpy.call(there(X), there(Y), 2.0), saxpy.error(), (Y == 2 * X + 1).all())
A = np.ones((5, 70), np.float32)
status, found = sums.call(there(A))
print(status, sums.error(), found)
"""


@pytest.fixture
def run(libraries):
    def call(target: str = "gfx942", device: int = 0, **environment: str) -> list[str]:
        fly_run = Path(sys.executable).with_name("fly-run")
        command = [fly_run, "--hip", target, "--", sys.executable, "-c", SCRIPT, libraries]
        path = os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])
        done = subprocess.run(
            [*command, str(device)],
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": path, **environment},
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    return call


def test_right_results(run):
    """Two kernels, scratch and a result, in the emulator's device memory."""
    results = "[array([70., 70., 70., 70., 70.], dtype=float32)]"
    assert run() == ["0 []  True", f"0  {results}"]
    assert run("gfx942,gfx942", 1) == ["0 []  True", f"0  {results}"]


def test_another_architecture(run):
    wanted = "3 [] the library has no code for gfx1201, which is rocm:0; it has code for gfx942,"
    assert run("gfx1201")[0].startswith(wanted)


@pytest.mark.parametrize(
    ("fail", "said"),
    [
        ("hipModuleLaunchKernel", "4 [] kernel saxpy_kernel: hipModuleLaunchKernel failed: hip"),
        ("hipModuleLoadData", "[] on rocm:0: hipModuleLoadData failed: hip"),
        ("hipInit", "[] hipInit failed: hip"),
    ],
)
def test_a_function_fails(run, fail, said):
    assert said in run(FLY_HIP_FAIL=fail)[0]
    assert run(FLY_HIP_FAIL="hipMallocAsync")[1].startswith("3 hipMallocAsync failed: hipError")


PROGRAM = """
#include "saxpy.h"
#include <stdio.h>

int main(void) {
  static float memory[64];
  int64_t n = 64;
  int i, status;
  DLTensor x = {memory, {kDLROCM, 0}, 1, {kDLFloat, 32, 1}, &n, NULL, 0};
  for (i = 0; i < 64; i++)
    memory[i] = (float)i;
  status = saxpy(&x, &x, 2.0f, NULL);
  printf("%d %s %g\\n", status, saxpy_error(), (double)memory[63]);
  return 0;
}
"""


def test_a_c_program(libraries):
    """The emulator's library runs in it by the shared library of Python; a Python that was built
    without one leaves HIP uninitialised, and that is what the program is told."""
    program = compiled_program(PROGRAM, libraries, [libraries / "libsaxpy.so"])
    fly_run = Path(sys.executable).with_name("fly-run")
    command = [fly_run, "--hip", "gfx942", "--", program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    if library.shared_python() is None:
        assert done.stdout.startswith("3 hipInit failed: hipErrorNotInitialized")
    else:
        assert done.stdout == "0  189\n"
