/* What the generated functions call. */

#include "library.h"

#include <string.h>

/* The device and the code for a call, whose first tensor is `first`: the number of the target, or a
   negative status. */
int32_t fly_enter(Call *call, const Tensor *first, void *stream) {
  memset(call, 0, sizeof *call);
  call->place = first->place;
  call->stream = stream;
  int32_t type = call->place.type, held = 0;
  for (int32_t n = 0; n < fly_target_count; n++)
    if (fly_targets[n].type == type) {
      held = 1;
      call->target = n;
    }
  if (!held) {
    fly_say("the library has no code for tensors ");
    fly_say_place(call->place);
    fly_say("; it has code for ");
    fly_say(fly_target_names);
    return -MISSING;
  }
  if (type == CPU)
    return call->target;
  call->device = fly_device(call->place, &call->target, &call->status);
  if (call->device)
    call->status = fly_device_enter(call->device, &call->before);
  return call->status ? -call->status : call->target;
}

void fly_leave(Call *call) {
  if (call->device)
    fly_device_leave(call->device, call->before);
}

int32_t fly_null(const char *name) {
  fly_say(name);
  fly_say(" is a null pointer");
  return WRONG_CALL;
}

/* Lets kernels access memory during the call. */
void fly_bound(Call *call, Node *node, const char *name, int64_t low, int64_t size,
               int32_t writable) {
  Node filled = {call->nodes, name, low, size, writable};
  *node = filled;
  call->nodes = node;
}

int32_t fly_launch(Call *call, int32_t number, uint32_t x, uint32_t y, uint32_t z, uint32_t bx,
                   uint32_t by, uint32_t bz, uint32_t shared, void *stream, void *arguments,
                   int64_t bytes) {
  uint32_t sizes[] = {x, y, z, bx, by, bz};
  if (call->device)
    call->status =
        fly_device_launch(call->device, number, sizes, shared, stream, arguments, bytes);
  else
    call->status = fly_cpu(call, number, sizes, shared, arguments, bytes);
  return call->status;
}
