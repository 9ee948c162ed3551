"""Libraries on CUDA's driver, in a C program. A stand-in for the driver tells what is called."""

import subprocess

import pytest
from h200_library.__main__ import prepare
from library_support import compiled_program, output

from .test_c_programs import COMMON

PROGRAM = (
    COMMON
    + """
int main(int count, char **words) {
  static float memory[64];
  int64_t shape[2] = {2, 32}, n = 64;
  int device = count > 1 ? atoi(words[1]) : 0, turn;
  for (turn = 0; turn < 2; turn++) {
    DLTensor x = tensor(memory, 1, &n), a = tensor(memory, 2, shape);
    DLManagedTensor *sums = NULL;
    int status;
    x.device.device_type = a.device.device_type = kDLCUDA;
    x.device.device_id = a.device.device_id = device;
    status = saxpy(&x, &x, 2.5f, (void *)0x77);
    printf("%d %s\\n", status, saxpy_error());
    status = row_sums(&a, &sums, NULL);
    printf("%d %s\\n", status, row_sums_error());
    if (sums) {
      printf("%d %d\\n", sums->dl_tensor.device.device_type, sums->dl_tensor.device.device_id);
      sums->deleter(sums);
    }
  }
  return 0;
}
"""
)


@pytest.fixture(scope="module")
def program(libraries):
    found = [libraries / "libsaxpy.so", libraries / "librow_sums.so"]
    return compiled_program(PROGRAM, libraries, found)


@pytest.fixture
def run(program, fake_cuda, tmp_path):
    """Runs the program; its output and the driver's log, as lines."""

    def call(*words: str, **environment: str) -> tuple[list[str], list[str]]:
        log = tmp_path / "log"
        given = {"LD_LIBRARY_PATH": str(fake_cuda), "FAKE_CUDA_LOG": str(log), **environment}
        said = output(program, *words, **given).splitlines()
        return said, log.read_text().splitlines() if log.exists() else []

    return call


def test_launches_on_a_stream(run):
    said, log = run()
    assert said == ["0 ", "0 ", "2 0"] * 2
    saxpy = "launch saxpy_kernel grid 1,1,1 block 256,1,1 shared 0 stream 0x77 context 0x100"
    assert [line for line in log if line.startswith(saxpy)] == [f"{saxpy} bytes 40 last 2.5"] * 2
    # Each library loads its code once.
    assert log.count("load cubin at a multiple of 64: 1") == 2
    assert log.count("attribute 8 of saxpy_kernel: 231424") == 1
    assert "current 0x100" in log


def test_scratch_is_freed_in_the_streams_order(run):
    _, log = run("1")
    steps = [
        line.split(" grid")[0] for line in log if line.split()[0] in ("alloc", "free", "launch")
    ]
    calls = [
        "launch saxpy_kernel",
        "alloc 256 stream (nil)",
        "launch partial_kernel",
        "alloc 8 stream (nil)",
        "launch whole_kernel",
        "free stream (nil)",
        "free",
    ]
    assert sorted(steps) == sorted(calls * 2)
    assert steps.index("free stream (nil)") > steps.index("launch whole_kernel")
    assert "retain 1" in log
    # What was current before is current again: here nothing.
    assert [line for line in log if line.startswith("current")][-1] == "current (nil)"


def test_a_device_without_memory_pools(run):
    said, log = run(FAKE_CUDA_FAIL="cuMemAllocAsync=801")
    assert said == ["0 ", "0 ", "2 0"] * 2
    assert log.count("alloc 256") == 2
    assert log.count("free") == 4
    assert not any(line.startswith(("alloc 256 stream", "free stream")) for line in log)


@pytest.mark.parametrize(
    ("arch", "kind", "count"),
    [("90", "cubin", 2), ("80", "cubin", 2), ("86", "cubin", 2), ("75", "", 0), ("120", "", 0)],
)
def test_the_code_that_fits_the_device(run, arch, kind, count):
    """sm_80's machine code also runs on 8.6; sm_90a's only on 9.0."""
    said, log = run(FAKE_CUDA_ARCH=arch)
    assert len([line for line in log if line.startswith(f"load {kind}")]) == count
    if not count:
        assert said[0] == (
            f"3 the library has no code for sm_{arch}, which is cuda:0;"
            " it has code for gfx942, sm_80, sm_90a, cpu"
        )


@pytest.mark.parametrize(
    ("fail", "said"),
    [
        (
            "cuInit=100",
            "3 cuInit failed: CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected",
        ),
        (
            "cuLaunchKernel=700",
            "4 kernel saxpy_kernel: cuLaunchKernel failed: CUDA_ERROR_ILLEGAL_ADDRESS:"
            " an illegal memory access was encountered",
        ),
        ("cuLaunchKernel=12345", "4 kernel saxpy_kernel: cuLaunchKernel failed: status 12345"),
        (
            "cuDevicePrimaryCtxRetain=2",
            "3 on cuda:0: cuDevicePrimaryCtxRetain failed: CUDA_ERROR_OUT_OF_MEMORY: out of memory",
        ),
        (
            "cuModuleGetFunction=500",
            "4 kernel saxpy_kernel: on cuda:0: cuModuleGetFunction failed: status 500",
        ),
        ("cuFuncSetAttribute=1", "4 kernel saxpy_kernel: on cuda:0: cuFuncSetAttribute failed:"),
        ("cuDeviceGetAttribute=1", "4 on cuda:0: cuDeviceGetAttribute failed: status 1"),
        ("cuDeviceGetCount=100", "3 cuDeviceGetCount failed: CUDA_ERROR_NO_DEVICE"),
        ("cuCtxGetCurrent=1", "4 on cuda:0: cuCtxGetCurrent failed: status 1"),
        ("cuCtxSetCurrent=1", "4 on cuda:0: cuCtxSetCurrent failed: status 1"),
        ("cuModuleLoadDataEx=1", "4 on cuda:0: cuModuleLoadDataEx failed: status 1"),
    ],
)
def test_a_function_of_the_driver_fails(run, fail, said):
    """The library says so, at each call."""
    found, _ = run(FAKE_CUDA_FAIL=fail)
    assert found[0].startswith(said)
    assert found[1][0] in "34"
    assert found[2] == found[0]


def test_memory_runs_out(run):
    said, log = run(FAKE_CUDA_FAIL="cuMemAllocAsync=2")
    assert said[1] == (
        "3 cuMemAllocAsync failed: CUDA_ERROR_OUT_OF_MEMORY: out of memory: 256 bytes for P"
    )
    assert not any(line.startswith(("launch whole", "alloc")) for line in log)


def test_a_device_that_is_not_there(run):
    said, _ = run("2")
    assert said[0] == "3 there is no device cuda:2; there are 2"
    said, _ = run("-1")
    assert said[0] == "3 there is no device cuda:-1"


def test_what_the_drivers_compiler_says(run):
    said, _ = run(FAKE_CUDA_JIT="1")
    assert said[0] == (
        "4 on cuda:0: cuModuleLoadDataEx failed: CUDA_ERROR_INVALID_PTX: a PTX JIT compilation"
        " failed: ptxas fatal: no"
    )


def test_no_driver(program):
    """A clear error, and the CPU still works."""
    said = output(program, LD_LIBRARY_PATH="").splitlines()
    assert said[0].startswith("3 libcuda.so.1 can't be loaded, which devices cuda need: ")


def test_the_program_for_a_gpu_is_compiled(tmp_path):
    """tests/h200_library: without a driver it ends with an error of its own."""
    prepare(tmp_path)
    done = subprocess.run([tmp_path / "program"], capture_output=True, text=True, env={})
    assert done.returncode == 1
    assert done.stdout.startswith("FAIL libcuda.so.1: cannot open")


STREAMS = """
#include "ordered.h"
#include "scratched.h"
#include <stdio.h>

int main(void) {
  static float memory[64];
  int64_t n = 64;
  DLTensor x = {memory, {kDLCUDA, 0}, 1, {kDLFloat, 32, 1}, &n, NULL, 0};
  printf("%d ", ordered(&x, (void *)0x88, 1.0f, (void *)0x99));
  printf("%d ", ordered(&x, NULL, 1.0f, (void *)0x99));
  printf("%d ", scratched(&x, (void *)0x99, (void *)0x99));
  printf("%d ", scratched(&x, NULL, (void *)0x99));
  printf("%d %s\\n", scratched(&x, (void *)0x88, (void *)0x99), scratched_error());
  return 0;
}
"""


def test_parameters_for_streams(streams, fake_cuda, tmp_path):
    """NULL is the call's stream; memory is allocated in that one's order."""
    program = compiled_program(
        STREAMS, streams, [streams / "libordered.so", streams / "libscratched.so"]
    )
    log = tmp_path / "log"
    said = output(program, LD_LIBRARY_PATH=str(fake_cuda), FAKE_CUDA_LOG=str(log))
    assert said == "0 0 0 0 1 side must be the call's stream: scratched allocates\n"
    found = [line.split() for line in log.read_text().splitlines()]
    steps = [(words[0], words[words.index("stream") + 1]) for words in found if "stream" in words]
    launches = [stream for step, stream in steps if step == "launch"]
    assert launches == ["0x88", "0x99", "0x99", "0x99", "0x99", "0x99"]
    assert [step for step in steps if step[0] != "launch"] == 2 * [
        ("alloc", "0x99"),
        ("free", "0x99"),
    ]
