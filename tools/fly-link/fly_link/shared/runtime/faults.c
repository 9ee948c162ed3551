/* What a fault says: the access, kernel, instruction, block, thread, and the source line. The words
   are those of `fly_run.cpu.faults`. */

#include "cpu.h"

enum {
  UNMAPPED, READ_ONLY, MISALIGNED, TRAP, DIVERGENT, DEADLOCK, MASK, BARRIER, FULL_STACK, ASSERT,
  MBARRIER, MAP, IN_CLUSTER
};

/* Why an mbarrier can't do what it is told to, by the size that is recorded. */
static const char *const mbarriers[] = {
  "it is not initialised",
  "more arrivals than its phase waits for",
  "more than 1 MB expected, or brought by copies that nobody expects",
  "it must wait for 1 to 1048575 arrivals",
};

/* The same for an operation of a cluster, which is the block alone. */
static const char *const clusters[] = {
  "the thread has arrived at the cluster's barrier before, and has not waited",
  "the thread waits at the cluster's barrier, and has not arrived there",
  "the cluster has no block ",
};

static void say_access(const char *words, uint64_t address, int64_t size) {
  fly_say(words);
  fly_say_number(size);
  fly_say(" bytes at ");
  fly_say_hex(address);
}

static uint64_t distance(const Node *node, uint64_t address) {
  uint64_t low = (uint64_t)node->low, end = low + (uint64_t)node->size;
  return address < low ? low - address : address < end ? 0 : address - end + 1;
}

/* Where an address is, relative to the memory that the kernel may access. */
static void say_nearest(const Node *nodes, uint64_t address, int64_t size) {
  if (address < 4096) {
    fly_say("a null pointer, or an offset from one");
    return;
  }
  const Node *near = nodes;
  for (const Node *node = nodes; node; node = node->next)
    if (distance(node, address) < distance(near, address))
      near = node;
  uint64_t low = (uint64_t)near->low, end = low + (uint64_t)near->size;
  _Bool far = distance(near, address) > (uint64_t)1 << 32;
  if (far)
    fly_say("no buffer is near it; the nearest is ");
  else if (address < low) {
    fly_say_number((int64_t)(low - address));
    fly_say(" bytes before the start of ");
  } else if (address < end) {
    fly_say("the last ");
    fly_say_number((int64_t)(address + (uint64_t)size - end));
    fly_say(" of its bytes are past the end of ");
  } else if (address == end)
    fly_say("at the end of ");
  else {
    fly_say_number((int64_t)(address - end));
    fly_say(" bytes past the end of ");
  }
  fly_say("`");
  fly_say(near->name);
  fly_say("` (");
  fly_say_number(near->size);
  fly_say(" bytes)");
  if (far) {
    fly_say(" at ");
    fly_say_hex(low);
  }
}

static void say_deadlock(int64_t waiting, int64_t state, int64_t ended) {
  if (state == WAITS_FOR_MBARRIER) {
    fly_say("deadlock: nothing can end the phase of parity ");
    fly_say_number(waiting);
    fly_say(" of this mbarrier");
    return;
  }
  if (state == WAITS_FOR_CLUSTER) {
    fly_say("deadlock: not all threads of the cluster arrive at its barrier");
    return;
  }
  if (state == WAITS_FOR_BARRIER && waiting >= MOST_BARRIERS) {
    fly_say("not all threads of the warp group wait for its products");
    return;
  }
  if (state == WAITS_FOR_BARRIER) {
    fly_say("divergent barrier: not all threads reach barrier ");
    fly_say_number(waiting);
    if (ended) {
      fly_say("; ");
      fly_say_number(ended);
      fly_say(" threads have ended");
    }
    return;
  }
  fly_say("not all lanes of the mask ");
  fly_say_hex((uint64_t)waiting & 0xffffffff);
  fly_say(" reach the operation");
  if (ended) {
    fly_say("; ");
    fly_say_number(ended);
    fly_say(" threads have ended");
  }
}

static void say_kind(const Node *nodes, int64_t kind, uint64_t address, int64_t size) {
  if (kind == READ_ONLY) {
    for (const Node *node = nodes; node; node = node->next)
      if ((uint64_t)node->low <= address &&
          address + (uint64_t)size <= (uint64_t)node->low + (uint64_t)node->size) {
        say_access("write to read-only memory: ", address, size);
        fly_say(": `");
        fly_say(node->name);
        fly_say("` may only be read");
        return;
      }
    kind = UNMAPPED;
  }
  switch (kind) {
  case UNMAPPED:
    say_access("memory fault: ", address, size);
    fly_say(": ");
    say_nearest(nodes, address, size);
    break;
  case MISALIGNED:
    say_access("misaligned access: ", address, size);
    break;
  case TRAP:
    fly_say("trap");
    break;
  case DIVERGENT:
    fly_say("divergent barrier: not all threads of the warp execute it");
    break;
  case DEADLOCK:
    say_deadlock((int64_t)address, size, fly_context[WAITING]);
    break;
  case MASK:
    fly_say("the thread is not in the mask ");
    fly_say_hex(address);
    fly_say(" of an operation of its warp");
    break;
  case BARRIER:
    fly_say("barrier ");
    fly_say_number((int64_t)address);
    fly_say(" for ");
    fly_say_number(size);
    fly_say(" threads does not exist");
    break;
  case FULL_STACK:
    fly_say("private memory fault: each thread has ");
    fly_say_number(size);
    fly_say(" bytes of stack");
    break;
  case MBARRIER:
    fly_say("mbarrier at ");
    fly_say_hex(address);
    fly_say(": ");
    fly_say(mbarriers[size]);
    break;
  case MAP:
    fly_say("there is no tensor map at ");
    fly_say_hex(address);
    break;
  case IN_CLUSTER:
    fly_say(clusters[size]);
    if (address)
      fly_say_number((int64_t)address);
    break;
  default:
    fly_say("assertion failed: ");
    if (address)
      fly_say((const char *)(uintptr_t)address);
  }
}

void fly_say_block(const char *kernel) {
  fly_say("kernel ");
  fly_say(kernel);
  fly_say(" block ");
  fly_say_array(&fly_context[CTAID_X], 3);
}

void fly_say_fault(const Node *nodes, const char *kernel) {
  const Site *site = &fly_sites[fly_context[SITE]];
  int64_t index = fly_context[THREAD], width = fly_context[BLOCK_X], height = fly_context[BLOCK_Y];
  int64_t thread[] = {index % width, index / width % height, index / (width * height)};
  if (site->file) {
    fly_say(site->file);
    fly_say(":");
    fly_say_number(site->line);
    if (site->column) {
      fly_say(":");
      fly_say_number(site->column);
    }
    fly_say(": ");
  }
  say_kind(nodes, fly_context[KIND], (uint64_t)fly_context[ADDRESS], fly_context[SIZE]);
  fly_say("; kernel ");
  fly_say(kernel);
  if (*site->what) {
    fly_say(" '");
    fly_say(site->what);
    fly_say("'");
  }
  fly_say(" block ");
  fly_say_array(&fly_context[CTAID_X], 3);
  fly_say(" thread ");
  fly_say_array(thread, 3);
}
