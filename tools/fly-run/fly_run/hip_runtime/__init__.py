"""A HIP runtime library, libamdhip64.so, whose device is the emulator (docs/hip-runtime.md).

prototypes   the functions, as C prototypes
library      LLVM IR of the functions, which jump through a table; the built library
bootstrap    what the library executes in the process that loads it, at the first call
table        fills the table with callbacks: results, errors, injected failures
calls/       the functions, in Python
runtime      what they share: devices, memory, modules, streams, events
"""
