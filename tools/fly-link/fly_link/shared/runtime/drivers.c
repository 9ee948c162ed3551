/* CUDA's driver and HIP, loaded when a call first needs them.

   Signatures and numbers: cuda.h of CUDA 13, hip_runtime_api.h of ROCm 6 and 7. */

#include "drivers.h"

#include <dlfcn.h>

static Driver cuda = {
    .name = "cuda",
    .libraries = {"libcuda.so.1", "libcuda.so"},
    .names = {"cuInit", "cuDeviceGetCount", "cuDeviceGetAttribute", "cuDevicePrimaryCtxRetain",
              "cuCtxGetCurrent", "cuCtxSetCurrent", "cuModuleLoadDataEx", "cuModuleGetFunction",
              "cuFuncGetAttribute", "cuFuncSetAttribute", "cuLaunchKernel", "cuMemAlloc_v2",
              "cuMemAllocAsync", "cuMemFree_v2", "cuMemFreeAsync", "cuGetErrorName",
              "cuGetErrorString"},
    .optional = "            ? ?  ",
    .end = 0,
};

static Driver hip = {
    .name = "rocm",
    .libraries = {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so",
                  "/opt/rocm/lib/libamdhip64.so"},
    .names = {"hipInit", "hipGetDeviceCount", "hipGetDevicePropertiesR0600", NULL, "hipGetDevice",
              "hipSetDevice", "hipModuleLoadData", "hipModuleGetFunction", NULL, NULL,
              "hipModuleLaunchKernel", "hipMalloc", "hipMallocAsync", "hipFree", "hipFreeAsync",
              "hipGetErrorName", "hipGetErrorString"},
    .optional = "            ? ?  ",
    .end = 3,
};

static Lock guard;

/* Statuses whose numbers CUDA and HIP share: the driver, the device, a permission or memory is not
   there. */
static _Bool missing(int32_t status) {
  static const int32_t known[] = {2,   3,   34,  35,  36,  46,  100, 101,
                                  102, 221, 223, 800, 802, 803, 804, 805};
  for (size_t n = 0; n < sizeof known / sizeof *known; n++)
    if (known[n] == status)
      return 1;
  return 0;
}

int32_t fly_driver_failed(Driver *driver, int32_t role, int32_t status) {
  _Bool told = 0;
  fly_say(driver->names[role]);
  fly_say(" failed: ");
  for (int32_t which = ERROR_NAME; which <= ERROR_TEXT; which++) {
    const char *words = NULL;
    if (driver == &hip)
      words = CALL(driver, HipText, which)(status);
    else if (CALL(driver, Text, which)(status, &words))
      words = NULL;
    if (words && *words) {
      if (told)
        fly_say(": ");
      fly_say(words);
      told = 1;
    }
  }
  if (!told) {
    fly_say("status ");
    fly_say_number(status);
  }
  return missing(status) ? MISSING : FAILED;
}

static int32_t prepare(Driver *driver) {
  void *library = NULL;
  for (int32_t pass = 0; pass < 2 && !library; pass++) /* first one that the process has */
    for (const char **name = driver->libraries; *name && !library; name++)
      library = dlopen(*name, RTLD_LAZY | (pass ? 0 : RTLD_NOLOAD));
  if (!library) {
    fly_say(driver->libraries[0]);
    fly_say(" can't be loaded, which devices ");
    fly_say(driver->name);
    fly_say(" need");
    const char *why = dlerror();
    if (why) {
      fly_say(": ");
      fly_say(why);
    }
    return MISSING;
  }
  for (int32_t role = 0; role < ROLES; role++) {
    if (!driver->names[role])
      continue;
    driver->functions[role] = dlsym(library, driver->names[role]);
    if (!driver->functions[role] && driver->optional[role] != '?') {
      fly_say("the driver of devices ");
      fly_say(driver->name);
      fly_say(" has no function ");
      fly_say(driver->names[role]);
      return MISSING;
    }
  }
  int32_t status = CALL(driver, Init, INIT)(0);
  return status ? fly_driver_failed(driver, INIT, status) : 0;
}

Driver *fly_driver(int32_t type, int32_t *status) {
  Driver *driver = type == CUDA ? &cuda : &hip;
  *status = 0;
  if (__atomic_load_n(&driver->ready, __ATOMIC_ACQUIRE))
    return driver;
  pthread_mutex_lock(&guard);
  if (!driver->ready) {
    *status = prepare(driver);
    if (!*status)
      __atomic_store_n(&driver->ready, 1, __ATOMIC_RELEASE);
  }
  pthread_mutex_unlock(&guard);
  return *status ? NULL : driver;
}
