/* What the device cpu shares with the runtime of kernels; `fly_cpu.state` has the same numbers. */

#ifndef FLY_CPU_H
#define FLY_CPU_H

#include "library.h"

/* Words of the record `fly_context`; those of clusters stay 0. */
enum {
  ENTRY, ARGUMENTS, GRID_X, GRID_Y, GRID_Z, BLOCK_X, BLOCK_Y, BLOCK_Z,
  THREADS, TICKETS, BLOCKS, STACKS, DYNAMIC, READS, WRITES, TURNS, NUMBER,
  STATUS, FUEL, KIND, ADDRESS, SIZE, SITE, THREAD, CTAID_X, CTAID_Y,
  CTAID_Z, DONE, WAITING, FORMAT, VALUES,
  CLUSTER, CLUSTER_X, CLUSTER_Y, CLUSTER_Z, RANK, PEERS, MEETING, MOVED, HOPELESS, UNSEEN
};
enum { FINISHED, SLICE, FAULT, PRINT }; /* what fly_run returns */
enum { MOST_REGIONS = 2048, STACK = 256 << 10, SLICE_TURNS = 4096 };
enum { WAITS_FOR_BARRIER = 3, WAITS_FOR_MBARRIER = 6, WAITS_FOR_CLUSTER = 7, MOST_BARRIERS = 16 };

extern int64_t fly_run(int64_t fresh);
extern int64_t fly_context[];
extern int64_t fly_read[][2], fly_write[][2];
extern void *const fly_entries[];
extern const int64_t fly_variables[][2]; /* address, size */

/* Generated: the entry of each launch's kernel; places in the code; variables of the module. */
enum { IS_DYNAMIC = 1, IS_CONSTANT = 2 };
typedef struct { const char *what, *file; int32_t line, column; } Site;
typedef struct { const char *label; int32_t flags; } Variable;
extern const int32_t fly_cpu_numbers[];
extern const Site fly_sites[];
extern const Variable fly_variable_names[];
extern const int32_t fly_variable_count;

/* Says what a fault is; `nodes` is the memory that the kernel may access. */
void fly_say_fault(const Node *nodes, const char *kernel);
/* Says the kernel and the block that runs. */
void fly_say_block(const char *kernel);
/* Prints what a kernel prints. */
void fly_print(const char *format, const char *values);

#endif
