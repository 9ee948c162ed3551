/* Launches on the device cpu. Blocks run one after another on the calling thread; launches of
   other threads wait. */

#include "cpu.h"

#include <cpuid.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

static Lock running;
static char *stacks;
static size_t stacks_size;
static int64_t rows[2]; /* of the tables that the launch before used */
static int64_t launches;

/* Whether the processor is one of x86-64-v3. */
static _Bool able(void) {
  enum { FMA = 1 << 12, MOVBE = 1 << 22, OSXSAVE = 1 << 27, AVX = 1 << 28, F16C = 1 << 29 };
  enum { BMI1 = 1 << 3, AVX2 = 1 << 5, BMI2 = 1 << 8, LZCNT = 1 << 5 };
  const uint32_t first = FMA | MOVBE | OSXSAVE | AVX | F16C, seventh = BMI1 | AVX2 | BMI2;
  uint32_t a, b, c, d;
  if (!__get_cpuid(1, &a, &b, &c, &d) || (c & first) != first)
    return 0;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || (b & seventh) != seventh)
    return 0;
  return __get_cpuid(0x80000001, &a, &b, &c, &d) && (c & LZCNT);
}

/* Adds what the library itself lets kernels access: variables, stacks, arguments. */
static Node *own_memory(Node *list, Node *room, int64_t shared, const void *arguments,
                        int64_t bytes) {
  Node *node = room;
  Node filled = {list, "the kernel's arguments", (int64_t)(uintptr_t)arguments, bytes, 0};
  *node = filled;
  list = node++;
  Node local = {list, "local memory", (int64_t)(uintptr_t)stacks, (int64_t)stacks_size, 1};
  *node = local;
  list = node++;
  for (int32_t n = 0; n < fly_variable_count; n++) {
    const Variable *one = &fly_variable_names[n];
    int64_t size = one->flags & IS_DYNAMIC ? shared : fly_variables[n][1];
    Node variable = {list, one->label, fly_variables[n][0], size, !(one->flags & IS_CONSTANT)};
    *node = variable;
    list = node++;
  }
  return list;
}

/* Fills the tables of memory that may be read and written. Code remembers rows: those that are not
   in use any more must be empty. */
static _Bool show(const Node *nodes) {
  int64_t(*tables[])[2] = {fly_read, fly_write};
  for (int32_t way = 0; way < 2; way++) {
    int64_t count = 0;
    for (const Node *node = nodes; node; node = node->next) {
      if (way && !node->writable)
        continue;
      if (count == MOST_REGIONS)
        return 0;
      tables[way][count][0] = node->low;
      tables[way][count++][1] = node->size;
    }
    for (int64_t n = count; n < rows[way]; n++)
      tables[way][n][0] = tables[way][n][1] = 0;
    rows[way] = count;
    fly_context[way ? WRITES : READS] = count;
  }
  return 1;
}

static _Bool grow(size_t size) {
  if (size <= stacks_size)
    return 1;
  void *made = mmap(NULL, size, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (made == MAP_FAILED)
    return 0;
  if (stacks)
    munmap(stacks, stacks_size);
  stacks = made;
  stacks_size = size;
  return 1;
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static int32_t run(const Node *nodes, const char *kernel) {
  const char *given = getenv("FLY_TIMEOUT");
  double limit = given ? strtod(given, NULL) : 0, start = now();
  if (!(limit > 0))
    limit = 300;
  for (int64_t status = fly_run(1); status != FINISHED; status = fly_run(0)) {
    if (status == FAULT) {
      fly_say_fault(nodes, kernel);
      return FAILED;
    }
    if (status == PRINT) {
      fly_print((const char *)(uintptr_t)fly_context[FORMAT],
                (const char *)(uintptr_t)fly_context[VALUES]);
      continue;
    }
    fly_context[TURNS] = SLICE_TURNS;
    if (now() - start > limit) {
      fly_say("timeout: the launch did not end within ");
      if (limit == (double)(int64_t)limit)
        fly_say_number((int64_t)limit);
      else
        fly_say_float(limit);
      fly_say(" s; ");
      fly_say_block(kernel);
      return FAILED;
    }
  }
  return 0;
}

static int32_t launch(Call *call, int32_t number, const uint32_t *sizes, uint32_t shared,
                      const void *arguments, int64_t bytes, Node *room) {
  const char *kernel = fly_targets[call->target].kernels[number];
  int64_t threads = (int64_t)sizes[3] * sizes[4] * sizes[5], ticket = 0;
  if (!grow((size_t)threads * STACK)) {
    fly_say("there is no memory for the stacks of ");
    fly_say_number(threads);
    fly_say(" threads");
    return MISSING;
  }
  const Node *nodes = own_memory(call->nodes, room, shared, arguments, bytes);
  if (!show(nodes)) {
    fly_say("more buffers are bound at once than the device cpu can check");
    return WRONG_ARGUMENT;
  }
  fly_context[ENTRY] = (int64_t)(uintptr_t)fly_entries[fly_cpu_numbers[number]];
  fly_context[ARGUMENTS] = (int64_t)(uintptr_t)arguments;
  for (int32_t n = 0; n < 6; n++)
    fly_context[GRID_X + n] = sizes[n];
  fly_context[THREADS] = threads;
  fly_context[TICKETS] = (int64_t)(uintptr_t)&ticket;
  fly_context[BLOCKS] = (int64_t)sizes[0] * sizes[1] * sizes[2];
  fly_context[STACKS] = (int64_t)(uintptr_t)stacks;
  fly_context[DYNAMIC] = shared;
  fly_context[TURNS] = SLICE_TURNS;
  fly_context[NUMBER] = ++launches;
  return run(nodes, kernel);
}

int32_t fly_cpu_launch(Call *call, int32_t number, const uint32_t *sizes, uint32_t shared,
                       const void *arguments, int64_t bytes) {
  if (!able()) {
    fly_say("the device cpu needs an x86-64-v3 processor, with AVX2, FMA and F16C");
    return MISSING;
  }
  size_t size = ((size_t)bytes + 64) / 64 * 64;
  void *copy = aligned_alloc(64, size);
  Node *room = calloc((size_t)fly_variable_count + 2, sizeof(Node));
  int32_t status = MISSING;
  if (copy && room) {
    memcpy(copy, arguments, (size_t)bytes);
    pthread_mutex_lock(&running);
    status = launch(call, number, sizes, shared, copy, bytes, room);
    pthread_mutex_unlock(&running);
  } else {
    fly_say("there is no memory for a launch");
  }
  free(room);
  free(copy);
  return status;
}
