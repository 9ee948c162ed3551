/* A driver's functions. CUDA's driver API and HIP have functions of the same shapes. */

#ifndef FLY_DRIVERS_H
#define FLY_DRIVERS_H

#include "library.h"

typedef int32_t (*Init)(uint32_t);
typedef int32_t (*Count)(int32_t *);
typedef int32_t (*Attribute)(int32_t *, int32_t, int32_t);
typedef int32_t (*Retain)(void **, int32_t);
typedef int32_t (*Switch)(void *);
typedef int32_t (*Number)(int32_t);
typedef int32_t (*Load)(void **, const void *, uint32_t, int32_t *, void **);
typedef int32_t (*LoadPlain)(void **, const void *);
typedef int32_t (*Find)(void **, void *, const char *);
typedef int32_t (*FunctionAttribute)(int32_t *, int32_t, void *);
typedef int32_t (*SetAttribute)(void *, int32_t, int32_t);
typedef int32_t (*Launch)(void *, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t,
                          uint32_t, void *, void **, void **);
typedef int32_t (*Allocate)(void **, size_t);
typedef int32_t (*AllocateAsync)(void **, size_t, void *);
typedef int32_t (*Free)(void *);
typedef int32_t (*FreeAsync)(void *, void *);
typedef int32_t (*Text)(int32_t, const char **);
typedef const char *(*HipText)(int32_t);
typedef int32_t (*Properties)(void *, int32_t);

/* Roles; `names` of a driver has their functions' names. */
enum {
  INIT, COUNT, ATTRIBUTE, RETAIN, CURRENT, SWITCH, LOAD, FIND, FUNCTION_ATTRIBUTE, SET_ATTRIBUTE,
  LAUNCH, ALLOCATE, ALLOCATE_ASYNC, FREE, FREE_ASYNC, ERROR_NAME, ERROR_TEXT, ROLES
};

typedef struct {
  const char *name;            /* of devices */
  const char *libraries[5];
  const char *names[ROLES];    /* null: the driver has no such function */
  const char *optional;        /* a character for each role: '?' may be missing */
  uintptr_t end;               /* the last word of a launch's `extra` */
  int32_t ready;
  void *functions[ROLES];
} Driver;

#define CALL(driver, type, role) ((type)(driver)->functions[role])

/* The driver for devices of a type, loaded and initialised; null with a text and a status. */
Driver *fly_driver(int32_t type, int32_t *status);

/* Says that a function of a driver failed; the status of the call. */
int32_t fly_driver_failed(Driver *, int32_t role, int32_t status);

#endif
