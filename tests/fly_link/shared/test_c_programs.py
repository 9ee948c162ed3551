"""C and C++ programs that use libraries: compiled by `cc` and `c++`, on the CPU, without Python."""

import subprocess

import pytest
from library_support import WARNINGS, compiled_program, output

COMMON = """
#include "saxpy.h"
#include "row_sums.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static DLTensor tensor(void *data, int32_t rank, int64_t *shape) {
  DLTensor made;
  memset(&made, 0, sizeof made);
  made.data = data;
  made.device.device_type = kDLCPU;
  made.ndim = rank;
  made.dtype.code = kDLFloat;
  made.dtype.bits = 32;
  made.dtype.lanes = 1;
  made.shape = shape;
  return made;
}
"""

SUMS = (
    COMMON
    + """
int main(void) {
  enum { ROWS = 5, COLUMNS = 70 };
  static float values[ROWS * COLUMNS];
  int64_t shape[2] = {ROWS, COLUMNS}, n = ROWS * COLUMNS;
  DLTensor a = tensor(values, 2, shape), x = tensor(values, 1, &n);
  DLManagedTensor *sums = NULL;
  int i, status;
  for (i = 0; i < ROWS * COLUMNS; i++)
    values[i] = (float)(i % 7);
  status = saxpy(&x, &x, 1.0f, NULL);
  printf("%d %s %d %s\\n", status, saxpy_error(), saxpy_abi() == SAXPY_ABI, saxpy_targets());
  status = row_sums(&a, &sums, NULL);
  printf("%d %s %d %ld\\n", status, row_sums_error(), sums->dl_tensor.ndim,
         (long)sums->dl_tensor.shape[0]);
  for (i = 0; i < ROWS; i++)
    printf("%g ", (double)((float *)sums->dl_tensor.data)[i]);
  sums->deleter(sums);
  shape[1] = 0;
  status = row_sums(&a, &sums, NULL);
  printf("\\n%d %s %d\\n", status, row_sums_error(), sums == NULL);
  status = row_sums(&a, NULL, NULL);
  printf("%d %s\\n", status, row_sums_error());
  return 0;
}
"""
)


def wanted_sums() -> str:
    values = [2.0 * (i % 7) for i in range(5 * 70)]
    sums = " ".join(f"{sum(values[70 * row : 70 * row + 70]):g}" for row in range(5))
    lines = [
        "0  1 gfx942, sm_80, sm_90a, cpu",
        "0  1 5",
        f"{sums} ",
        "1 5 rows of 0 elements 1",
        "2 S is a null pointer",
    ]
    return "\n".join(lines) + "\n"


def both(libraries):
    return [libraries / "libsaxpy.so", libraries / "librow_sums.so"]


@pytest.mark.parametrize("language", ["c", "cc"])
def test_a_program_runs_on_the_cpu(libraries, language):
    """Two libraries in one program, whose runtimes do not meet."""
    program = compiled_program(SUMS, libraries, both(libraries), language=language)
    assert output(program) == wanted_sums()


def test_a_sanitizer_finds_nothing(libraries):
    """Nothing is read or written that is not there, and nothing is left."""
    flags = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    program = compiled_program(SUMS, libraries, both(libraries), *flags)
    assert output(program, ASAN_OPTIONS="detect_leaks=1") == wanted_sums()


THREADS = (
    COMMON
    + """
#include <pthread.h>

static void *work(void *number) {
  enum { COUNT = 3000 };
  float *values = malloc(2 * COUNT * sizeof(float));
  int64_t n = COUNT, fewer = COUNT - 1, odd = (int64_t)number % 2;
  DLTensor x = tensor(values, 1, &n), y = tensor(values + COUNT, 1, odd ? &fewer : &n);
  long bad = 0;
  int i, turn;
  for (i = 0; i < COUNT; i++) {
    values[i] = (float)i;
    values[COUNT + i] = 0;
  }
  for (turn = 0; turn < 40; turn++) {
    int status = saxpy(&x, &y, 1.0f, NULL);
    const char *said = saxpy_error();
    bad += odd ? status != 1 || strcmp(said, "extent n is 3000 in X, but 2999 in Y")
               : status != 0 || *said;
  }
  for (i = 0; i < COUNT && !odd; i++)
    bad += values[COUNT + i] != 40.0f * (float)i;
  free(values);
  return (void *)bad;
}

int main(void) {
  pthread_t threads[4];
  long bad = 0, n;
  for (n = 0; n < 4; n++)
    pthread_create(&threads[n], NULL, work, (void *)n);
  for (n = 0; n < 4; n++) {
    void *found;
    pthread_join(threads[n], &found);
    bad += (long)found;
  }
  printf("%ld\\n", bad);
  return 0;
}
"""
)


def test_threads_call_at_the_same_time(libraries):
    program = compiled_program(THREADS, libraries, [libraries / "libsaxpy.so"])
    assert output(program) == "0\n"


def test_the_header_is_self_contained(libraries):
    """In C99, C11 and C++; twice; beside dlpack.h, whose structures it takes."""
    (libraries / "dlpack").mkdir(exist_ok=True)
    text = (libraries / "saxpy.h").read_text()
    start = text.index("#ifndef DLPACK_DLPACK_H_")
    end = text.index("#endif\n", start) + len("#endif\n")
    guarded = "#include <stdint.h>\n" + text[start:end].replace("kDLROCM = 10", "kDLROCM = 10, kX")
    (libraries / "dlpack" / "dlpack.h").write_text(guarded)
    for first in ('#include "saxpy.h"', '#include "dlpack/dlpack.h"\n#include "saxpy.h"'):
        used = "int x = kX;" if "dlpack" in first else "int x = kDLROCM;"
        source = f'{first}\n#include "saxpy.h"\n#include "row_sums.h"\n{used}\n'
        for command in (["cc", "-std=c99"], ["cc", "-std=c11"], ["c++", "-std=c++11"]):
            language = ["-x", "c" if command[0] == "cc" else "c++"]
            done = subprocess.run(
                [*command, *language, *WARNINGS, f"-I{libraries}", "-c", "-o", "/dev/null", "-"],
                input=source, capture_output=True, text=True,
            )  # fmt: skip
            assert done.returncode == 0, done.stderr


def test_only_its_own_functions_are_visible(libraries):
    done = subprocess.run(
        ["nm", "-D", "--defined-only", libraries / "libsaxpy.so"], capture_output=True, text=True
    )
    names = sorted(line.split()[-1] for line in done.stdout.splitlines())
    assert names == ["saxpy", "saxpy_abi", "saxpy_error", "saxpy_targets"]
