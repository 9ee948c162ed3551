/* A GPU: its context, which all users of the device in the process share, the code that fits it,
   its kernels. They live as long as the process. */

#include "drivers.h"

#include <stdlib.h>
#include <string.h>

enum { DEVICES = 64, LOG = 2048, USUAL_SHARED = 48 << 10 };
enum { MAJOR = 75, MINOR = 76, SHARED = 97 };   /* CUdevice_attribute */
enum { STATIC_SHARED = 1, DYNAMIC_SHARED = 8 }; /* CUfunction_attribute */
/* hipDeviceProp_tR0600: where gcnArchName is; a later version of the struct may be longer. */
enum { PROPERTIES = 8192, ARCHITECTURE = 1160 };

struct Device {
  int32_t ready, target;
  int32_t no_pools; /* the device has no memory pools */
  Place place;
  Driver *driver;
  void *context; /* of CUDA */
  void *module;
  void **functions;
};

static Device cuda_devices[DEVICES], hip_devices[DEVICES];
static Lock loading;

/* How well code fits a device of compute capability `major`.`minor`; 0 if it does not. Machine
   code runs on its major version from its minor one on, PTX on all later devices; with an "a" each
   on its own device only, with an "f" on its major version (PTX ISA, ".target"). */
static int32_t fitness(const Target *target, int32_t major, int32_t minor) {
  int32_t same = target->major == major, wanted = 10 * target->major + target->minor;
  int32_t has = 10 * major + minor;
  if (target->suffix == 'a')
    return wanted == has ? (target->ptx ? 3000 : 4000) : 0;
  if (wanted > has || (!same && (target->suffix == 'f' || !target->ptx)))
    return 0;
  return wanted + (target->ptx ? 1000 : 2000) + (target->suffix == 'f');
}

/* Features follow the name: "gfx942:sramecc+:xnack-". Those that the code names must be the same. */
static int32_t fits_amd(const Target *target, const char *architecture) {
  size_t count = strlen(target->name);
  if (strncmp(architecture, target->name, count) ||
      (architecture[count] && architecture[count] != ':'))
    return 0;
  const char *feature = strchr(target->variant, ':');
  while (feature) {
    const char *end = strchr(feature + 1, ':');
    size_t size = end ? (size_t)(end - feature) : strlen(feature);
    const char *at = architecture;
    while ((at = strchr(at, ':')) && (strncmp(at, feature, size) || (at[size] && at[size] != ':')))
      at++;
    if (!at)
      return 0;
    feature = end;
  }
  return 1 + (strchr(target->variant, ':') != NULL);
}

static int32_t failed(Device *device, int32_t role, int32_t status) {
  fly_say_place(device->place);
  fly_say(": ");
  return fly_driver_failed(device->driver, role, status);
}

/* Picks the code for a device; `name` gets the device's architecture. */
static int32_t choose(Device *device, char *name) {
  Driver *driver = device->driver;
  int32_t best = 0, number = device->place.id, type = device->place.type, major = 0, minor = 0;
  if (type == CUDA) {
    int32_t status = CALL(driver, Attribute, ATTRIBUTE)(&major, MAJOR, number);
    if (!status)
      status = CALL(driver, Attribute, ATTRIBUTE)(&minor, MINOR, number);
    if (status)
      return failed(device, ATTRIBUTE, status);
    memcpy(name, "sm_", 3);
    char *at = name + 3;
    if (major > 9)
      *at++ = (char)('0' + major / 10);
    *at++ = (char)('0' + major % 10);
    *at++ = (char)('0' + minor % 10);
    *at = 0;
  } else {
    char *room = calloc(1, PROPERTIES);
    if (!room)
      return MISSING;
    int32_t status = CALL(driver, Properties, ATTRIBUTE)(room, number);
    memcpy(name, room + ARCHITECTURE, 255);
    free(room);
    if (status)
      return failed(device, ATTRIBUTE, status);
  }
  device->target = -1;
  for (int32_t n = 0; n < fly_target_count; n++) {
    const Target *one = &fly_targets[n];
    if (one->type != type)
      continue;
    int32_t fit = type == CUDA ? fitness(one, major, minor) : fits_amd(one, name);
    if (fit > best) {
      best = fit;
      device->target = n;
    }
  }
  if (best)
    return 0;
  fly_say("the library has no code for ");
  fly_say(name);
  fly_say(", which is ");
  fly_say(type == CUDA ? "cuda:" : "rocm:");
  fly_say_number(number);
  fly_say("; it has code for ");
  fly_say(fly_target_names);
  return MISSING;
}

static int32_t load(Device *device) {
  Driver *driver = device->driver;
  const Target *target = &fly_targets[device->target];
  int32_t status;
  if (device->place.type == CUDA) {
    char log[LOG] = {0};
    int32_t options[] = {5, 6}; /* CU_JIT_ERROR_LOG_BUFFER, its size */
    void *values[] = {log, (void *)(uintptr_t)(LOG - 1)};
    status = CALL(driver, Load, LOAD)(&device->module, target->image, 2, options, values);
    if (status) {
      int32_t result = failed(device, LOAD, status);
      if (*log) {
        fly_say(": ");
        log[strcspn(log, "\n")] = 0;
        fly_say(log);
      }
      return result;
    }
  } else if ((status = CALL(driver, LoadPlain, LOAD)(&device->module, target->image))) {
    return failed(device, LOAD, status);
  }
  device->functions = calloc((size_t)target->launches + 1, sizeof(void *));
  if (!device->functions)
    return MISSING;
  for (int32_t n = 0; n < target->launches; n++) {
    void **function = &device->functions[n];
    int32_t most = 0, fixed = 0, role = FIND;
    status = CALL(driver, Find, FIND)(function, device->module, target->kernels[n]);
    if (!status && device->place.type == CUDA) { /* HIP's dynamic LDS needs no attribute */
      status = CALL(driver, Attribute, role = ATTRIBUTE)(&most, SHARED, device->place.id);
      if (!status)
        status = CALL(driver, FunctionAttribute, role = FUNCTION_ATTRIBUTE)(&fixed, STATIC_SHARED,
                                                                            *function);
      if (!status && most > USUAL_SHARED)
        status = CALL(driver, SetAttribute, role = SET_ATTRIBUTE)(*function, DYNAMIC_SHARED,
                                                                  most - fixed);
    }
    if (status) {
      fly_say("kernel ");
      fly_say(target->kernels[n]);
      fly_say(": ");
      return failed(device, role, status);
    }
  }
  return 0;
}

static int32_t open_device(Device *device) {
  Driver *driver = device->driver;
  char name[256] = {0};
  int32_t count = 0, status = CALL(driver, Count, COUNT)(&count);
  if (status)
    return fly_driver_failed(driver, COUNT, status);
  if (device->place.id < 0 || device->place.id >= count) {
    fly_say("there is no device ");
    fly_say(driver->name);
    fly_say(":");
    fly_say_number(device->place.id);
    fly_say("; there are ");
    fly_say_number(count);
    return MISSING;
  }
  if ((status = choose(device, name)))
    return status;
  if (device->place.type == CUDA && !device->context &&
      (status = CALL(driver, Retain, RETAIN)(&device->context, device->place.id)))
    return failed(device, RETAIN, status);
  uint64_t before;
  if ((status = fly_device_enter(device, &before)))
    return status;
  status = load(device);
  fly_device_leave(device, before);
  return status;
}

Device *fly_device(Place place, int32_t *target, int32_t *status) {
  Driver *driver = fly_driver(place.type, status);
  if (!driver)
    return NULL;
  if (place.id < 0 || place.id >= DEVICES) {
    fly_say("there is no device ");
    fly_say(driver->name);
    fly_say(":");
    fly_say_number(place.id);
    *status = MISSING;
    return NULL;
  }
  Device *device = &(place.type == CUDA ? cuda_devices : hip_devices)[place.id];
  if (!__atomic_load_n(&device->ready, __ATOMIC_ACQUIRE)) {
    pthread_mutex_lock(&loading);
    if (!device->ready) {
      device->driver = driver;
      device->place = place;
      *status = open_device(device);
      if (!*status)
        __atomic_store_n(&device->ready, 1, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&loading);
  }
  *target = device->target;
  return *status ? NULL : device;
}

/* Makes the device's context this thread's; `before` is what was. HIP's contexts are its devices,
   by number. */
int32_t fly_device_enter(Device *device, uint64_t *before) {
  Driver *driver = device->driver;
  int32_t status;
  uint64_t wanted;
  if (device->place.type == CUDA) {
    void *current = NULL;
    status = CALL(driver, int32_t (*)(void **), CURRENT)(&current);
    *before = (uint64_t)(uintptr_t)current;
    wanted = (uint64_t)(uintptr_t)device->context;
    if (!status && *before != wanted) {
      status = CALL(driver, Switch, SWITCH)(device->context);
      return status ? failed(device, SWITCH, status) : 0;
    }
  } else {
    int32_t current = 0;
    status = CALL(driver, Count, CURRENT)(&current);
    *before = (uint64_t)current;
    if (!status && current != device->place.id) {
      status = CALL(driver, Number, SWITCH)(device->place.id);
      return status ? failed(device, SWITCH, status) : 0;
    }
  }
  return status ? failed(device, CURRENT, status) : 0;
}

void fly_device_leave(Device *device, uint64_t before) {
  if (device->place.type == CUDA) {
    if (before != (uint64_t)(uintptr_t)device->context)
      CALL(device->driver, Switch, SWITCH)((void *)(uintptr_t)before);
  } else if (before != (uint64_t)device->place.id) {
    CALL(device->driver, Number, SWITCH)((int32_t)before);
  }
}

int32_t fly_device_launch(Device *device, int32_t number, const uint32_t *sizes, uint32_t shared,
                          void *stream, void *arguments, int64_t bytes) {
  Driver *driver = device->driver;
  size_t size = (size_t)bytes;
  void *extra[] = {(void *)1, arguments, (void *)2, &size, (void *)driver->end};
  int32_t status = CALL(driver, Launch, LAUNCH)(device->functions[number], sizes[0], sizes[1],
                                                sizes[2], sizes[3], sizes[4], sizes[5], shared,
                                                stream, NULL, extra);
  if (!status)
    return 0;
  fly_say("kernel ");
  fly_say(fly_targets[device->target].kernels[number]);
  fly_say(": ");
  return fly_driver_failed(driver, LAUNCH, status);
}

enum { NOT_SUPPORTED = 801 };

int32_t fly_device_allocate(Device *device, int64_t bytes, void *stream, void **memory) {
  Driver *driver = device->driver;
  _Bool pools = driver->functions[ALLOCATE_ASYNC] && driver->functions[FREE_ASYNC];
  if (pools && !__atomic_load_n(&device->no_pools, __ATOMIC_RELAXED)) {
    int32_t status =
        CALL(driver, AllocateAsync, ALLOCATE_ASYNC)(memory, (size_t)bytes, stream);
    if (status != NOT_SUPPORTED)
      return status ? fly_driver_failed(driver, ALLOCATE_ASYNC, status) : 0;
  }
  /* The function that frees such memory waits for the device. */
  __atomic_store_n(&device->no_pools, 1, __ATOMIC_RELAXED);
  int32_t status = CALL(driver, Allocate, ALLOCATE)(memory, (size_t)bytes);
  return status ? fly_driver_failed(driver, ALLOCATE, status) : 0;
}

void fly_device_free(Device *device, void *memory, void *stream, int32_t ordered) {
  Driver *driver = device->driver;
  uint64_t before;
  if (fly_device_enter(device, &before))
    return;
  if (ordered && !__atomic_load_n(&device->no_pools, __ATOMIC_RELAXED))
    CALL(driver, FreeAsync, FREE_ASYNC)(memory, stream);
  else
    CALL(driver, Free, FREE)(memory);
  fly_device_leave(device, before);
}
