/* Memory that the host program allocates, in counted blocks. A block whose count falls to 0 is
   freed in the order of the call's stream; one that the caller has gets freed whenever that is. */

#include "library.h"

#include <stdlib.h>
#include <string.h>

struct Block {
  void *memory; /* first: generated code reads it */
  int64_t count;
  Call *call; /* null when the call is over */
  Device *device;
  void *stream;
  Place place;
  Node node;
};

typedef struct {
  Managed managed;
  Block *block;
  int64_t numbers[]; /* extents, strides */
} Result;

void *fly_allocate(Call *call, int64_t bytes, const char *name) {
  Block *block = calloc(1, sizeof *block);
  int64_t size = bytes > 0 ? bytes : 1;
  if (block && call->device) {
    call->status = fly_device_allocate(call->device, size, call->stream, &block->memory);
    if (call->status) {
      fly_say(": ");
      fly_say_number(bytes);
      fly_say(" bytes for ");
      fly_say(name);
      free(block);
      return NULL;
    }
  } else if (block) {
    block->memory = aligned_alloc(64, ((size_t)size + 63) / 64 * 64);
  }
  if (!block || !block->memory) {
    fly_say("there is no memory for ");
    fly_say(name);
    fly_say(": ");
    fly_say_number(bytes);
    fly_say(" bytes");
    call->status = MISSING;
    free(block);
    return NULL;
  }
  block->count = 1;
  block->call = call;
  block->device = call->device;
  block->stream = call->stream;
  block->place = call->place;
  Node node = {call->nodes, name, (int64_t)(uintptr_t)block->memory, bytes, 1};
  block->node = node;
  call->nodes = &block->node;
  return block;
}

static void forget(Block *block) {
  for (Node **at = &block->call->nodes; *at; at = &(*at)->next)
    if (*at == &block->node) {
      *at = block->node.next;
      break;
    }
  block->call = NULL;
}

void fly_hold(Block *block) {
  if (block)
    __atomic_add_fetch(&block->count, 1, __ATOMIC_RELAXED);
}

void fly_drop(Block *block) {
  if (!block || __atomic_sub_fetch(&block->count, 1, __ATOMIC_ACQ_REL))
    return;
  _Bool inside = block->call != NULL;
  if (inside)
    forget(block);
  if (block->device)
    fly_device_free(block->device, block->memory, block->stream, inside);
  else
    free(block->memory);
  free(block);
}

static void delete(Managed *managed) {
  Result *result = managed->owner;
  fly_drop(result->block);
  free(result);
}

/* Makes a DLManagedTensor of a block, or of a parameter's memory if `block` is null. */
int32_t fly_result(Call *call, Block *block, void *data, uint32_t dtype, int32_t rank,
                   const int64_t *shape, const int64_t *strides, Managed **out) {
  size_t bytes = (size_t)rank * sizeof(int64_t);
  Result *result = calloc(1, sizeof *result + 2 * bytes);
  if (!result) {
    fly_say("there is no memory for a result");
    return call->status = MISSING;
  }
  if (block && block->call)
    forget(block);
  fly_hold(block);
  memcpy(result->numbers, shape, bytes);
  memcpy(result->numbers + rank, strides, bytes);
  Tensor *tensor = &result->managed.tensor;
  tensor->data = data;
  tensor->place = call->place;
  tensor->ndim = rank;
  tensor->dtype = dtype;
  tensor->shape = result->numbers;
  tensor->strides = result->numbers + rank;
  result->managed.owner = result;
  result->managed.deleter = delete;
  result->block = block;
  *out = &result->managed;
  return 0;
}
