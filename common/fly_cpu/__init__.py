"""Code for NVIDIA's GPUs, compiled for the host from the LLVM IR that llc was given (the section
`.fly.llvm` of a cubin or PTX). The device `cpu` of fly-run and libraries of fly-link run it.

section      bitcode → text of the module
rewrite      the module for the host: runtime calls, checks of memory, polls in loops
text         lines of LLVM IR: operands, sizes of types
assembly     known texts of inline assembly
operations/  `llvm.nvvm.*`, matrices, copies and conversions as functions in LLVM IR
body         the lines of a function
locations    source lines of debug metadata
variables    the variables of a module
runtime/     fibers, barriers, the grid, checks of memory, in LLVM IR
state        what the runtime and its callers share
building     all of it: bitcode → module → object
"""
