// The work items of a workgroup on the host, as coroutines: each runs until it ends or reaches a
// barrier, in ascending order, round after round. Without the C library's headers.
typedef unsigned long word;
typedef void Kernel(char *arguments);
enum { MOST_ITEMS = 1024, STACK_BYTES = 1 << 16 };

int host_item[3], host_group[3], host_block[3], host_grid[3];
static word *waiting[MOST_ITEMS], *scheduler; // stack pointers; 0: the work item has ended
static int current;
static Kernel *kernel;
static char *kernel_arguments;
static char stacks[MOST_ITEMS][STACK_BYTES] __attribute__((aligned(16)));

// Saves what the System V ABI says a callee keeps, and goes on where `next` stopped.
__attribute__((naked)) static void go(word **save, word *next) {
    __asm__("pushq %rbp; pushq %rbx; pushq %r12; pushq %r13; pushq %r14; pushq %r15\n\t"
            "movq %rsp, (%rdi); movq %rsi, %rsp\n\t"
            "popq %r15; popq %r14; popq %r13; popq %r12; popq %rbx; popq %rbp; ret");
}

void host_barrier(void) { go(&waiting[current], scheduler); }

static void work_item(void) {
    kernel(kernel_arguments);
    waiting[current] = 0;
    word *gone;
    go(&gone, scheduler);
}

static void run_group(int items) {
    for (int i = 0; i < items; ++i) {
        word *top = (word *)(stacks[i] + STACK_BYTES) - 2; // after `ret`: 8 below a multiple of 16
        top[0] = (word)work_item;
        waiting[i] = top - 6;
    }
    for (int alive = items; alive;) {
        alive = 0;
        for (current = 0; current < items; ++current) {
            if (!waiting[current])
                continue;
            host_item[0] = current % host_block[0];
            host_item[1] = current / host_block[0] % host_block[1];
            host_item[2] = current / host_block[0] / host_block[1];
            go(&scheduler, waiting[current]);
            alive += waiting[current] != 0;
        }
    }
}

void host_launch(Kernel *entry, char *arguments, const int grid[3], const int block[3]) {
    kernel = entry;
    kernel_arguments = arguments;
    for (int d = 0; d < 3; ++d) {
        host_grid[d] = grid[d];
        host_block[d] = block[d];
    }
    for (host_group[2] = 0; host_group[2] < grid[2]; ++host_group[2])
        for (host_group[1] = 0; host_group[1] < grid[1]; ++host_group[1])
            for (host_group[0] = 0; host_group[0] < grid[0]; ++host_group[0])
                run_group(block[0] * block[1] * block[2]);
}
