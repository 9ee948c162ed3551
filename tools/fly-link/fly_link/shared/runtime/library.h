/* The runtime of libraries that fly-link makes, for processes without Python and LLVM.

     text.c       the text of the last error, a thread's own
     tensors.c    DLPack's tensors: strides, results; numbers of 16 bits
     blocks.c     memory that the host program allocates
     drivers.c    CUDA's driver and HIP, loaded when they are needed
     devices.c    a GPU: its context, its code, its kernels
     calls.c      what the generated functions call
     cpu.c        the device cpu: launches (fly_cpu has the runtime of kernels)
     faults.c     what a fault says
     printing.c   what kernels print

   scripts/library-runtime compiles them to library.ll and cpu.ll, so that fly-link needs no C
   compiler. Functions with a variable number of parameters are only called, and the one struct that
   is passed by value, Place, is an integer of 64 bits for x86-64 and for AArch64: the same LLVM IR
   fits both. cpu.ll is for x86-64 only.

   Statuses: 0; 1, an argument does not fit; 2, the call is wrong; 3, something is missing (a
   driver, a device, code for it, memory); 4, a driver failed, or a kernel. */

#ifndef FLY_LIBRARY_H
#define FLY_LIBRARY_H

#include <stddef.h>
#include <stdint.h>

enum { WRONG_ARGUMENT = 1, WRONG_CALL = 2, MISSING = 3, FAILED = 4 };
enum { CPU = 1, CUDA = 2, HIP = 10 }; /* DLPack's kDLCPU, kDLCUDA, kDLROCM */

typedef struct { int32_t type, id; } Place; /* DLDevice */

typedef struct { /* DLTensor; `dtype` is a DLDataType */
  void *data;
  Place place;
  int32_t ndim;
  uint32_t dtype;
  int64_t *shape, *strides;
  uint64_t byte_offset;
} Tensor;

typedef struct Managed { /* DLManagedTensor */
  Tensor tensor;
  void *owner;
  void (*deleter)(struct Managed *);
} Managed;

/* A mutex of the C library, whose size differs between processors; zeros are an unlocked one. */
typedef struct { _Alignas(16) char bytes[64]; } Lock;
extern int pthread_mutex_lock(void *);
extern int pthread_mutex_unlock(void *);

/* Memory that kernels may access; only the device cpu looks at it. */
typedef struct Node {
  struct Node *next;
  const char *name;
  int64_t low, size;
  int32_t writable;
} Node;

/* Code for a target. `kernels` are the names of the kernels, one for each launch. */
typedef struct {
  const char *name;    /* sm_90a */
  const char *variant; /* gfx942:xnack+ */
  int32_t type;        /* of devices */
  int32_t ptx;
  int32_t major, minor, suffix; /* of NVIDIA's */
  int32_t launches;
  const void *image;
  const char *const *kernels;
} Target;

typedef struct Device Device;
typedef struct Block Block;

typedef struct { /* at most 128 bytes, as fly_host.native.c_interface.frame says */
  Place place;
  void *stream;
  int32_t status, target;
  Device *device; /* of GPUs */
  uint64_t before; /* the context that was current */
  Node *nodes;
} Call;

/* Generated. */
extern const Target fly_targets[];
extern const int32_t fly_target_count;
extern const char fly_target_names[];
extern int32_t (*const fly_cpu)(Call *, int32_t number, const uint32_t *sizes, uint32_t shared,
                                const void *arguments, int64_t bytes);

/* text.c */
void fly_clear(void);
void fly_say(const char *);
void fly_say_number(int64_t);
void fly_say_array(const int64_t *, int64_t count);
void fly_say_triple(const int64_t *);
void fly_say_dtype(uint32_t);
void fly_say_place(Place);
void fly_say_float(double);
void fly_say_hex(uint64_t);
const char *fly_text(void);

/* devices.c */
Device *fly_device(Place, int32_t *target, int32_t *status);
int32_t fly_device_enter(Device *, uint64_t *before);
void fly_device_leave(Device *, uint64_t before);
int32_t fly_device_launch(Device *, int32_t number, const uint32_t *sizes, uint32_t shared,
                          void *stream, void *arguments, int64_t bytes);
int32_t fly_device_allocate(Device *, int64_t bytes, void *stream, void **memory);
void fly_device_free(Device *, void *memory, void *stream, int32_t ordered);

#endif
