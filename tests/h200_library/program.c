/* Calls libraries with tensors in the memory of a GPU, by CUDA's driver API, which it loads itself.
   Prints a line for each check, and how many failed. */

#include "row_sums.h"
#include "saxpy.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef unsigned long long Address;

static struct {
  int (*init)(unsigned);
  int (*retain)(void **, int);
  int (*set)(void *);
  int (*get)(void **);
  int (*alloc)(Address *, size_t);
  int (*release)(Address);
  int (*to_device)(Address, const void *, size_t, void *);
  int (*to_host)(void *, Address, size_t, void *);
  int (*fill)(Address, unsigned, size_t, void *);
  int (*stream)(void **, unsigned);
  int (*wait)(void *);
} cuda;

static int failed;

static void check(const char *name, int right, const char *said) {
  printf("%s %s%s%s\n", right ? "ok  " : "FAIL", name, said && *said ? ": " : "", said ? said : "");
  failed += !right;
}

static void call(const char *name, int status) {
  if (status) {
    printf("FAIL %s returned %d\n", name, status);
    exit(1);
  }
}

static void load(void) {
  void *library = dlopen("libcuda.so.1", RTLD_NOW);
  const char *names[] = {"cuInit", "cuDevicePrimaryCtxRetain", "cuCtxSetCurrent", "cuCtxGetCurrent",
                         "cuMemAlloc_v2", "cuMemFree_v2", "cuMemcpyHtoDAsync_v2",
                         "cuMemcpyDtoHAsync_v2", "cuMemsetD32Async", "cuStreamCreate",
                         "cuStreamSynchronize"};
  void **functions = (void **)&cuda;
  size_t n;
  if (!library) {
    printf("FAIL %s\n", dlerror());
    exit(1);
  }
  for (n = 0; n < sizeof names / sizeof *names; n++)
    if (!(functions[n] = dlsym(library, names[n]))) {
      printf("FAIL no %s\n", names[n]);
      exit(1);
    }
}

static DLTensor tensor(Address data, int32_t rank, int64_t *shape) {
  DLTensor made;
  memset(&made, 0, sizeof made);
  made.data = (void *)data;
  made.device.device_type = kDLCUDA;
  made.ndim = rank;
  made.dtype.code = kDLFloat;
  made.dtype.bits = 32;
  made.dtype.lanes = 1;
  made.shape = shape;
  return made;
}

enum { COUNT = 1 << 20 };

static int saxpy_is_right(void *stream, float a) {
  float *x = malloc(COUNT * sizeof *x), *y = malloc(COUNT * sizeof *y);
  Address dx, dy;
  int64_t n = COUNT, wrong = 0;
  int i, status;
  for (i = 0; i < COUNT; i++) {
    x[i] = (float)(i % 1000);
    y[i] = (float)(i % 77);
  }
  call("cuMemAlloc", cuda.alloc(&dx, COUNT * 4));
  call("cuMemAlloc", cuda.alloc(&dy, COUNT * 4));
  call("copy", cuda.to_device(dx, x, COUNT * 4, stream));
  call("copy", cuda.to_device(dy, y, COUNT * 4, stream));
  DLTensor X = tensor(dx, 1, &n), Y = tensor(dy, 1, &n);
  status = saxpy(&X, &Y, a, stream);
  call("copy", cuda.to_host(y, dy, COUNT * 4, stream));
  call("wait", cuda.wait(stream));
  for (i = 0; i < COUNT; i++)
    wrong += y[i] != a * x[i] + (float)(i % 77);
  cuda.release(dx);
  cuda.release(dy);
  free(x);
  free(y);
  return !status && !*saxpy_error() && !wrong;
}

static int sums_are_right(void *stream, int rows, int columns) {
  size_t bytes = (size_t)rows * columns * 4;
  float *a = malloc(bytes), *found = malloc(rows * 4);
  Address da;
  int64_t shape[2] = {rows, columns}, wrong = 0;
  DLManagedTensor *sums = NULL;
  int i, j, status;
  for (i = 0; i < rows * columns; i++)
    a[i] = (float)(i % 13);
  call("cuMemAlloc", cuda.alloc(&da, bytes));
  call("copy", cuda.to_device(da, a, bytes, stream));
  DLTensor A = tensor(da, 2, shape);
  status = row_sums(&A, &sums, stream);
  if (status || !sums) {
    printf("     row_sums: %d %s\n", status, row_sums_error());
    return 0;
  }
  call("copy", cuda.to_host(found, (Address)sums->dl_tensor.data, rows * 4, stream));
  call("wait", cuda.wait(stream));
  sums->deleter(sums);
  for (i = 0; i < rows; i++) {
    float wanted = 0;
    for (j = 0; j < columns; j++)
      wanted += a[i * columns + j];
    wrong += found[i] != wanted; /* small integers: exact in any order */
  }
  cuda.release(da);
  free(a);
  free(found);
  return !wrong;
}

static void *work(void *context) {
  void *stream;
  long bad = 0;
  int turn;
  call("cuCtxSetCurrent", cuda.set(context));
  call("cuStreamCreate", cuda.stream(&stream, 1));
  for (turn = 0; turn < 10; turn++)
    bad += !saxpy_is_right(stream, (float)turn) + !sums_are_right(stream, 100 + turn, 70);
  return (void *)bad;
}

static void threads(void *context) {
  pthread_t made[4];
  long bad = 0;
  int n;
  for (n = 0; n < 4; n++)
    pthread_create(&made[n], NULL, work, context);
  for (n = 0; n < 4; n++) {
    void *found;
    pthread_join(made[n], &found);
    bad += (long)found;
  }
  check("four threads, each with a stream", bad == 0, "");
}

static void errors(void) {
  static float host[8];
  int64_t n = 8, fewer = 7;
  Address memory;
  call("cuMemAlloc", cuda.alloc(&memory, 4096));
  DLTensor X = tensor(memory, 1, &n), Y = tensor(memory, 1, &fewer);
  int status = saxpy(&X, &Y, 1, NULL);
  check("extents that differ", status == 1, saxpy_error());
  Y = tensor(memory, 1, &n);
  Y.data = host;
  Y.device.device_type = kDLCPU;
  status = saxpy(&X, &Y, 1, NULL);
  check("tensors in two places", status == 1, saxpy_error());
  X = Y;
  status = saxpy(&X, &Y, 1, NULL);
  check("the CPU, by the same library", status == 0, saxpy_error());
  X = tensor(memory, 1, &n);
  X.device.device_id = 63;
  Y = X;
  status = saxpy(&X, &Y, 1, NULL);
  check("a device that is not there", status == 3, saxpy_error());
  X = tensor(memory + 2, 1, &n);
  status = saxpy(&X, &X, 1, NULL);
  check("elements that are not aligned", status == 1, saxpy_error());
  cuda.release(memory);
}

static void foreign(const char *path) {
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  int (*function)(const DLTensor *, const DLTensor *, float, void *);
  const char *(*error)(void);
  int64_t n = 8;
  DLTensor X = tensor(0, 1, &n);
  if (!library) {
    check("the library for another vendor", 0, dlerror());
    return;
  }
  *(void **)&function = dlsym(library, "saxpy");
  *(void **)&error = dlsym(library, "saxpy_error");
  check("code for another vendor", function(&X, &X, 1, NULL) == 3, error());
}

static void time_launches(void *stream) {
  struct timespec start, end;
  int64_t n = 256;
  Address memory;
  int i;
  call("cuMemAlloc", cuda.alloc(&memory, 4096));
  DLTensor X = tensor(memory, 1, &n);
  saxpy(&X, &X, 0, stream);
  call("wait", cuda.wait(stream));
  clock_gettime(CLOCK_MONOTONIC, &start);
  for (i = 0; i < 1000; i++)
    saxpy(&X, &X, 0, stream);
  clock_gettime(CLOCK_MONOTONIC, &end);
  call("wait", cuda.wait(stream));
  cuda.release(memory);
  printf("     %.2f us a call\n",
         1e-3 * (1e9 * (double)(end.tv_sec - start.tv_sec) + (double)(end.tv_nsec - start.tv_nsec)) /
             1000);
}

int main(int count, char **words) {
  void *context, *stream, *before = NULL;
  Address memory;
  load();
  call("cuInit", cuda.init(0));
  printf("     %s\n", saxpy_targets());
  call("cuDevicePrimaryCtxRetain", cuda.retain(&context, 0));
  call("cuCtxSetCurrent", cuda.set(context));
  call("cuStreamCreate", cuda.stream(&stream, 1));
  check("saxpy on a stream", saxpy_is_right(stream, 2), saxpy_error());
  check("saxpy on the default stream", saxpy_is_right(NULL, -1.5f), saxpy_error());
  check("two kernels, scratch, a result", sums_are_right(stream, 1000, 333), row_sums_error());
  threads(context);
  call("cuMemAlloc", cuda.alloc(&memory, 64));
  call("cuCtxSetCurrent", cuda.set(NULL)); /* the library makes the device's context current */
  {
    int64_t n = 16;
    DLTensor X = tensor(memory, 1, &n);
    int status = saxpy(&X, &X, 1, NULL);
    cuda.get(&before);
    check("no context is current", status == 0 && before == NULL, saxpy_error());
  }
  call("cuCtxSetCurrent", cuda.set(context));
  errors();
  if (count > 1)
    foreign(words[1]);
  time_launches(stream);
  printf("%d failed\n", failed);
  return failed != 0;
}
