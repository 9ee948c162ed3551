/* A stand-in for CUDA's driver: two devices, whose memory is the host's, that run nothing. It writes
   the calls that matter to the file FAKE_CUDA_LOG. FAKE_CUDA_FAIL=NAME=STATUS makes a function fail;
   FAKE_CUDA_ARCH is the devices' compute capability, "90". */

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static __thread void *current;

static void tell(const char *form, ...) {
  const char *path = getenv("FAKE_CUDA_LOG");
  FILE *file = path ? fopen(path, "a") : NULL;
  if (!file)
    return;
  va_list values;
  va_start(values, form);
  vfprintf(file, form, values);
  va_end(values);
  fputc('\n', file);
  fclose(file);
}

static int status(const char *name) {
  const char *asked = getenv("FAKE_CUDA_FAIL");
  size_t size = strlen(name);
  return asked && !strncmp(asked, name, size) && asked[size] == '=' ? atoi(asked + size + 1) : 0;
}

#define BEGIN                                                                                      \
  int failed = status(__func__);                                                                   \
  if (failed)                                                                                      \
  return failed

int cuInit(unsigned flags) {
  BEGIN;
  tell("cuInit %u", flags);
  return 0;
}

int cuDeviceGetCount(int *count) {
  BEGIN;
  *count = 2;
  return 0;
}

int cuDeviceGetAttribute(int *value, int attribute, int device) {
  BEGIN;
  const char *given = getenv("FAKE_CUDA_ARCH");
  int arch = given ? atoi(given) : 90;
  *value = attribute == 75 ? arch / 10 : attribute == 76 ? arch % 10 : attribute == 97 ? 232448 : 0;
  return device < 2 ? 0 : 101;
}

int cuDevicePrimaryCtxRetain(void **context, int device) {
  BEGIN;
  *context = (void *)(uintptr_t)(0x100 + device);
  tell("retain %d", device);
  return 0;
}

int cuCtxGetCurrent(void **context) {
  BEGIN;
  *context = current;
  return 0;
}

int cuCtxSetCurrent(void *context) {
  BEGIN;
  current = context;
  tell("current %p", context);
  return 0;
}

int cuModuleLoadDataEx(void **module, const void *image, unsigned count, int *options,
                       void **values) {
  BEGIN;
  const unsigned char *bytes = image;
  int cubin = !memcmp(bytes, "\177ELF", 4);
  for (unsigned n = 0; n < count; n++)
    if (options[n] == 5 && getenv("FAKE_CUDA_JIT")) {
      strcpy(values[n], "ptxas fatal: no\nmore");
      return 218;
    }
  tell("load %s at a multiple of 64: %d", cubin ? "cubin" : "ptx", (uintptr_t)image % 64 == 0);
  *module = (void *)image;
  return 0;
}

int cuModuleGetFunction(void **function, void *module, const char *name) {
  BEGIN;
  *function = strdup(name);
  return module ? 0 : 400;
}

int cuFuncGetAttribute(int *value, int attribute, void *function) {
  BEGIN;
  *value = attribute == 1 && function ? 1024 : 0;
  return 0;
}

int cuFuncSetAttribute(void *function, int attribute, int value) {
  BEGIN;
  tell("attribute %d of %s: %d", attribute, (const char *)function, value);
  return 0;
}

int cuLaunchKernel(void *function, unsigned x, unsigned y, unsigned z, unsigned bx, unsigned by,
                   unsigned bz, unsigned shared, void *stream, void **parameters, void **extra) {
  BEGIN;
  const unsigned char *bytes = extra[1];
  size_t size = *(size_t *)extra[3];
  float last;
  memcpy(&last, bytes + size - 4, 4);
  if (parameters || (uintptr_t)extra[0] != 1 || (uintptr_t)extra[2] != 2 || extra[4])
    return 1;
  tell("launch %s grid %u,%u,%u block %u,%u,%u shared %u stream %p context %p bytes %zu last %g",
       (const char *)function, x, y, z, bx, by, bz, shared, stream, current, size, last);
  return 0;
}

int cuMemAlloc_v2(void **memory, size_t bytes) {
  BEGIN;
  *memory = malloc(bytes);
  tell("alloc %zu", bytes);
  return 0;
}

int cuMemAllocAsync(void **memory, size_t bytes, void *stream) {
  BEGIN;
  *memory = malloc(bytes);
  tell("alloc %zu stream %p", bytes, stream);
  return 0;
}

int cuMemFree_v2(void *memory) {
  BEGIN;
  free(memory);
  tell("free");
  return 0;
}

int cuMemFreeAsync(void *memory, void *stream) {
  BEGIN;
  free(memory);
  tell("free stream %p", stream);
  return 0;
}

int cuGetErrorName(int error, const char **text) {
  *text = error == 700   ? "CUDA_ERROR_ILLEGAL_ADDRESS"
          : error == 2   ? "CUDA_ERROR_OUT_OF_MEMORY"
          : error == 218 ? "CUDA_ERROR_INVALID_PTX"
          : error == 100 ? "CUDA_ERROR_NO_DEVICE"
                         : NULL;
  return *text ? 0 : 1;
}

int cuGetErrorString(int error, const char **text) {
  *text = error == 700   ? "an illegal memory access was encountered"
          : error == 2   ? "out of memory"
          : error == 218 ? "a PTX JIT compilation failed"
          : error == 100 ? "no CUDA-capable device is detected"
                         : NULL;
  return *text ? 0 : 1;
}
